/* mcugen runtime: the inner loops of windows. For the runtime's own files; see mcg_window.h for what they compute.
 *
 * A window in a ring is two runs of samples, the older one first. Each loop takes one run and goes on from what the one
 * before it left. SPDX-License-Identifier: MIT-0
 */
#ifndef MCG_WINDOW_INLINE_H
#define MCG_WINDOW_INLINE_H

#include "mcg_dsp.h"
#include "mcg_window.h"

/* acc + lo(x) * lo(y) + hi(x) * hi(y), in 64 bits. */
MCG_INLINE int64_t mcg_dual64(uint32_t x, uint32_t y, int64_t acc)
{
#if MCG_HAS_DSP
    return __smlald((int16x2_t)x, (int16x2_t)y, acc);
#else
    return acc + mcg_lo(x) * mcg_lo(y) + (int64_t)mcg_hi(x) * mcg_hi(y);
#endif
}

typedef struct {
    int64_t re, im;
} mcg_wave_t;

MCG_INLINE mcg_wave_t mcg_wave_pair(mcg_wave_t w, uint32_t v, const int16_t *cosine, const int16_t *sine)
{
    w.re = mcg_dual64(v, mcg_load32(cosine), w.re);
    w.im = mcg_dual64(v, mcg_load32(sine), w.im);
    return w;
}

MCG_INLINE mcg_wave_t mcg_wave_s16(mcg_wave_t w, const int16_t *cosine, const int16_t *sine, const int16_t *x,
                                   uint32_t n)
{
    const int16_t *const end = x + (n & ~3u);
    while (x != end) {
        w = mcg_wave_pair(w, mcg_load32(x), cosine, sine);
        w = mcg_wave_pair(w, mcg_load32(x + 2), cosine + 2, sine + 2);
        x += 4;
        cosine += 4;
        sine += 4;
    }
    if ((n & 2u) != 0u) {
        w = mcg_wave_pair(w, mcg_load32(x), cosine, sine);
        x += 2;
        cosine += 2;
        sine += 2;
    }
    if ((n & 1u) != 0u) {
        w.re += (int32_t)*x * *cosine;
        w.im += (int32_t)*x * *sine;
    }
    return w;
}

MCG_INLINE mcg_wave_t mcg_wave_s32(mcg_wave_t w, const int16_t *cosine, const int16_t *sine, const int32_t *x,
                                   uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        w.re += (int64_t)x[i] * cosine[i];
        w.im += (int64_t)x[i] * sine[i];
    }
    return w;
}

typedef struct {
    int32_t sum; /* below 2^15 * 2^15 */
    int64_t squares, ramp;
    uint32_t at; /* the positions of the next two samples */
} mcg_pair_sums_t;

MCG_INLINE mcg_pair_sums_t mcg_add_pair(mcg_pair_sums_t p, uint32_t v, const uint32_t uses)
{
    p.sum = mcg_smlad(v, 0x00010001u, p.sum);
    if ((uses & MCG_SQUARES) != 0u) {
        p.squares = mcg_dual64(v, v, p.squares);
    }
    if ((uses & MCG_RAMP) != 0u) {
        p.ramp = mcg_dual64(v, p.at, p.ramp);
        p.at += 0x00020002u;
    }
    return p;
}

/* Sums of one run of int16 samples; `first` is the position of its oldest in the window. */
MCG_INLINE void mcg_run_sums_s16(const int16_t *x, uint32_t n, uint32_t first, const uint32_t uses, mcg_sums_t *s)
{
    mcg_pair_sums_t p = {0, s->squares, s->ramp, mcg_pair((int32_t)first, (int32_t)first + 1)};
    const int16_t *const end = x + (n & ~3u);
    while (x != end) {
        p = mcg_add_pair(p, mcg_load32(x), uses);
        p = mcg_add_pair(p, mcg_load32(x + 2), uses);
        x += 4;
    }
    if ((n & 2u) != 0u) {
        p = mcg_add_pair(p, mcg_load32(x), uses);
        x += 2;
    }
    if ((n & 1u) != 0u) {
        p = mcg_add_pair(p, (uint16_t)*x, uses); /* a sample of 0 beside it adds nothing */
    }
    s->sum += p.sum;
    s->narrow = s->sum;
    s->squares = p.squares;
    s->ramp = p.ramp;
}

MCG_INLINE void mcg_run_sums_s32(const int32_t *x, uint32_t n, uint32_t first, uint32_t pre, const uint32_t uses,
                                 mcg_sums_t *s)
{
    int64_t sum = s->sum, narrow = s->narrow, squares = s->squares, ramp = s->ramp;
    for (uint32_t i = 0; i < n; ++i) {
        const int32_t v = x[i];
        if ((uses & (MCG_SUM | MCG_RAMP)) != 0u) {
            sum += v;
        }
        if ((uses & MCG_SQUARES) != 0u) {
            const int32_t u = v >> pre;
            narrow += u;
            squares += (int64_t)u * u;
        }
        if ((uses & MCG_RAMP) != 0u) {
            ramp += (int64_t)v * (int32_t)(first + i);
        }
    }
    s->sum = sum;
    s->narrow = narrow;
    s->squares = squares;
    s->ramp = ramp;
}

#if MCG_HAS_DSP
/* The larger and the smaller halves of x and y, each for itself. */
MCG_INLINE void mcg_order16x2(uint32_t x, uint32_t y, uint32_t *larger, uint32_t *smaller)
{
    uint32_t a, b;
    __asm__("ssub16 %0, %2, %3\n\tsel %0, %2, %3\n\tsel %1, %3, %2" : "=&r"(a), "=&r"(b) : "r"(x), "r"(y) : "cc");
    *larger = a;
    *smaller = b;
}

MCG_INLINE uint32_t mcg_min16x2(uint32_t x, uint32_t y)
{
    uint32_t r;
    __asm__("ssub16 %0, %1, %2\n\tsel %0, %2, %1" : "=&r"(r) : "r"(x), "r"(y) : "cc");
    return r;
}

MCG_INLINE uint32_t mcg_max16x2(uint32_t x, uint32_t y)
{
    uint32_t r;
    __asm__("ssub16 %0, %1, %2\n\tsel %0, %1, %2" : "=&r"(r) : "r"(x), "r"(y) : "cc");
    return r;
}

/* -1 in each half of x that is below that of y, else 0. */
MCG_INLINE uint32_t mcg_below16x2(uint32_t x, uint32_t y)
{
    uint32_t r;
    __asm__("ssub16 %0, %1, %2\n\tsel %0, %3, %4" : "=&r"(r) : "r"(x), "r"(y), "r"(0u), "r"(0xFFFFFFFFu) : "cc");
    return r;
}
#else
MCG_INLINE void mcg_order16x2(uint32_t x, uint32_t y, uint32_t *larger, uint32_t *smaller)
{
    const int low = mcg_lo(x) >= mcg_lo(y), high = mcg_hi(x) >= mcg_hi(y);
    *larger = mcg_pair(low ? mcg_lo(x) : mcg_lo(y), high ? mcg_hi(x) : mcg_hi(y));
    *smaller = mcg_pair(low ? mcg_lo(y) : mcg_lo(x), high ? mcg_hi(y) : mcg_hi(x));
}

MCG_INLINE uint32_t mcg_min16x2(uint32_t x, uint32_t y)
{
    uint32_t larger, smaller;
    mcg_order16x2(x, y, &larger, &smaller);
    return smaller;
}

MCG_INLINE uint32_t mcg_max16x2(uint32_t x, uint32_t y)
{
    uint32_t larger, smaller;
    mcg_order16x2(x, y, &larger, &smaller);
    return larger;
}

MCG_INLINE uint32_t mcg_below16x2(uint32_t x, uint32_t y)
{
    return mcg_pair(mcg_lo(x) < mcg_lo(y) ? -1 : 0, mcg_hi(x) < mcg_hi(y) ? -1 : 0);
}
#endif

MCG_INLINE void mcg_run_extreme(int32_t v, mcg_sums_t *s)
{
    s->low = v < s->low ? v : s->low;
    s->high = v > s->high ? v : s->high;
}

MCG_INLINE void mcg_run_extremes_s16(const int16_t *x, uint32_t n, mcg_sums_t *s)
{
    uint32_t low = mcg_pair(s->low, s->low), high = mcg_pair(s->high, s->high);
    const int16_t *const end = x + (n & ~3u);
    while (x != end) {
        const uint32_t v = mcg_load32(x), w = mcg_load32(x + 2);
        low = mcg_min16x2(mcg_min16x2(low, v), w);
        high = mcg_max16x2(mcg_max16x2(high, v), w);
        x += 4;
    }
    s->low = mcg_lo(low) < mcg_hi(low) ? mcg_lo(low) : mcg_hi(low);
    s->high = mcg_lo(high) > mcg_hi(high) ? mcg_lo(high) : mcg_hi(high);
    for (n &= 3u; n != 0u; --n) {
        mcg_run_extreme(*x++, s);
    }
}

MCG_INLINE void mcg_run_extremes_s32(const int32_t *x, uint32_t n, mcg_sums_t *s)
{
    int32_t low = s->low, high = s->high;
    for (uint32_t i = 0; i < n; ++i) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    s->low = low;
    s->high = high;
}

/* |x - y| */
MCG_INLINE uint32_t mcg_distance(int32_t x, int32_t y)
{
    return x > y ? (uint32_t)x - (uint32_t)y : (uint32_t)y - (uint32_t)x;
}

/* Travel and crossings go from s->last through one run; the one that goes last sets s->last. For int16 the travel of a
 * window fits 32 bits, 2^15 * 2^16, and the crossings of a run each half of a word. */
MCG_INLINE void mcg_run_travel_s16(const int16_t *x, uint32_t n, mcg_sums_t *s)
{
    uint32_t travel = 0;
    if (n != 0u) {
        travel = mcg_distance(x[0], s->last);
    }
    for (; n >= 3u; n -= 2u, x += 2) { /* the steps to x[1] and x[2] */
        uint32_t larger, smaller;
        mcg_order16x2(mcg_load32(x), mcg_load32(x + 1), &larger, &smaller);
        const uint32_t steps = mcg_ssub16(larger, smaller); /* unsigned halves, below 2^16 */
        travel += (steps & 0xFFFFu) + (steps >> 16);
    }
    if (n == 2u) {
        travel += mcg_distance(x[1], x[0]);
    }
    s->travel += travel;
}

MCG_INLINE void mcg_run_crossings_s16(const int16_t *x, uint32_t n, int32_t level, mcg_sums_t *s)
{
    const uint32_t levels = mcg_pair(level, level);
    uint32_t counts = 0, before = s->last < level ? 0xFFFFFFFFu : 0u;
    for (; n >= 2u; n -= 2u, x += 2) {
        const uint32_t below = mcg_below16x2(mcg_load32(x), levels);
        /* A change is -1 in its half. */
        counts = mcg_ssub16(counts, below ^ ((before >> 16) | (below << 16)));
        before = below;
    }
    uint32_t crossings = (counts & 0xFFFFu) + (counts >> 16);
    if (n != 0u) {
        crossings += (uint32_t)(*x < level) ^ (before >> 31);
    }
    s->crossings += crossings;
}

MCG_INLINE void mcg_run_travel_s32(const int32_t *x, uint32_t n, mcg_sums_t *s)
{
    int32_t last = s->last;
    int64_t travel = s->travel;
    for (uint32_t i = 0; i < n; ++i) {
        travel += mcg_distance(x[i], last);
        last = x[i];
    }
    s->travel = travel;
}

MCG_INLINE void mcg_run_crossings_s32(const int32_t *x, uint32_t n, int32_t level, mcg_sums_t *s)
{
    uint32_t crossings = s->crossings, before = s->last < level;
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t below = x[i] < level;
        crossings += before ^ below;
        before = below;
    }
    s->crossings = crossings;
}

#endif
