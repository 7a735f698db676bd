/* mcugen runtime: int16 activations times int8 weights: convolution, depthwise, dense. See mcg_nn_wide.h.
 *
 * Sums are kept in int32 for stretches of at most 256 products, each at most 2^22, and added up in int64.
 * SPDX-License-Identifier: MIT-0
 */
#include "mcg_nn_wide.h"

/* Groups of four products that fit int32. */
#define STRETCH 64u

MCG_KERNELS_BEGIN

/* Where sums fit int32 and shifts are above 32. */
MCG_INLINE int16_t finish_quick(int32_t sum, const mcg_wide_channel_t *c, const mcg_wide_range_t *r)
{
    const int32_t y = (mcg_smmla(mcg_add32(sum, (int32_t)c->bias), c->m, c->c) >> (c->shift - 32)) + r->zp;
    return (int16_t)(y < r->low ? r->low : y > r->high ? r->high : y);
}

MCG_CODE(finish_any)
MCG_NOINLINE static int16_t finish_any(int64_t sum, const mcg_wide_channel_t *c, const mcg_wide_range_t *r)
{
    const mcg_requant_t q = {c->m, c->shift, c->c, r->zp, r->low, r->high};
    return (int16_t)mcg_requant64(sum + c->bias, q);
}

MCG_INLINE int16_t finish(int64_t sum, const mcg_wide_channel_t *c, const mcg_wide_range_t *r)
{
    if (r->quick != 0) {
        return finish_quick((int32_t)sum, c, r);
    }
    return finish_any(sum, c, r);
}

#define GROUP(i)                                                                          \
    do {                                                                                  \
        const uint32_t w0 = w[2u * (i)], w1 = w[2u * (i) + 1u];                           \
        const uint32_t p0 = mcg_load32(p + 4u * (i)), p1 = mcg_load32(p + 4u * (i) + 2u); \
        const uint32_t q0 = mcg_load32(q + 4u * (i)), q1 = mcg_load32(q + 4u * (i) + 2u); \
        const uint32_t v0 = mcg_sxtb16(w0), v1 = mcg_sxtb16(w1);                          \
        a = mcg_smlad(v0, p0, a);                                                         \
        b = mcg_smlad(v0, q0, b);                                                         \
        c = mcg_smlad(v1, p0, c);                                                         \
        e = mcg_smlad(v1, q0, e);                                                         \
        const uint32_t u0 = mcg_sxtb16_odd(w0), u1 = mcg_sxtb16_odd(w1);                  \
        a = mcg_smlad(u0, p1, a);                                                         \
        b = mcg_smlad(u0, q1, b);                                                         \
        c = mcg_smlad(u1, p1, c);                                                         \
        e = mcg_smlad(u1, q1, e);                                                         \
    } while (0)

/* Sums of two outputs of two patches; w: for each group of four a word of the first and one of the second output, bytes
 * 0, 2, 1, 3 of the weights. sums: first output of p, of q, second output of p, of q. Returns the next weights. */
MCG_CODE(two_by_two)
MCG_NOINLINE static const uint32_t *two_by_two(const uint32_t *w, const int16_t *p, const int16_t *q, uint32_t groups,
                                               int64_t *sums)
{
    int64_t sa = 0, sb = 0, sc = 0, se = 0;
    while (groups != 0u) {
        const uint32_t now = groups < STRETCH ? groups : STRETCH;
        int32_t a = 0, b = 0, c = 0, e = 0;
        groups -= now;
        for (const uint32_t *end = w + 4u * (now / 2u); w != end; w += 4, p += 8, q += 8) {
            GROUP(0u);
            GROUP(1u);
        }
        if ((now & 1u) != 0u) {
            GROUP(0u);
            w += 2;
            p += 4;
            q += 4;
        }
        sa += a;
        sb += b;
        sc += c;
        se += e;
    }
    sums[0] = sa;
    sums[1] = sb;
    sums[2] = sc;
    sums[3] = se;
    return w;
}

/* All n outputs of two patches where sums fit int32 and shifts are above 32; y and z: where the first output goes, `next`
 * elements to the second. Returns the weights behind them. */
MCG_CODE(all_quick)
MCG_NOINLINE static const uint32_t *all_quick(const uint32_t *w, const int16_t *first, const int16_t *second,
                                              uint32_t groups, const mcg_wide_channel_t *channel, uint32_t n,
                                              const mcg_wide_range_t *range, int16_t *y, int16_t *z, uint32_t next)
{
    for (;; n -= 2u, channel += 2, y += 2u * next, z += 2u * next) {
        const int16_t *p = first, *q = second;
        int32_t a = 0, b = 0, c = 0, e = 0;
        for (const uint32_t *end = w + 4u * (groups / 2u); w != end; w += 4, p += 8, q += 8) {
            GROUP(0u);
            GROUP(1u);
        }
        if ((groups & 1u) != 0u) {
            GROUP(0u);
            w += 2;
        }
        *y = finish_quick(a, channel, range);
        *z = finish_quick(b, channel, range);
        if (n > 1u) {
            y[next] = finish_quick(c, channel + 1, range);
            z[next] = finish_quick(e, channel + 1, range);
        }
        if (n <= 2u) {
            return w;
        }
    }
}

/* n elements, `step` apart, to consecutive ones; returns their end. */
MCG_INLINE int16_t *copy(int16_t *to, const int16_t *from, uint32_t n, uint32_t step)
{
    if (step == 1u) {
        for (; n >= 2u; n -= 2u, from += 2, to += 2) {
            mcg_store32(to, mcg_load32(from));
        }
    }
    for (; n != 0u; --n, from += step) {
        *to++ = *from;
    }
    return to;
}

MCG_INLINE int16_t *zeros(int16_t *to, uint32_t n)
{
    for (; n != 0u; --n) {
        *to++ = 0;
    }
    return to;
}

/* The patch at row `top` and column `left` of a group's channels, zeros where it is outside. */
MCG_CODE(gather)
MCG_NOINLINE static void gather(const mcg_wide_conv_t *d, const int16_t *x, int32_t top, int32_t left, int16_t *to,
                                uint32_t padded)
{
    int16_t *const end = to + padded;
    for (int32_t i = 0; i < d->kernel_h; ++i) {
        const int32_t row = top + i * d->dilation_h;
        for (int32_t j = 0; j < d->kernel_w; ++j) {
            const int32_t col = left + j * d->dilation_w;
            if (row >= 0 && row < d->in_h && col >= 0 && col < d->in_w) {
                to = copy(to, x + ((uint32_t)row * d->in_row + (uint32_t)col * d->in_col), d->group_in, d->in_channel);
            } else {
                to = zeros(to, d->group_in);
            }
        }
    }
    (void)zeros(to, (uint32_t)(end - to));
}

MCG_CODE(mcg_conv_s16)
void mcg_conv_s16(const mcg_wide_conv_t *d, const uint32_t *w, const mcg_wide_channel_t *channels,
                  const mcg_wide_range_t *range, int16_t *scratch, const int16_t *x, int16_t *y)
{
    const uint32_t groups = ((uint32_t)(d->kernel_h * d->kernel_w) * d->group_in + 3u) / 4u;
    const uint32_t pixels = (uint32_t)(d->out_h * d->out_w);
    const int direct = d->kernel_h == 1 && d->kernel_w == 1 && d->in_channel == 1u && d->group_in % 4u == 0u &&
                       d->pad_top == 0 && d->pad_left == 0 && d->out_h <= d->in_h && d->out_w <= d->in_w;
    int32_t oh = 0, ow = 0;
    for (uint32_t left = pixels; left != 0u;) {
        const int16_t *at[2];
        int16_t *out[2];
        int32_t top[2], column[2];
        for (uint32_t k = 0; k < 2u; ++k) { /* an odd last pixel is computed twice */
            if (k != 0u && left == 1u) {
                top[1] = top[0];
                column[1] = column[0];
                out[1] = out[0];
                break;
            }
            top[k] = oh * d->stride_h - d->pad_top;
            column[k] = ow * d->stride_w - d->pad_left;
            out[k] = y + ((uint32_t)oh * d->out_row + (uint32_t)ow * d->out_col);
            if (++ow == d->out_w) {
                ow = 0;
                ++oh;
            }
        }
        left -= left == 1u ? 1u : 2u;
        const uint32_t *from = w;
        const mcg_wide_channel_t *channel = channels;
        const int16_t *in = x;
        for (uint32_t g = d->groups; g != 0u; --g, in += d->group_in * d->in_channel) {
            for (uint32_t k = 0; k < 2u; ++k) {
                if (direct) {
                    at[k] = in + ((uint32_t)top[k] * d->in_row + (uint32_t)column[k] * d->in_col);
                } else {
                    gather(d, in, top[k], column[k], scratch + 4u * groups * k, 4u * groups);
                    at[k] = scratch + 4u * groups * k;
                }
            }
            if (range->quick != 0) {
                from =
                    all_quick(from, at[0], at[1], groups, channel, d->group_out, range, out[0], out[1], d->out_channel);
                channel += d->group_out;
                out[0] += d->group_out * d->out_channel;
                out[1] += d->group_out * d->out_channel;
                continue;
            }
            for (uint32_t n = d->group_out; n != 0u;) {
                int64_t sums[4];
                from = two_by_two(from, at[0], at[1], groups, sums);
                for (uint32_t k = 0; k < 4u && n != 0u; k += 2u, --n, ++channel) {
                    *out[0] = finish(sums[k], channel, range);
                    *out[1] = finish(sums[k + 1u], channel, range);
                    out[0] += d->out_channel;
                    out[1] += d->out_channel;
                }
            }
        }
    }
}

MCG_CODE(mcg_dense_s16)
void mcg_dense_s16(const uint32_t *w, const mcg_wide_channel_t *channels, const mcg_wide_range_t *range, uint32_t n,
                   uint32_t k, const int16_t *x, int16_t *y)
{
    const uint32_t groups = k / 4u;
    const int16_t last[4] = {k % 4u > 0u ? x[4u * groups] : (int16_t)0, k % 4u > 1u ? x[4u * groups + 1u] : (int16_t)0,
                             k % 4u > 2u ? x[4u * groups + 2u] : (int16_t)0, 0};
    while (n != 0u) {
        int64_t sums[4], more[4] = {0, 0, 0, 0};
        w = two_by_two(w, x, x, groups, sums);
        if (k % 4u != 0u) {
            w = two_by_two(w, last, last, 1u, more);
        }
        for (uint32_t i = 0; i < 4u && n != 0u; i += 2u, --n) {
            *y++ = finish(sums[i] + more[i], channels++, range);
        }
    }
}

/* Two columns of the kernel times one output. */
MCG_INLINE int32_t taps(const int16_t *p, uint32_t apart, uint32_t w, int32_t sum)
{
    return mcg_smlad(apart == 1u ? mcg_load32(p) : mcg_pair(p[0], p[apart]), w, sum);
}

/* `together` outputs of a row: 1 or 4; kernel columns `apart`. fixed: 2 or 3 pairs of columns, or 0 for any number. */
MCG_INLINE void outputs(uint32_t together, uint32_t apart, uint32_t fixed, const mcg_wide_conv_t *d, const uint32_t *w,
                        const mcg_wide_channel_t *channel, const mcg_wide_range_t *range, uint32_t pitch,
                        const int16_t *x, int16_t *y)
{
    const uint32_t step = (uint32_t)d->stride_w;
    const uint32_t pairs = fixed != 0u ? fixed : ((uint32_t)d->kernel_w + 1u) / 2u;
    int32_t a = 0, b = 0, c = 0, e = 0;
    for (int32_t i = d->kernel_h; i != 0; --i, x += (uint32_t)d->dilation_h * pitch, w += pairs) {
        const int16_t *p = x, *q = p + step, *r = q + step, *s = r + step;
#define PAIR(j)                                          \
    do {                                                 \
        const uint32_t v = w[j];                         \
        a = taps(p + 2u * (j) * apart, apart, v, a);     \
        if (together > 1u) {                             \
            b = taps(q + 2u * (j) * apart, apart, v, b); \
            c = taps(r + 2u * (j) * apart, apart, v, c); \
            e = taps(s + 2u * (j) * apart, apart, v, e); \
        }                                                \
    } while (0)
        if (fixed != 0u) {
            PAIR(0u);
            PAIR(1u);
            if (fixed > 2u) {
                PAIR(2u);
            }
        } else {
            for (uint32_t j = 0; j < pairs; ++j) {
                PAIR(j);
            }
        }
    }
    y[0] = finish(a, channel, range);
    if (together > 1u) {
        y[d->out_col] = finish(b, channel, range);
        y[2u * d->out_col] = finish(c, channel, range);
        y[3u * d->out_col] = finish(e, channel, range);
    }
}

/* A row of outputs, four at a time where there are four; the last ones may have been done before. */
MCG_CODE(row_of)
MCG_NOINLINE static void row_of(const mcg_wide_conv_t *d, const uint32_t *w, const mcg_wide_channel_t *channel,
                                const mcg_wide_range_t *range, uint32_t pitch, const int16_t *x, int16_t *y)
{
    const uint32_t step = (uint32_t)d->stride_w, apart = (uint32_t)d->dilation_w, most = (uint32_t)d->out_w;
    if (most < 4u || apart != 1u) {
        for (uint32_t n = most; n != 0u; --n, x += step, y += d->out_col) {
            outputs(1u, apart, 0u, d, w, channel, range, pitch, x, y);
        }
        return;
    }
    for (uint32_t at = 0;;) {
        if (d->kernel_w == 3) {
            outputs(4u, 1u, 2u, d, w, channel, range, pitch, x + at * step, y + at * d->out_col);
        } else {
            outputs(4u, 1u, 0u, d, w, channel, range, pitch, x + at * step, y + at * d->out_col);
        }
        at += 4u;
        if (at >= most) {
            return;
        }
        if (at + 1u == most) {
            outputs(1u, 1u, 0u, d, w, channel, range, pitch, x + at * step, y + at * d->out_col);
            return;
        }
        at = at + 4u > most ? most - 4u : at;
    }
}

MCG_CODE(mcg_depthwise_s16)
void mcg_depthwise_s16(const mcg_wide_conv_t *d, const uint32_t *w, const mcg_wide_channel_t *channels,
                       const mcg_wide_range_t *range, uint32_t pitch, uint32_t strip, int16_t *scratch,
                       const int16_t *x, int16_t *y)
{
    const uint32_t words = (uint32_t)d->kernel_h * (((uint32_t)d->kernel_w + 1u) / 2u);
    const int32_t rows = ((int32_t)strip - 1) * d->stride_h + (d->kernel_h - 1) * d->dilation_h + 1;
    const uint32_t room = pitch - (uint32_t)d->pad_left;
    const uint32_t inside = (uint32_t)d->in_w < room ? (uint32_t)d->in_w : room;
    for (uint32_t g = d->groups; g != 0u; --g, x += d->in_channel) {
        for (int32_t first = 0; first < d->out_h; first += (int32_t)strip) {
            const int32_t top = first * d->stride_h - d->pad_top;
            int16_t *to = scratch;
            for (int32_t i = top; i < top + rows; ++i) {
                if (i >= 0 && i < d->in_h) {
                    to = zeros(to, (uint32_t)d->pad_left);
                    to = copy(to, x + (uint32_t)i * d->in_row, inside, d->in_col);
                    to = zeros(to, room - inside);
                } else {
                    to = zeros(to, pitch);
                }
            }
            const uint32_t *from = w;
            const int32_t end = first + (int32_t)strip < d->out_h ? first + (int32_t)strip : d->out_h;
            for (uint32_t j = 0; j < d->group_out; ++j, from += words) {
                const int16_t *in = scratch;
                for (int32_t i = first; i < end; ++i, in += (uint32_t)d->stride_h * pitch) {
                    row_of(d, from, channels + j, range, pitch, in,
                           y + (j * d->out_channel + (uint32_t)i * d->out_row));
                }
            }
        }
        w += d->group_out * words;
        channels += d->group_out;
        y += d->group_out * d->out_channel;
    }
}

MCG_KERNELS_END
