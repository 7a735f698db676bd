/* mcugen runtime: cascades of second-order sections. See mcg_filter_biquad.h for the contracts.
 *
 * A section takes the whole block before the next does, so that its coefficients stay in registers. The inputs that a
 * section remembers are the results that the one before it remembers: they are kept once.
 * SPDX-License-Identifier: MIT-0
 */
#include "mcg_filter_biquad.h"

MCG_KERNELS_BEGIN

/* Coefficients of a q15 section. */
typedef struct {
    uint32_t b, a;
    int32_t b0, shift;
} q15_t;

MCG_INLINE q15_t q15_of(const uint32_t *t)
{
    const q15_t q = {t[0], t[1], (int32_t)t[2], (int32_t)t[3]};
    return q;
}

/* The new history: `value` below, the last one above. */
MCG_INLINE uint32_t remember(int32_t value, uint32_t history) { return mcg_pack_low((uint32_t)value, history); }

MCG_INLINE int32_t q15_narrow(q15_t q, int32_t in, uint32_t x, uint32_t y)
{
    const int32_t acc = mcg_smlad(q.a, y, mcg_smlad(q.b, x, mcg_smlabb((uint32_t)q.b0, (uint32_t)in, 0)));
    return mcg_ssat16(acc >> q.shift);
}

MCG_INLINE int32_t q15_wide(q15_t q, int32_t in, uint32_t x, uint32_t y)
{
    const int64_t acc = mcg_smlald(q.a, y, mcg_smlald(q.b, x, (int64_t)mcg_smlabb((uint32_t)q.b0, (uint32_t)in, 0)));
    return mcg_ssat16((int32_t)(acc >> q.shift));
}

#define CASCADE(section)                                      \
    uint32_t before = state[0];                               \
    for (; sections != 0u; --sections, table += 4, ++state) { \
        const q15_t q = q15_of(table);                        \
        uint32_t xs = before, ys = state[1];                  \
        before = ys;                                          \
        for (uint32_t i = 0; i < n; ++i) {                    \
            const int32_t in = x[i];                          \
            const int32_t out = section(q, in, xs, ys);       \
            xs = remember(in, xs);                            \
            ys = remember(out, ys);                           \
            y[i] = (int16_t)out;                              \
        }                                                     \
        state[0] = xs;                                        \
        x = y;                                                \
        if (sections == 1u) {                                 \
            state[1] = ys;                                    \
        }                                                     \
    }

void mcg_biquad_q15_block(const uint32_t *table, uint32_t sections, uint32_t *state, const int16_t *x, int16_t *y,
                          uint32_t n)
{
    CASCADE(q15_wide)
}

void mcg_biquad_q15_narrow_block(const uint32_t *table, uint32_t sections, uint32_t *state, const int16_t *x,
                                 int16_t *y, uint32_t n){CASCADE(q15_narrow)}

MCG_INLINE int64_t mac(int32_t c, int32_t x, int64_t sum)
{
    return (int64_t)((uint64_t)sum + (uint64_t)((int64_t)c * x));
}

MCG_INLINE int32_t low(int64_t v) { return (int32_t)(uint32_t)(uint64_t)v; }

void mcg_biquad_q31_block(const int32_t *table, uint32_t sections, int32_t *state, const int32_t *x, int32_t *y,
                          uint32_t n)
{
    int32_t x1 = state[0], x2 = state[1];
    for (; sections != 0u; --sections, table += 6, state += 2) {
        const int32_t b0 = table[0], b1 = table[1], b2 = table[2], a1 = table[3], a2 = table[4], shift = table[5];
        const int32_t before1 = state[2], before2 = state[3];
        int32_t y1 = before1, y2 = before2;
        for (uint32_t i = 0; i < n; ++i) {
            const int32_t in = x[i];
            const int64_t acc = mac(a2, y2, mac(a1, y1, mac(b2, x2, mac(b1, x1, mac(b0, in, 0)))));
            x2 = x1;
            x1 = in;
            y2 = y1;
            y1 = low(acc >> shift);
            y[i] = y1;
        }
        state[0] = x1;
        state[1] = x2;
        x1 = before1;
        x2 = before2;
        x = y;
        if (sections == 1u) {
            state[2] = y1;
            state[3] = y2;
        }
    }
}

MCG_INLINE int64_t joined(int32_t high, uint32_t word) { return (int64_t)(((uint64_t)(uint32_t)high << 32) | word); }

/* sum + c * y, the product without its lowest 32 bits. */
MCG_INLINE int64_t mac64(int32_t c, int64_t y, int64_t sum)
{
    const uint32_t word = (uint32_t)(uint64_t)y;
    const int32_t high = (int32_t)(y >> 32);
    /* word * c: as unsigned numbers, less 2^32 * word where c is negative. */
    const uint32_t upper = (uint32_t)(((uint64_t)word * (uint32_t)c) >> 32) - (word & (uint32_t)(c >> 31));
    return mac(c, high, (int64_t)((uint64_t)sum + (uint64_t)(int64_t)(int32_t)upper));
}

void mcg_biquad_q63_block(const int32_t *table, uint32_t sections, int32_t *state, const int32_t *x, int32_t *y,
                          uint32_t n)
{
    int32_t x1 = state[0], x2 = state[1];
    int32_t *input = state; /* where the input's history goes: the results of the section before are 64 bits wide */
    state += 2;
    for (; sections != 0u; --sections, table += 6, state += 4) {
        const int32_t b0 = table[0], b1 = table[1], b2 = table[2], a1 = table[3], a2 = table[4], shift = table[5];
        int64_t y1 = joined(state[1], (uint32_t)state[0]), y2 = joined(state[3], (uint32_t)state[2]);
        const int32_t before1 = state[1], before2 = state[3];
        for (uint32_t i = 0; i < n; ++i) {
            const int32_t in = x[i];
            const int64_t acc = mac64(a2, y2, mac64(a1, y1, mac(b2, x2, mac(b1, x1, mac(b0, in, 0)))));
            x2 = x1;
            x1 = in;
            y2 = y1;
            y1 = (int64_t)((uint64_t)acc << shift);
            y[i] = (int32_t)(y1 >> 32);
        }
        if (input != NULL) {
            input[0] = x1;
            input[1] = x2;
            input = NULL;
        }
        state[0] = low(y1);
        state[1] = (int32_t)(y1 >> 32);
        state[2] = low(y2);
        state[3] = (int32_t)(y2 >> 32);
        x1 = before1;
        x2 = before2;
        x = y;
    }
}

void mcg_biquad_f32_block(const float *table, uint32_t sections, float *state, const float *x, float *y, uint32_t n)
{
    for (; sections != 0u; --sections, table += 5, state += 2) {
        const float b0 = table[0], b1 = table[1], b2 = table[2], a1 = table[3], a2 = table[4];
        float d1 = state[0], d2 = state[1];
        for (uint32_t i = 0; i < n; ++i) {
            const float in = x[i];
            const float out = mcg_fma_f32(b0, in, d1);
            d1 = mcg_fma_f32(a1, out, mcg_fma_f32(b1, in, d2));
            float product = b2 * in;
            MCG_ROUNDED_F32(product);
            d2 = mcg_fma_f32(a2, out, product);
            y[i] = out;
        }
        state[0] = d1;
        state[1] = d2;
        x = y;
    }
}

MCG_KERNELS_END
