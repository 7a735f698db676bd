/* mcugen runtime: int8 convolution as a matrix product over packed patches. See mcg_nn_conv.h for the contracts.
 *
 * Patches of up to `tile` output pixels are packed into the scratch in threes, interleaved by groups: group 0 of
 * pixels 0, 1, 2, then group 1 of them. Two output channels times three pixels share every load.
 * SPDX-License-Identifier: MIT-0
 */
#include "mcg_nn_patch.h"

/* How a block of sums is computed, and where it goes. */
typedef struct {
    uint32_t groups;  /* groups of four in a patch */
    uint32_t pairs;   /* pairs of output channels */
    uint32_t odd;     /* 1: the last pair is one channel and zeros */
    uint32_t channel; /* bytes to the next channel and pixel of the output */
    uint32_t pixel;
    mcg_nn_range_t range;
} block_t;

typedef void multiply_t(const block_t *b, const uint32_t *w, const uint32_t *p, int8_t *y, uint32_t blocks);

MCG_KERNELS_BEGIN

#define PIXEL(i, j, a, b)                                             \
    if (pixels > (j)) {                                               \
        const uint32_t first = p[MCG_NN_STEP * (i) + 2u * (j)];       \
        const uint32_t second = p[MCG_NN_STEP * (i) + 2u * (j) + 1u]; \
        (a) = mcg_smlad(u0, first, (a));                              \
        (b) = mcg_smlad(u1, first, (b));                              \
        (a) = mcg_smlad(v0, second, (a));                             \
        (b) = mcg_smlad(v1, second, (b));                             \
    }

/* Four weights of two channels times four activations of each pixel. */
#define GROUP(i)                                   \
    do {                                           \
        const uint32_t w0 = w[2u * (i)];           \
        const uint32_t w1 = w[2u * (i) + 1u];      \
        const uint32_t u0 = mcg_nn_first(any, w0); \
        const uint32_t u1 = mcg_nn_first(any, w1); \
        const uint32_t v0 = mcg_nn_second(w0);     \
        const uint32_t v1 = mcg_nn_second(w1);     \
        PIXEL(i, 0u, a0, b0)                       \
        PIXEL(i, 1u, a1, b1)                       \
        PIXEL(i, 2u, a2, b2)                       \
    } while (0)

/* `blocks` times `pixels` pixels, all channels. any and pixels are constants where this is expanded. */
MCG_INLINE void multiply(int any, uint32_t pixels, const block_t *b, const uint32_t *w, const uint32_t *packed,
                         int8_t *y, uint32_t blocks)
{
    for (uint32_t left = b->pairs; left != 0u; --left) {
        /* A lone last channel is written after its dummy, to the same place. */
        const uint32_t channel = left > b->odd ? b->channel : 0u;
        const uint32_t *const start = w;
        const uint32_t *p = packed;
        int8_t *out = y;
        uint32_t n = blocks;
        do {
            int32_t a0 = (int32_t)start[0], a1 = a0, a2 = a0;
            int32_t b0 = (int32_t)start[1], b1 = b0, b2 = b0;
            w = start + 2;
            const uint32_t fours = pixels > 1u ? b->groups & ~3u : 0u; /* one pixel is rare: small, not fast */
            for (const uint32_t *end = p + MCG_NN_STEP * fours; pixels > 1u && p != end;
                 w += 8, p += 4u * MCG_NN_STEP) {
                GROUP(0u);
                GROUP(1u);
                GROUP(2u);
                GROUP(3u);
            }
            for (const uint32_t *end = p + MCG_NN_STEP * (b->groups - fours); p != end; w += 2, p += MCG_NN_STEP) {
                GROUP(0u);
            }
            const uint32_t pixel = b->pixel;
            {
                const mcg_nn_requant_t q = mcg_nn_requant(w + 3);
                int8_t *const o = out + channel;
                o[0] = mcg_nn_finish(any, b0, q, b->range);
                if (pixels > 1u) {
                    o[pixel] = mcg_nn_finish(any, b1, q, b->range);
                }
                if (pixels > 2u) {
                    o[2u * pixel] = mcg_nn_finish(any, b2, q, b->range);
                }
            }
            {
                const mcg_nn_requant_t q = mcg_nn_requant(w);
                out[0] = mcg_nn_finish(any, a0, q, b->range);
                if (pixels > 1u) {
                    out[pixel] = mcg_nn_finish(any, a1, q, b->range);
                }
                if (pixels > 2u) {
                    out[2u * pixel] = mcg_nn_finish(any, a2, q, b->range);
                }
            }
            out += 3u * pixel;
        } while (--n != 0u);
        w += 6;
        y += 2u * b->channel;
    }
}

#define MULTIPLY(name, any, pixels)                                                                              \
    MCG_CODE(name)                                                                                               \
    MCG_NOINLINE static void name(const block_t *b, const uint32_t *w, const uint32_t *p, int8_t *y, uint32_t n) \
    {                                                                                                            \
        multiply(any, pixels, b, w, p, y, n);                                                                    \
    }

#if MCG_HAS_ASM

/* The same as multiply(0, 3u, ...), and the same bits. Compilers find too few registers for it: the sums, the weights
 * of two channels, their even bytes, two words of a pixel and two pointers are all fourteen that there are.
 * -DMCG_NO_ASM takes the C instead, with 1.15 (GCC) to 1.4 (clang) times the instructions of a layer.
 *
 * Sixteen groups are unrolled. A patch enters them where the groups that are left after whole sixteens begin, with r1
 * moved back as if those before had run. Each group is 18 instructions of four bytes.
 *
 * r0 weights, r1 patches, r2-r4 sums of the first channel, r5-r7 of the second, r8 r9 weights, r10 r11 their even
 * bytes, r12 lr words of a pixel. Stack: 0 weights of the pair, 4 bytes that r1 moves back, 8 where a patch enters,
 * 12 end of the weights, 16 y of the block, 20 end of y, 24 bytes to the second channel, 28 to the next pixel, 32
 * packed, 36 pairs left, 40 whether the last is odd, 44 bytes of where sums start and weights, 48 bytes from the end of
 * y to the next pair, 52 bytes of y of all blocks, 96 the argument blocks. */
#define FOUR_SUMS(a, b)             \
    "smlad " a ", r8, r12, " a "\n" \
    "smlad " b ", r9, r12, " b "\n" \
    "smlad " a ", r10, lr, " a "\n" \
    "smlad " b ", r11, lr, " b "\n"
#define GROUP_AT(first, second, third)                                                                \
    "ldrd r8, r9, [r0], #8\n"                                                                         \
    "ldrd r12, lr, [r1, #" first "]\n"                                                                \
    "sxtb16 r10, r8\n"                                                                                \
    "sxtb16 r11, r9\n" FOUR_SUMS("r2", "r5") "ldrd r12, lr, [r1, #" second                            \
                                             "]\n" FOUR_SUMS("r3", "r6") "ldrd r12, lr, [r1, #" third \
                                                                         "]\n" FOUR_SUMS("r4", "r7")
#define FOUR_GROUPS(a, b, c, d, e, f, g, h, i, j, k, l) \
    GROUP_AT(a, b, c) GROUP_AT(d, e, f) GROUP_AT(g, h, i) GROUP_AT(j, k, l)
#define SCALE(a, m, c, shift)            \
    "smmla " a ", " a ", " m ", " c "\n" \
    "asr " a ", " shift "\n"             \
    "ssat " a ", #8, " a "\n"

_Static_assert(offsetof(block_t, groups) == 0 && offsetof(block_t, pairs) == 4 && offsetof(block_t, odd) == 8 &&
                   offsetof(block_t, channel) == 12 && offsetof(block_t, pixel) == 16,
               "the assembly below knows these offsets");

/* clang-format off */
MCG_CODE(multiply_3)
__attribute__((naked, noinline)) static void
multiply_3(MCG_UNUSED const block_t *b, MCG_UNUSED const uint32_t *w, MCG_UNUSED const uint32_t *p,
           MCG_UNUSED int8_t *y, MCG_UNUSED uint32_t n)
{
    __asm__ volatile(
        ".syntax unified\n"
        "push {r4-r11, lr}\n"
        "sub sp, sp, #60\n"
        "str r2, [sp, #32]\n"
        "ldm r0, {r4-r8}\n" /* groups, pairs, odd, channel, pixel */
        "strd r5, r6, [sp, #36]\n"
        "strd r7, r8, [sp, #24]\n"
        "lsl r9, r4, #3\n" /* bytes of weights */
        "add r9, r9, #8\n"
        "str r9, [sp, #44]\n"
        "ldr r10, [sp, #96]\n"
        "add r10, r10, r10, lsl #1\n"
        "mul r10, r10, r8\n" /* bytes of y of all blocks */
        "lsl r7, r7, #1\n"
        "sub r11, r7, r10\n"
        "strd r11, r10, [sp, #48]\n"
        "rsb r9, r4, #0\n" /* groups that are skipped: -groups modulo 16 */
        "and r9, r9, #15\n"
        "add r10, r9, r9, lsl #1\n"
        "lsl r10, r10, #3\n"
        "str r10, [sp, #4]\n"
        "adr r10, 3f\n"
        "add r9, r9, r9, lsl #3\n" /* 9 times */
        "add r10, r10, r9, lsl #3\n"
        "add r10, r10, #1\n"
        "str r10, [sp, #8]\n"
        "mov r0, r3\n"
        "cmp r5, r6\n" /* one pair, and that odd: no second channel */
        "itt eq\n"
        "moveq r9, #0\n"
        "streq r9, [sp, #24]\n"
        "ldr r11, [sp, #52]\n"
        "add r9, r0, r11\n"
        "strd r0, r9, [sp, #16]\n"
        "mov r0, r1\n"
        "1:\n" /* a pair of channels: r0 weights */
        "ldr r10, [sp, #44]\n"
        "ldr r1, [sp, #32]\n"
        "add r10, r10, r0\n"
        "str r0, [sp, #0]\n"
        "str r10, [sp, #12]\n"
        "2:\n" /* a block of three pixels */
        "ldrd r0, r8, [sp, #0]\n"
        "sub r1, r1, r8\n"
        "ldrd r2, r5, [r0], #8\n"
        "mov r3, r2\n"
        "mov r4, r2\n"
        "mov r6, r5\n"
        "mov r7, r5\n"
        "ldr pc, [sp, #8]\n"
        ".balign 4\n"
        "3:\n" /* sixteen groups */
        FOUR_GROUPS("0", "8", "16", "24", "32", "40", "48", "56", "64", "72", "80", "88")
        FOUR_GROUPS("96", "104", "112", "120", "128", "136", "144", "152", "160", "168", "176", "184")
        FOUR_GROUPS("192", "200", "208", "216", "224", "232", "240", "248", "256", "264", "272", "280")
        FOUR_GROUPS("288", "296", "304", "312", "320", "328", "336", "344", "352", "360", "368", "376")
        "ldr r12, [sp, #12]\n"
        "add r1, r1, #384\n"
        "cmp r0, r12\n"
        "bne 3b\n"
        "ldm r0, {r8-r12, lr}\n"   /* m, c, shift of both */
        SCALE("r2", "r8", "r9", "r10")
        SCALE("r3", "r8", "r9", "r10")
        SCALE("r4", "r8", "r9", "r10")
        SCALE("r5", "r11", "r12", "lr")
        SCALE("r6", "r11", "r12", "lr")
        SCALE("r7", "r11", "r12", "lr")
        "ldrd r8, r9, [sp, #24]\n"
        "ldrd r0, r11, [sp, #16]\n"
        "add r10, r0, r8\n"        /* the second channel first */
        "strb r5, [r10]\n"
        "strb r6, [r10, r9]\n"
        "strb r7, [r10, r9, lsl #1]\n"
        "strb r2, [r0]\n"
        "strb r3, [r0, r9]\n"
        "strb r4, [r0, r9, lsl #1]\n"
        "add r0, r0, r9\n"
        "add r0, r0, r9, lsl #1\n"
        "str r0, [sp, #16]\n"
        "cmp r0, r11\n"
        "bne 2b\n"
        "ldrd r8, r9, [sp, #36]\n" /* the next pair: pairs left, odd */
        "ldrd r10, r11, [sp, #48]\n"
        "subs r8, r8, #1\n"
        "beq 4f\n"
        "add r10, r10, r0\n"
        "add r11, r11, r10\n"
        "strd r10, r11, [sp, #16]\n"
        "str r8, [sp, #36]\n"
        "cmp r8, r9\n"
        "beq 5f\n"
        "6:\n"
        "ldr r0, [sp, #12]\n"
        "add r0, r0, #24\n"
        "b 1b\n"
        "5:\n" /* the last pair is a lone channel: its second goes to the same place */
        "mov r9, #0\n"
        "str r9, [sp, #24]\n"
        "b 6b\n"
        "4:\n"
        "add sp, sp, #60\n"
        "pop {r4-r11, pc}\n");
}
/* clang-format on */

#else
MULTIPLY(multiply_3, 0, 3u)
#endif
MULTIPLY(multiply_1, 0, 1u)
MULTIPLY(multiply_any_3, 1, 3u)
MULTIPLY(multiply_any_1, 1, 1u)

/* Pixels whose patches are neighbours in memory: a pointwise layer. */
MCG_INLINE int is_flat(const mcg_conv_t *d)
{
    return d->planes == 1u && d->kernel_h == 1u && d->col_runs == 1u && d->cols == 1u &&
           d->unit == 4u * d->run_groups && d->stride_h == 1u && d->stride_w == 1u && d->out_h == d->in_h &&
           d->out_w == d->in_w && d->pad_top == 0u && d->pad_left == 0u;
}

/* Walks over the output pixels tile by tile. The last three pixels are a block of their own, though some of them were
 * done before; a layer of one or two pixels takes them one by one. */
MCG_INLINE void convolve(int any, const mcg_conv_t *d, const uint32_t *w, uint32_t *scratch, const int8_t *x, int8_t *y,
                         multiply_t *three, multiply_t *one)
{
    const block_t b = {d->groups,      (d->out_c + 1u) / 2u, d->out_c & 1u,
                       d->out_channel, d->out_pixel,         {d->out_zp, d->low, d->high}};
    const uint32_t pixels = (uint32_t)d->out_h * d->out_w;
    const int flat = is_flat(d);
    walk_t k;
    start_walk(&k, d, x, 0u);
    for (uint32_t at = 0; at < pixels;) {
        uint32_t n = pixels - at < d->tile ? (pixels - at) / 3u * 3u : d->tile;
        if (n == 0u) {
            n = pixels < 3u ? 1u : 3u;
            if (pixels > 3u) {
                at = pixels - 3u;
                start_walk(&k, d, x, at);
            }
        }
        if (flat) {
            const int8_t *from = x + 4u * d->groups * at;
            if (n == 1u) {
                (void)(any ? pack_runs_any : pack_runs_packed)(scratch, from, d->groups, 1u, 0u);
            } else {
                pack_flat(any, scratch, from, d->groups, n / 3u);
            }
        } else {
            pack_pixels(any, &k, scratch, n);
        }
        if (n == 1u) {
            one(&b, w, scratch, y + at * d->out_pixel, 1u);
        } else {
            three(&b, w, scratch, y + at * d->out_pixel, n / 3u);
        }
        at += n;
    }
}

MCG_CODE(mcg_conv_s8)
void mcg_conv_s8(const mcg_conv_t *d, const uint32_t *w, uint32_t *scratch, const int8_t *x, int8_t *y)
{
    convolve(0, d, w, scratch, x, y, multiply_3, multiply_1);
    if (mcg_nn_is_narrow(d->low, d->high)) {
        mcg_clamp_s8(y, (uint32_t)d->out_h * d->out_w * d->out_c, d->low, d->high);
    }
}

MCG_CODE(mcg_conv_s8_any)
void mcg_conv_s8_any(const mcg_conv_t *d, const uint32_t *w, uint32_t *scratch, const int8_t *x, int8_t *y)
{
    convolve(1, d, w, scratch, x, y, multiply_any_3, multiply_any_1);
}

MCG_KERNELS_END
