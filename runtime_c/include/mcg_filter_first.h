/* mcugen runtime: filters of first order, and changes of a sample's type.
 *
 * SPDX-License-Identifier: MIT-0
 */
#ifndef MCG_FILTER_FIRST_H
#define MCG_FILTER_FIRST_H

#include "mcg_filter.h"

MCG_BEGIN_DECLS

/* Exponential smoothing of n samples of one channel: s += round(alpha * (x - s)), y = round(s), from s = 0.
 * alpha: in 2^-31, 1..2^31 - 1. state: one element; s has 15 (q15) or 30 (q31) bits below the unit.
 * Rounding: to the nearest, ties up. Overflow: none, s stays between the samples. x == y, or apart.
 * f32: y = fma(alpha, x - y, y). Cost: about 9 instructions (q15), 25 (q31), 6 (f32). */
void mcg_smooth_q15_block(int32_t alpha, int32_t *state, const int16_t *x, int16_t *y, uint32_t n);
void mcg_smooth_q31_block(int32_t alpha, int64_t *state, const int32_t *x, int32_t *y, uint32_t n);
void mcg_smooth_f32_block(float alpha, float *state, const float *x, float *y, uint32_t n);

/* DC blocker: s += (x - last x) - round(k * s), y = round(s), clamped to the type. k: 1 - pole in 2^-31, 2^16..2^31 - 1.
 * state: two elements, s and the last x; s has 14 (q15) or 29 (q31) bits below the unit: it reaches twice the range.
 * Rounding: to the nearest, ties up. f32: y = fma(k, y, x - last x) with k the pole. x == y, or apart. */
void mcg_dc_block_q15_block(int32_t k, int32_t *state, const int16_t *x, int16_t *y, uint32_t n);
void mcg_dc_block_q31_block(int32_t k, int64_t *state, const int32_t *x, int32_t *y, uint32_t n);
void mcg_dc_block_f32_block(float k, float *state, const float *x, float *y, uint32_t n);

/* y = x * 2^shift. To the left (0..30) x is clamped first so that 32 bits hold the result; to the right, shift -31..-1,
 * it is rounded to the nearest, ties up. int16 clamps the result. x and y: n elements; apart where the types differ.
 * lows: NULL, or for each element the least value l that x can have: what lies outside of l..-l is clamped first. */
void mcg_shift_i16_i32(const int32_t *lows, const int16_t *x, int32_t *y, uint32_t n, int32_t shift);
void mcg_shift_i32_i16(const int32_t *lows, const int32_t *x, int16_t *y, uint32_t n, int32_t shift);
void mcg_shift_i32_i32(const int32_t *lows, const int32_t *x, int32_t *y, uint32_t n, int32_t shift);

/* y = (float)x * scale, by channel: rounded to float32 (int32 only), then the product is. n: channels; x, y apart. */
void mcg_samples_i16_f32(const float *scale, const int16_t *x, float *y, uint32_t n);
void mcg_samples_i32_f32(const float *scale, const int32_t *x, float *y, uint32_t n);

MCG_END_DECLS

#endif
