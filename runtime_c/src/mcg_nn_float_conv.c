/* mcugen runtime: float32 convolution and dense layers. See mcg_nn_float.h for the contracts.
 *
 * Several sums are computed side by side; each adds its own products one by one, in the order that is promised.
 * SPDX-License-Identifier: MIT-0
 */
#if !defined(__FAST_MATH__) /* whoever calls these functions includes mcg_nn_float.h, which refuses -ffast-math */

#include "mcg_nn_float.h"

#include "mcg_dsp.h"
#include "mcg_nn_window.h"

MCG_KERNELS_BEGIN

MCG_INLINE float clamp(float v, float low, float high) { return v < low ? low : v > high ? high : v; }

/* sum + a * b, rounded twice. */
MCG_INLINE float add(float sum, float a, float b)
{
    float p = a * b;
    MCG_ROUNDED_F32(p);
    return sum + p;
}

/* Sums of four outputs of one or two pixels. */
typedef struct {
    float p[4], q[4];
} sums_t;

#define PIXEL(s, v)          \
    s##0 = add(s##0, w0, v); \
    s##1 = add(s##1, w1, v); \
    s##2 = add(s##2, w2, v); \
    s##3 = add(s##3, w3, v);

/* n products more for each sum; w: four weights for each, x: `step` elements from one to the next, `far` to the second
 * pixel. two is a constant where this is expanded. */
MCG_INLINE void accumulate(int two, sums_t *sums, const float *w, const float *x, uint32_t n, uint32_t step,
                           uint32_t far)
{
    float a0 = sums->p[0], a1 = sums->p[1], a2 = sums->p[2], a3 = sums->p[3];
    float b0 = sums->q[0], b1 = sums->q[1], b2 = sums->q[2], b3 = sums->q[3];
    const float *z = x + (two ? far : 0u);
    for (const float *end = w + 4u * n; w != end; w += 4, x += step, z += step) {
        const float w0 = w[0], w1 = w[1], w2 = w[2], w3 = w[3];
        const float v = *x;
        PIXEL(a, v)
        if (two) {
            const float u = *z;
            PIXEL(b, u)
        }
    }
    sums->p[0] = a0;
    sums->p[1] = a1;
    sums->p[2] = a2;
    sums->p[3] = a3;
    sums->q[0] = b0;
    sums->q[1] = b1;
    sums->q[2] = b2;
    sums->q[3] = b3;
}

/* The taps of a pixel that lie inside the input. */
typedef struct {
    int32_t top, left;
    mcg_taps_t rows, cols;
} place_t;

/* All outputs of one pixel, or of two neighbours in a row whose taps are the same. */
MCG_INLINE void pixels(int two, const mcg_wide_conv_t *d, const place_t *at, const float *w, const float *bias,
                       float low, float high, const float *x, float *y)
{
    const uint32_t far = (uint32_t)d->stride_w * d->in_col;
    const uint32_t apart = (uint32_t)d->dilation_w * d->in_col;
    const uint32_t taps = (uint32_t)(d->kernel_h * d->kernel_w) * d->group_in;
    for (uint32_t g = d->groups; g != 0u; --g, x += d->group_in * d->in_channel) {
        for (uint32_t left = d->group_out; left != 0u; w += 4u * taps) {
            const uint32_t n = left < 4u ? left : 4u;
            sums_t s;
            for (uint32_t k = 0; k < 4u; ++k) {
                s.p[k] = s.q[k] = bias[k < n ? k : 0u];
            }
            for (int32_t i = at->rows.first; i < at->rows.last; ++i) {
                const uint32_t row = (uint32_t)(at->top + i * d->dilation_h) * d->in_row;
                const uint32_t cols = (uint32_t)(at->cols.last - at->cols.first);
                const float *from = x + (row + (uint32_t)(at->left + at->cols.first * d->dilation_w) * d->in_col);
                const float *kernel = w + 4u * (uint32_t)(i * d->kernel_w + at->cols.first) * d->group_in;
                if (d->group_in == 1u) { /* the columns of a row in one go */
                    accumulate(two, &s, kernel, from, cols, apart, far);
                } else if (d->in_channel == 1u && apart == d->group_in) {
                    accumulate(two, &s, kernel, from, cols * d->group_in, 1u, far);
                } else {
                    for (uint32_t j = cols; j != 0u; --j, from += apart, kernel += 4u * d->group_in) {
                        accumulate(two, &s, kernel, from, d->group_in, d->in_channel, far);
                    }
                }
            }
            for (uint32_t k = 0; k < n; ++k, y += d->out_channel) {
                y[0] = clamp(s.p[k], low, high);
                if (two) {
                    y[d->out_col] = clamp(s.q[k], low, high);
                }
            }
            bias += n;
            left -= n;
        }
    }
}

MCG_CODE(mcg_conv_f32)
void mcg_conv_f32(const mcg_wide_conv_t *d, const float *w, const float *bias, float low, float high, const float *x,
                  float *y)
{
    for (int32_t oh = 0; oh < d->out_h; ++oh) {
        place_t at;
        at.top = oh * d->stride_h - d->pad_top;
        at.rows = mcg_taps(at.top, d->kernel_h, d->dilation_h, 0, d->in_h);
        for (int32_t ow = 0; ow < d->out_w;) {
            float *out = y + ((uint32_t)oh * d->out_row + (uint32_t)ow * d->out_col);
            at.left = ow * d->stride_w - d->pad_left;
            at.cols = mcg_taps(at.left, d->kernel_w, d->dilation_w, 0, d->in_w);
            if (ow + 1 < d->out_w) {
                const mcg_taps_t next = mcg_taps(at.left + d->stride_w, d->kernel_w, d->dilation_w, 0, d->in_w);
                if (next.first == at.cols.first && next.last == at.cols.last) {
                    pixels(1, d, &at, w, bias, low, high, x, out);
                    ow += 2;
                    continue;
                }
            }
            pixels(0, d, &at, w, bias, low, high, x, out);
            ++ow;
        }
    }
}

/* `together` outputs of a row, 1 or 4, whose taps are the same. */
MCG_INLINE void depthwise(uint32_t together, const mcg_wide_conv_t *d, const place_t *at, const float *w, float bias,
                          float low, float high, const float *x, float *y)
{
    const uint32_t step = (uint32_t)d->stride_w * d->in_col;
    float a = bias, b = bias, c = bias, e = bias;
    for (int32_t i = at->rows.first; i < at->rows.last; ++i) {
        const uint32_t row = (uint32_t)(at->top + i * d->dilation_h) * d->in_row;
        const float *p = x + (row + (uint32_t)(at->left + at->cols.first * d->dilation_w) * d->in_col);
        const float *const end = w + (i * d->kernel_w + at->cols.last);
        for (const float *k = w + (i * d->kernel_w + at->cols.first); k != end;
             ++k, p += (uint32_t)d->dilation_w * d->in_col) {
            const float v = *k;
            a = add(a, v, p[0]);
            if (together > 1u) {
                b = add(b, v, p[step]);
                c = add(c, v, p[2u * step]);
                e = add(e, v, p[3u * step]);
            }
        }
    }
    y[0] = clamp(a, low, high);
    if (together > 1u) {
        y[d->out_col] = clamp(b, low, high);
        y[2u * d->out_col] = clamp(c, low, high);
        y[3u * d->out_col] = clamp(e, low, high);
    }
}

MCG_CODE(mcg_depthwise_f32)
void mcg_depthwise_f32(const mcg_wide_conv_t *d, const float *w, const float *bias, float low, float high,
                       const float *x, float *y)
{
    for (uint32_t g = 0; g < d->groups; ++g, x += d->in_channel) {
        for (uint32_t o = 0; o < d->group_out; ++o, w += d->kernel_h * d->kernel_w, ++bias, y += d->out_channel) {
            for (int32_t oh = 0; oh < d->out_h; ++oh) {
                place_t at;
                at.top = oh * d->stride_h - d->pad_top;
                at.rows = mcg_taps(at.top, d->kernel_h, d->dilation_h, 0, d->in_h);
                for (int32_t ow = 0; ow < d->out_w;) {
                    float *out = y + ((uint32_t)oh * d->out_row + (uint32_t)ow * d->out_col);
                    const int32_t fourth = (ow + 3) * d->stride_w - d->pad_left;
                    at.left = ow * d->stride_w - d->pad_left;
                    at.cols = mcg_taps(at.left, d->kernel_w, d->dilation_w, 0, d->in_w);
                    if (ow + 4 <= d->out_w && at.left >= 0 && fourth + (d->kernel_w - 1) * d->dilation_w < d->in_w) {
                        depthwise(4u, d, &at, w, *bias, low, high, x, out);
                        ow += 4;
                    } else {
                        depthwise(1u, d, &at, w, *bias, low, high, x, out);
                        ++ow;
                    }
                }
            }
        }
    }
}

MCG_CODE(mcg_dense_f32)
void mcg_dense_f32(const float *w, const float *bias, float low, float high, uint32_t n, uint32_t k, const float *x,
                   float *y)
{
    for (uint32_t left = n; left != 0u; w += 4u * k) {
        const uint32_t now = left < 4u ? left : 4u;
        sums_t s;
        for (uint32_t i = 0; i < 4u; ++i) {
            s.p[i] = s.q[i] = bias[i < now ? i : 0u];
        }
        accumulate(0, &s, w, x, k, 1u, 0u);
        for (uint32_t i = 0; i < now; ++i) {
            *y++ = clamp(s.p[i], low, high);
        }
        bias += now;
        left -= now;
    }
}

MCG_KERNELS_END

#endif
