/* mcugen runtime: int8 convolution as a matrix product over packed patches. See mcg_nn_conv.h for the contracts.
 *
 * Patches of up to `tile` output pixels are packed into the scratch in fours, group by group: the first words of a group
 * of pixels 0 to 3, then their second words. Two output channels times four pixels share every load.
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

#define PIXEL(at, j, a, b)                \
    if (pixels > (j)) {                   \
        const uint32_t v = p[(at) + (j)]; \
        (a) = mcg_smlad(u0, v, (a));      \
        (b) = mcg_smlad(u1, v, (b));      \
    }
#define PIXELS(at)        \
    PIXEL(at, 0u, a0, b0) \
    PIXEL(at, 1u, a1, b1) \
    PIXEL(at, 2u, a2, b2) \
    PIXEL(at, 3u, a3, b3)

/* Four weights of two channels times four activations of each pixel. */
#define GROUP(i)                                 \
    do {                                         \
        const uint32_t w0 = w[2u * (i)];         \
        const uint32_t w1 = w[2u * (i) + 1u];    \
        uint32_t u0 = mcg_nn_first(any, w0);     \
        uint32_t u1 = mcg_nn_first(any, w1);     \
        PIXELS(MCG_NN_STEP *(i))                 \
        u0 = mcg_nn_second(w0);                  \
        u1 = mcg_nn_second(w1);                  \
        PIXELS(MCG_NN_STEP *(i) + MCG_NN_SECOND) \
    } while (0)

#define FINISH(to, a0, a1, a2, a3)                               \
    do {                                                         \
        int8_t *const o = (to);                                  \
        o[0] = mcg_nn_finish(any, a0, q, b->range);              \
        if (pixels > 1u) {                                       \
            o[pixel] = mcg_nn_finish(any, a1, q, b->range);      \
            o[2u * pixel] = mcg_nn_finish(any, a2, q, b->range); \
            o[3u * pixel] = mcg_nn_finish(any, a3, q, b->range); \
        }                                                        \
    } while (0)

/* `blocks` times `pixels` pixels, 1 or 4, all channels. any and pixels are constants where this is expanded. */
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
            int32_t a0 = (int32_t)start[0], a1 = a0, a2 = a0, a3 = a0;
            int32_t b0 = (int32_t)start[1], b1 = b0, b2 = b0, b3 = b0;
            w = start + 2;
            const uint32_t twos = pixels > 1u ? b->groups & ~1u : 0u; /* one pixel is rare: small, not fast */
            for (const uint32_t *end = p + MCG_NN_STEP * twos; pixels > 1u && p != end; w += 4, p += 2u * MCG_NN_STEP) {
                GROUP(0u);
                GROUP(1u);
            }
            for (const uint32_t *end = p + MCG_NN_STEP * (b->groups - twos); p != end; w += 2, p += MCG_NN_STEP) {
                GROUP(0u);
            }
            const uint32_t pixel = b->pixel;
            mcg_nn_requant_t q = mcg_nn_requant(w + 3);
            FINISH(out + channel, b0, b1, b2, b3);
            q = mcg_nn_requant(w);
            FINISH(out, a0, a1, a2, a3);
            out += 4u * pixel;
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

/* The same as multiply(0, 4u, ...), and the same bits. Compilers find too few registers for it: the sums, the weights
 * of two channels, two words of pixels and two pointers are all fourteen that there are. What multiplies first words
 * comes first: so the even bytes of the weights take the place of the weights. -DMCG_NO_ASM takes the C instead, with
 * 1.4 (GCC) to 1.7 (clang) times the instructions of a layer.
 *
 * The first group starts the sums; then UNROLLED groups are unrolled. A patch enters them where the groups that are left
 * after whole turns begin, or at their end. Each group is 23 instructions of four bytes.
 *
 * r0 weights, r1 patches, r2-r5 sums of the first channel, r6-r9 of the second, r10 r11 weights or their even bytes, r12
 * lr words of two pixels. Stack: 0 weights of the pair, 4 y of the block, 8 bytes to the next pixel, 12 three times them,
 * 16 bytes to the second channel, 20 end of y, 24 end of the weights, 28 where a patch enters, 32 packed, 36 pairs left,
 * 40 whether the last is odd, 44 bytes of where sums start and weights, 48 bytes from the end of y to the next pair, 52
 * bytes of y of all blocks, 96 the argument blocks. r1 stands one group before the patches. */
/* clang-format off */
#define UNROLLED "12"
#define SUMS(a, b, v, from_a, from_b)       \
    "smlad " a ", r10, " v ", " from_a "\n" \
    "smlad " b ", r11, " v ", " from_b "\n"
#define MORE(a, b, v) SUMS(a, b, v, a, b)
/* The even bytes are made while the words are on their way that they multiply. */
#define GROUP_OF(first_half)                                            \
    "ldrd r10, r11, [r0], #8\n"                                         \
    "ldrd r12, lr, [r1, #32]!\n"                                        \
    first_half                                                          \
    "ldrd r12, lr, [r1, #16]\n"                                         \
    "sxtb16 r10, r10\n"                                                 \
    "sxtb16 r11, r11\n"                                                 \
    MORE("r2", "r6", "r12") MORE("r3", "r7", "lr")                      \
    "ldrd r12, lr, [r1, #24]\n"                                         \
    MORE("r4", "r8", "r12") MORE("r5", "r9", "lr")
#define FIRST_GROUP                                                     \
    GROUP_OF(                                                           \
        SUMS("r2", "r6", "r12", "r5", "r9")                             \
        SUMS("r3", "r7", "lr", "r5", "r9")                              \
        "ldrd r12, lr, [r1, #8]\n"                                      \
        SUMS("r4", "r8", "r12", "r5", "r9")                             \
        MORE("r5", "r9", "lr"))
#define NEXT_GROUP                                                      \
    GROUP_OF(                                                           \
        MORE("r2", "r6", "r12")                                         \
        MORE("r3", "r7", "lr")                                          \
        "ldrd r12, lr, [r1, #8]\n"                                      \
        MORE("r4", "r8", "r12")                                         \
        MORE("r5", "r9", "lr"))
#define SCALE(a)                     \
    "smmla " a ", " a ", r10, r11\n" \
    "asr " a ", r12\n"               \
    "ssat " a ", #8, " a "\n"
/* clang-format on */

_Static_assert(offsetof(block_t, groups) == 0 && offsetof(block_t, pairs) == 4 && offsetof(block_t, odd) == 8 &&
                   offsetof(block_t, channel) == 12 && offsetof(block_t, pixel) == 16,
               "the assembly below knows these offsets");

/* clang-format off */
MCG_CODE(multiply_4) __attribute__((naked, noinline)) static void
multiply_4(MCG_UNUSED const block_t *b, MCG_UNUSED const uint32_t *w, MCG_UNUSED const uint32_t *p,
           MCG_UNUSED int8_t *y, MCG_UNUSED uint32_t n)
{
    __asm__ volatile(
        ".syntax unified\n"
        "push {r4-r11, lr}\n"
        "sub sp, sp, #60\n"
        "sub r2, r2, #32\n"
        "str r2, [sp, #32]\n"
        "ldm r0, {r4-r8}\n" /* groups, pairs, odd, channel, pixel */
        "strd r5, r6, [sp, #36]\n"
        "add r9, r8, r8, lsl #1\n"
        "strd r8, r9, [sp, #8]\n"
        "lsl r9, r4, #3\n" /* bytes of weights */
        "add r9, r9, #8\n"
        "str r9, [sp, #44]\n"
        "ldr r10, [sp, #96]\n"
        "lsl r10, r10, #2\n"
        "mul r10, r10, r8\n" /* bytes of y of all blocks */
        "rsb r9, r10, r7, lsl #1\n"
        "strd r9, r10, [sp, #48]\n"
        "subs r11, r5, r6\n" /* one pair, and that odd: no second channel */
        "it eq\n"
        "moveq r7, #0\n"
        "str r7, [sp, #16]\n"
        "add r10, r10, r3\n"
        "str r3, [sp, #4]\n"
        "str r10, [sp, #20]\n"
        "sub r4, r4, #1\n" /* groups that are skipped, 1 to UNROLLED */
        "mov r10, #" UNROLLED "\n"
        "udiv r9, r4, r10\n"
        "mls r9, r9, r10, r4\n"
        "sub r9, r10, r9\n"
        "mov r10, #92\n"
        "adr r11, 3f\n"
        "mla r11, r9, r10, r11\n"
        "orr r11, r11, #1\n"
        "str r11, [sp, #28]\n"
        "mov r0, r1\n"
        "1:\n" /* a pair of channels: r0 weights */
        "ldr r10, [sp, #44]\n"
        "ldr r1, [sp, #32]\n"
        "add r10, r10, r0\n"
        "str r0, [sp, #0]\n"
        "str r10, [sp, #24]\n"
        "2:\n" /* a block of four pixels */
        "ldrd r5, r9, [r0], #8\n"
        FIRST_GROUP
        "ldr pc, [sp, #28]\n"
        ".balign 4\n"
        "3:\n" /* UNROLLED groups */
        NEXT_GROUP NEXT_GROUP NEXT_GROUP NEXT_GROUP NEXT_GROUP NEXT_GROUP
        NEXT_GROUP NEXT_GROUP NEXT_GROUP NEXT_GROUP NEXT_GROUP NEXT_GROUP
        "ldr r12, [sp, #24]\n"
        "cmp r0, r12\n"
        "bne 3b\n"
        "ldm r0!, {r10-r12}\n" /* m, c, shift */
        SCALE("r2") SCALE("r3") SCALE("r4") SCALE("r5")
        "ldm r0, {r10-r12}\n"
        SCALE("r6") SCALE("r7") SCALE("r8") SCALE("r9")
        "ldm sp, {r0, r10-r12, lr}\n"
        "add lr, lr, r10\n" /* the second channel first */
        "strb r6, [lr]\n"
        "strb r7, [lr, r11]\n"
        "strb r8, [lr, r11, lsl #1]\n"
        "strb r9, [lr, r12]\n"
        "strb r2, [r10]\n"
        "strb r3, [r10, r11]\n"
        "strb r4, [r10, r11, lsl #1]\n"
        "strb r5, [r10, r12]\n"
        "ldr lr, [sp, #20]\n"
        "add r10, r10, r11, lsl #2\n"
        "str r10, [sp, #4]\n"
        "cmp r10, lr\n"
        "bne 2b\n"
        "ldrd r8, r9, [sp, #36]\n" /* the next pair: pairs left, odd */
        "ldrd r11, r12, [sp, #48]\n"
        "ldr r0, [sp, #24]\n"
        "subs r8, r8, #1\n"
        "beq 4f\n"
        "add r10, r10, r11\n"
        "add r12, r12, r10\n"
        "str r10, [sp, #4]\n"
        "str r12, [sp, #20]\n"
        "str r8, [sp, #36]\n"
        "add r0, r0, #24\n"
        "cmp r8, r9\n"
        "bne 1b\n"
        "mov r9, #0\n" /* the last pair is a lone channel: its second goes to the same place */
        "str r9, [sp, #16]\n"
        "b 1b\n"
        "4:\n"
        "add sp, sp, #60\n"
        "pop {r4-r11, pc}\n");
}
/* clang-format on */

/* Sums of the form "any": four of the first channel, four of the second. The weights are read twice, as there is no room
 * for their odd and their even bytes. Registers as above; stack: 0 end of the weights, 4 sums. */
/* clang-format off */
MCG_CODE(sums_any) __attribute__((naked, noinline)) static void
sums_any(MCG_UNUSED const uint32_t *w, MCG_UNUSED const uint32_t *p, MCG_UNUSED uint32_t groups,
         MCG_UNUSED int32_t *sums)
{
    __asm__ volatile(
        ".syntax unified\n"
        "push {r2-r11, lr}\n"
        "add r4, r0, r2, lsl #3\n"
        "add r4, r4, #8\n"
        "str r4, [sp]\n"
        "ldrd r2, r6, [r0], #8\n"
        "mov r3, r2\n"
        "mov r4, r2\n"
        "mov r5, r2\n"
        "mov r7, r6\n"
        "mov r8, r6\n"
        "mov r9, r6\n"
        "sub r1, r1, #32\n"
        "1:\n"
        "ldrd r10, r11, [r0]\n"
        "ldrd r12, lr, [r1, #32]!\n"
        "sxtb16 r10, r10, ror #8\n"
        "sxtb16 r11, r11, ror #8\n"
        MORE("r2", "r6", "r12") MORE("r3", "r7", "lr")
        "ldrd r12, lr, [r1, #8]\n"
        MORE("r4", "r8", "r12") MORE("r5", "r9", "lr")
        "ldrd r10, r11, [r0], #8\n"
        "ldrd r12, lr, [r1, #16]\n"
        "sxtb16 r10, r10\n"
        "sxtb16 r11, r11\n"
        MORE("r2", "r6", "r12") MORE("r3", "r7", "lr")
        "ldrd r12, lr, [r1, #24]\n"
        MORE("r4", "r8", "r12") MORE("r5", "r9", "lr")
        "ldr r12, [sp]\n"
        "cmp r0, r12\n"
        "bne 1b\n"
        "ldr r12, [sp, #4]\n"
        "stm r12, {r2-r9}\n"
        "pop {r2-r11, pc}\n");
}
/* clang-format on */

/* mcg_nn_scale_any of four sums; what is the same for all is decided once. */
MCG_INLINE void finish_four(int8_t *y, uint32_t pixel, const int32_t *sums, const uint32_t *w, mcg_nn_range_t r)
{
    const mcg_nn_requant_t q = mcg_nn_requant(w);
    if (q.shift > 32) {
        const int32_t shift = q.shift - 32;
        for (uint32_t i = 0; i < 4u; ++i, y += pixel) {
            const int32_t v = (mcg_smmla(sums[i], q.m, q.c) >> shift) + r.zp;
            *y = (int8_t)(v < r.low ? r.low : v > r.high ? r.high : v);
        }
        return;
    }
    for (uint32_t i = 0; i < 4u; ++i, y += pixel) {
        *y = mcg_nn_scale_any(sums[i], q, r);
    }
}

MCG_CODE(multiply_any_4)
MCG_NOINLINE static void multiply_any_4(const block_t *b, const uint32_t *w, const uint32_t *packed, int8_t *y,
                                        uint32_t blocks)
{
    const uint32_t pixel = b->pixel, groups = b->groups;
    for (uint32_t left = b->pairs; left != 0u; --left, w += 2u * groups + 8u, y += 2u * b->channel) {
        const uint32_t channel = left > b->odd ? b->channel : 0u; /* as in multiply */
        const uint32_t *const ends = w + 2u * groups + 2u;
        const uint32_t *p = packed;
        int8_t *out = y;
        for (uint32_t n = blocks; n != 0u; --n, p += MCG_NN_STEP * groups) {
            int32_t sums[8];
            sums_any(w, p, groups, sums);
            finish_four(out + channel, pixel, sums + 4, ends + 3, b->range);
            finish_four(out, pixel, sums, ends, b->range);
            out += 4u * pixel;
        }
    }
}

#else
MULTIPLY(multiply_4, 0, 4u)
MULTIPLY(multiply_any_4, 1, 4u)
#endif
MULTIPLY(multiply_1, 0, 1u)
MULTIPLY(multiply_any_1, 1, 1u)

/* Pixels whose patches are neighbours in memory: a pointwise layer. */
MCG_INLINE int is_flat(const mcg_conv_t *d)
{
    return d->planes == 1u && d->kernel_h == 1u && d->col_runs == 1u && d->cols == 1u &&
           d->unit == 4u * d->run_groups && d->stride_h == 1u && d->stride_w == 1u && d->out_h == d->in_h &&
           d->out_w == d->in_w && d->pad_top == 0u && d->pad_left == 0u;
}

/* Walks over the output pixels tile by tile. The last four pixels are a block of their own, though some of them were
 * done before; a layer of fewer pixels takes them one by one. */
MCG_INLINE void convolve(int any, const mcg_conv_t *d, const uint32_t *w, uint32_t *scratch, const int8_t *x, int8_t *y,
                         multiply_t *four, multiply_t *one, pack_block_t *block)
{
    const block_t b = {d->groups,      (d->out_c + 1u) / 2u, d->out_c & 1u,
                       d->out_channel, d->out_pixel,         {d->out_zp, d->low, d->high}};
    const uint32_t pixels = (uint32_t)d->out_h * d->out_w;
    const int flat = is_flat(d);
    walk_t k;
    start_walk(&k, d, x, 0u);
    for (uint32_t at = 0; at < pixels;) {
        uint32_t n = pixels - at < d->tile ? (pixels - at) & ~3u : d->tile;
        if (n == 0u) {
            n = pixels < 4u ? 1u : 4u;
            if (pixels > 4u) {
                at = pixels - 4u;
                start_walk(&k, d, x, at);
            }
        }
        if (flat) {
            const int8_t *from = x + 4u * d->groups * at;
            if (n == 1u) {
                (void)(any ? pack_runs_any : pack_runs_packed)(scratch, from, d->groups, 1u, 0u);
            } else {
                pack_flat(any, scratch, from, d->groups, n / 4u);
            }
        } else {
            pack_pixels(any, &k, scratch, n, block);
        }
        if (n == 1u) {
            one(&b, w, scratch, y + at * d->out_pixel, 1u);
        } else {
            four(&b, w, scratch, y + at * d->out_pixel, n / 4u);
        }
        at += n;
    }
}

MCG_CODE(convolve_packed)
MCG_NOINLINE static void convolve_packed(const mcg_conv_t *d, const uint32_t *w, uint32_t *scratch, const int8_t *x,
                                         int8_t *y, pack_block_t *block)
{
    convolve(0, d, w, scratch, x, y, multiply_4, multiply_1, block);
    if (mcg_nn_is_narrow(d->low, d->high)) {
        mcg_clamp_s8(y, (uint32_t)d->out_h * d->out_w * d->out_c, d->low, d->high);
    }
}

MCG_CODE(mcg_conv_s8)
void mcg_conv_s8(const mcg_conv_t *d, const uint32_t *w, uint32_t *scratch, const int8_t *x, int8_t *y)
{
    convolve_packed(d, w, scratch, x, y, NULL);
}

MCG_CODE(mcg_conv_nx3_s8)
void mcg_conv_nx3_s8(const mcg_conv_t *d, const uint32_t *w, uint32_t *scratch, const int8_t *x, int8_t *y)
{
    convolve_packed(d, w, scratch, x, y, pack_block_3);
}

MCG_CODE(mcg_conv_s8_any)
void mcg_conv_s8_any(const mcg_conv_t *d, const uint32_t *w, uint32_t *scratch, const int8_t *x, int8_t *y)
{
    convolve(1, d, w, scratch, x, y, multiply_any_4, multiply_any_1, NULL);
}

MCG_KERNELS_END
