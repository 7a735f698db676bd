/* mcugen runtime: int8 dense layers, four outputs at a time. See mcg_nn_conv.h for the contracts.
 * SPDX-License-Identifier: MIT-0
 */
#include "mcg_nn_conv.h"
#include "mcg_nn_inline.h"

MCG_KERNELS_BEGIN

/* The input, packed once; the last group takes zeros past the end. */
MCG_INLINE void pack_input(int any, const int8_t *x, uint32_t inputs, uint32_t *p)
{
    const mcg_nn_lanes_t l = mcg_nn_lanes();
    for (; inputs >= 16u; inputs -= 16u, x += 16, p += 8) {
        mcg_nn_pack4(any, l, mcg_load32(x), p);
        mcg_nn_pack4(any, l, mcg_load32(x + 4), p + 2);
        mcg_nn_pack4(any, l, mcg_load32(x + 8), p + 4);
        mcg_nn_pack4(any, l, mcg_load32(x + 12), p + 6);
    }
    for (; inputs >= 4u; inputs -= 4u, x += 4, p += 2) {
        mcg_nn_pack4(any, l, mcg_load32(x), p);
    }
    if (inputs != 0u) {
        uint32_t a = 0;
        for (uint32_t i = inputs; i != 0u; --i) {
            a = (a << 8) | (uint8_t)x[i - 1u];
        }
        mcg_nn_pack4(any, l, a, p);
    }
}

/* Four weights of two outputs. */
#define PAIR(i, a, b)                                       \
    do {                                                    \
        const uint32_t w0 = w[i];                           \
        const uint32_t w1 = w[(i) + 1u];                    \
        (a) = mcg_smlad(mcg_nn_first(any, w0), first, (a)); \
        (b) = mcg_smlad(mcg_nn_first(any, w1), first, (b)); \
        (a) = mcg_smlad(mcg_nn_second(w0), second, (a));    \
        (b) = mcg_smlad(mcg_nn_second(w1), second, (b));    \
    } while (0)

#define GROUP(i)                                  \
    do {                                          \
        const uint32_t first = p[2u * (i)];       \
        const uint32_t second = p[2u * (i) + 1u]; \
        PAIR(4u * (i), a0, a1);                   \
        PAIR(4u * (i) + 2u, a2, a3);              \
    } while (0)

#if MCG_HAS_ASM

/* The sizes of a layer: bytes of packed input that the unrolled loop reads, and the other; blocks of four outputs. */
typedef struct {
    uint32_t fours, rest, blocks;
} sizes_t;

/* Blocks of four outputs; returns the weights that follow. r0 weights, r1 input, r2-r5 sums, r6 r7 weights, r8 r9 their
 * even bytes, r10 r11 words of the input, r12 end of the loop, lr y. Stack: 0 input, 4 sizes, 8 blocks left, 12 end of
 * the input. */
#define TWO_OUTPUTS(a, b)           \
    "ldrd r6, r7, [r0], #8\n"       \
    "sxtb16 r8, r6\n"               \
    "sxtb16 r9, r7\n"               \
    "smlad " a ", r6, r10, " a "\n" \
    "smlad " b ", r7, r10, " b "\n" \
    "smlad " a ", r8, r11, " a "\n" \
    "smlad " b ", r9, r11, " b "\n"
#define FOUR_OUTPUTS "ldrd r10, r11, [r1], #8\n" TWO_OUTPUTS("r2", "r3") TWO_OUTPUTS("r4", "r5")
#define FINISH(a)                  \
    "ldm r0!, {r6-r8}\n"           \
    "smmla " a ", " a ", r6, r7\n" \
    "asr " a ", " a ", r8\n"       \
    "ssat " a ", #8, " a "\n"      \
    "strb " a ", [lr], #1\n"

_Static_assert(offsetof(sizes_t, fours) == 0 && offsetof(sizes_t, rest) == 4 && offsetof(sizes_t, blocks) == 8,
               "the assembly below knows these offsets");

MCG_CODE(dense_blocks)
__attribute__((naked, noinline)) static const uint32_t *dense_blocks(MCG_UNUSED const uint32_t *w,
                                                                     MCG_UNUSED const uint32_t *x, MCG_UNUSED int8_t *y,
                                                                     MCG_UNUSED const sizes_t *sizes)
{
    __asm__ volatile(".syntax unified\n"
                     "push {r4-r11, lr}\n"
                     "sub sp, sp, #20\n"
                     "strd r1, r3, [sp, #0]\n"
                     "ldr r12, [r3, #8]\n"
                     "mov lr, r2\n"
                     "str r12, [sp, #8]\n"
                     "1:\n" /* four outputs: r0 weights, lr y */
                     "ldrd r1, r10, [sp, #0]\n"
                     "ldm r0!, {r2-r5}\n"
                     "ldrd r12, r11, [r10, #0]\n"
                     "add r12, r12, r1\n"
                     "add r11, r11, r12\n"
                     "str r11, [sp, #12]\n"
                     "cmp r1, r12\n"
                     "beq 3f\n"
                     "2:\n" /* four groups */
                     FOUR_OUTPUTS FOUR_OUTPUTS FOUR_OUTPUTS FOUR_OUTPUTS "cmp r1, r12\n"
                     "bne 2b\n"
                     "3:\n" /* the groups that are left */
                     "ldr r12, [sp, #12]\n"
                     "cmp r1, r12\n"
                     "beq 5f\n"
                     "4:\n" FOUR_OUTPUTS "cmp r1, r12\n"
                     "bne 4b\n"
                     "5:\n" FINISH("r2") FINISH("r3") FINISH("r4") FINISH("r5") "ldr r12, [sp, #8]\n"
                                                                                "subs r12, r12, #1\n"
                                                                                "str r12, [sp, #8]\n"
                                                                                "bne 1b\n"
                                                                                "add sp, sp, #20\n"
                                                                                "pop {r4-r11, pc}\n");
}

#endif

/* From output `done` on, by the C. w: its weights. */
MCG_INLINE void dense(int any, const mcg_dense_t *d, const uint32_t *w, const uint32_t *scratch, int8_t *y,
                      uint32_t done)
{
    const mcg_nn_range_t range = {d->out_zp, d->low, d->high};
    const uint32_t groups = (d->inputs + 3u) / 4u;
    y += done;
    for (uint32_t left = d->outputs - done; left != 0u; left -= 4u) {
        const uint32_t *p = scratch;
        int32_t a0 = (int32_t)w[0], a1 = (int32_t)w[1], a2 = (int32_t)w[2], a3 = (int32_t)w[3];
        w += 4;
        for (const uint32_t *end = p + 2u * (groups & ~3u); p != end; p += 8, w += 16) {
            GROUP(0u);
            GROUP(1u);
            GROUP(2u);
            GROUP(3u);
        }
        for (const uint32_t *end = p + 2u * (groups & 3u); p != end; p += 2, w += 4) {
            GROUP(0u);
        }
        y[0] = mcg_nn_finish(any, a0, mcg_nn_requant(w), range);
        if (left > 1u) {
            y[1] = mcg_nn_finish(any, a1, mcg_nn_requant(w + 3), range);
        }
        if (left > 2u) {
            y[2] = mcg_nn_finish(any, a2, mcg_nn_requant(w + 6), range);
        }
        if (left > 3u) {
            y[3] = mcg_nn_finish(any, a3, mcg_nn_requant(w + 9), range);
        }
        if (left <= 4u) {
            return;
        }
        w += 12;
        y += 4;
    }
}

MCG_CODE(mcg_dense_s8)
void mcg_dense_s8(const mcg_dense_t *d, const uint32_t *w, uint32_t *scratch, const int8_t *x, int8_t *y)
{
    uint32_t done = 0;
    pack_input(0, x, d->inputs, scratch);
#if MCG_HAS_ASM
    const uint32_t groups = (d->inputs + 3u) / 4u;
    const sizes_t sizes = {8u * (groups & ~3u), 8u * (groups & 3u), d->outputs / 4u};
    if (sizes.blocks != 0u) {
        w = dense_blocks(w, scratch, y, &sizes);
        done = 4u * sizes.blocks;
    }
#endif
    dense(0, d, w, scratch, y, done);
    if (mcg_nn_is_narrow(d->low, d->high)) {
        mcg_clamp_s8(y, d->outputs, d->low, d->high);
    }
}

MCG_CODE(mcg_dense_s8_any)
void mcg_dense_s8_any(const mcg_dense_t *d, const uint32_t *w, uint32_t *scratch, const int8_t *x, int8_t *y)
{
    pack_input(1, x, d->inputs, scratch);
    dense(1, d, w, scratch, y, 0u);
}

MCG_KERNELS_END
