/* mcugen runtime: float32 ops, element by element. See mcg_nn_float.h for the contracts.
 * SPDX-License-Identifier: MIT-0
 */
#if !defined(__FAST_MATH__) /* whoever calls these functions includes mcg_nn_float.h, which refuses -ffast-math */

#include "mcg_nn_float.h"

#include "mcg_scores.h"

#include <string.h>

MCG_INLINE float clamp(float v, float low, float high) { return v < low ? low : v > high ? high : v; }

MCG_INLINE float product(float a, float b)
{
    float p = a * b;
    MCG_ROUNDED_F32(p);
    return p;
}

MCG_CODE(mcg_add_f32)
void mcg_add_f32(const float *a, const float *b, float low, float high, float *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        y[i] = clamp(a[i] + b[i], low, high);
    }
}

MCG_CODE(mcg_sub_f32)
void mcg_sub_f32(const float *a, const float *b, float low, float high, float *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        y[i] = clamp(a[i] - b[i], low, high);
    }
}

MCG_CODE(mcg_mul_f32)
void mcg_mul_f32(const float *a, const float *b, float low, float high, float *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        y[i] = clamp(a[i] * b[i], low, high);
    }
}

MCG_CODE(mcg_scale_f32)
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

MCG_CODE(mcg_clip_f32)
void mcg_clip_f32(const float *x, float low, float high, float *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        y[i] = clamp(x[i], low, high);
    }
}

MCG_CODE(mcg_leaky_relu_f32)
void mcg_leaky_relu_f32(const float *x, float alpha, float *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        y[i] = x[i] < 0.0f ? alpha * x[i] : x[i];
    }
}

MCG_CODE(mcg_hard_sigmoid_f32)
void mcg_hard_sigmoid_f32(const float *x, float alpha, float beta, float *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        y[i] = clamp(product(alpha, x[i]) + beta, 0.0f, 1.0f);
    }
}

MCG_CODE(mcg_hard_swish_f32)
void mcg_hard_swish_f32(const float *x, float *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        y[i] = x[i] * clamp(product(0x1.555556p-3f, x[i]) + 0.5f, 0.0f, 1.0f);
    }
}

MCG_CODE(mcg_tanh_f32)
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

MCG_CODE(mcg_elu_f32)
void mcg_elu_f32(const float *x, float alpha, float *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        y[i] = x[i] < 0.0f ? alpha * (mcg_exp_f32(x[i]) - 1.0f) : x[i];
    }
}

MCG_CODE(mcg_thresholded_relu_f32)
void mcg_thresholded_relu_f32(const float *x, float alpha, float *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        y[i] = x[i] <= alpha ? 0.0f : x[i];
    }
}

MCG_CODE(mcg_softsign_f32)
void mcg_softsign_f32(const float *x, float *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        y[i] = x[i] / (1.0f + (x[i] < 0.0f ? -x[i] : x[i]));
    }
}

MCG_CODE(mcg_abs_f32)
void mcg_abs_f32(const float *x, float *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        y[i] = x[i] < 0.0f ? -x[i] : x[i] + 0.0f; /* -0.0 + 0.0 is 0.0 */
    }
}

MCG_CODE(mcg_reciprocal_f32)
void mcg_reciprocal_f32(const float *x, float *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        y[i] = 1.0f / x[i];
    }
}

MCG_CODE(mcg_log_f32)
void mcg_log_f32(const float *x, float *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        const int tiny = x[i] < 0x1p-100f;
        const float v = tiny ? x[i] * 0x1p48f : x[i];
        if (v > 0.0f && v < MCG_INFINITY_F32) {
            uint32_t bits;
            memcpy(&bits, &v, sizeof bits);
            float k = (float)(bits >> 23) - (tiny ? 175.0f : 127.0f);
            bits = (bits & 0x7fffffu) | 0x3f800000u;
            float m;
            memcpy(&m, &bits, sizeof bits);
            if (m > 0x1.6a09e6p+0f) { /* sqrt(2) */
                m = 0.5f * m;
                k = k + 1.0f;
            }
            const float s = (m - 1.0f) / (m + 1.0f); /* log(m) = 2 atanh(s) */
            const float square = product(s, s);
            float p = 0x1.c71c72p-4f;
            p = product(p, square) + 0x1.24924ap-3f;
            p = product(p, square) + 0x1.99999ap-3f;
            p = product(p, square) + 0x1.555556p-2f;
            p = product(p, square);
            p = product(p, s) + s;
            y[i] = product(k, 0x1.62e4p-1f) + (product(2.0f, p) + product(k, 0x1.7f7d1cp-20f));
        } else { /* infinity stays; zero gives minus infinity, negative numbers have no logarithm */
            y[i] = v < 0.0f ? (v - v) / (v - v) : v == 0.0f ? -MCG_INFINITY_F32 : v;
        }
    }
}

MCG_CODE(mcg_erf_f32)
void mcg_erf_f32(const float *x, float *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        const float v = x[i];
        const float a = v < 0.0f ? -v : v;
        if (a < 1.0f) { /* x * polynomial in x^2 */
            const float s = product(v, v);
            float p = 0x1.4ae4c4p-14f;
            p = product(p, s) - 0x1.a485e8p-11f;
            p = product(p, s) + 0x1.5419f4p-8f;
            p = product(p, s) - 0x1.b7fbb4p-6f;
            p = product(p, s) + 0x1.ce2d2p-4f;
            p = product(p, s) - 0x1.81273ep-2f;
            p = product(p, s) + 0x1.20dd74p+0f;
            y[i] = p * v;
        } else { /* 1 - exp(polynomial in |x|) */
            const float t = a > 4.0f ? 4.0f : a;
            float p = 0x1.0dddfp-22f;
            p = product(p, t) - 0x1.a8b6acp-16f;
            p = product(p, t) + 0x1.e6514cp-12f;
            p = product(p, t) - 0x1.18a67ep-8f;
            p = product(p, t) + 0x1.9fb86cp-6f;
            p = product(p, t) - 0x1.bcfc4p-4f;
            p = product(p, t) - 0x1.441dc4p-1f;
            p = product(p, t) - 0x1.21317ap+0f;
            p = product(p, t) + 0x1.ac931p-13f;
            p = 1.0f - mcg_exp_f32(p);
            y[i] = v < 0.0f ? -p : p;
        }
    }
}

#endif
