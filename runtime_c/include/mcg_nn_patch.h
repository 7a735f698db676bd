/* mcugen runtime: patches of the input to packed lanes in the scratch. Internal to mcg_nn_matmul.c; no interface.
 *
 * Pixels stand in threes, interleaved by groups: group 0 of pixels 0, 1, 2, then group 1 of them.
 * SPDX-License-Identifier: MIT-0
 */
#ifndef MCG_NN_PATCH_H
#define MCG_NN_PATCH_H

#include "mcg_nn_conv.h"
#include "mcg_nn_inline.h"

/* Words from a group of a pixel to its next group. */
#define MCG_NN_STEP 6u

MCG_KERNELS_BEGIN

/* One run inside the input. May read up to 3 bytes past the run, which meet zero weights. */
MCG_INLINE uint32_t *pack_run(int any, uint32_t *dst, const int8_t *src, uint32_t groups)
{
    for (const int8_t *end = src + 4u * (groups & ~3u); src != end; src += 16, dst += 4u * MCG_NN_STEP) {
        mcg_nn_pack4(any, mcg_load32(src), dst);
        mcg_nn_pack4(any, mcg_load32(src + 4), dst + MCG_NN_STEP);
        mcg_nn_pack4(any, mcg_load32(src + 8), dst + 2u * MCG_NN_STEP);
        mcg_nn_pack4(any, mcg_load32(src + 12), dst + 3u * MCG_NN_STEP);
    }
    for (const int8_t *end = src + 4u * (groups & 3u); src != end; src += 4, dst += MCG_NN_STEP) {
        mcg_nn_pack4(any, mcg_load32(src), dst);
    }
    return dst;
}

/* Three pixels that lie one after the other, each `groups` words. */
MCG_INLINE void pack_flat(int any, uint32_t *dst, const int8_t *src, uint32_t groups)
{
    const int8_t *const second = src + 4u * groups;
    const int8_t *const third = second + 4u * groups;
    for (uint32_t i = 0; i < 4u * groups; i += 4u, dst += MCG_NN_STEP) {
        mcg_nn_pack4(any, mcg_load32(src + i), dst);
        mcg_nn_pack4(any, mcg_load32(second + i), dst + 2);
        mcg_nn_pack4(any, mcg_load32(third + i), dst + 4);
    }
}

/* A patch inside the input, from its first byte on. */
MCG_INLINE void pack_inside(int any, const mcg_conv_t *d, uint32_t *dst, const int8_t *src)
{
    const uint32_t row = d->dilation_h * d->in_row;
    const uint32_t col = d->dilation_w * d->in_col;
    const int32_t next_plane = (int32_t)(d->in_plane - d->kernel_h * row); /* negative where the kernel is tall */
    uint32_t plane = d->planes;
    do {
        for (uint32_t k = d->kernel_h; k != 0u; --k, src += row) {
            const int8_t *run = src;
            uint32_t r = d->col_runs;
            do {
                dst = pack_run(any, dst, run, d->run_groups);
                run += col;
            } while (--r != 0u);
        }
        src += next_plane;
    } while (--plane != 0u);
}

/* The same where every run is one group, and a kernel row one run. */
MCG_INLINE void pack_words(int any, const mcg_conv_t *d, uint32_t *dst, const int8_t *src)
{
    const uint32_t row = d->dilation_h * d->in_row;
    const int32_t next_plane = (int32_t)(d->in_plane - d->kernel_h * row); /* negative where the kernel is tall */
    uint32_t plane = d->planes;
    do {
        uint32_t k = d->kernel_h;
        for (; k >= 3u; k -= 3u, dst += 3u * MCG_NN_STEP) {
            mcg_nn_pack4(any, mcg_load32(src), dst);
            src += row;
            mcg_nn_pack4(any, mcg_load32(src), dst + MCG_NN_STEP);
            src += row;
            mcg_nn_pack4(any, mcg_load32(src), dst + 2u * MCG_NN_STEP);
            src += row;
        }
        for (; k != 0u; --k, src += row, dst += MCG_NN_STEP) {
            mcg_nn_pack4(any, mcg_load32(src), dst);
        }
        src += next_plane;
    } while (--plane != 0u);
}

typedef void pack_t(const mcg_conv_t *d, uint32_t *dst, const int8_t *src);

#define PACK(name, how, any)                                                                             \
    MCG_SECTION(".text.mcugen." #name) MCG_NOINLINE static void name(const mcg_conv_t *d, uint32_t *dst, \
                                                                     const int8_t *src)                  \
    {                                                                                                    \
        how(any, d, dst, src);                                                                           \
    }

PACK(pack_inside_packed, pack_inside, 0)
PACK(pack_inside_any, pack_inside, 1)
PACK(pack_words_packed, pack_words, 0)
PACK(pack_words_any, pack_words, 1)

/* Bytes first..last-1 of a word, as a mask; both may lie outside of 0..4. */
MCG_INLINE uint32_t bytes_mask(int32_t first, int32_t last)
{
    const uint32_t from = first <= 0 ? 0xFFFFFFFFu : 0xFFFFFFFFu << (8 * first);
    return last >= 4 ? from : from & (0xFFFFFFFFu >> (32 - 8 * last));
}

/* A run at the border, from byte `at` of x on, which may lie outside: byte i of the run is inside the input where
 * first <= i < last, else padding. */
MCG_INLINE uint32_t *pack_border(int any, uint32_t *dst, const mcg_conv_t *d, const int8_t *x, int32_t at,
                                 int32_t first, int32_t last)
{
    const uint32_t pad = (uint32_t)(uint8_t)d->in_zp * 0x01010101u;
    const int32_t step = d->col_step;
    const int32_t end = 4 * (int32_t)d->run_groups;
    const int32_t readable = (int32_t)d->in_bytes - 4 - at;
    if (step == 1 && ((first | last) & 3) == 0) { /* whole groups of padding, of input, of padding */
        const int32_t before = last == 0 ? end : first;
        for (int32_t i = 0; i < before; i += 4, dst += MCG_NN_STEP) {
            mcg_nn_pack4(any, pad, dst);
        }
        if (last != 0) {
            dst = pack_run(any, dst, x + (at + first), (uint32_t)(last - first) / 4u);
            for (int32_t i = last; i < end; i += 4, dst += MCG_NN_STEP) {
                mcg_nn_pack4(any, pad, dst);
            }
        }
        return dst;
    }
    for (int32_t i = 0; i < end; i += 4, dst += MCG_NN_STEP) {
        uint32_t a = pad;
        if (i < last && i + 4 > first) {
            if (step == 1 && i <= readable && at + i >= 0) {
                const uint32_t mask = bytes_mask(first - i, last - i);
                a = (mcg_load32(x + (at + i)) & mask) | (pad & ~mask);
            } else {
                for (int32_t j = i + 3; j >= i; --j) {
                    const int inside = j >= first && j < last;
                    a = (a << 8) | (uint8_t)(inside ? x[at + j * step] : (int8_t)d->in_zp);
                }
            }
        }
        mcg_nn_pack4(any, a, dst);
    }
    return dst;
}

/* A patch whose kernel starts at input row top and column left, and reaches over the border or to the end of x. */
MCG_INLINE void pack_outside(int any, const mcg_conv_t *d, uint32_t *dst, const int8_t *x, int32_t top, int32_t left)
{
    const int32_t s = d->col_step;
    for (int32_t r = 0; r < d->col_runs; ++r) {
        const int32_t col = left + r * d->dilation_w;
        /* kernel columns before `before` and from `behind` on are outside */
        const int32_t before = col >= 0 ? 0 : s == 1 ? -col : (s - 1 - col) / s;
        const int32_t cells = (int32_t)d->in_w - col;
        const int32_t room = cells <= 0 ? 0 : s == 1 ? cells : (cells + s - 1) / s;
        const int32_t behind = room < (int32_t)d->cols ? room : (int32_t)d->cols;
        const int32_t first = before * d->unit;
        const int32_t last = behind <= before ? 0 : behind * d->unit;
        const uint32_t skip = (d->col_runs - 1u) * d->run_groups * MCG_NN_STEP;
        uint32_t *to = dst + (uint32_t)r * d->run_groups * MCG_NN_STEP;
        int32_t plane_at = top * (int32_t)d->in_row + col * (int32_t)d->in_col;
        for (uint32_t plane = d->planes; plane != 0u; --plane, plane_at += (int32_t)d->in_plane) {
            int32_t y = top;
            int32_t at = plane_at;
            for (uint32_t k = d->kernel_h; k != 0u; --k, y += d->dilation_h, to += skip) {
                to = pack_border(any, to, d, x, at, first, y < 0 || y >= d->in_h ? 0 : last);
                at += (int32_t)(d->dilation_h * d->in_row);
            }
        }
    }
}

#define PACK_OUTSIDE(name, any)                                                                                  \
    MCG_SECTION(".text.mcugen." #name) MCG_NOINLINE static void name(const mcg_conv_t *d, uint32_t *dst,         \
                                                                     const int8_t *x, int32_t top, int32_t left) \
    {                                                                                                            \
        pack_outside(any, d, dst, x, top, left);                                                                 \
    }

PACK_OUTSIDE(pack_outside_packed, 0)
PACK_OUTSIDE(pack_outside_any, 1)

/* Where the next patch is read. */
typedef struct {
    const int8_t *x;
    int32_t top, left; /* input row and column of the first kernel element */
    uint32_t in_row;   /* output pixels left in the row */
    int32_t rows;      /* patches are inside the input from row and column 0 up to these, exclusive */
    int32_t cols;
    uint32_t most; /* and start at this byte or before, so that no run is read past the end of x */
} walk_t;

MCG_SECTION(".text.mcugen.start_walk") static void start_walk(walk_t *k, const mcg_conv_t *d, const int8_t *x)
{
    const uint32_t height = (d->kernel_h - 1u) * d->dilation_h + 1u;
    const uint32_t runs = (d->col_runs - 1u) * d->dilation_w;
    const uint32_t width = runs + (d->cols - 1u) * d->col_step + 1u;
    const uint32_t last = (d->planes - 1u) * d->in_plane + (height - 1u) * d->in_row + runs * d->in_col;
    const uint32_t reach = last + 4u * d->run_groups;
    k->x = x;
    k->top = -(int32_t)d->pad_top;
    k->left = -(int32_t)d->pad_left;
    k->in_row = d->out_w;
    k->rows = (int32_t)d->in_h - (int32_t)height + 1;
    /* The kernel columns of a dilated run are not neighbours in memory: all patches take the slow way. */
    k->cols = d->col_step != 1u || reach > d->in_bytes ? 0 : (int32_t)d->in_w - (int32_t)width + 1;
    k->most = reach > d->in_bytes ? 0u : d->in_bytes - reach;
}

/* Packs the next n pixels. */
MCG_INLINE void pack_pixels(int any, const mcg_conv_t *d, walk_t *k, uint32_t *dst, uint32_t n)
{
    pack_t *const words = any ? pack_words_any : pack_words_packed;
    pack_t *const runs = any ? pack_inside_any : pack_inside_packed;
    pack_t *const inside = d->run_groups == 1u && d->col_runs == 1u ? words : runs;
    uint32_t in_three = 0;
    for (; n != 0u; --n) {
        const uint32_t at = (uint32_t)k->top * d->in_row + (uint32_t)k->left * d->in_col;
        if (k->top >= 0 && k->left >= 0 && k->top < k->rows && k->left < k->cols && at <= k->most) {
            inside(d, dst, k->x + at);
        } else {
            (any ? pack_outside_any : pack_outside_packed)(d, dst, k->x, k->top, k->left);
        }
        k->left += d->stride_w;
        if (--k->in_row == 0u) {
            k->in_row = d->out_w;
            k->left = -(int32_t)d->pad_left;
            k->top += d->stride_h;
        }
        dst += 2;
        if (++in_three == 3u) {
            in_three = 0;
            dst += MCG_NN_STEP * (d->groups - 1u);
        }
    }
}

MCG_KERNELS_END

#endif
