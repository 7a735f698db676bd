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

/* `runs` runs of `groups` groups, each `step` bytes after the one before. May read up to 3 bytes past a run, which meet
 * zero weights. Returns the end of what was written. */
MCG_INLINE uint32_t *pack_runs(int any, uint32_t *dst, const int8_t *src, uint32_t groups, uint32_t runs, uint32_t step)
{
    const mcg_nn_lanes_t l = mcg_nn_lanes();
    for (; runs != 0u; --runs, src += step) {
        const int8_t *from = src;
        for (uint32_t n = groups / 4u; n != 0u; --n, from += 16, dst += 4u * MCG_NN_STEP) {
            mcg_nn_pack4(any, l, mcg_load32(from), dst);
            mcg_nn_pack4(any, l, mcg_load32(from + 4), dst + MCG_NN_STEP);
            mcg_nn_pack4(any, l, mcg_load32(from + 8), dst + 2u * MCG_NN_STEP);
            mcg_nn_pack4(any, l, mcg_load32(from + 12), dst + 3u * MCG_NN_STEP);
        }
        for (uint32_t n = groups & 3u; n != 0u; --n, from += 4, dst += MCG_NN_STEP) {
            mcg_nn_pack4(any, l, mcg_load32(from), dst);
        }
    }
    return dst;
}

#if MCG_HAS_ASM

/* The same for the packed form, src and step multiples of 4, groups 4 or more: 4.7 instructions a group instead of 6.
 * r0 dst, r1 src, r2 groups, r3 runs, r4-r7 input, r8 r9 lanes, r10 offset, r11 upper, r12 end, lr step. */
#define PACK_ONE(a)                    \
    "sxtab16 r8, r10, " a ", ror #8\n" \
    "and r9, r11, " a ", lsl #8\n"     \
    "ssub16 r9, r9, r8\n"              \
    "strd r8, r9, [r0], #24\n"
MCG_CODE(pack_words_4)
__attribute__((naked, noinline)) static uint32_t *pack_words_4(MCG_UNUSED uint32_t *dst, MCG_UNUSED const int8_t *src,
                                                               MCG_UNUSED uint32_t groups, MCG_UNUSED uint32_t runs,
                                                               MCG_UNUSED uint32_t step)
{
    /* clang-format off */
    __asm__ volatile(
        ".syntax unified\n"
        "push {r4-r11, lr}\n"
        "ldr lr, [sp, #36]\n"
        "mvn r10, #0x7e007e\n"
        "mov r11, #0xff00ff00\n"
        "sub lr, lr, r2, lsl #2\n" /* from the end of a run to the next */
        "1:\n"
        "bic r12, r2, #3\n"
        "add r12, r1, r12, lsl #2\n"
        "2:\n"
        "ldm r1!, {r4-r7}\n"
        PACK_ONE("r4") PACK_ONE("r5") PACK_ONE("r6") PACK_ONE("r7")
        "cmp r1, r12\n"
        "bne 2b\n"
        "ands r12, r2, #3\n"
        "beq 4f\n"
        "3:\n"
        "ldr r4, [r1], #4\n"
        PACK_ONE("r4")
        "subs r12, r12, #1\n"
        "bne 3b\n"
        "4:\n"
        "add r1, r1, lr\n"
        "subs r3, r3, #1\n"
        "bne 1b\n"
        "pop {r4-r11, pc}\n");
    /* clang-format on */
}

#endif

#if MCG_HAS_ASM

/* A patch of three planes times three rows of three bytes, side by side in seven groups. r0 dst, r1 src, r2 bytes to the
 * next row, r3 to the next plane, r4-r7 rows, r8 a group, r10 offset, r11 upper, r12 lr lanes. */
#define GROUP_TO(a, at)                 \
    "sxtab16 r12, r10, " a ", ror #8\n" \
    "and lr, r11, " a ", lsl #8\n"      \
    "ssub16 lr, lr, r12\n"              \
    "strd r12, lr, [r0, #" at "]\n"
MCG_CODE(pack_nine)
__attribute__((naked, noinline)) static void pack_nine(MCG_UNUSED uint32_t *dst, MCG_UNUSED const int8_t *src,
                                                       MCG_UNUSED uint32_t row, MCG_UNUSED uint32_t plane)
{
    /* clang-format off */
#define TWELVE_BYTES(a, b, c)             \
        "bic r8, r4, #0xff000000\n"       \
        "orr r8, r8, r5, lsl #24\n"       \
        GROUP_TO("r8", a)                 \
        "lsr r8, r5, #8\n"                \
        "pkhbt r8, r8, r6, lsl #16\n"     \
        GROUP_TO("r8", b)                 \
        "ubfx r8, r6, #16, #8\n"          \
        "orr r8, r8, r7, lsl #8\n"        \
        GROUP_TO("r8", c)
    __asm__ volatile(
        ".syntax unified\n"
        "push {r4-r8, r10, r11, lr}\n"
        "mvn r10, #0x7e007e\n"
        "mov r11, #0xff00ff00\n"
        "ldr r4, [r1]\n"
        "ldr r5, [r1, r2]\n"
        "ldr r6, [r1, r2, lsl #1]\n"
        "add r1, r1, r3\n"
        "ldr r7, [r1]\n"
        TWELVE_BYTES("0", "24", "48")
        "ldr r4, [r1, r2]\n"
        "ldr r5, [r1, r2, lsl #1]\n"
        "add r1, r1, r3\n"
        "ldr r6, [r1]\n"
        "ldr r7, [r1, r2]\n"
        TWELVE_BYTES("72", "96", "120")
        "ldr r4, [r1, r2, lsl #1]\n"
        GROUP_TO("r4", "144")
        "pop {r4-r8, r10, r11, pc}\n");
    /* clang-format on */
}

/* pack_flat for the packed form, 5.2 instructions a group. r0 dst, r1-r3 the next word of each pixel, r4 bytes of a
 * pixel, r5 threes left, r6 end of the first pixel, r7 r8 input, r9 of the third pixel, r10 offset, r11 upper, r12 lr
 * lanes. */
#define FLAT_ONE(a, at)                 \
    "sxtab16 r12, r10, " a ", ror #8\n" \
    "and lr, r11, " a ", lsl #8\n"      \
    "ssub16 lr, lr, r12\n"              \
    "strd r12, lr, [r0, #" at "]\n"
MCG_CODE(pack_flat_3)
__attribute__((naked, noinline)) static void pack_flat_3(MCG_UNUSED uint32_t *dst, MCG_UNUSED const int8_t *src,
                                                         MCG_UNUSED uint32_t groups, MCG_UNUSED uint32_t threes)
{
    /* clang-format off */
    __asm__ volatile(
        ".syntax unified\n"
        "push {r4-r11, lr}\n"
        "lsl r4, r2, #2\n"
        "mov r5, r3\n"
        "mvn r10, #0x7e007e\n"
        "mov r11, #0xff00ff00\n"
        "1:\n"
        "add r2, r1, r4\n"
        "add r3, r2, r4\n"
        "mov r6, r2\n"
        "2:\n"
        "ldr r7, [r1], #4\n"
        "ldr r8, [r2], #4\n"
        "ldr r9, [r3], #4\n"
        FLAT_ONE("r7", "0")
        FLAT_ONE("r8", "8")
        FLAT_ONE("r9", "16")
        "add r0, r0, #24\n"
        "cmp r1, r6\n"
        "bne 2b\n"
        "mov r1, r3\n"
        "subs r5, r5, #1\n"
        "bne 1b\n"
        "pop {r4-r11, pc}\n");
    /* clang-format on */
}

#endif

MCG_CODE(pack_runs_packed)
MCG_NOINLINE static uint32_t *pack_runs_packed(uint32_t *dst, const int8_t *src, uint32_t groups, uint32_t runs,
                                               uint32_t step)
{
#if MCG_HAS_ASM
    if ((((uintptr_t)src | step) & 3u) == 0u && groups >= 4u) {
        return pack_words_4(dst, src, groups, runs, step);
    }
#endif
    return pack_runs(0, dst, src, groups, runs, step);
}

MCG_CODE(pack_runs_any)
MCG_NOINLINE static uint32_t *pack_runs_any(uint32_t *dst, const int8_t *src, uint32_t groups, uint32_t runs,
                                            uint32_t step)
{
    return pack_runs(1, dst, src, groups, runs, step);
}

/* Three times `threes` pixels that lie one after the other, each `groups` words. */
MCG_INLINE void pack_flat(int any, uint32_t *dst, const int8_t *src, uint32_t groups, uint32_t threes)
{
#if MCG_HAS_ASM
    if (!any) {
        pack_flat_3(dst, src, groups, threes);
        return;
    }
#endif
    const mcg_nn_lanes_t l = mcg_nn_lanes();
    const uint32_t bytes = 4u * groups;
    for (; threes != 0u; --threes, src += 2u * bytes) {
        const int8_t *const end = src + bytes;
        do {
            mcg_nn_pack4(any, l, mcg_load32(src), dst);
            mcg_nn_pack4(any, l, mcg_load32(src + bytes), dst + 2);
            mcg_nn_pack4(any, l, mcg_load32(src + 2u * bytes), dst + 4);
            src += 4;
            dst += MCG_NN_STEP;
        } while (src != end);
    }
}

/* The low three bytes of n words, side by side. */
MCG_INLINE void pack_threes(int any, uint32_t *dst, uint32_t *v, uint32_t n)
{
    const mcg_nn_lanes_t l = mcg_nn_lanes();
    v[n] = 0;
    v[n + 1u] = 0;
    v[n + 2u] = 0;
    for (;;) {
        mcg_nn_pack4(any, l, (v[0] & 0xFFFFFFu) | v[1] << 24, dst);
        if (n == 1u) {
            return;
        }
        mcg_nn_pack4(any, l, (v[1] << 8 >> 16) | v[2] << 16, dst + MCG_NN_STEP);
        if (n == 2u) {
            return;
        }
        mcg_nn_pack4(any, l, (v[2] << 8 >> 24) | v[3] << 8, dst + 2u * MCG_NN_STEP);
        if (n <= 4u) {
            return;
        }
        n -= 4u;
        v += 4;
        dst += 3u * MCG_NN_STEP;
    }
}

/* How patches are read, in steps that need no multiplication. */
typedef struct {
    const mcg_conv_t *d;
    const int8_t *x;
    uint32_t most;      /* patches that start behind this byte would be read past the end of x */
    uint32_t row, col;  /* bytes from a kernel row, from a run of a kernel row to the next */
    int32_t rows, cols; /* patches are inside the input from row and column 0 up to these, exclusive */
    int32_t next_plane; /* bytes from the end of a plane's kernel rows to the next plane; may be negative */
    uint32_t pad;       /* four times the value of padding */
    /* The next patch: */
    const int8_t *src; /* its first byte, if it is inside */
    int32_t top, left; /* input row and column of its first kernel element */
    uint32_t in_row;   /* output pixels left in the row */
} walk_t;

/* A patch inside the input. */
MCG_INLINE void pack_inside(int any, const walk_t *k, uint32_t *dst)
{
    const mcg_conv_t *const d = k->d;
    const int8_t *src = k->src;
    if (d->run_groups == 0u) {
        uint32_t v[MCG_CONV_MOST_THREES + 3u];
        uint32_t *to = v;
        const uint32_t row = k->row;
        uint32_t plane = d->planes;
        do {
            uint32_t n = d->kernel_h;
            for (; n >= 3u; n -= 3u, to += 3, src += row) {
                to[0] = mcg_load32(src);
                src += row;
                to[1] = mcg_load32(src);
                src += row;
                to[2] = mcg_load32(src);
            }
            for (; n != 0u; --n, src += row) {
                *to++ = mcg_load32(src);
            }
            src += k->next_plane;
        } while (--plane != 0u);
        pack_threes(any, dst, v, (uint32_t)(to - v));
        return;
    }
    if (d->run_groups == 1u && d->col_runs == 1u) { /* every run is a word */
        const mcg_nn_lanes_t l = mcg_nn_lanes();
        const uint32_t row = k->row;
        uint32_t plane = d->planes;
        do {
            uint32_t n = d->kernel_h;
            for (; n >= 3u; n -= 3u, dst += 3u * MCG_NN_STEP) {
                mcg_nn_pack4(any, l, mcg_load32(src), dst);
                src += row;
                mcg_nn_pack4(any, l, mcg_load32(src), dst + MCG_NN_STEP);
                src += row;
                mcg_nn_pack4(any, l, mcg_load32(src), dst + 2u * MCG_NN_STEP);
                src += row;
            }
            for (; n != 0u; --n, src += row, dst += MCG_NN_STEP) {
                mcg_nn_pack4(any, l, mcg_load32(src), dst);
            }
            src += k->next_plane;
        } while (--plane != 0u);
        return;
    }
    uint32_t plane = d->planes;
    do {
        if (d->col_runs == 1u) {
            dst = (any ? pack_runs_any : pack_runs_packed)(dst, src, d->run_groups, d->kernel_h, k->row);
            src += d->kernel_h * k->row;
        } else {
            for (uint32_t n = d->kernel_h; n != 0u; --n, src += k->row) {
                dst = (any ? pack_runs_any : pack_runs_packed)(dst, src, d->run_groups, d->col_runs, k->col);
            }
        }
        src += k->next_plane;
    } while (--plane != 0u);
}

/* Bytes first..last-1 of a word, as a mask; both may lie outside of 0..4. */
MCG_INLINE uint32_t bytes_mask(int32_t first, int32_t last)
{
    const uint32_t from = first <= 0 ? 0xFFFFFFFFu : first >= 4 ? 0u : 0xFFFFFFFFu << (8 * first);
    return last >= 4 ? from : last <= 0 ? 0u : from & (0xFFFFFFFFu >> (32 - 8 * last));
}

/* n groups of padding. */
MCG_INLINE uint32_t *pack_padding(int any, uint32_t *dst, uint32_t pad, int32_t n)
{
    uint32_t lanes[2];
    mcg_nn_pack4(any, mcg_nn_lanes(), pad, lanes);
    for (; n > 0; --n, dst += MCG_NN_STEP) {
        dst[0] = lanes[0];
        dst[1] = lanes[1];
    }
    return dst;
}

/* A run at the border, from byte `at` of x on, which may lie outside: byte i of the run is inside the input where
 * first <= i < last, else padding. */
MCG_INLINE uint32_t *pack_border(int any, uint32_t *dst, const walk_t *k, int32_t at, int32_t first, int32_t last)
{
    const mcg_conv_t *const d = k->d;
    const mcg_nn_lanes_t l = mcg_nn_lanes();
    const int32_t step = d->col_step;
    const int32_t end = 4 * (int32_t)d->run_groups;
    const int32_t readable = (int32_t)d->in_bytes - 4 - at;
    if (last == 0) {
        return pack_padding(any, dst, k->pad, end / 4);
    }
    if (step == 1 && ((first | last) & 3) == 0) { /* whole groups of padding, of input, of padding */
        dst = pack_padding(any, dst, k->pad, first / 4);
        dst = (any ? pack_runs_any : pack_runs_packed)(dst, k->x + (at + first), (uint32_t)(last - first) / 4u, 1u, 0u);
        return pack_padding(any, dst, k->pad, (end - last) / 4);
    }
    for (int32_t i = 0; i < end; i += 4, dst += MCG_NN_STEP) {
        uint32_t a = k->pad;
        if (i < last && i + 4 > first) {
            if (step == 1 && i <= readable && at + i >= 0) {
                const uint32_t mask = bytes_mask(first - i, last - i);
                a = (mcg_load32(k->x + (at + i)) & mask) | (a & ~mask);
            } else {
                for (int32_t j = i + 3; j >= i; --j) {
                    const int inside = j >= first && j < last;
                    a = (a << 8) | (uint8_t)(inside ? k->x[at + j * step] : (int8_t)d->in_zp);
                }
            }
        }
        mcg_nn_pack4(any, l, a, dst);
    }
    return dst;
}

/* The same where every run is a word of neighbours. */
MCG_INLINE void pack_border_words(int any, uint32_t *dst, const walk_t *k, int32_t first, int32_t last)
{
    const mcg_conv_t *const d = k->d;
    const mcg_nn_lanes_t l = mcg_nn_lanes();
    const uint32_t mask = bytes_mask(first, last), padding = k->pad & ~mask;
    const uint32_t readable = d->in_bytes < 4u ? 0u : d->in_bytes - 3u, height = d->in_h, step = d->dilation_h;
    const int8_t *const x = k->x;
    const int threes = d->run_groups == 0u;
    const int32_t row = (int32_t)k->row;
    const uint32_t pad = k->pad;
    uint32_t v[MCG_CONV_MOST_THREES + 3u];
    uint32_t *to = v;
    int32_t at = k->top * (int32_t)d->in_row + k->left;
    for (uint32_t plane = d->planes; plane != 0u; --plane, at += k->next_plane) {
        uint32_t y = (uint32_t)k->top;
        for (uint32_t n = d->kernel_h; n != 0u; --n, y += step, at += row) {
            uint32_t a = pad;
            if (y < height) {
                if ((uint32_t)at < readable) {
                    a = (mcg_load32(x + at) & mask) | padding;
                } else {
                    for (int32_t j = 3; j >= 0; --j) {
                        a = (a << 8) | (uint8_t)(j >= first && j < last ? x[at + j] : (int8_t)d->in_zp);
                    }
                }
            }
            if (threes) {
                *to++ = a;
            } else {
                mcg_nn_pack4(any, l, a, dst);
                dst += MCG_NN_STEP;
            }
        }
    }
    if (threes) {
        pack_threes(any, dst, v, (uint32_t)(to - v));
    }
}

/* A patch that reaches over the border or to the end of x. */
MCG_INLINE void pack_outside(int any, const walk_t *k, uint32_t *dst)
{
    const mcg_conv_t *const d = k->d;
    const int32_t s = d->col_step;
    for (int32_t r = 0; r < d->col_runs; ++r) {
        const int32_t col = k->left + r * d->dilation_w;
        /* kernel columns before `before` and from `behind` on are outside */
        const int32_t before = col >= 0 ? 0 : s == 1 ? -col : (s - 1 - col) / s;
        const int32_t cells = (int32_t)d->in_w - col;
        const int32_t room = cells <= 0 ? 0 : s == 1 ? cells : (cells + s - 1) / s;
        const int32_t behind = room < (int32_t)d->cols ? room : (int32_t)d->cols;
        const int32_t first = before * d->unit;
        const int32_t last = behind <= before ? 0 : behind * d->unit;
        const uint32_t skip = (d->col_runs - 1u) * d->run_groups * MCG_NN_STEP;
        uint32_t *to = dst + (uint32_t)r * d->run_groups * MCG_NN_STEP;
        if (d->run_groups <= 1u && d->col_runs == 1u && s == 1 && d->unit == 1u) {
            pack_border_words(any, to, k, first, last);
            return;
        }
        int32_t at = k->top * (int32_t)d->in_row + col * (int32_t)d->in_col;
        for (uint32_t plane = d->planes; plane != 0u; --plane, at += k->next_plane) {
            int32_t y = k->top;
            for (uint32_t n = d->kernel_h; n != 0u; --n, y += d->dilation_h, to += skip, at += (int32_t)k->row) {
                to = pack_border(any, to, k, at, first, y < 0 || y >= d->in_h ? 0 : last);
            }
        }
    }
}

#define PACK(name, how, any) \
    MCG_CODE(name)           \
    MCG_NOINLINE static void name(const walk_t *k, uint32_t *dst) { how(any, k, dst); }

PACK(pack_inside_packed, pack_inside, 0)
PACK(pack_inside_any, pack_inside, 1)
PACK(pack_outside_packed, pack_outside, 0)
PACK(pack_outside_any, pack_outside, 1)

/* To output pixel `pixel`. */
MCG_CODE(start_walk)
MCG_NOINLINE static void start_walk(walk_t *k, const mcg_conv_t *d, const int8_t *x, uint32_t pixel)
{
    const uint32_t line = pixel / d->out_w;
    const uint32_t column = pixel - line * d->out_w;
    const uint32_t height = (d->kernel_h - 1u) * d->dilation_h + 1u;
    const uint32_t runs = (d->col_runs - 1u) * d->dilation_w;
    const uint32_t width = runs + (d->cols - 1u) * d->col_step + 1u;
    const uint32_t end = (d->planes - 1u) * d->in_plane + (height - 1u) * d->in_row + runs * d->in_col;
    const uint32_t reach = end + (d->run_groups == 0u ? 4u : 4u * d->run_groups);
    k->d = d;
    k->x = x;
    k->row = d->dilation_h * d->in_row;
    k->col = d->dilation_w * d->in_col;
    k->rows = (int32_t)d->in_h - (int32_t)height + 1;
    /* The kernel columns of a dilated run are not neighbours in memory: all patches take the slow way. */
    k->cols = d->col_step != 1u || reach > d->in_bytes ? 0 : (int32_t)d->in_w - (int32_t)width + 1;
    k->most = reach > d->in_bytes ? 0u : d->in_bytes - reach;
    k->next_plane = (int32_t)(d->in_plane - d->kernel_h * k->row);
    k->pad = (uint32_t)(uint8_t)d->in_zp * 0x01010101u;
    k->top = (int32_t)(line * d->stride_h) - d->pad_top;
    k->left = (int32_t)(column * d->stride_w) - d->pad_left;
    k->in_row = d->out_w - column;
}

/* Packs the next n pixels. */
MCG_INLINE void pack_pixels(int any, walk_t *k, uint32_t *dst, uint32_t n)
{
    const mcg_conv_t *const d = k->d;
    const int32_t stride = d->stride_w, rows = k->rows, cols = k->cols;
    const uint32_t step = (uint32_t)stride * d->in_col, most = k->most, row = k->row;
    const uint32_t next_three = MCG_NN_STEP * (d->groups - 1u);
    const uint32_t groups = d->run_groups, height = d->kernel_h, plane = d->in_plane;
#if MCG_HAS_ASM
    const int nine = !any && groups == 0u && d->planes == 3u && height == 3u;
    /* Patches of whole words, each kernel row one run. */
    const int direct = !any && d->planes == 1u && d->col_runs == 1u && groups >= 4u &&
                       (((uintptr_t)k->x | row | d->in_row | d->in_col) & 3u) == 0u;
#else
    (void)groups;
    (void)height;
    (void)plane;
    (void)row;
#endif
    uint32_t in_three = 3;
    int32_t left = k->left;
    while (n != 0u) {
        uint32_t at = (uint32_t)k->top * d->in_row + (uint32_t)left * d->in_col; /* wraps where the patch is outside */
        uint32_t in_row = k->in_row;
        if (k->top >= 0 && k->top < rows && left >= 0 && left < cols && at <= most) {
            do {
                const int8_t *const src = k->x + at;
#if MCG_HAS_ASM
                if (nine) {
                    pack_nine(dst, src, row, plane);
                } else if (direct) {
                    (void)pack_words_4(dst, src, groups, height, row);
                } else
#endif
                {
                    k->src = src;
                    (any ? pack_inside_any : pack_inside_packed)(k, dst);
                }
                at += step;
                left += stride;
                dst += 2;
                if (--in_three == 0u) {
                    in_three = 3;
                    dst += next_three;
                }
                --n;
                --in_row;
            } while (n != 0u && in_row != 0u && left < cols && at <= most);
        } else {
            k->left = left;
            (any ? pack_outside_any : pack_outside_packed)(k, dst);
            left += stride;
            dst += 2;
            if (--in_three == 0u) {
                in_three = 3;
                dst += next_three;
            }
            --n;
            --in_row;
        }
        if (in_row == 0u) {
            in_row = d->out_w;
            left = -(int32_t)d->pad_left;
            k->top += d->stride_h;
        }
        k->in_row = in_row;
    }
    k->left = left;
}

MCG_KERNELS_END

#endif
