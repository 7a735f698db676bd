/* mcugen runtime: what follows the scores of a model: scaling, transforms, decisions.
 *
 * Every function reads n elements of x and writes y. x and y may be the same array where their types are.
 * Floats round to nearest in the order written, never fused: numpy's float32 gives the same bits.
 * SPDX-License-Identifier: MIT-0
 */
#ifndef MCG_SCORES_H
#define MCG_SCORES_H

#include "mcg.h"

#if defined(__FAST_MATH__)
#error "mcugen: transforms need the order of operations and infinities; build without -ffast-math"
#endif

MCG_BEGIN_DECLS

/* y = (float)x * scale. */
void mcg_scale_i32_f32(const int32_t *x, float scale, float *y, uint32_t n);
/* y = (float)(x / divisor), divided in the type of x. */
void mcg_divide_f64_f32(const double *x, double divisor, float *y, uint32_t n);
void mcg_divide_f32(const float *x, float divisor, float *y, uint32_t n);
void mcg_divide_f64(const double *x, double divisor, double *y, uint32_t n);

/* e^x. Error below 1.1 units in the last place for normal results; 0 below -103.98, infinity above 88.73, NaN for NaN. */
float mcg_exp_f32(float x);
/* log(1 + x) for 0 <= x <= 1. */
float mcg_log1p_f32(float x);

/* y = exp(x). */
void mcg_exponential_f32(const float *x, float *y, uint32_t n);
/* y = 1 / (1 + exp(-slope * x)). */
void mcg_sigmoid_f32(const float *x, float slope, float *y, uint32_t n);
/* y = log(1 + exp(x)), without overflow. */
void mcg_log1p_exp_f32(const float *x, float *y, uint32_t n);
/* y = sign(x) * x * x. */
void mcg_signed_square_f32(const float *x, float *y, uint32_t n);
/* y[i] = exp(x[i] - max) / sum of these. */
void mcg_softmax_f32(const float *x, float *y, uint32_t n);

/* The index of the largest of n >= 1 elements, the lowest such index on ties. NaN counts as the largest, as in numpy. */
int32_t mcg_argmax_i32(const int32_t *x, uint32_t n);
int32_t mcg_argmax_f32(const float *x, uint32_t n);
int32_t mcg_argmax_f64(const double *x, uint32_t n);
/* 1 where x > limit, else 0. */
int32_t mcg_above_i32(int32_t x, int32_t limit);
int32_t mcg_above_f32(float x, float limit);
int32_t mcg_above_f64(double x, double limit);

MCG_END_DECLS

#endif
