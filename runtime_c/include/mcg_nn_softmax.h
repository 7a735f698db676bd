/* mcugen runtime: softmax, its logarithm and argmax of integer tensors.
 *
 * SPDX-License-Identifier: MIT-0
 */
#ifndef MCG_NN_SOFTMAX_H
#define MCG_NN_SOFTMAX_H

#include "mcg.h"

MCG_BEGIN_DECLS

/* Softmax of `rows` rows of k elements; scale of the result 1/256, zero point -128.
 *
 * table[d] = round(2^23 * exp(-d * scale of x)), d = largest - x in 0..255. With e = table[d] and s their sum over the row:
 * y = min((units * e + s / 2) / s, 255) - 128, units 1 to 256, divisions rounded down, on 64 bits or as if. k < 2^32 / 2^8. y may be x.
 * Cost: about 25 instructions an element, k < 512; a 64-bit division more beyond. */
void mcg_softmax_s8(const uint32_t *table, const int8_t *x, int8_t *y, uint32_t rows, uint32_t k, uint32_t units);
/* int16, scale of the result 1/32768, zero point 0: y = min((32768 * e + s / 2) / s, 32767) with
 * e = (table[d >> 8] * table[256 + (d & 255)] + 2^22) >> 23, d in 0..65535: 256 entries 2^23 * exp(-256 * i * scale of x),
 * then 256 of 2^23 * exp(-i * scale). y apart from x. Cost: about 100 instructions an element. */
void mcg_softmax_s16(const uint32_t *table, const int16_t *x, int16_t *y, uint32_t rows, uint32_t k);

/* A row of logarithms: see mcg_log_softmax_s8. */
typedef struct {
    uint32_t rows, k;
    uint32_t step;      /* a unit of x in units of y, times 2^shift; at most 2^22 */
    uint32_t shift;     /* 13 to 22 */
    uint32_t log_m;     /* a unit of the logarithm of a sum, 2^-24 * log(2), in units of y times 2^shift is */
    uint32_t log_shift; /* log_m / 2^log_shift; 1 to 63 */
    int32_t zero_point; /* of y; -128 to 127 */
} mcg_log_softmax_t;
/* Logarithm of the softmax of each row: x - largest - log(sum of exp(x - largest)), any scale of the result.
 *
 * table as for mcg_softmax_s8; d = largest - x, s the sum of table[d] over the row, b = log2(s / 2^23) in units of 2^-24,
 * too small by less than 1 + 2^-5 of them: y = clamp((start - d * step) >> shift), start = zero_point * 2^shift +
 * 2^(shift-1) - ((b * log_m + 2^(log_shift-1)) >> log_shift), or -129 * 2^shift if that is more. k < 2^24. y may be x.
 * Overflow: b < 2^29, so 64 bits hold its product; start < 2^30 and d * step < 2^30.
 * Cost: about 28 instructions an element and 280 a row. */
void mcg_log_softmax_s8(const mcg_log_softmax_t *d, const uint32_t *table, const int8_t *x, int8_t *y);

/* x (rows, k, inner) -> y (rows, inner): the index of the largest along k, the lowest on ties. */
void mcg_argmax_rows_s8(const int8_t *x, int32_t *y, uint32_t rows, uint32_t k, uint32_t inner);
void mcg_argmax_rows_s16(const int16_t *x, int32_t *y, uint32_t rows, uint32_t k, uint32_t inner);

MCG_END_DECLS

#endif
