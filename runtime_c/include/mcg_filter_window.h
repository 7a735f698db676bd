/* mcugen runtime: filters over the last samples: mean, median, extremes, and keeping every m-th sample.
 *
 * One call treats n samples of one channel; x continues where the last call ended, x and y may be the same. All zero is
 * the fresh state.
 * SPDX-License-Identifier: MIT-0
 */
#ifndef MCG_FILTER_WINDOW_H
#define MCG_FILTER_WINDOW_H

#include "mcg_filter.h"

MCG_BEGIN_DECLS

/* y[i] = the mean of the last `length` samples (1..65535), zeros before the first; the sum is exact.
 * at, sum: one element; ring: `length` elements.
 * Rounding: to the nearest, ties up. Overflow: none. Cost: about 15 instructions (q15), 30 (q31). */
void mcg_mean_q15_block(uint32_t length, uint32_t *at, int32_t *sum, int16_t *ring, const int16_t *x, int16_t *y,
                        uint32_t n);
void mcg_mean_q31_block(uint32_t length, uint32_t *at, int64_t *sum, int32_t *ring, const int32_t *x, int32_t *y,
                        uint32_t n);

/* y[i] = the median of the last `length` samples, an odd number; the first sample stands for those before it.
 * at: one element; ring, sorted: `length` elements each.
 * f32 is ordered by its bits: -NaN, -inf, ..., -0, +0, ..., +inf, NaN. Cost: at most about 8 instructions for each
 * sample of the window. */
void mcg_median_q15_block(uint32_t length, uint32_t *at, int16_t *ring, int16_t *sorted, const int16_t *x, int16_t *y,
                          uint32_t n);
void mcg_median_q31_block(uint32_t length, uint32_t *at, int32_t *ring, int32_t *sorted, const int32_t *x, int32_t *y,
                          uint32_t n);
void mcg_median_f32_block(uint32_t length, uint32_t *at, int32_t *ring, int32_t *sorted, const float *x, float *y,
                          uint32_t n);

/* y[i] = the least of the last `length` samples (flip = 0), or the greatest (flip = -1); of fewer at the start.
 * queue: three elements; stamps, values: `length` elements each: candidates, each with the time it came.
 * f32 is ordered as in the median. Cost: about 25 instructions on average; a single push may cost 6 for each sample of
 * the window, when it makes all candidates obsolete. */
void mcg_extreme_q15_block(uint32_t length, int32_t flip, uint32_t *queue, uint32_t *stamps, int16_t *values,
                           const int16_t *x, int16_t *y, uint32_t n);
void mcg_extreme_q31_block(uint32_t length, int32_t flip, uint32_t *queue, uint32_t *stamps, int32_t *values,
                           const int32_t *x, int32_t *y, uint32_t n);
void mcg_extreme_f32_block(uint32_t length, int32_t flip, uint32_t *queue, uint32_t *stamps, int32_t *values,
                           const float *x, float *y, uint32_t n);

/* 1 for push 0, factor, 2 factor...; count: one element. */
MCG_INLINE int mcg_every(uint32_t factor, uint32_t *count)
{
    const uint32_t now = *count;
    *count = now + 1u == factor ? 0u : now + 1u;
    return now == 0u;
}

MCG_END_DECLS

#endif
