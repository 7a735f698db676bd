/* mcugen runtime: int8 depthwise convolution over int16 rows. See mcg_nn_conv.h for the contracts.
 * SPDX-License-Identifier: MIT-0
 */
#include "mcg_nn_conv.h"
#include "mcg_nn_inline.h"

MCG_KERNELS_BEGIN

/* n times the value to consecutive int16. */
MCG_INLINE void fill(int16_t *dst, int32_t n, int16_t value)
{
    for (; n > 0; --n) {
        *dst++ = value;
    }
}

/* Four int8 to four int16. */
MCG_INLINE void widen(int16_t *dst, const int8_t *x)
{
    const uint32_t a = mcg_load32(x);
    const uint32_t even = mcg_sxtb16(a);
    const uint32_t odd = mcg_sxtb16_odd(a);
    mcg_store32(dst, mcg_pack_low(even, odd));
    mcg_store32(dst + 2, mcg_pack_high(even, odd));
}

/* Rows of one channel into the scratch; columns that are padding keep the zero point that they hold. */
MCG_INLINE void expand_rows(const mcg_depthwise_t *d, int16_t *dst, const int8_t *x, int32_t rows)
{
    const int32_t pitch = d->pitch;
    const int32_t room = pitch - d->pad_left;
    const int32_t n = d->in_w < room ? d->in_w : room;
    const uint32_t in_row = d->in_row;
    const uint32_t in_col = d->in_col;
    dst += d->pad_left;
    if (in_col == 1u && n >= 4 && n <= 8) {
        for (; rows > 0; --rows, dst += pitch, x += in_row) {
            widen(dst, x);
            widen(dst + n - 4, x + n - 4); /* overlaps the first */
        }
        return;
    }
    if (in_col == 1u && n >= 4) {
        const uint32_t eights = (uint32_t)n / 8u;
        const uint32_t four = (uint32_t)n & 4u;
        const uint32_t overlap = (uint32_t)n & 3u; /* the last four columns overlap the ones before */
        for (; rows > 0; --rows, dst += pitch, x += in_row) {
            const int8_t *from = x;
            int16_t *to = dst;
            for (uint32_t k = eights; k != 0u; --k, from += 8, to += 8) {
                widen(to, from);
                widen(to + 4, from + 4);
            }
            if (four) {
                widen(to, from);
            }
            if (overlap) {
                widen(dst + n - 4, x + n - 4);
            }
        }
        return;
    }
    for (; rows > 0; --rows, dst += pitch, x += in_row) {
        const int8_t *p = x;
        for (int32_t i = 0; i < n; ++i, p += in_col) {
            dst[i] = *p;
        }
    }
}

/* `rows` input rows of one channel from row `top` on. src: the channel's first byte. whole: no other rows are ever put
 * here, so that rows of padding keep the zero point that they hold. */
MCG_INLINE void expand(const mcg_depthwise_t *d, int16_t *dst, const int8_t *src, int32_t top, int32_t rows, int whole)
{
    const int32_t pitch = d->pitch;
    const int32_t above = top < 0 ? (-top < rows ? -top : rows) : 0;
    const int32_t height = (int32_t)d->in_h - (top + above);
    const int32_t inside = height < 0 ? 0 : height < rows - above ? height : rows - above;
    if (!whole) {
        fill(dst, above * pitch, d->in_zp);
        fill(dst + (above + inside) * pitch, (rows - above - inside) * pitch, d->in_zp);
    }
    if (inside > 0) {
        expand_rows(d, dst + above * pitch, src + (uint32_t)(top + above) * d->in_row, inside);
    }
}

/* What the loop over outputs takes from the stack, so that its registers hold the weights. */
typedef struct {
    int32_t bias;
    int32_t shift;
    int32_t m, c;
    const mcg_words_t *end;
} loop_t;

#if MCG_HAS_DSP
/* From here on the values are in memory, respectively in a register and not known to be a copy of memory. */
#define IN_MEMORY(v) __asm__ volatile("" : "+m"(v))
#define IN_REGISTER(v) __asm__ volatile("" : "+r"(v))
#else
#define IN_MEMORY(v) ((void)(v))
#define IN_REGISTER(v) ((void)(v))
#endif

/* Two neighbours: x0 x1 x2 x3 times w0 w1 w2, from x0 and from x1. */
#define ROW_PAIR(p, wa, wb)          \
    do {                             \
        const uint32_t x01 = (p)[0]; \
        const uint32_t x23 = (p)[1]; \
        b = mcg_smlatb(x01, wa, b);  \
        a = mcg_smlad(x01, wa, a);   \
        a = mcg_smlabt(x23, wb, a);  \
        b = mcg_smlad(x23, wb, b);   \
    } while (0)

/* The same with two columns between them: x0 x1 x2 x3 x4. */
#define ROW_PAIR_2(p, wa, wb)          \
    do {                               \
        const uint32_t x01 = (p)[0];   \
        const uint32_t x23 = (p)[1];   \
        a = mcg_smlad(x01, wa, a);     \
        a = mcg_smlabt(x23, wb, a);    \
        b = mcg_smlad(x23, wa, b);     \
        b = mcg_smlabt((p)[2], wb, b); \
    } while (0)

#define ROW_ONE(p, wa, wb)             \
    do {                               \
        a = mcg_smlad((p)[0], wa, a);  \
        a = mcg_smlabt((p)[1], wb, a); \
    } while (0)

MCG_INLINE int8_t scale(int32_t v, const loop_t *q) { return (int8_t)mcg_ssat8(mcg_smmla(v, q->m, q->c) >> q->shift); }

/* Output rows of a 3 x 3 kernel; x is the first input row, as words of two int16, `pitch` words a row. Two outputs
 * advance `pair` words: the stride. */
MCG_INLINE void rows_3x3(const mcg_depthwise_t *d, uint32_t pitch, uint32_t pair, const uint32_t *w, const int16_t *x,
                         int8_t *y, int32_t rows)
{
    const uint32_t col = d->out_col;
    const uint32_t pairs = d->out_w / 2u;
    const uint32_t odd = d->out_w & 1u;
    const uint32_t skip = pitch * d->stride_h - pairs * pair;
    uint32_t w0 = w[0], w1 = w[1], w2 = w[2], w3 = w[3], w4 = w[4], w5 = w[5];
    loop_t q = {(int32_t)w[6], (int32_t)w[9], (int32_t)w[7], (int32_t)w[8], NULL};
    const mcg_words_t *p = (const mcg_words_t *)(const void *)x;
    IN_REGISTER(w0);
    IN_REGISTER(w1);
    IN_REGISTER(w2);
    IN_REGISTER(w3);
    IN_REGISTER(w4);
    IN_REGISTER(w5);
    do {
        q.end = p + pairs * pair;
        if (pair == 1u) {
            for (; p != q.end; ++p, y += col) {
                IN_MEMORY(q);
                int32_t a = q.bias, b = a;
                ROW_PAIR(p, w0, w1);
                ROW_PAIR(p + pitch, w2, w3);
                ROW_PAIR(p + 2u * pitch, w4, w5);
                *y = scale(a, &q);
                y += col;
                *y = scale(b, &q);
            }
        } else {
            for (; p != q.end; p += 2, y += col) {
                IN_MEMORY(q);
                int32_t a = q.bias, b = a;
                ROW_PAIR_2(p, w0, w1);
                ROW_PAIR_2(p + pitch, w2, w3);
                ROW_PAIR_2(p + 2u * pitch, w4, w5);
                *y = scale(a, &q);
                y += col;
                *y = scale(b, &q);
            }
        }
        if (odd) {
            IN_MEMORY(q);
            int32_t a = q.bias;
            ROW_ONE(p, w0, w1);
            ROW_ONE(p + pitch, w2, w3);
            ROW_ONE(p + 2u * pitch, w4, w5);
            *y = scale(a, &q);
            y += col;
        }
        p += skip;
    } while (--rows != 0);
}

/* One output row of any kernel. */
MCG_INLINE void row_any(const mcg_depthwise_t *d, const uint32_t *w, const int16_t *x, int8_t *y)
{
    const uint32_t pairs = (d->kernel_w + 1u) / 2u;
    const mcg_nn_requant_t q = mcg_nn_requant(w + (uint32_t)d->kernel_h * pairs);
    const mcg_nn_range_t range = {d->out_zp, d->low, d->high};
    for (uint32_t n = d->out_w; n != 0u; --n, x += d->stride_w, y += d->out_col) {
        const uint32_t *k = w;
        const int16_t *row = x;
        int32_t a = q.bias;
        for (uint32_t i = d->kernel_h; i != 0u; --i, row += (uint32_t)d->dilation_h * d->pitch) {
            const int16_t *p = row;
            if (d->dilation_w == 1u) {
                for (uint32_t j = pairs; j != 0u; --j, p += 2) {
                    a = mcg_smlad(mcg_load32(p), *k++, a);
                }
            } else {
                for (uint32_t j = pairs; j != 0u; --j, p += 2u * d->dilation_w) {
                    a = mcg_smlad(mcg_pair(p[0], p[d->dilation_w]), *k++, a);
                }
            }
        }
        *y = mcg_nn_scale_any(a, q, range);
    }
}

/* Output rows of any kernel. */
MCG_INLINE void rows_any(const mcg_depthwise_t *d, const uint32_t *w, const int16_t *x, int8_t *y, int32_t rows)
{
    for (; rows != 0; --rows, x += (uint32_t)d->stride_h * d->pitch, y += d->out_row) {
        row_any(d, w, x, y);
    }
}

typedef void rows_t(const mcg_depthwise_t *d, const uint32_t *w, const int16_t *x, int8_t *y, int32_t rows);

/* Channel by channel, strip by strip. words: of the table, one output channel. */
MCG_INLINE void depthwise(const mcg_depthwise_t *d, const uint32_t *w, uint32_t words, int16_t *scratch,
                          const int8_t *x, int8_t *y, rows_t *rows_of)
{
    const int32_t reach = (int32_t)(d->kernel_h - 1u) * d->dilation_h + 1;
    const int32_t strip = d->strip;
    const int whole = strip >= d->out_h;
    fill(scratch, ((strip - 1) * d->stride_h + reach) * d->pitch, d->in_zp);
    for (uint32_t c = d->channels; c != 0u; --c, x += d->in_channel) {
        for (int32_t first = 0; first < d->out_h; first += strip) {
            const int32_t left = d->out_h - first;
            const int32_t rows = left < strip ? left : strip;
            int8_t *out = y + (uint32_t)first * d->out_row;
            const uint32_t *k = w;
            expand(d, scratch, x, first * d->stride_h - d->pad_top, (rows - 1) * d->stride_h + reach, whole);
            for (uint32_t j = d->multiplier; j != 0u; --j, out += d->out_channel, k += words) {
                rows_of(d, k, scratch, out, rows);
            }
        }
        w += d->multiplier * words;
        y += d->multiplier * d->out_channel;
    }
}

/* The same for pitches that the compiler knows, so that offsets stand in the loads. */
#define ROWS_3X3(name, pitch, pair)                                                                               \
    MCG_SECTION(".text.mcugen." #name) MCG_NOINLINE static void name(const mcg_depthwise_t *d, const uint32_t *w, \
                                                                     const int16_t *x, int8_t *y, int32_t rows)   \
    {                                                                                                             \
        rows_3x3(d, pitch, pair, w, x, y, rows);                                                                  \
    }

ROWS_3X3(rows_3x3_16, 8u, 1u)
ROWS_3X3(rows_3x3_16_step, 8u, 2u)
ROWS_3X3(rows_3x3_64, 32u, 1u)
ROWS_3X3(rows_3x3_64_step, 32u, 2u)
ROWS_3X3(rows_3x3_wide, d->pitch / 2u, d->stride_w)

MCG_SECTION(".text.mcugen.rows_of_any") MCG_NOINLINE static void
rows_of_any(const mcg_depthwise_t *d, const uint32_t *w, const int16_t *x, int8_t *y, int32_t rows)
{
    rows_any(d, w, x, y, rows);
}

MCG_SECTION(".text.mcugen.mcg_depthwise_3x3_s8") void mcg_depthwise_3x3_s8(const mcg_depthwise_t *d, const uint32_t *w,
                                                                           int16_t *scratch, const int8_t *x, int8_t *y)
{
    const int step = d->stride_w == 2u;
    rows_t *rows = rows_3x3_wide;
    if (d->pitch == 16u) {
        rows = step ? rows_3x3_16_step : rows_3x3_16;
    } else if (d->pitch == 64u) {
        rows = step ? rows_3x3_64_step : rows_3x3_64;
    }
    depthwise(d, w, 10u, scratch, x, y, rows);
}

MCG_SECTION(".text.mcugen.mcg_depthwise_s8_any") void mcg_depthwise_s8_any(const mcg_depthwise_t *d, const uint32_t *w,
                                                                           int16_t *scratch, const int8_t *x, int8_t *y)
{
    depthwise(d, w, d->kernel_h * ((d->kernel_w + 1u) / 2u) + 4u, scratch, x, y, rows_of_any);
}

MCG_KERNELS_END
