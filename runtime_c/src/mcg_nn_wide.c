/* mcugen runtime: int16 activations. See mcg_nn_wide.h for the contracts.
 * SPDX-License-Identifier: MIT-0
 */
#include "mcg_nn_wide.h"

#include "mcg_nn_window.h"

/* 256 products of int8 and int16 fit int32. */
#define BLOCK 256u

/* Sum of n products; `step` elements from one x to the next. */
static int64_t dot(const int8_t *w, const int16_t *x, uint32_t n, uint32_t step)
{
    int64_t sum = 0;
    while (n != 0u) {
        const uint32_t m = n < BLOCK ? n : BLOCK;
        int32_t part = 0;
        for (uint32_t i = 0; i < m; ++i) {
            part += w[i] * x[i * step];
        }
        sum += part;
        w += m;
        x += m * step;
        n -= m;
    }
    return sum;
}

MCG_INLINE int16_t finish(int64_t sum, const mcg_wide_channel_t *c, const mcg_wide_range_t *r)
{
    const mcg_requant_t q = {c->m, c->shift, c->c, r->zp, r->low, r->high};
    return (int16_t)mcg_requant64(sum + c->bias, q);
}

void mcg_conv_s16(const mcg_wide_conv_t *d, const int8_t *w, const mcg_wide_channel_t *channels,
                  const mcg_wide_range_t *range, const int16_t *x, int16_t *y)
{
    for (int32_t oh = 0; oh < d->out_h; ++oh) {
        const int32_t top = oh * d->stride_h - d->pad_top;
        const mcg_taps_t rows = mcg_taps(top, d->kernel_h, d->dilation_h, 0, d->in_h);
        for (int32_t ow = 0; ow < d->out_w; ++ow) {
            const int32_t left = ow * d->stride_w - d->pad_left;
            const mcg_taps_t cols = mcg_taps(left, d->kernel_w, d->dilation_w, 0, d->in_w);
            const int8_t *kernel = w;
            const mcg_wide_channel_t *channel = channels;
            int16_t *out = y + (uint32_t)oh * d->out_row + (uint32_t)ow * d->out_col;
            for (uint32_t o = 0; o < d->groups * d->group_out; ++o) {
                const uint32_t group = o / d->group_out * d->group_in * d->in_channel;
                int64_t sum = 0;
                for (int32_t i = rows.first; i < rows.last; ++i) {
                    for (int32_t j = cols.first; j < cols.last; ++j) {
                        const uint32_t at = group + (uint32_t)(top + i * d->dilation_h) * d->in_row +
                                            (uint32_t)(left + j * d->dilation_w) * d->in_col;
                        const int8_t *tap = kernel + (uint32_t)(i * d->kernel_w + j) * d->group_in;
                        sum += dot(tap, x + at, d->group_in, d->in_channel);
                    }
                }
                *out = finish(sum, channel, range);
                kernel += (uint32_t)(d->kernel_h * d->kernel_w) * d->group_in;
                ++channel;
                out += d->out_channel;
            }
        }
    }
}

void mcg_dense_s16(const int8_t *w, const mcg_wide_channel_t *channels, const mcg_wide_range_t *range, uint32_t n,
                   uint32_t k, const int16_t *x, int16_t *y)
{
    for (uint32_t i = 0; i < n; ++i, w += k) {
        y[i] = finish(dot(w, x, k, 1u), channels + i, range);
    }
}

void mcg_add_s16(const mcg_wide_add_t *d, const int16_t *a, const int16_t *b, int16_t *y)
{
    const mcg_requant_t q = d->requant;
    const int64_t ma = d->a, mb = d->b;
    for (uint32_t i = 0, n = d->n; i < n; ++i) {
        y[i] = (int16_t)mcg_requant64(a[i] * ma + b[i] * mb, q);
    }
}

void mcg_mul_s16(const mcg_wide_add_t *d, const int16_t *a, const int16_t *b, int16_t *y)
{
    const mcg_requant_t q = d->requant;
    for (uint32_t i = 0, n = d->n; i < n; ++i) {
        y[i] = (int16_t)mcg_requant(a[i] * b[i], q);
    }
}

void mcg_table_s16(const int16_t *table, const int16_t *x, int16_t *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        const int32_t at = x[i] + 32768;
        const int32_t low = table[at >> 6], high = table[(at >> 6) + 1];
        y[i] = (int16_t)(low + (((high - low) * (at & 63) + 32) >> 6));
    }
}

void mcg_rescale_s8_s16(const mcg_wide_add_t *d, const int8_t *x, int16_t *y)
{
    const mcg_requant_t q = d->requant;
    for (uint32_t i = 0, n = d->n; i < n; ++i) {
        y[i] = (int16_t)mcg_requant(x[i] - d->a, q);
    }
}

void mcg_rescale_s16_s8(const mcg_wide_add_t *d, const int16_t *x, int8_t *y)
{
    const mcg_requant_t q = d->requant;
    const int32_t zp = d->a;
    for (uint32_t i = 0, n = d->n; i < n; ++i) {
        y[i] = (int8_t)mcg_requant(x[i] - zp, q);
    }
}

void mcg_rescale_s16_s16(const mcg_wide_add_t *d, const int16_t *x, int16_t *y)
{
    const mcg_requant_t q = d->requant;
    const int32_t zp = d->a;
    for (uint32_t i = 0, n = d->n; i < n; ++i) {
        y[i] = (int16_t)mcg_requant(x[i] - zp, q);
    }
}
