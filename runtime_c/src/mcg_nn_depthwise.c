/* mcugen runtime: int8 depthwise convolution over int16 rows. See mcg_nn_conv.h for the contracts.
 * SPDX-License-Identifier: MIT-0
 */
#include "mcg_nn_rows.h"

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

#if MCG_HAS_ASM

/* `rows` rows of n int8 (4 or more) to int16, `pitch` and `in_row` bytes apart; 1.9 instructions an element. r0 dst, r1 src,
 * r2 n, r3 rows, r4 r5 the same inside a row, r6 count, r7 four bytes, r8 r9 two of them each, r10 two halves, r11 pitch,
 * r12 in_row. */
#define FOUR_BYTES                 \
    "ldr r7, [r4], #4\n"           \
    "sxtb16 r8, r7\n"              \
    "sxtb16 r9, r7, ror #8\n"      \
    "pkhbt r10, r8, r9, lsl #16\n" \
    "pkhtb r7, r9, r8, asr #16\n"  \
    "str r10, [r5], #4\n"          \
    "str r7, [r5], #4\n"
MCG_CODE(widen_rows)
__attribute__((naked, noinline)) static void widen_rows(MCG_UNUSED int16_t *dst, MCG_UNUSED const int8_t *src,
                                                        MCG_UNUSED uint32_t n, MCG_UNUSED uint32_t rows,
                                                        MCG_UNUSED uint32_t pitch, MCG_UNUSED uint32_t in_row)
{
    /* clang-format off */
    __asm__ volatile(
        ".syntax unified\n"
        "push {r4-r11, lr}\n"
        "ldrd r11, r12, [sp, #36]\n"
        "1:\n"
        "mov r4, r1\n"
        "mov r5, r0\n"
        "lsrs r6, r2, #4\n"
        "beq 3f\n"
        "2:\n"
        FOUR_BYTES FOUR_BYTES FOUR_BYTES FOUR_BYTES
        "subs r6, r6, #1\n"
        "bne 2b\n"
        "3:\n"
        "ubfx r6, r2, #2, #2\n"
        "cmp r6, #0\n"
        "beq 5f\n"
        "4:\n"
        FOUR_BYTES
        "subs r6, r6, #1\n"
        "bne 4b\n"
        "5:\n"
        "ands r6, r2, #3\n" /* the last four overlap the ones before */
        "beq 6f\n"
        "sub r6, r6, #4\n"
        "add r4, r4, r6\n"
        "add r5, r5, r6, lsl #1\n"
        FOUR_BYTES
        "6:\n"
        "add r0, r0, r11\n"
        "add r1, r1, r12\n"
        "subs r3, r3, #1\n"
        "bne 1b\n"
        "pop {r4-r11, pc}\n");
    /* clang-format on */
}

#endif

/* Rows of one channel into the scratch; columns that are padding keep the zero point that they hold. */
MCG_CODE(expand_rows)
MCG_NOINLINE static void expand_rows(const mcg_depthwise_t *d, int16_t *dst, const int8_t *x, int32_t rows)
{
    const int32_t pitch = d->pitch;
    const int32_t room = pitch - d->pad_left;
    const int32_t n = d->in_w < room ? d->in_w : room;
    const uint32_t in_row = d->in_row;
    const uint32_t in_col = d->in_col;
    dst += d->pad_left;
    if (in_col == 1u && n >= 4 && n <= 8) {
        const int32_t last = n - 4;
        if (last == 1) {
            for (; rows > 0; --rows, dst += pitch, x += in_row) {
                widen(dst, x);
                dst[4] = x[4];
            }
            return;
        }
        for (; rows > 0; --rows, dst += pitch, x += in_row) {
            widen(dst, x);
            widen(dst + last, x + last); /* overlaps the first */
        }
        return;
    }
#if MCG_HAS_ASM
    if (in_col == 1u && n >= 4) {
        widen_rows(dst, x, (uint32_t)n, (uint32_t)rows, 2u * (uint32_t)pitch, in_row);
        return;
    }
#else
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
#endif
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

typedef void rows_t(const mcg_depthwise_t *d, const uint32_t *w, const int16_t *x, int8_t *y, uint32_t rows);

/* Two columns of the kernel times one output, from p on. */
MCG_INLINE int32_t taps(const int16_t *p, uint32_t apart, uint32_t w, int32_t sum)
{
    return mcg_smlad(apart == 1u ? mcg_load32(p) : mcg_pair(p[0], p[apart]), w, sum);
}

/* One output of any kernel. */
MCG_INLINE void one_of(int any, const mcg_depthwise_t *d, const uint32_t *w, const int16_t *x, int8_t *y)
{
    const uint32_t pairs = (d->kernel_w + 1u) / 2u, pitch = (uint32_t)d->dilation_h * d->pitch, apart = d->dilation_w;
    const mcg_nn_range_t range = {d->out_zp, d->low, d->high};
    int32_t a = (int32_t)*w++;
    for (uint32_t i = d->kernel_h; i != 0u; --i, x += pitch) {
        const int16_t *p = x;
        for (const uint32_t *end = w + pairs; w != end; p += 2u * apart) {
            a = taps(p, apart, *w++, a);
        }
    }
    *y = mcg_nn_finish(any, a, mcg_nn_requant(w), range);
}

/* Two columns of the kernel times four outputs. */
#define PAIR(j)                           \
    do {                                  \
        const uint32_t v = w[j];          \
        a = taps(p + 2u * (j), 1u, v, a); \
        b = taps(q + 2u * (j), 1u, v, b); \
        c = taps(r + 2u * (j), 1u, v, c); \
        e = taps(s + 2u * (j), 1u, v, e); \
    } while (0)

/* Four outputs of a row, kernel columns side by side. fixed: 2 or 3 pairs of columns, or 0 for any number. */
MCG_INLINE void four_of(int any, uint32_t fixed, const mcg_depthwise_t *d, const uint32_t *w, const int16_t *x,
                        int8_t *y)
{
    const uint32_t pairs = fixed != 0u ? fixed : (d->kernel_w + 1u) / 2u;
    const uint32_t pitch = (uint32_t)d->dilation_h * d->pitch, step = d->stride_w, col = d->out_col;
    const mcg_nn_range_t range = {d->out_zp, d->low, d->high};
    int32_t a = (int32_t)*w++, b = a, c = a, e = a;
    for (uint32_t i = d->kernel_h; i != 0u; --i, x += pitch, w += pairs) {
        const int16_t *p = x, *q = p + step, *r = q + step, *s = r + step;
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
    const mcg_nn_requant_t scale = mcg_nn_requant(w);
    y[0] = mcg_nn_finish(any, a, scale, range);
    y[col] = mcg_nn_finish(any, b, scale, range);
    y[2u * col] = mcg_nn_finish(any, c, scale, range);
    y[3u * col] = mcg_nn_finish(any, e, scale, range);
}

/* A row, four outputs at a time where there are four; the last ones may have been done before. */
MCG_INLINE void row_of(int any, uint32_t fixed, const mcg_depthwise_t *d, const uint32_t *w, const int16_t *x,
                       int8_t *y)
{
    const uint32_t step = d->stride_w, col = d->out_col, most = d->out_w;
    if (most < 4u || d->dilation_w != 1u) {
        for (uint32_t n = most; n != 0u; --n, x += step, y += col) {
            one_of(any, d, w, x, y);
        }
        return;
    }
    for (uint32_t n = most / 4u; n != 0u; --n, x += 4u * step, y += 4u * col) {
        four_of(any, fixed, d, w, x, y);
    }
    const uint32_t rest = most & 3u;
    if (rest == 1u) {
        one_of(any, d, w, x, y);
    } else if (rest != 0u) {
        four_of(any, fixed, d, w, x - (4u - rest) * step, y - (4u - rest) * col);
    }
}

MCG_INLINE void rows_of(int any, uint32_t fixed, const mcg_depthwise_t *d, const uint32_t *w, const int16_t *x,
                        int8_t *y, uint32_t rows)
{
    for (; rows != 0u; --rows, x += (uint32_t)d->stride_h * d->pitch, y += d->out_row) {
        row_of(any, fixed, d, w, x, y);
    }
}

#define ROWS(name, any, fixed)                                                                              \
    MCG_CODE(name)                                                                                          \
    MCG_NOINLINE static void name(const mcg_depthwise_t *d, const uint32_t *w, const int16_t *x, int8_t *y, \
                                  uint32_t rows)                                                            \
    {                                                                                                       \
        rows_of(any, fixed, d, w, x, y, rows);                                                              \
    }

ROWS(rows_packed_2, 0, 2u)
ROWS(rows_packed_3, 0, 3u)
ROWS(rows_packed, 0, 0u)
ROWS(rows_any, 1, 0u)

/* Channel by channel, strip by strip. The last strip may begin with rows that were done before. words: of the table,
 * one output channel. */
MCG_CODE(depthwise)
MCG_NOINLINE static void depthwise(const mcg_depthwise_t *d, const uint32_t *w, int16_t *scratch, const int8_t *x,
                                   int8_t *y, uint32_t words, rows_t *rows_of_channel)
{
    const int32_t reach = (int32_t)(d->kernel_h - 1u) * d->dilation_h + 1;
    const int32_t strip = d->strip;
    const int32_t rows = (strip - 1) * d->stride_h + reach;
    fill(scratch, rows * d->pitch, d->in_zp);
    if (strip == d->out_h && d->multiplier == 1u) { /* one strip: its padding stays */
        const int32_t room = rows - (int32_t)d->pad_top;
        const int32_t inside = d->in_h < room ? (int32_t)d->in_h : room;
        int16_t *const first = scratch + (uint32_t)d->pad_top * d->pitch;
        const uint32_t in_channel = d->in_channel, out_channel = d->out_channel;
        for (uint32_t c = d->channels; c != 0u; --c, x += in_channel, y += out_channel, w += words) {
            if (inside > 0) {
                expand_rows(d, first, x, inside);
            }
            rows_of_channel(d, w, scratch, y, (uint32_t)strip);
        }
        return;
    }
    for (uint32_t c = d->channels; c != 0u; --c, x += d->in_channel) {
        for (int32_t first = 0; first < d->out_h; first += strip) {
            first = first + strip > d->out_h ? (int32_t)d->out_h - strip : first;
            int8_t *out = y + (uint32_t)first * d->out_row;
            const uint32_t *k = w;
            expand(d, scratch, x, first * d->stride_h - d->pad_top, rows, strip == d->out_h);
            for (uint32_t j = d->multiplier; j != 0u; --j, out += d->out_channel, k += words) {
                rows_of_channel(d, k, scratch, out, (uint32_t)strip);
            }
        }
        w += d->multiplier * words;
        y += d->multiplier * d->out_channel;
    }
}

MCG_INLINE void narrow(const mcg_depthwise_t *d, int8_t *y)
{
    if (mcg_nn_is_narrow(d->low, d->high)) {
        mcg_clamp_s8(y, (uint32_t)d->out_h * d->out_w * d->channels * d->multiplier, d->low, d->high);
    }
}

MCG_INLINE uint32_t words_of(const mcg_depthwise_t *d) { return 4u + d->kernel_h * ((d->kernel_w + 1u) / 2u); }

MCG_CODE(mcg_depthwise_3x3_s8_p16)
void mcg_depthwise_3x3_s8_p16(const mcg_depthwise_t *d, const uint32_t *w, int16_t *scratch, const int8_t *x, int8_t *y)
{
    depthwise(d, w, scratch, x, y, 10u, d->stride_w == 2u ? rows_16_step : rows_16);
    narrow(d, y);
}

MCG_CODE(mcg_depthwise_3x3_s8_p32)
void mcg_depthwise_3x3_s8_p32(const mcg_depthwise_t *d, const uint32_t *w, int16_t *scratch, const int8_t *x, int8_t *y)
{
    depthwise(d, w, scratch, x, y, 10u, d->stride_w == 2u ? rows_32_step : rows_32);
    narrow(d, y);
}

MCG_CODE(mcg_depthwise_3x3_s8_p64)
void mcg_depthwise_3x3_s8_p64(const mcg_depthwise_t *d, const uint32_t *w, int16_t *scratch, const int8_t *x, int8_t *y)
{
    depthwise(d, w, scratch, x, y, 10u, d->stride_w == 2u ? rows_64_step : rows_64);
    narrow(d, y);
}

MCG_CODE(mcg_depthwise_s8)
void mcg_depthwise_s8(const mcg_depthwise_t *d, const uint32_t *w, int16_t *scratch, const int8_t *x, int8_t *y)
{
    const uint32_t pairs = (d->kernel_w + 1u) / 2u;
    depthwise(d, w, scratch, x, y, words_of(d),
              pairs == 2u   ? rows_packed_2
              : pairs == 3u ? rows_packed_3
                            : rows_packed);
    narrow(d, y);
}

MCG_CODE(mcg_depthwise_s8_any)
void mcg_depthwise_s8_any(const mcg_depthwise_t *d, const uint32_t *w, int16_t *scratch, const int8_t *x, int8_t *y)
{
    depthwise(d, w, scratch, x, y, words_of(d), rows_any);
}

MCG_KERNELS_END
