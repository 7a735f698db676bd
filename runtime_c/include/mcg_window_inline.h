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

MCG_INLINE mcg_wave_t mcg_wave_s16(mcg_wave_t w, const int16_t *cosine, const int16_t *sine, const int16_t *x,
                                   uint32_t n)
{
    for (; n >= 2u; n -= 2u, x += 2, cosine += 2, sine += 2) {
        const uint32_t v = mcg_load32(x);
        w.re = mcg_dual64(v, mcg_load32(cosine), w.re);
        w.im = mcg_dual64(v, mcg_load32(sine), w.im);
    }
    if (n != 0u) {
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

/* Sums of one run of int16 samples; `first` is the position of its oldest in the window. */
MCG_INLINE void mcg_run_sums_s16(const int16_t *x, uint32_t n, uint32_t first, const uint32_t uses, mcg_sums_t *s)
{
    int32_t sum = 0; /* below 2^15 * 2^15 */
    int64_t squares = s->squares, ramp = s->ramp;
    uint32_t at = mcg_pair((int32_t)first, (int32_t)first + 1);
    for (; n >= 2u; n -= 2u, x += 2) {
        const uint32_t v = mcg_load32(x);
        sum = mcg_smlad(v, 0x00010001u, sum);
        if ((uses & MCG_SQUARES) != 0u) {
            squares = mcg_dual64(v, v, squares);
        }
        if ((uses & MCG_RAMP) != 0u) {
            ramp = mcg_dual64(v, at, ramp);
            at += 0x00020002u;
        }
    }
    if (n != 0u) {
        sum += *x;
        squares += (uses & MCG_SQUARES) != 0u ? *x * *x : 0;
        ramp += (uses & MCG_RAMP) != 0u ? *x * mcg_lo(at) : 0;
    }
    s->sum += sum;
    s->narrow = s->sum;
    s->squares = squares;
    s->ramp = ramp;
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

/* The smaller and the larger halves, each for itself. */
MCG_INLINE uint32_t mcg_min16x2(uint32_t x, uint32_t y)
{
#if MCG_HAS_DSP
    uint32_t r;
    __asm__("ssub16 %0, %1, %2\n\tsel %0, %2, %1" : "=&r"(r) : "r"(x), "r"(y) : "cc");
    return r;
#else
    const int32_t low = mcg_lo(x) < mcg_lo(y) ? mcg_lo(x) : mcg_lo(y);
    return mcg_pair(low, mcg_hi(x) < mcg_hi(y) ? mcg_hi(x) : mcg_hi(y));
#endif
}

MCG_INLINE uint32_t mcg_max16x2(uint32_t x, uint32_t y)
{
#if MCG_HAS_DSP
    uint32_t r;
    __asm__("ssub16 %0, %1, %2\n\tsel %0, %1, %2" : "=&r"(r) : "r"(x), "r"(y) : "cc");
    return r;
#else
    const int32_t low = mcg_lo(x) > mcg_lo(y) ? mcg_lo(x) : mcg_lo(y);
    return mcg_pair(low, mcg_hi(x) > mcg_hi(y) ? mcg_hi(x) : mcg_hi(y));
#endif
}

MCG_INLINE void mcg_run_extreme(int32_t v, mcg_sums_t *s)
{
    s->low = v < s->low ? v : s->low;
    s->high = v > s->high ? v : s->high;
}

MCG_INLINE void mcg_run_extremes_s16(const int16_t *x, uint32_t n, mcg_sums_t *s)
{
    uint32_t low = mcg_pair(s->low, s->low), high = mcg_pair(s->high, s->high);
    for (; n >= 2u; n -= 2u, x += 2) {
        const uint32_t v = mcg_load32(x);
        low = mcg_min16x2(low, v);
        high = mcg_max16x2(high, v);
    }
    s->low = mcg_lo(low) < mcg_hi(low) ? mcg_lo(low) : mcg_hi(low);
    s->high = mcg_lo(high) > mcg_hi(high) ? mcg_lo(high) : mcg_hi(high);
    if (n != 0u) {
        mcg_run_extreme(*x, s);
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

/* Steps from s->last through one run. For int16 all steps of a window fit 32 bits, 2^15 * 2^16. */
MCG_INLINE void mcg_run_steps_s16(const int16_t *x, uint32_t n, int32_t level, mcg_sums_t *s)
{
    int32_t last = s->last;
    uint32_t travel = 0, crossings = 0;
    for (uint32_t i = 0; i < n; ++i) {
        const int32_t v = x[i], step = v - last;
        travel += (uint32_t)(step < 0 ? -step : step);
        crossings += (uint32_t)((v - level) ^ (last - level)) >> 31;
        last = v;
    }
    s->travel += travel;
    s->crossings += crossings;
    s->last = last;
}

MCG_INLINE void mcg_run_steps_s32(const int32_t *x, uint32_t n, int32_t level, mcg_sums_t *s)
{
    int32_t last = s->last;
    uint32_t crossings = 0, below = last < level;
    int64_t travel = 0;
    for (uint32_t i = 0; i < n; ++i) {
        const int32_t v = x[i];
        const uint32_t now = v < level;
        travel += mcg_distance(v, last);
        crossings += now ^ below;
        below = now;
        last = v;
    }
    s->travel += travel;
    s->crossings += crossings;
    s->last = last;
}

#endif
