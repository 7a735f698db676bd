/* mcugen runtime: float32 layers. See mcg_nn_float.h for the contracts.
 * SPDX-License-Identifier: MIT-0
 */
#if !defined(__FAST_MATH__) /* whoever calls these functions includes mcg_nn_float.h, which refuses -ffast-math */

#include "mcg_nn_float.h"

#include "mcg_nn_window.h"
#include "mcg_scores.h"

MCG_INLINE float clamp(float v, float low, float high) { return v < low ? low : v > high ? high : v; }

MCG_INLINE float product(float a, float b)
{
    float p = a * b;
    MCG_ROUNDED_F32(p);
    return p;
}

/* sum + products in order; `step` elements from one x to the next. */
MCG_INLINE float dot(float sum, const float *w, const float *x, uint32_t n, uint32_t step)
{
    for (uint32_t i = 0; i < n; ++i, x += step) {
        sum += product(w[i], *x);
    }
    return sum;
}

void mcg_conv_f32(const mcg_wide_conv_t *d, const float *w, const float *bias, float low, float high, const float *x,
                  float *y)
{
    for (int32_t oh = 0; oh < d->out_h; ++oh) {
        const int32_t top = oh * d->stride_h - d->pad_top;
        const mcg_taps_t rows = mcg_taps(top, d->kernel_h, d->dilation_h, 0, d->in_h);
        for (int32_t ow = 0; ow < d->out_w; ++ow) {
            const int32_t left = ow * d->stride_w - d->pad_left;
            const mcg_taps_t cols = mcg_taps(left, d->kernel_w, d->dilation_w, 0, d->in_w);
            const float *kernel = w;
            float *out = y + (uint32_t)oh * d->out_row + (uint32_t)ow * d->out_col;
            for (uint32_t o = 0; o < d->groups * d->group_out; ++o) {
                const uint32_t group = o / d->group_out * d->group_in * d->in_channel;
                float sum = bias[o];
                for (int32_t i = rows.first; i < rows.last; ++i) {
                    for (int32_t j = cols.first; j < cols.last; ++j) {
                        const uint32_t at = group + (uint32_t)(top + i * d->dilation_h) * d->in_row +
                                            (uint32_t)(left + j * d->dilation_w) * d->in_col;
                        const float *tap = kernel + (uint32_t)(i * d->kernel_w + j) * d->group_in;
                        sum = dot(sum, tap, x + at, d->group_in, d->in_channel);
                    }
                }
                *out = clamp(sum, low, high);
                kernel += (uint32_t)(d->kernel_h * d->kernel_w) * d->group_in;
                out += d->out_channel;
            }
        }
    }
}

void mcg_dense_f32(const float *w, const float *bias, float low, float high, uint32_t n, uint32_t k, const float *x,
                   float *y)
{
    for (uint32_t i = 0; i < n; ++i, w += k) {
        y[i] = clamp(dot(bias[i], w, x, k, 1u), low, high);
    }
}

void mcg_add_f32(const float *a, const float *b, float low, float high, float *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        y[i] = clamp(a[i] + b[i], low, high);
    }
}

void mcg_sub_f32(const float *a, const float *b, float low, float high, float *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        y[i] = clamp(a[i] - b[i], low, high);
    }
}

void mcg_mul_f32(const float *a, const float *b, float low, float high, float *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        y[i] = clamp(a[i] * b[i], low, high);
    }
}

void mcg_scale_f32(const float *scale, const float *offset, const float *x, float *y, uint32_t outer, uint32_t channels,
                   uint32_t inner)
{
    for (uint32_t o = 0; o < outer; ++o) {
        for (uint32_t c = 0; c < channels; ++c) {
            for (uint32_t i = 0; i < inner; ++i) {
                *y++ = product(*x++, scale[c]) + offset[c];
            }
        }
    }
}

void mcg_clip_f32(const float *x, float low, float high, float *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        y[i] = clamp(x[i], low, high);
    }
}

void mcg_leaky_relu_f32(const float *x, float alpha, float *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        y[i] = x[i] < 0.0f ? alpha * x[i] : x[i];
    }
}

void mcg_hard_sigmoid_f32(const float *x, float alpha, float beta, float *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        y[i] = clamp(product(alpha, x[i]) + beta, 0.0f, 1.0f);
    }
}

void mcg_hard_swish_f32(const float *x, float *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        y[i] = x[i] * clamp(product(0x1.555556p-3f, x[i]) + 0.5f, 0.0f, 1.0f);
    }
}

void mcg_tanh_f32(const float *x, float *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        const float v = x[i];
        const float a = v < 0.0f ? -v : v;
        if (a < 0.625f) { /* x + x^3 * polynomial in x^2 */
            const float s = product(v, v);
            float p = -0x1.901808p-8f;
            p = product(p, s) + 0x1.581fa8p-6f;
            p = product(p, s) - 0x1.b928e0p-5f;
            p = product(p, s) + 0x1.110e2ep-3f;
            p = product(p, s) - 0x1.555552p-2f;
            y[i] = product(product(p, s), v) + v;
        } else { /* 1 - 2 / (e^2a + 1) */
            const float t = 1.0f - 2.0f / (mcg_exp_f32(a + a) + 1.0f);
            y[i] = v < 0.0f ? -t : t;
        }
    }
}

#endif
