/* mcugen runtime: from filtered samples or features to the input of a net.
 *
 * SPDX-License-Identifier: MIT-0
 */
#ifndef MCG_CHAIN_H
#define MCG_CHAIN_H

#include "mcg.h"

MCG_BEGIN_DECLS

/* y = saturate((multiplier * x + add) >> shift): the meaning of an element of x, in units of the element of y. */
typedef struct {
    int64_t add;        /* |add| + 2^31 |multiplier| < 2^63; holds the zero point of y, the offset of x, and 0.5 */
    int32_t multiplier; /* of either sign */
    int32_t shift;      /* 1..40 */
} mcg_unit_t;

/* Other units for n elements, each with its own. u, x, y: n elements; x and y apart.
 * Rounding: to the nearest, ties up. Overflow: y saturates. Cost: about 12 instructions an element. */
void mcg_units_i16_i8(const mcg_unit_t *u, const int16_t *x, int8_t *y, uint32_t n);
void mcg_units_i32_i8(const mcg_unit_t *u, const int32_t *x, int8_t *y, uint32_t n);
void mcg_units_i16_i16(const mcg_unit_t *u, const int16_t *x, int16_t *y, uint32_t n);
void mcg_units_i32_i16(const mcg_unit_t *u, const int32_t *x, int16_t *y, uint32_t n);

/* real = scale * x + offset of an element. */
typedef struct {
    float scale, offset;
} mcg_real_t;

/* Real values of n elements, each with its own scale and offset. r, x, y: n elements; x and y apart.
 * Rounding: x to float32 (int32 only), then the product, then the sum, each to nearest. */
void mcg_reals_i16_f32(const mcg_real_t *r, const int16_t *x, float *y, uint32_t n);
void mcg_reals_i32_f32(const mcg_real_t *r, const int32_t *x, float *y, uint32_t n);

/* The last `length` entries of each of `rows` rows. */
typedef struct {
    uint32_t rows;   /* channels that lie apart; 1 where those of one instant lie together */
    uint32_t length; /* entries of a row */
    uint32_t unit;   /* bytes of an entry: of one channel, or of a whole instant */
    uint32_t step;   /* pushes from one result to the next */
} mcg_frame_t;

/* Takes one instant: x, rows * unit bytes, into the ring of rows * length * unit bytes. `at`: where, from 0; `wait`:
 * pushes to the next result, `length` at first. Returns 1 where a result is due, else 0. */
uint32_t mcg_frame_push(const mcg_frame_t *f, void *ring, uint32_t *at, uint32_t *wait, const void *x);

/* The ring into y, rows * length * unit bytes: row by row, the oldest entry first. ring and y apart. */
void mcg_frame_copy(const mcg_frame_t *f, const void *ring, uint32_t at, void *y);

MCG_END_DECLS

#endif
