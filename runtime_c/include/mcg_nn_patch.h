/* mcugen runtime: patches of the input to packed lanes in the scratch. Internal to mcg_nn_matmul.c; no interface.
 *
 * Pixels stand in fours, interleaved by groups: the first words of group 0 of pixels 0 to 3, their second words, then
 * group 1 of them.
 * SPDX-License-Identifier: MIT-0
 */
#ifndef MCG_NN_PATCH_H
#define MCG_NN_PATCH_H

#include "mcg_nn_conv.h"
#include "mcg_nn_inline.h"

/* Words from a group of a pixel to its next group; from its first to its second word. */
#define MCG_NN_STEP 8u
#define MCG_NN_SECOND 4u

MCG_KERNELS_BEGIN

/* A group of one pixel. */
MCG_INLINE void pack_group(int any, mcg_nn_lanes_t l, uint32_t a, uint32_t *dst)
{
    mcg_nn_pack4_to(any, l, a, dst, dst + MCG_NN_SECOND);
}

#if MCG_HAS_ASM

/* pack_runs for the packed form, 6.5 instructions a group instead of 7. r0 dst, r1 src, r2 groups, r3 runs, r4-r7 input,
 * r8 r9 lanes, r10 offset, r11 upper, r12 end, lr from the end of a run to the next. */
/* clang-format off */
#define PACK_ONE(a)                    \
    "sxtab16 r8, r10, " a ", ror #8\n" \
    "and r9, r11, " a ", lsl #8\n"     \
    "ssub16 r9, r9, r8\n"              \
    "str r9, [r0, #16]\n"              \
    "str r8, [r0], #32\n"
MCG_CODE(pack_runs_packed) __attribute__((naked, noinline)) static uint32_t *
pack_runs_packed(MCG_UNUSED uint32_t *dst, MCG_UNUSED const int8_t *src, MCG_UNUSED uint32_t groups,
                 MCG_UNUSED uint32_t runs, MCG_UNUSED uint32_t step)
{
    __asm__ volatile(
        ".syntax unified\n"
        "push {r4-r11, lr}\n"
        "ldr lr, [sp, #36]\n"
        "mvn r10, #0x7e007e\n"
        "mov r11, #0xff00ff00\n"
        "sub lr, lr, r2, lsl #2\n"
        "1:\n"
        "bics r12, r2, #3\n"
        "beq 3f\n"
        "add r12, r1, r12, lsl #2\n"
        "2:\n"
        "ldr r4, [r1], #4\n"
        "ldr r5, [r1], #4\n"
        "ldr r6, [r1], #4\n"
        "ldr r7, [r1], #4\n"
        PACK_ONE("r4") PACK_ONE("r5") PACK_ONE("r6") PACK_ONE("r7")
        "cmp r1, r12\n"
        "bne 2b\n"
        "3:\n"
        "ands r12, r2, #3\n"
        "beq 5f\n"
        "4:\n"
        "ldr r4, [r1], #4\n"
        PACK_ONE("r4")
        "subs r12, r12, #1\n"
        "bne 4b\n"
        "5:\n"
        "add r1, r1, lr\n"
        "subs r3, r3, #1\n"
        "bne 1b\n"
        "pop {r4-r11, pc}\n");
}
/* clang-format on */

/* pack_threes of patches of three planes times three rows, in seven groups: up to four pixels, src `step` bytes apart. r0
 * dst, r1 src, r2 bytes to the next row, r3 to the next plane, r4 r5 rows, r6-r9 middle bytes of two rows each, r10
 * offset, r11 upper, r12 lr lanes. Stack: 36 pixels left, 40 step, then from the last plane to the next pixel. */
#define GROUP_TO(odd, even, at)   \
    "sxtab16 r12, r10, " odd "\n" \
    "and lr, r11, " even "\n"     \
    "ssub16 lr, lr, r12\n"        \
    "str r12, [r0, #" at "]\n"    \
    "str lr, [r0, #16 + " at "]\n"
#define TWO_ROWS(middle, at) GROUP_TO("r4", "r5, lsl #8", at) "pkhbt " middle ", r4, r5, lsl #16\n"
MCG_CODE(pack_nine)
__attribute__((naked, noinline)) static void pack_nine(MCG_UNUSED uint32_t *dst, MCG_UNUSED const int8_t *src,
                                                       MCG_UNUSED uint32_t row, MCG_UNUSED uint32_t plane,
                                                       MCG_UNUSED uint32_t pixels, MCG_UNUSED uint32_t step)
{
    /* clang-format off */
    __asm__ volatile(
        ".syntax unified\n"
        "push {r4-r11, lr}\n"
        "mvn r10, #0x7e007e\n"
        "mov r11, #0xff00ff00\n"
        "ldr r4, [sp, #40]\n"
        "sub r4, r4, r3, lsl #1\n"
        "str r4, [sp, #40]\n"
        "1:\n"
        "ldr r5, [r1, r2]\n"
        "ldr r4, [r1]\n"
        TWO_ROWS("r6", "0")
        "ldr r4, [r1, r2, lsl #1]\n"
        "add r1, r1, r3\n"
        "ldr r5, [r1]\n"
        TWO_ROWS("r7", "32")
        "ldr r4, [r1, r2]\n"
        "ldr r5, [r1, r2, lsl #1]\n"
        TWO_ROWS("r8", "64")
        "add r1, r1, r3\n"
        "ldr r4, [r1]\n"
        "ldr r5, [r1, r2]\n"
        TWO_ROWS("r9", "96")
        "ldr r4, [r1, r2, lsl #1]\n"
        GROUP_TO("r4", "r6", "128")
        GROUP_TO("r7, ror #8", "r8", "160")
        GROUP_TO("r9, ror #8", "r4", "192")
        "ldrd r5, r4, [sp, #36]\n"
        "add r0, r0, #4\n"
        "add r1, r1, r4\n"
        "subs r5, r5, #1\n"
        "str r5, [sp, #36]\n"
        "bne 1b\n"
        "pop {r4-r11, pc}\n");
    /* clang-format on */
}

/* pack_flat for the packed form, 5 instructions a group. r0 dst, r1 the next word of the first pixel, r2 bytes of a
 * pixel, r3 three times them, r4-r7 first words, r8-r11 input and second words, r12 offset, lr upper. Stack: 0 end of
 * the first pixel, 4 fours left. */
#define FLAT_ONE(first, a)                    \
    "sxtab16 " first ", r12, " a ", ror #8\n" \
    "and " a ", lr, " a ", lsl #8\n"          \
    "ssub16 " a ", " a ", " first "\n"
MCG_CODE(pack_flat_4)
__attribute__((naked, noinline)) static void pack_flat_4(MCG_UNUSED uint32_t *dst, MCG_UNUSED const int8_t *src,
                                                         MCG_UNUSED uint32_t groups, MCG_UNUSED uint32_t fours)
{
    /* clang-format off */
    __asm__ volatile(
        ".syntax unified\n"
        "push {r2-r11, lr}\n"
        "lsl r2, r2, #2\n"
        "add r3, r2, r2, lsl #1\n"
        "mvn r12, #0x7e007e\n"
        "mov lr, #0xff00ff00\n"
        "1:\n"
        "add r4, r1, r2\n"
        "str r4, [sp]\n"
        "2:\n"
        "ldr r9, [r1, r2]\n"
        "ldr r10, [r1, r2, lsl #1]\n"
        "ldr r11, [r1, r3]\n"
        "ldr r8, [r1], #4\n"
        FLAT_ONE("r4", "r8")
        FLAT_ONE("r5", "r9")
        FLAT_ONE("r6", "r10")
        FLAT_ONE("r7", "r11")
        "stm r0!, {r4-r11}\n"
        "ldr r4, [sp]\n"
        "cmp r1, r4\n"
        "bne 2b\n"
        "ldr r4, [sp, #4]\n"
        "add r1, r1, r3\n"
        "subs r4, r4, #1\n"
        "str r4, [sp, #4]\n"
        "bne 1b\n"
        "pop {r2-r11, pc}\n");
    /* clang-format on */
}

#endif

/* `runs` runs of `groups` groups, each `step` bytes after the one before. May read up to 3 bytes past a run, which meet
 * zero weights. Returns the end of what was written. */
MCG_INLINE uint32_t *pack_runs(int any, uint32_t *dst, const int8_t *src, uint32_t groups, uint32_t runs, uint32_t step)
{
    const mcg_nn_lanes_t l = mcg_nn_lanes();
    for (; runs != 0u; --runs, src += step) {
        const int8_t *from = src;
        for (uint32_t n = groups; n != 0u; --n, from += 4, dst += MCG_NN_STEP) {
            pack_group(any, l, mcg_load32(from), dst);
        }
    }
    return dst;
}

#if !MCG_HAS_ASM
MCG_CODE(pack_runs_packed)
MCG_NOINLINE static uint32_t *pack_runs_packed(uint32_t *dst, const int8_t *src, uint32_t groups, uint32_t runs,
                                               uint32_t step)
{
    return pack_runs(0, dst, src, groups, runs, step);
}
#endif

MCG_CODE(pack_runs_any)
MCG_NOINLINE static uint32_t *pack_runs_any(uint32_t *dst, const int8_t *src, uint32_t groups, uint32_t runs,
                                            uint32_t step)
{
    return pack_runs(1, dst, src, groups, runs, step);
}

/* Four times `fours` pixels that lie one after the other, each `groups` words. */
MCG_INLINE void pack_flat(int any, uint32_t *dst, const int8_t *src, uint32_t groups, uint32_t fours)
{
#if MCG_HAS_ASM
    if (!any) {
        pack_flat_4(dst, src, groups, fours);
        return;
    }
#endif
    const mcg_nn_lanes_t l = mcg_nn_lanes();
    const uint32_t bytes = 4u * groups;
    for (; fours != 0u; --fours, src += 3u * bytes) {
        const int8_t *const end = src + bytes;
        do {
            pack_group(any, l, mcg_load32(src), dst);
            pack_group(any, l, mcg_load32(src + bytes), dst + 1);
            pack_group(any, l, mcg_load32(src + 2u * bytes), dst + 2);
            pack_group(any, l, mcg_load32(src + 3u * bytes), dst + 3);
            src += 4;
            dst += MCG_NN_STEP;
        } while (src != end);
    }
}

/* Room for pack_threes. */
#define MCG_NN_THREES (MCG_CONV_MOST_THREES / 2u * 3u + 1u)

/* n kernel rows of three bytes, n words of v. Lanes that go two by two into groups, odd then even: the outer bytes of
 * each row, then the middle bytes of each two rows. What is beside the last middle byte, or stands for a last even lane,
 * meets zero weights. */
MCG_INLINE void pack_threes(int any, uint32_t *dst, uint32_t *v, uint32_t n)
{
    const mcg_nn_lanes_t l = mcg_nn_lanes();
    uint32_t *to = v + n;
    v[n] = 0;
    for (uint32_t i = 0; i < n; i += 2u) {
        const uint32_t next = v[i + 1u];
        *to++ = mcg_pack_low(v[i], next) >> 8;
    }
    *to = 0;
    for (; v < to; v += 2, dst += MCG_NN_STEP) {
        const uint32_t first = any ? mcg_sxtb16(v[0]) : mcg_sxtab16(l.offset, v[0]);
        dst[0] = first;
        dst[MCG_NN_SECOND] = any ? mcg_sxtb16(v[1]) : mcg_ssub16(l.upper & (v[1] << 8), first);
    }
}

typedef struct walk walk_t;

/* Packs the next four pixels of a row, `left` the input column of the first one's first kernel element; 0 if it can't. */
typedef int pack_block_t(const walk_t *k, uint32_t *dst, int32_t left);

/* How patches are read, in steps that need no multiplication. */
struct walk {
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
};

/* A patch inside the input. */
MCG_INLINE void pack_inside(int any, const walk_t *k, uint32_t *dst)
{
    const mcg_conv_t *const d = k->d;
    const int8_t *src = k->src;
    if (d->run_groups == 0u) {
        uint32_t v[MCG_NN_THREES];
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
                pack_group(any, l, mcg_load32(src), dst);
                src += row;
                pack_group(any, l, mcg_load32(src), dst + MCG_NN_STEP);
                src += row;
                pack_group(any, l, mcg_load32(src), dst + 2u * MCG_NN_STEP);
                src += row;
            }
            for (; n != 0u; --n, src += row, dst += MCG_NN_STEP) {
                pack_group(any, l, mcg_load32(src), dst);
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
    uint32_t first, second;
    mcg_nn_pack4_to(any, mcg_nn_lanes(), pad, &first, &second);
    for (; n > 0; --n, dst += MCG_NN_STEP) {
        dst[0] = first;
        dst[MCG_NN_SECOND] = second;
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
        pack_group(any, l, a, dst);
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
    uint32_t v[MCG_NN_THREES];
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
                pack_group(any, l, a, dst);
                dst += MCG_NN_STEP;
            }
        }
    }
    if (threes) {
#if MCG_HAS_ASM
        if (!any && to == v + 9) {
            pack_nine(dst, (const int8_t *)v, 4u, 12u, 1u, 0u);
            return;
        }
#endif
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

#if MCG_HAS_ASM

/* Four neighbouring pixels with a stride of one share input columns: six columns of `bytes` bytes (a multiple of four) a
 * kernel row, each packed once. 3.3 instructions a group and pixel. r0 dst of the first kernel column, r1 first input
 * column, r2 bytes, r3 fourth input column, r4 r5, r6 r7, r12 lr lanes of three columns, r8 r9 dst of the second and
 * third kernel column, r10 offset, r11 upper. dst pointers stand one group before. Stack: 0 end of the first column, 4
 * rows left, 44 the argument row. */
/* clang-format off */
#define COLUMN(first, second)                     \
    "sxtab16 " first ", r10, " second ", ror #8\n" \
    "and " second ", r11, " second ", lsl #8\n"    \
    "ssub16 " second ", " second ", " first "\n"
MCG_CODE(pack_six) __attribute__((naked, noinline)) static void
pack_six(MCG_UNUSED uint32_t *dst, MCG_UNUSED const int8_t *src, MCG_UNUSED uint32_t bytes, MCG_UNUSED uint32_t rows,
         MCG_UNUSED uint32_t row)
{
    __asm__ volatile(
        ".syntax unified\n"
        "push {r2-r11, lr}\n"
        "sub r0, r0, #32\n"
        "add r8, r0, r2, lsl #3\n"
        "add r9, r8, r2, lsl #3\n"
        "add r3, r2, r2, lsl #1\n"
        "add r3, r3, r1\n"
        "mvn r10, #0x7e007e\n"
        "mov r11, #0xff00ff00\n"
        "1:\n" /* a kernel row */
        "add r4, r1, r2\n"
        "str r4, [sp]\n"
        "2:\n"
        "ldr r7, [r1, r2]\n"
        "ldr lr, [r1, r2, lsl #1]\n"
        "ldr r5, [r1], #4\n"
        COLUMN("r6", "r7")
        COLUMN("r12", "lr")
        COLUMN("r4", "r5")
        "strd r4, r6, [r0, #32]!\n"
        "strd r5, r7, [r0, #16]\n"
        "ldr r5, [r3]\n" /* the fourth column */
        "strd r6, r12, [r8, #32]!\n"
        "strd r7, lr, [r8, #16]\n"
        "ldr r7, [r3, r2]\n" /* the fifth */
        COLUMN("r4", "r5")
        COLUMN("r6", "r7")
        "strd r12, r4, [r0, #8]\n"
        "strd lr, r5, [r0, #24]\n"
        "strd r12, r4, [r9, #32]!\n"
        "strd lr, r5, [r9, #16]\n"
        "ldr lr, [r3, r2, lsl #1]\n" /* the sixth */
        "add r3, r3, #4\n"
        "strd r4, r6, [r8, #8]\n"
        "strd r5, r7, [r8, #24]\n"
        COLUMN("r12", "lr")
        "ldr r4, [sp]\n"
        "strd r6, r12, [r9, #8]\n"
        "strd r7, lr, [r9, #24]\n"
        "cmp r1, r4\n"
        "bne 2b\n"
        "ldr r5, [sp, #4]\n"
        "ldr r4, [sp, #44]\n"
        "add r0, r0, r2, lsl #4\n"
        "add r8, r8, r2, lsl #4\n"
        "add r9, r9, r2, lsl #4\n"
        "sub r4, r4, r2\n"
        "add r1, r1, r4\n"
        "add r3, r3, r4\n"
        "subs r5, r5, #1\n"
        "str r5, [sp, #4]\n"
        "bne 1b\n"
        "pop {r2-r11, pc}\n");
}
/* clang-format on */

#else

MCG_CODE(pack_six)
MCG_NOINLINE static void pack_six(uint32_t *dst, const int8_t *src, uint32_t bytes, uint32_t rows, uint32_t row)
{
    const mcg_nn_lanes_t l = mcg_nn_lanes();
    const uint32_t groups = bytes / 4u;
    for (; rows != 0u; --rows, src += row, dst += 2u * MCG_NN_STEP * groups) {
        const int8_t *from = src;
        for (uint32_t g = groups; g != 0u; --g, from += 4, dst += MCG_NN_STEP) {
            for (uint32_t pixel = 0; pixel < 4u; ++pixel) {
                uint32_t *to = dst + pixel;
                for (uint32_t column = 0; column < 3u; ++column, to += MCG_NN_STEP * groups) {
                    pack_group(0, l, mcg_load32(from + (pixel + column) * bytes), to);
                }
            }
        }
    }
}

#endif

/* Kernel column `column` of pixel `pixel` is padding: `groups` groups of `rows` kernel rows. */
MCG_INLINE void pad_column(const walk_t *k, uint32_t *dst, uint32_t column, uint32_t pixel, uint32_t groups,
                           uint32_t rows)
{
    uint32_t *to = dst + column * groups * MCG_NN_STEP + pixel;
    for (; rows != 0u; --rows, to += 2u * groups * MCG_NN_STEP) {
        to = pack_padding(0, to, k->pad, (int32_t)groups);
    }
}

/* pack_block_t of an interleaved layer of three kernel columns, a stride of one and a multiple of four channels. What it
 * reads beside the border is in the row before or after, and replaced. */
MCG_CODE(pack_block_3)
MCG_NOINLINE static int pack_block_3(const walk_t *k, uint32_t *dst, int32_t left)
{
    const mcg_conv_t *const d = k->d;
    const uint32_t bytes = d->unit, groups = bytes / 4u, height = d->kernel_h, step = d->dilation_h;
    const int32_t width = d->in_w, in_h = d->in_h;
    uint32_t before = 0, inside = height;
    int32_t y = k->top;
    if (y < 0 || y >= k->rows) {
        for (; before < height && y < 0; y += (int32_t)step) {
            ++before;
        }
        inside = 0;
        for (int32_t i = y; inside < height - before && i < in_h; i += (int32_t)step) {
            ++inside;
        }
    }
    uint32_t *const first = dst + before * 3u * groups * MCG_NN_STEP;
    if (inside != 0u) {
        const int32_t at = y * (int32_t)d->in_row + left * (int32_t)bytes;
        if (at < 0 || (uint32_t)at + (inside - 1u) * k->row + 6u * bytes > d->in_bytes) {
            return 0;
        }
        pack_six(first, k->x + at, bytes, inside, k->row);
        if (left < 0 || left + 6 > width) {
            for (uint32_t pixel = 0; pixel < 4u; ++pixel) {
                for (uint32_t column = 0; column < 3u; ++column) {
                    const int32_t at_column = left + (int32_t)(pixel + column);
                    if (at_column < 0 || at_column >= width) {
                        pad_column(k, first, column, pixel, groups, inside);
                    }
                }
            }
        }
    }
    if (inside != height) {
        const int32_t above = (int32_t)(before * 3u * groups);
        const int32_t below = (int32_t)((height - before - inside) * 3u * groups);
        for (uint32_t pixel = 0; pixel < 4u; ++pixel) {
            (void)pack_padding(0, dst + pixel, k->pad, above);
            (void)pack_padding(0, first + inside * 3u * groups * MCG_NN_STEP + pixel, k->pad, below);
        }
    }
    return 1;
}

MCG_INLINE uint32_t lower(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* Packs the next n pixels, from the first of a four on. */
MCG_INLINE void pack_pixels(int any, walk_t *k, uint32_t *dst, uint32_t n, pack_block_t *block)
{
    const mcg_conv_t *const d = k->d;
    const int32_t stride = d->stride_w, cols = k->cols;
    const uint32_t step = (uint32_t)stride * d->in_col, most = k->most, row = k->row;
    const uint32_t next_four = MCG_NN_STEP * d->groups - 4u;
    const uint32_t groups = d->run_groups, height = d->kernel_h, plane = d->in_plane;
#if MCG_HAS_ASM
    const int nine = !any && groups == 0u && d->planes == 3u && height == 3u;
    /* Each kernel row one run, and not so short that a loop without runs is better. */
    const int direct = !any && d->planes == 1u && d->col_runs == 1u && groups > 1u;
#else
    (void)groups;
    (void)height;
    (void)plane;
    (void)row;
#endif
    uint32_t in_four = 4;
    int32_t left = k->left;
    while (n != 0u) {
        const uint32_t at = (uint32_t)k->top * d->in_row + (uint32_t)left * d->in_col; /* wraps outside */
        uint32_t count = 4;
        if (block != NULL && in_four == 4u && n >= 4u && k->in_row >= 4u && block(k, dst, left)) {
            dst += MCG_NN_STEP * d->groups;
        } else if (k->top >= 0 && k->top < k->rows && left >= 0 && left < cols && at <= most) {
            /* A run of pixels inside. */
            count = lower(lower(n, k->in_row), (uint32_t)(cols - 1 - left) / (uint32_t)stride + 1u);
            count = lower(count, (most - at) / step + 1u);
            if (block != NULL) { /* up to where the next block may begin */
                count = lower(count, in_four);
            }
            const int8_t *src = k->x + at;
            for (uint32_t run = count; run != 0u;) {
                const uint32_t here = lower(in_four, run);
                run -= here;
                in_four -= here;
#if MCG_HAS_ASM
                if (nine) {
                    pack_nine(dst, src, row, plane, here, step);
                    dst += here;
                    src += here * step;
                } else
#endif
                    for (uint32_t *const end = dst + here; dst != end; ++dst, src += step) {
#if MCG_HAS_ASM
                        if (direct) {
                            (void)pack_runs_packed(dst, src, groups, height, row);
                            continue;
                        }
#endif
                        k->src = src;
                        (any ? pack_inside_any : pack_inside_packed)(k, dst);
                    }
                if (in_four == 0u) {
                    in_four = 4;
                    dst += next_four;
                }
            }
        } else {
            k->left = left;
            (any ? pack_outside_any : pack_outside_packed)(k, dst);
            ++dst;
            count = 1;
            if (--in_four == 0u) {
                in_four = 4;
                dst += next_four;
            }
        }
        n -= count;
        left += (int32_t)count * stride;
        k->in_row -= count;
        if (k->in_row == 0u) {
            k->in_row = d->out_w;
            left = -(int32_t)d->pad_left;
            k->top += d->stride_h;
        }
    }
    k->left = left;
}

MCG_KERNELS_END

#endif
