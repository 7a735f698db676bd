/* mcugen runtime: scaling, transforms, decisions. See mcg_scores.h for the contracts.
 * SPDX-License-Identifier: MIT-0
 */
#if !defined(__FAST_MATH__) /* whoever calls these functions includes mcg_scores.h, which refuses -ffast-math */

#include "mcg_scores.h"

#include <string.h>

MCG_CODE(mcg_scale_i32_f32)
void mcg_scale_i32_f32(const int32_t *x, float scale, float *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        y[i] = (float)x[i] * scale;
    }
}

MCG_CODE(mcg_divide_f64_f32)
void mcg_divide_f64_f32(const double *x, double divisor, float *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        y[i] = (float)(x[i] / divisor);
    }
}

MCG_CODE(mcg_divide_f32)
void mcg_divide_f32(const float *x, float divisor, float *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        y[i] = x[i] / divisor;
    }
}

MCG_CODE(mcg_divide_f64)
void mcg_divide_f64(const double *x, double divisor, double *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        y[i] = x[i] / divisor;
    }
}

/* 2^k for -126 <= k <= 127. */
MCG_CODE(power_of_two)
static float power_of_two(int32_t k)
{
    const uint32_t bits = (uint32_t)(k + 127) << 23;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

MCG_CODE(mcg_exp_f32)
float mcg_exp_f32(float x)
{
    if (!(x < 88.75f)) {
        return x > 88.75f || x == 88.75f ? 3.0e38f * 10.0f : x;
    }
    if (x < -104.0f) {
        return 0.0f;
    }
    /* x = k * ln 2 + r with |r| <= 0.35: adding 1.5 * 2^23 rounds to a whole number. ln 2 in two parts, the first short
     * enough that k times it is exact. */
    float shifted = x * 0x1.715476p+0f;
    MCG_ROUNDED_F32(shifted);
    shifted = shifted + 0x1.8p+23f;
    MCG_ROUNDED_F32(shifted);
    const float k = shifted - 0x1.8p+23f;
    float part = k * 0x1.62e4p-1f;
    MCG_ROUNDED_F32(part);
    float r = x - part;
    part = k * 0x1.7f7d1cp-20f;
    MCG_ROUNDED_F32(part);
    r = r - part;
    /* Taylor's coefficients 1/7! .. 1/2!, by Horner. */
    static const float coefficient[6] = {0x1.a01a02p-13f, 0x1.6c16c2p-10f, 0x1.111112p-7f,
                                         0x1.555556p-5f,  0x1.555556p-3f,  0x1p-1f};
    float p = coefficient[0];
    for (uint32_t i = 1; i < 6u; ++i) {
        p = p * r;
        MCG_ROUNDED_F32(p);
        p = p + coefficient[i];
    }
    float square = r * r;
    MCG_ROUNDED_F32(square);
    p = p * square;
    MCG_ROUNDED_F32(p);
    p = p + r;
    p = p + 1.0f;
    /* Two steps, so that results below the normal range round once, at the end. */
    const int32_t whole = (int32_t)k;
    const int32_t half = whole / 2;
    p = p * power_of_two(half);
    MCG_ROUNDED_F32(p);
    return p * power_of_two(whole - half);
}

MCG_CODE(mcg_log1p_f32)
float mcg_log1p_f32(float x)
{
    /* log(1 + x) = 2 * atanh(s) with s = x / (2 + x) in [0, 1/3]. */
    const float s = x / (2.0f + x);
    float square = s * s;
    MCG_ROUNDED_F32(square);
    static const float coefficient[7] = {
        0x1.3b13b2p-4f, 0x1.745d18p-4f, 0x1.c71c72p-4f, 0x1.24924ap-3f, 0x1.99999ap-3f, 0x1.555556p-2f, 1.0f};
    float p = coefficient[0];
    for (uint32_t i = 1; i < 7u; ++i) {
        p = p * square;
        MCG_ROUNDED_F32(p);
        p = p + coefficient[i];
    }
    p = p * s;
    MCG_ROUNDED_F32(p);
    return p + p;
}

MCG_CODE(mcg_exponential_f32)
void mcg_exponential_f32(const float *x, float *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        y[i] = mcg_exp_f32(x[i]);
    }
}

MCG_CODE(mcg_sigmoid_f32)
void mcg_sigmoid_f32(const float *x, float slope, float *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        float z = slope * x[i];
        MCG_ROUNDED_F32(z);
        const float e = mcg_exp_f32(z < 0.0f ? z : -z);
        y[i] = (z < 0.0f ? e : 1.0f) / (1.0f + e);
    }
}

MCG_CODE(mcg_log1p_exp_f32)
void mcg_log1p_exp_f32(const float *x, float *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        const float z = x[i];
        const float tail = mcg_log1p_f32(mcg_exp_f32(z < 0.0f ? z : -z));
        y[i] = (z < 0.0f ? 0.0f : z) + tail;
    }
}

MCG_CODE(mcg_signed_square_f32)
void mcg_signed_square_f32(const float *x, float *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        float square = x[i] * x[i];
        MCG_ROUNDED_F32(square);
        y[i] = x[i] < 0.0f ? -square : square;
    }
}

MCG_CODE(mcg_softmax_f32)
void mcg_softmax_f32(const float *x, float *y, uint32_t n)
{
    float largest = x[0];
    for (uint32_t i = 1; i < n; ++i) {
        largest = x[i] > largest ? x[i] : largest;
    }
    float sum = 0.0f;
    for (uint32_t i = 0; i < n; ++i) {
        y[i] = mcg_exp_f32(x[i] - largest);
        sum = sum + y[i];
    }
    for (uint32_t i = 0; i < n; ++i) {
        y[i] = y[i] / sum;
    }
}

MCG_CODE(mcg_argmax_i32)
int32_t mcg_argmax_i32(const int32_t *x, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; ++i) {
        best = x[i] > x[best] ? i : best;
    }
    return (int32_t)best;
}

MCG_CODE(mcg_argmax_f32)
int32_t mcg_argmax_f32(const float *x, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; ++i) {
        const int above = x[i] > x[best] || (x[i] != x[i] && x[best] == x[best]);
        best = above ? i : best;
    }
    return (int32_t)best;
}

MCG_CODE(mcg_argmax_f64)
int32_t mcg_argmax_f64(const double *x, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; ++i) {
        const int above = x[i] > x[best] || (x[i] != x[i] && x[best] == x[best]);
        best = above ? i : best;
    }
    return (int32_t)best;
}

MCG_CODE(mcg_above_i32)
int32_t mcg_above_i32(int32_t x, int32_t limit) { return x > limit; }

MCG_CODE(mcg_above_f32)
int32_t mcg_above_f32(float x, float limit) { return x > limit; }

MCG_CODE(mcg_above_f64)
int32_t mcg_above_f64(double x, double limit) { return x > limit; }

#endif
