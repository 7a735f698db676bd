/* mcugen runtime: integer ops that treat each element by itself. See mcg_nn_elementwise.h for the contracts.
 * SPDX-License-Identifier: MIT-0
 */
#include "mcg_nn_elementwise.h"

MCG_CODE(mcg_table_s8)
void mcg_table_s8(const int8_t *table, const int8_t *x, int8_t *y, uint32_t n)
{
    const int8_t *const middle = table + 128;
    for (uint32_t i = 0; i < n; ++i) {
        y[i] = middle[x[i]];
    }
}

MCG_CODE(mcg_clamp_s8)
void mcg_clamp_s8(int8_t *y, uint32_t n, int32_t low, int32_t high)
{
    const uint32_t least = (uint32_t)(uint8_t)low * 0x01010101u, most = (uint32_t)(uint8_t)high * 0x01010101u;
    uint32_t i = 0;
    for (; i + 16u <= n; i += 16u) {
        int8_t *const p = y + i;
        const uint32_t a = mcg_clamp4(mcg_load32(p), least, most), b = mcg_clamp4(mcg_load32(p + 4), least, most);
        const uint32_t c = mcg_clamp4(mcg_load32(p + 8), least, most), d = mcg_clamp4(mcg_load32(p + 12), least, most);
        mcg_store32(p, a);
        mcg_store32(p + 4, b);
        mcg_store32(p + 8, c);
        mcg_store32(p + 12, d);
    }
    for (; i < n; ++i) {
        const int32_t v = y[i];
        y[i] = (int8_t)(v < low ? low : v > high ? high : v);
    }
}

/* GCC would put bytes together to words before it stores them, which takes more instructions than storing each. */
#if MCG_HAS_DSP && defined(__GNUC__) && !defined(__clang__)
#define MCG_BYTES_BEGIN _Pragma("GCC push_options") _Pragma("GCC optimize (\"no-store-merging\")")
#define MCG_BYTES_END _Pragma("GCC pop_options")
#else
#define MCG_BYTES_BEGIN
#define MCG_BYTES_END
#endif

_Static_assert(MCG_ADD_SHIFT == 20, "mcg_ssat8_asr20 shifts by it");

MCG_BYTES_BEGIN

/* Four elements of the scaled form of mcg_add_s8. */
#define FOUR_SUMS(i)                                                                                            \
    do {                                                                                                        \
        const int32_t v0 = a[i] * unit + middle[b[i]], v1 = a[(i) + 1] * unit + middle[b[(i) + 1]];             \
        const int32_t v2 = a[(i) + 2] * unit + middle[b[(i) + 2]], v3 = a[(i) + 3] * unit + middle[b[(i) + 3]]; \
        to[i] = (int8_t)mcg_ssat8_asr20(v0);                                                                    \
        to[(i) + 1] = (int8_t)mcg_ssat8_asr20(v1);                                                              \
        to[(i) + 2] = (int8_t)mcg_ssat8_asr20(v2);                                                              \
        to[(i) + 3] = (int8_t)mcg_ssat8_asr20(v3);                                                              \
    } while (0)

MCG_CODE(add_scaled)
MCG_NOINLINE static void add_scaled(const mcg_add_t *d, const int32_t *table, const int8_t *a, const int8_t *b,
                                    int8_t *y)
{
    const int32_t *const middle = table + 128;
    const int32_t unit = d->unit;
    const int8_t *const end = a + (d->n & ~7u);
    int8_t *to = y;
    for (; a != end; a += 8, b += 8, to += 8) {
        FOUR_SUMS(0);
        FOUR_SUMS(4);
    }
    for (uint32_t n = d->n & 7u; n != 0u; --n) {
        *to++ = (int8_t)mcg_ssat8_asr20(*a++ * unit + middle[*b++]);
    }
    if (d->requant.low > -128 || d->requant.high < 127) {
        mcg_clamp_s8(y, d->n, d->requant.low, d->requant.high);
    }
}

MCG_BYTES_END

MCG_CODE(mcg_add_s8)
void mcg_add_s8(const mcg_add_t *d, const int32_t *table, const int8_t *a, const int8_t *b, int8_t *y)
{
    if (d->requant.shift == 0) {
        add_scaled(d, table, a, b, y);
        return;
    }
    const mcg_requant_t q = d->requant;
    const int32_t *const middle = table + 128;
    for (uint32_t i = 0, n = d->n; i < n; ++i) {
        y[i] = (int8_t)mcg_requant(a[i] * d->unit + middle[b[i]], q);
    }
}

MCG_CODE(mcg_mul_s8)
void mcg_mul_s8(const mcg_mul_t *d, const int8_t *a, const int8_t *b, int8_t *y)
{
    const mcg_requant_t q = d->requant;
    const int32_t zp_a = d->zp_a, zp_b = d->zp_b;
    for (uint32_t i = 0, n = d->n; i < n; ++i) {
        y[i] = (int8_t)mcg_requant((a[i] - zp_a) * (b[i] - zp_b), q);
    }
}

MCG_CODE(mcg_gate_s8)
void mcg_gate_s8(const mcg_gate_t *d, const int8_t *x, const int8_t *g, int8_t *y)
{
    const mcg_requant_t q = d->requant;
    const int32_t zp_x = d->zp_x, zp_g = d->zp_g;
    const uint32_t gates = d->gates, inner = d->inner;
    for (uint32_t o = 0; o < d->outer; ++o) {
        if (inner == 1u) { /* a gate for each of neighbouring elements */
            for (uint32_t c = 0; c < gates; ++c) {
                *y++ = (int8_t)mcg_requant((*x++ - zp_x) * (g[c] - zp_g), q);
            }
            continue;
        }
        for (uint32_t c = 0; c < gates; ++c) {
            const int32_t gate = g[c] - zp_g;
            for (uint32_t i = 0; i < inner; ++i) {
                *y++ = (int8_t)mcg_requant((*x++ - zp_x) * gate, q);
            }
        }
    }
}

MCG_CODE(mcg_scale_s8)
void mcg_scale_s8(const mcg_scale_t *d, const int32_t *multiplier, const int32_t *add, const int8_t *x, int8_t *y)
{
    const mcg_requant_t q = d->requant;
    const int32_t zp = d->zp;
    for (uint32_t o = 0; o < d->outer; ++o) {
        for (uint32_t c = 0; c < d->channels; ++c) {
            const int32_t m = multiplier[c], plus = add[c];
            for (uint32_t i = 0; i < d->inner; ++i) {
                *y++ = (int8_t)mcg_requant((*x++ - zp) * m + plus, q);
            }
        }
    }
}
