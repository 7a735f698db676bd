/* mcugen runtime: FIR filters. See mcg_filter_fir.h for the contracts.
 *
 * A line is one stretch of memory: `taps` samples of history, then `room` for new ones. When the room is used up, the
 * last `taps` samples move to the front; so every window is a stretch, and a move costs about one instruction a sample.
 * SPDX-License-Identifier: MIT-0
 */
#include "mcg_filter_fir.h"

MCG_INLINE uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* Copies n elements of 2 or 4 bytes. */
MCG_INLINE void copy16(int16_t *to, const int16_t *from, uint32_t n)
{
    for (; n >= 4u; n -= 4u, from += 4, to += 4) {
        const uint32_t a = mcg_load32(from), b = mcg_load32(from + 2);
        mcg_store32(to, a);
        mcg_store32(to + 2, b);
    }
    for (; n != 0u; --n) {
        *to++ = *from++;
    }
}

MCG_INLINE void copy32(mcg_words_t *to, const mcg_words_t *from, uint32_t n)
{
    for (; n >= 4u; n -= 4u, from += 4, to += 4) {
        const uint32_t a = from[0], b = from[1], c = from[2], d = from[3];
        to[0] = a;
        to[1] = b;
        to[2] = c;
        to[3] = d;
    }
    for (; n != 0u; --n) {
        *to++ = *from++;
    }
}

MCG_KERNELS_BEGIN

/* One result: `taps` samples from w on. */
MCG_INLINE int32_t narrow_one(const mcg_words_t *c, const int16_t *w, uint32_t taps)
{
    int32_t a = 0;
    for (; taps >= 8u; taps -= 8u, c += 4, w += 8) {
        a = mcg_smlad(mcg_load32(w), c[0], a);
        a = mcg_smlad(mcg_load32(w + 2), c[1], a);
        a = mcg_smlad(mcg_load32(w + 4), c[2], a);
        a = mcg_smlad(mcg_load32(w + 6), c[3], a);
    }
    for (; taps != 0u; taps -= 2u, ++c, w += 2) {
        a = mcg_smlad(mcg_load32(w), c[0], a);
    }
    return mcg_ssat16_asr15(a);
}

/* Four results in a row: every word of samples serves two of them. */
MCG_INLINE void narrow_four(const mcg_words_t *c, const int16_t *w, uint32_t taps, int16_t *y)
{
    int32_t a0 = 0, a1 = 0, a2 = 0, a3 = 0;
    uint32_t p = mcg_load32(w), q = mcg_load32(w + 1);
#define PAIR(i)                            \
    do {                                   \
        const uint32_t v = c[i];           \
        a0 = mcg_smlad(p, v, a0);          \
        p = mcg_load32(w + 2u * (i) + 2u); \
        a1 = mcg_smlad(q, v, a1);          \
        q = mcg_load32(w + 2u * (i) + 3u); \
        a2 = mcg_smlad(p, v, a2);          \
        a3 = mcg_smlad(q, v, a3);          \
    } while (0)
    for (; taps >= 8u; taps -= 8u, c += 4, w += 8) {
        PAIR(0u);
        PAIR(1u);
        PAIR(2u);
        PAIR(3u);
    }
    for (; taps != 0u; taps -= 2u, ++c, w += 2) {
        PAIR(0u);
    }
    y[0] = (int16_t)mcg_ssat16_asr15(a0);
    y[1] = (int16_t)mcg_ssat16_asr15(a1);
    y[2] = (int16_t)mcg_ssat16_asr15(a2);
    y[3] = (int16_t)mcg_ssat16_asr15(a3);
}

MCG_INLINE int32_t wide_one(const mcg_words_t *c, const int16_t *w, uint32_t taps)
{
    int64_t a = 0;
    for (; taps >= 8u; taps -= 8u, c += 4, w += 8) {
        a = mcg_smlald(mcg_load32(w), c[0], a);
        a = mcg_smlald(mcg_load32(w + 2), c[1], a);
        a = mcg_smlald(mcg_load32(w + 4), c[2], a);
        a = mcg_smlald(mcg_load32(w + 6), c[3], a);
    }
    for (; taps != 0u; taps -= 2u, ++c, w += 2) {
        a = mcg_smlald(mcg_load32(w), c[0], a);
    }
    return mcg_ssat16((int32_t)(a >> 15));
}

MCG_INLINE void wide_two(const mcg_words_t *c, const int16_t *w, uint32_t taps, int16_t *y)
{
    int64_t a0 = 0, a1 = 0;
#define PAIR_OF_TWO(i)                                         \
    do {                                                       \
        const uint32_t v = c[i];                               \
        a0 = mcg_smlald(mcg_load32(w + 2u * (i)), v, a0);      \
        a1 = mcg_smlald(mcg_load32(w + 2u * (i) + 1u), v, a1); \
    } while (0)
    for (; taps >= 8u; taps -= 8u, c += 4, w += 8) {
        PAIR_OF_TWO(0u);
        PAIR_OF_TWO(1u);
        PAIR_OF_TWO(2u);
        PAIR_OF_TWO(3u);
    }
    for (; taps != 0u; taps -= 2u, ++c, w += 2) {
        PAIR_OF_TWO(0u);
    }
    y[0] = (int16_t)mcg_ssat16((int32_t)(a0 >> 15));
    y[1] = (int16_t)mcg_ssat16((int32_t)(a1 >> 15));
}

void mcg_fir_q15_block(const mcg_fir_t *d, const int16_t *taps, int16_t *state, const int16_t *x, int16_t *y,
                       uint32_t n)
{
    const mcg_words_t *const c = (const mcg_words_t *)(const void *)taps;
    const uint32_t count = d->taps, room = d->room;
    uint32_t at = (uint16_t)state[0];
    while (n != 0u) {
        const uint32_t m = smaller(room - at, n);
        const int16_t *w = state + 3 + at; /* the window of the first new sample ends with it */
        copy16(state + 2 + count + at, x, m);
        uint32_t left = m;
        if (d->narrow != 0u) {
            for (; left >= 4u; left -= 4u, w += 4, y += 4) {
                narrow_four(c, w, count, y);
            }
            for (; left != 0u; --left) {
                *y++ = (int16_t)narrow_one(c, w++, count);
            }
        } else {
            for (; left >= 2u; left -= 2u, w += 2, y += 2) {
                wide_two(c, w, count, y);
            }
            for (; left != 0u; --left) {
                *y++ = (int16_t)wide_one(c, w++, count);
            }
        }
        x += m;
        n -= m;
        at += m;
        if (at == room) {
            copy16(state + 2, state + 2 + room, count);
            at = 0;
        }
    }
    state[0] = (int16_t)at;
}

MCG_INLINE int64_t mac(int32_t x, int32_t c, int64_t sum)
{
    return (int64_t)((uint64_t)sum + (uint64_t)((int64_t)x * c));
}

MCG_INLINE int32_t q31_one(const int32_t *c, const int32_t *w, uint32_t taps)
{
    int64_t a = 0;
    for (; taps >= 4u; taps -= 4u, c += 4, w += 4) {
        a = mac(w[0], c[0], a);
        a = mac(w[1], c[1], a);
        a = mac(w[2], c[2], a);
        a = mac(w[3], c[3], a);
    }
    for (; taps != 0u; --taps) {
        a = mac(*w++, *c++, a);
    }
    return (int32_t)(uint32_t)(uint64_t)(a >> 31);
}

MCG_INLINE void q31_two(const int32_t *c, const int32_t *w, uint32_t taps, int32_t *y)
{
    int64_t a = 0, b = 0;
    int32_t p = *w++;
    for (; taps != 0u; taps -= 2u, c += 2, w += 2) {
        const int32_t c0 = c[0], c1 = c[1], q = w[0];
        a = mac(p, c0, a);
        b = mac(q, c0, b);
        p = w[1];
        a = mac(q, c1, a);
        b = mac(p, c1, b);
    }
    y[0] = (int32_t)(uint32_t)(uint64_t)(a >> 31);
    y[1] = (int32_t)(uint32_t)(uint64_t)(b >> 31);
}

void mcg_fir_q31_block(const mcg_fir_t *d, const int32_t *taps, int32_t *state, const int32_t *x, int32_t *y,
                       uint32_t n)
{
    const uint32_t count = d->taps, room = d->room;
    uint32_t at = (uint32_t)state[0];
    while (n != 0u) {
        const uint32_t m = smaller(room - at, n);
        const int32_t *w = state + 3 + at;
        copy32((mcg_words_t *)(state + 2 + count + at), (const mcg_words_t *)x, m);
        uint32_t left = m;
        for (; left >= 2u; left -= 2u, w += 2, y += 2) {
            q31_two(taps, w, count, y);
        }
        if (left != 0u) {
            *y++ = q31_one(taps, w, count);
        }
        x += m;
        n -= m;
        at += m;
        if (at == room) {
            copy32((mcg_words_t *)(state + 2), (const mcg_words_t *)(state + 2 + room), count);
            at = 0;
        }
    }
    state[0] = (int32_t)at;
}

MCG_INLINE float f32_one(const float *c, const float *w, uint32_t taps)
{
    float a = 0.0f;
    for (; taps >= 4u; taps -= 4u, c += 4, w += 4) {
        a = mcg_fma_f32(c[0], w[0], a);
        a = mcg_fma_f32(c[1], w[1], a);
        a = mcg_fma_f32(c[2], w[2], a);
        a = mcg_fma_f32(c[3], w[3], a);
    }
    for (; taps != 0u; --taps) {
        a = mcg_fma_f32(*c++, *w++, a);
    }
    return a;
}

MCG_INLINE void f32_four(const float *c, const float *w, uint32_t taps, float *y)
{
    float a0 = 0.0f, a1 = 0.0f, a2 = 0.0f, a3 = 0.0f;
    float p0 = w[0], p1 = w[1], p2 = w[2];
    w += 3;
    for (; taps >= 2u; taps -= 2u, c += 2, w += 2) {
        const float c0 = c[0], c1 = c[1];
        const float p3 = w[0], p4 = w[1];
        a0 = mcg_fma_f32(c0, p0, a0);
        a1 = mcg_fma_f32(c0, p1, a1);
        a2 = mcg_fma_f32(c0, p2, a2);
        a3 = mcg_fma_f32(c0, p3, a3);
        a0 = mcg_fma_f32(c1, p1, a0);
        a1 = mcg_fma_f32(c1, p2, a1);
        a2 = mcg_fma_f32(c1, p3, a2);
        a3 = mcg_fma_f32(c1, p4, a3);
        p0 = p2;
        p1 = p3;
        p2 = p4;
    }
    if (taps != 0u) { /* no zero tap stands in: times infinity it would be NaN */
        a0 = mcg_fma_f32(c[0], p0, a0);
        a1 = mcg_fma_f32(c[0], p1, a1);
        a2 = mcg_fma_f32(c[0], p2, a2);
        a3 = mcg_fma_f32(c[0], w[0], a3);
    }
    y[0] = a0;
    y[1] = a1;
    y[2] = a2;
    y[3] = a3;
}

void mcg_fir_f32_block(const mcg_fir_t *d, const float *taps, float *state, const float *x, float *y, uint32_t n)
{
    const uint32_t count = d->taps, room = d->room;
    uint32_t at = *(const mcg_words_t *)(const void *)state;
    while (n != 0u) {
        const uint32_t m = smaller(room - at, n);
        const float *w = state + 3 + at;
        copy32((mcg_words_t *)(void *)(state + 2 + count + at), (const mcg_words_t *)(const void *)x, m);
        uint32_t left = m;
        for (; left >= 4u; left -= 4u, w += 4, y += 4) {
            f32_four(taps, w, count, y);
        }
        for (; left != 0u; --left) {
            *y++ = f32_one(taps, w++, count);
        }
        x += m;
        n -= m;
        at += m;
        if (at == room) {
            copy32((mcg_words_t *)(void *)(state + 2), (const mcg_words_t *)(const void *)(state + 2 + room), count);
            at = 0;
        }
    }
    *(mcg_words_t *)(void *)state = at;
}

MCG_KERNELS_END
