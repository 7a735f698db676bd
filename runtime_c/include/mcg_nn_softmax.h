/* mcugen runtime: softmax and argmax of integer tensors.
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

/* x (rows, k, inner) -> y (rows, inner): the index of the largest along k, the lowest on ties. */
void mcg_argmax_rows_s8(const int8_t *x, int32_t *y, uint32_t rows, uint32_t k, uint32_t inner);
void mcg_argmax_rows_s16(const int16_t *x, int32_t *y, uint32_t rows, uint32_t k, uint32_t inner);

MCG_END_DECLS

#endif
