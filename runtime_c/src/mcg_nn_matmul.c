/* mcugen runtime: int8 convolution as a matrix product over packed patches. See mcg_nn_conv.h for the contracts.
 *
 * Patches of up to `tile` output pixels are packed into the scratch in threes, interleaved by groups: group 0 of
 * pixels 0, 1, 2, then group 1 of them. Two output channels times three pixels share every load.
 * SPDX-License-Identifier: MIT-0
 */
#include "mcg_nn_patch.h"

/* Where a block of sums goes. */
typedef struct {
    uint32_t fours;   /* words of packed patch that are read by the unrolled loop */
    uint32_t rest;    /* and by the loop over single groups */
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

MCG_INLINE int8_t finish(int any, int32_t sum, mcg_nn_requant_t q, const block_t *b)
{
    return any ? mcg_nn_scale_any(mcg_add32(q.bias, sum), q, b->range) : mcg_nn_scale(q.bias + (sum >> 8), q);
}

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
            int32_t a0 = 0, a1 = 0, a2 = 0, b0 = 0, b1 = 0, b2 = 0;
            w = start;
            for (const uint32_t *end = p + b->fours; p != end; w += 8, p += 4u * MCG_NN_STEP) {
                GROUP(0u);
                GROUP(1u);
                GROUP(2u);
                GROUP(3u);
            }
            for (const uint32_t *end = p + b->rest; p != end; w += 2, p += MCG_NN_STEP) {
                GROUP(0u);
            }
            const uint32_t pixel = b->pixel;
            {
                const mcg_nn_requant_t q = mcg_nn_requant(w + 4);
                int8_t *const o = out + channel;
                o[0] = finish(any, b0, q, b);
                if (pixels > 1u) {
                    o[pixel] = finish(any, b1, q, b);
                }
                if (pixels > 2u) {
                    o[2u * pixel] = finish(any, b2, q, b);
                }
            }
            {
                const mcg_nn_requant_t q = mcg_nn_requant(w);
                out[0] = finish(any, a0, q, b);
                if (pixels > 1u) {
                    out[pixel] = finish(any, a1, q, b);
                }
                if (pixels > 2u) {
                    out[2u * pixel] = finish(any, a2, q, b);
                }
            }
            out += 3u * pixel;
        } while (--n != 0u);
        w += 8;
        y += 2u * b->channel;
    }
}

#define MULTIPLY(name, any, pixels)                                                                            \
    MCG_SECTION(".text.mcugen." #name) MCG_NOINLINE static void name(const block_t *b, const uint32_t *w,      \
                                                                     const uint32_t *p, int8_t *y, uint32_t n) \
    {                                                                                                          \
        multiply(any, pixels, b, w, p, y, n);                                                                  \
    }

#if MCG_HAS_ASM

/* The same as multiply(0, 3u, ...), and the same bits. Compilers find too few registers for it: the sums, the weights
 * of two channels, their even bytes, two words of a pixel and two pointers are all fourteen that there are.
 * -DMCG_NO_ASM takes the C instead, with 1.05 (GCC) to 1.2 (clang) times the instructions of a layer.
 *
 * r0 weights, r1 patches, r2-r4 sums of the first channel, r5-r7 of the second, r8 r9 weights, r10 r11 their even
 * bytes, r12 lr words of a pixel. Stack: 0 b, 4 weights of the pair, 8 y of the pair, 12 y of the block, 16 blocks
 * left, 20 pairs left, 24 end of the loop, 28 bytes to the second channel, 32 bytes to the next pixel, 36 packed, 80
 * the argument blocks. */
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
/* The sum in a, with r9-r12 = bias, m, c, shift, to the place `to`. */
#define FINISH(a, to)                \
    "add " a ", r9, " a ", asr #8\n" \
    "smmla " a ", " a ", r10, r11\n" \
    "asr " a ", " a ", r12\n"        \
    "ssat " a ", #8, " a "\n"        \
    "strb " a ", [" to "]\n"

_Static_assert(offsetof(block_t, fours) == 0 && offsetof(block_t, rest) == 4 && offsetof(block_t, pairs) == 8 &&
                   offsetof(block_t, odd) == 12 && offsetof(block_t, channel) == 16 && offsetof(block_t, pixel) == 20,
               "the assembly below knows these offsets");

MCG_SECTION(".text.mcugen.multiply_3") __attribute__((naked, noinline)) static void
multiply_3(MCG_UNUSED const block_t *b, MCG_UNUSED const uint32_t *w, MCG_UNUSED const uint32_t *p,
           MCG_UNUSED int8_t *y, MCG_UNUSED uint32_t n)
{
    __asm__ volatile(
        ".syntax unified\n"
        "push {r4-r11, lr}\n"
        "sub sp, sp, #44\n"
        "strd r0, r1, [sp, #0]\n"
        "str r3, [sp, #8]\n"
        "str r2, [sp, #36]\n"
        "ldr r12, [r0, #8]\n"
        "ldr lr, [r0, #20]\n"
        "str r12, [sp, #20]\n"
        "str lr, [sp, #32]\n"
        "mov r10, r0\n"
        "mov r0, r1\n"
        "1:\n" /* a pair of channels: r0 weights, r10 b, r12 pairs left */
        "ldr r9, [r10, #12]\n"
        "ldr r1, [sp, #36]\n"
        "cmp r12, r9\n"
        "ite hi\n"
        "ldrhi r9, [r10, #16]\n"
        "movls r9, #0\n"
        "ldr lr, [sp, #8]\n"
        "ldr r12, [sp, #80]\n"
        "str r9, [sp, #28]\n"
        "strd lr, r12, [sp, #12]\n"
        "2:\n" /* a block of three pixels: r0 weights, r1 patches, r10 b */
        "ldr r12, [r10, #0]\n"
        "mov r2, #0\n"
        "mov r3, #0\n"
        "mov r4, #0\n"
        "mov r5, #0\n"
        "mov r6, #0\n"
        "mov r7, #0\n"
        "cmp r12, #0\n"
        "beq 4f\n"
        "add r12, r1, r12, lsl #2\n"
        "str r12, [sp, #24]\n"
        "3:\n" /* four groups */
        GROUP_AT("0", "8", "16") GROUP_AT("24", "32", "40") GROUP_AT("48", "56", "64") GROUP_AT(
            "72", "80",
            "88") "add r1, r1, #96\n"
                  "ldr r12, [sp, #24]\n"
                  "cmp r1, r12\n"
                  "bne 3b\n"
                  "ldr r10, [sp, #0]\n"
                  "4:\n" /* the groups that are left */
                  "ldr r12, [r10, #4]\n"
                  "cmp r12, #0\n"
                  "beq 6f\n"
                  "add r12, r1, r12, lsl #2\n"
                  "str r12, [sp, #24]\n"
                  "5:\n" GROUP_AT(
                      "0", "8", "16") "add r1, r1, #24\n"
                                      "ldr r12, [sp, #24]\n"
                                      "cmp r1, r12\n"
                                      "bne 5b\n"
                                      "6:\n" /* requantize and store, the second channel first */
                                      "add lr, r0, #16\n"
                                      "ldm lr, {r9-r12}\n"
                                      "ldr r8, [sp, #12]\n"
                                      "ldr lr, [sp, #28]\n"
                                      "add lr, r8, lr\n" FINISH("r5", "lr") "ldr r5, [sp, #32]\n" FINISH("r6", "lr, r5")
                                          FINISH("r7", "lr, r5, lsl #1") "ldm r0, {r9-r12}\n" FINISH("r2", "r8")
                                              FINISH("r3", "r8, r5")
                                                  FINISH("r4", "r8, r5, lsl #1") "ldr r12, [sp, #16]\n"
                                                                                 "ldr r10, [sp, #0]\n"
                                                                                 "subs r12, r12, #1\n"
                                                                                 "beq 7f\n"
                                                                                 "add r8, r8, r5\n"
                                                                                 "add r8, r8, r5, lsl #1\n"
                                                                                 "strd r8, r12, [sp, #12]\n"
                                                                                 "ldr r0, [sp, #4]\n"
                                                                                 "b 2b\n"
                                                                                 "7:\n" /* the next pair */
                                                                                 "ldr r9, [sp, #8]\n"
                                                                                 "ldr r8, [r10, #16]\n"
                                                                                 "ldr r12, [sp, #20]\n"
                                                                                 "add r0, r0, #32\n"
                                                                                 "add r9, r9, r8, lsl #1\n"
                                                                                 "subs r12, r12, #1\n"
                                                                                 "str r12, [sp, #20]\n"
                                                                                 "strd r0, r9, [sp, #4]\n"
                                                                                 "bne 1b\n"
                                                                                 "add sp, sp, #44\n"
                                                                                 "pop {r4-r11, pc}\n");
}

#else
MULTIPLY(multiply_3, 0, 3u)
#endif
MULTIPLY(multiply_2, 0, 2u)
MULTIPLY(multiply_1, 0, 1u)
MULTIPLY(multiply_any_3, 1, 3u)
MULTIPLY(multiply_any_2, 1, 2u)
MULTIPLY(multiply_any_1, 1, 1u)

/* Walks over the output pixels tile by tile. */
MCG_INLINE void convolve(int any, const mcg_conv_t *d, const uint32_t *w, uint32_t *scratch, const int8_t *x, int8_t *y,
                         multiply_t *three, multiply_t *two, multiply_t *one)
{
    const block_t b = {MCG_NN_STEP * (d->groups & ~3u),
                       MCG_NN_STEP * (d->groups & 3u),
                       (d->out_c + 1u) / 2u,
                       d->out_c & 1u,
                       d->out_channel,
                       d->out_pixel,
                       {d->out_zp, d->low, d->high}};
    /* Pixels whose patches are neighbours in memory: a pointwise layer. */
    const int flat = d->planes == 1u && d->kernel_h == 1u && d->col_runs == 1u && d->cols == 1u &&
                     d->unit == 4u * d->run_groups && d->stride_h == 1u && d->stride_w == 1u && d->out_h == d->in_h &&
                     d->out_w == d->in_w && d->pad_top == 0u && d->pad_left == 0u;
    walk_t k;
    start_walk(&k, d, x);
    for (uint32_t left = (uint32_t)d->out_h * d->out_w; left != 0u;) {
        const uint32_t n = left < d->tile ? left : d->tile;
        const uint32_t threes = n / 3u;
        const uint32_t rest = n - 3u * threes;
        if (flat) {
            uint32_t *dst = scratch;
            for (uint32_t i = threes; i != 0u; --i, dst += MCG_NN_STEP * d->groups, k.x += 12u * d->groups) {
                pack_flat(any, dst, k.x, d->groups);
            }
            for (uint32_t i = 0; i < rest; ++i, k.x += 4u * d->groups) {
                (void)pack_run(any, dst + 2u * i, k.x, d->groups);
            }
        } else {
            pack_pixels(any, d, &k, scratch, n);
        }
        if (threes != 0u) {
            three(&b, w, scratch, y, threes);
        }
        if (rest != 0u) {
            (rest == 2u ? two : one)(&b, w, scratch + MCG_NN_STEP * threes * d->groups, y + 3u * threes * d->out_pixel,
                                     1u);
        }
        y += n * d->out_pixel;
        left -= n;
    }
}

MCG_SECTION(".text.mcugen.mcg_conv_s8") void mcg_conv_s8(const mcg_conv_t *d, const uint32_t *w, uint32_t *scratch,
                                                         const int8_t *x, int8_t *y)
{
    convolve(0, d, w, scratch, x, y, multiply_3, multiply_2, multiply_1);
}

MCG_SECTION(".text.mcugen.mcg_conv_s8_any") void mcg_conv_s8_any(const mcg_conv_t *d, const uint32_t *w,
                                                                 uint32_t *scratch, const int8_t *x, int8_t *y)
{
    convolve(1, d, w, scratch, x, y, multiply_any_3, multiply_any_2, multiply_any_1);
}

MCG_KERNELS_END
