/* mcugen runtime: float32 nets.
 *
 * Floats round to nearest in the order written, products before they are added, never fused: numpy's float32 gives the
 * same bits. `low` and `high` are clamps that let NaN pass. Arrays are aligned to 4.
 * SPDX-License-Identifier: MIT-0
 */
#ifndef MCG_NN_FLOAT_H
#define MCG_NN_FLOAT_H

#include "mcg_nn_pool.h"
#include "mcg_nn_wide.h"

#if defined(__FAST_MATH__)
#error "mcugen: float32 nets need the order of operations, infinities and NaN; build without -ffast-math"
#endif

#define MCG_INFINITY_F32 (3.0e38f * 10.0f)

MCG_BEGIN_DECLS

/* Convolution; see mcg_wide_conv_t. y = clamp(bias + sum of w * x, from row to row, column to column, channel to channel).
 * w: for each group and four of its outputs, for each kernel row, column and channel the weights of the four, missing
 * ones 0. x, y: apart. Cost on a Cortex-M7: about 3.3 instructions per multiply-accumulate. */
void mcg_conv_f32(const mcg_wide_conv_t *d, const float *w, const float *bias, float low, float high, const float *x,
                  float *y);
/* The case of one input channel a group. w (outputs, kernel_h, kernel_w). x, y: apart. Cost: 5 for a 3 x 3 kernel. */
void mcg_depthwise_f32(const mcg_wide_conv_t *d, const float *w, const float *bias, float low, float high,
                       const float *x, float *y);
/* y[n] = clamp(bias[n] + sum of w[n][k] * x[k] in the order of k); w: for each four of n and each k the weights of the
 * four, missing ones 0. x, y: apart. */
void mcg_dense_f32(const float *w, const float *bias, float low, float high, uint32_t n, uint32_t k, const float *x,
                   float *y);

/* y = clamp(a + b), clamp(a - b), clamp(a * b). y may be a or b. */
void mcg_add_f32(const float *a, const float *b, float low, float high, float *y, uint32_t n);
void mcg_sub_f32(const float *a, const float *b, float low, float high, float *y, uint32_t n);
void mcg_mul_f32(const float *a, const float *b, float low, float high, float *y, uint32_t n);
/* y[o][c][i] = x[o][c][i] * scale[c] + offset[c]. y may be x. */
void mcg_scale_f32(const float *scale, const float *offset, const float *x, float *y, uint32_t outer, uint32_t channels,
                   uint32_t inner);

/* y may be x. tanh: error below 3 units in the last place; sigmoid: mcg_sigmoid_f32. */
void mcg_clip_f32(const float *x, float low, float high, float *y, uint32_t n);
void mcg_leaky_relu_f32(const float *x, float alpha, float *y, uint32_t n); /* x < 0 ? alpha * x : x */
void mcg_hard_sigmoid_f32(const float *x, float alpha, float beta, float *y,
                          uint32_t n);                         /* clip(alpha * x + beta, 0, 1) */
void mcg_hard_swish_f32(const float *x, float *y, uint32_t n); /* x * clip(x / 6 + 0.5, 0, 1) */
void mcg_tanh_f32(const float *x, float *y, uint32_t n);
/* y may be x. erf: error below 3 units in the last place. exp and log(1 + exp(x)) are in mcg_scores.h. */
void mcg_elu_f32(const float *x, float alpha, float *y, uint32_t n);              /* x < 0 ? alpha * (exp(x) - 1) : x */
void mcg_thresholded_relu_f32(const float *x, float alpha, float *y, uint32_t n); /* x <= alpha ? 0 : x */
void mcg_softsign_f32(const float *x, float *y, uint32_t n);                      /* x / (1 + |x|) */
void mcg_abs_f32(const float *x, float *y, uint32_t n);
void mcg_reciprocal_f32(const float *x, float *y, uint32_t n);
/* Error below 2 units in the last place. NaN for negative numbers, minus infinity for zeros. */
void mcg_log_f32(const float *x, float *y, uint32_t n);
void mcg_erf_f32(const float *x, float *y, uint32_t n);

/* Pools. The maximum of a window that holds NaN is NaN. The mean: the sum from row to row, divided by the count. */
void mcg_max_pool_f32(const mcg_pool_t *d, const float *x, float *y);
void mcg_avg_pool_f32(const mcg_pool_t *d, const float *x, float *y);

/* Each row of k as mcg_softmax_f32 gives it. y may be x. */
void mcg_softmax_rows_f32(const float *x, float *y, uint32_t rows, uint32_t k);
/* Each row of k: y = (x - largest) - log(sum of exp(x - largest)), the sum from front to back. y may be x. */
void mcg_log_softmax_rows_f32(const float *x, float *y, uint32_t rows, uint32_t k);
/* Each row of k: (x - mean) * (1 / sqrt(variance + epsilon)), then times scale[c] plus offset[c], c going on by one after
 * `inner` elements and round from row to row. Mean and variance: sums from front to back, over k. inner divides k, k is
 * below 2^24. y may be x. */
void mcg_normalize_f32(const float *scale, const float *offset, float epsilon, const float *x, float *y, uint32_t rows,
                       uint32_t k, uint32_t inner, uint32_t channels);
/* x (rows, k, inner) -> y (rows, inner): the index of the largest along k, the lowest on ties. NaN is the largest. */
void mcg_argmax_rows_f32(const float *x, int32_t *y, uint32_t rows, uint32_t k, uint32_t inner);

/* LSTM and GRU over a whole sequence. w (4H or 3H, I), r (4H or 3H, H), gates in ONNX's order; a sum starts with its
 * bias, then the products in order. start: h (then c), or NULL for zeros. scratch: 3H floats. every (steps, H), last (H),
 * cell (H): NULL where not wanted. All apart. */
#define MCG_RECURRENT_F32_SCRATCH(hidden) ((hidden) * 12u)
void mcg_lstm_f32(const mcg_wide_recurrent_t *d, const float *w, const float *r, const float *bias, const float *start,
                  float *scratch, const float *x, float *every, float *last, float *cell);
/* bias: that of the input's products (3H), then that of the state's (3H). */
void mcg_gru_f32(const mcg_wide_recurrent_t *d, const float *w, const float *r, const float *bias, const float *start,
                 float *scratch, const float *x, float *every, float *last);

/* The same for a sequence that goes on in the next call: state is what start is above, read and then replaced by that
 * after the last of the steps (h; of an LSTM then c). Never NULL. */
void mcg_lstm_step_f32(const mcg_wide_recurrent_t *d, const float *w, const float *r, const float *bias, float *state,
                       float *scratch, const float *x, float *every, float *last, float *cell);
void mcg_gru_step_f32(const mcg_wide_recurrent_t *d, const float *w, const float *r, const float *bias, float *state,
                      float *scratch, const float *x, float *every, float *last);

MCG_END_DECLS

#endif
