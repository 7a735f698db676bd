/* mcugen runtime: layer, instance and group normalization of int8.
 *
 * SPDX-License-Identifier: MIT-0
 */
#ifndef MCG_NN_NORMALIZE_H
#define MCG_NN_NORMALIZE_H

#include "mcg.h"

MCG_BEGIN_DECLS

typedef struct {
    uint64_t epsilon;  /* k^2 * epsilon in units of the square of the scale of x, times 2^up */
    uint32_t rows, k;  /* k at most 65536 */
    uint32_t inner;    /* elements in a row that share a channel; divides k */
    uint32_t channels; /* of the tables; they go round from row to row */
    int32_t up;        /* even; k^2 * 2^14 * 2^up + epsilon is at most 2^62 */
    int32_t digits;    /* of a normalized element behind the point: 28 - ceil(log2(k) / 2) */
    uint32_t shift;    /* digits of a result behind the point; 1 to 30 */
} mcg_normalize_t;

/* Each row of k minus its mean, over the root of its variance plus epsilon, by channels times scale plus offset.
 *
 * With S and Q the sums of x and of x^2 in a row, V = k * Q - S^2, w = V * 2^up + epsilon times 4^e, from 2^60 to below
 * 2^62: r = min(2^61 / floor(sqrt(w)), 2^31 - 1), t = 61 - digits - up / 2 - e. With upper(a, b) = (a * b + 2^31) >> 32:
 * n = upper((k * x - S) * 2^(32-t), r), or upper(k * x - S, r >> (t - 32)) if t is above 32; 0 if V is.
 * y = clamp((upper(n, scale[c]) + offset[c]) >> shift). scale and offset: at most 2^30 in magnitude; offset holds the
 * zero point of y and half a unit. y may be x.
 * Overflow: |k * x - S| < 2^24, V < 2^46, |n| <= 2^28, and the left operands of n are at most 2^30.
 * Cost: about 30 instructions an element and 320 a row. */
void mcg_normalize_s8(const mcg_normalize_t *d, const int32_t *scale, const int32_t *offset, const int8_t *x,
                      int8_t *y);

MCG_END_DECLS

#endif
