/* mcugen runtime: pools of int8 and int16 tensors; those of float32 are in mcg_nn_float.h.
 *
 * SPDX-License-Identifier: MIT-0
 */
#ifndef MCG_NN_POOL_H
#define MCG_NN_POOL_H

#include "mcg_nn_requant.h"

MCG_BEGIN_DECLS

typedef struct {
    uint32_t in_channel, in_row, in_col;    /* elements from one channel, row, column of the input to the next */
    uint32_t out_channel, out_row, out_col; /* the same of the output */
    uint32_t channels;
    int32_t in_h, in_w, out_h, out_w;
    int32_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w;
    int32_t pad_top, pad_left;
    int32_t count_top, count_left, count_bottom, count_right; /* rows and columns that an average counts: first, and
                                                                 one behind the last; padding has negative ones */
    uint32_t counts;                                          /* averages: entries of the table of counts */
    int32_t zp_in, zp, low, high;                             /* averages: zero points and clamps */
} mcg_pool_t;

/* How an average of `count` elements is requantized. */
typedef struct {
    int32_t count, m, shift, c;
} mcg_pool_count_t;

/* The maximum of each window; padding counts as minus infinity. Every window holds an element of x.
 *
 * x, y: apart.
 * Cost: about 6 instructions a window element and 30 an output. */
void mcg_max_pool_s8(const mcg_pool_t *d, const int8_t *x, int8_t *y);
void mcg_max_pool_s16(const mcg_pool_t *d, const int16_t *x, int16_t *y);

/* The mean of each window: y = requantize(sum of (x - zp_in)) with the entry of `counts` for as many elements as the
 * window counts. x, y: apart. Rounding: once, half up. Overflow: none, proven by mcugen (int16 sums in 64 bits).
 * Cost: about 5 instructions a window element and 50 an output. */
void mcg_avg_pool_s8(const mcg_pool_t *d, const mcg_pool_count_t *counts, const int8_t *x, int8_t *y);
void mcg_avg_pool_s16(const mcg_pool_t *d, const mcg_pool_count_t *counts, const int16_t *x, int16_t *y);

MCG_END_DECLS

#endif
