/* mcugen runtime: output rows of 3 x 3 depthwise kernels. Internal to mcg_nn_depthwise.c; no interface.
 *
 * SPDX-License-Identifier: MIT-0
 */
#ifndef MCG_NN_ROWS_H
#define MCG_NN_ROWS_H

#include "mcg_nn_conv.h"
#include "mcg_nn_inline.h"

MCG_KERNELS_BEGIN

/* Rows of a 3 x 3 kernel: `rows` output rows, 2 or more, of two columns or more; x is the first input row, aligned to 4; w: where the sums
 * start, two words a kernel row, m, c, shift. Strides are 1, or 2 (`_step`); `bytes` from an input row to the next. */
#if MCG_HAS_ASM

/* Two by two outputs share what they read. The compilers find too few registers and keep weights on the stack: they
 * take 1.2 to 1.4 times the instructions.
 *
 * r0-r5 weights, r6-r9 sums of two columns of the upper and of the lower row (r9 is where sums start, until it is one),
 * r10 r11 four columns of an input row, r12 where they are read, lr y. Stack: 0 bytes to the next row of y, 4 to the
 * next row and column, 8 end of the pairs of columns, 12 where sums start, 16 m, 20 c, 24 shift, 28 bytes to the next
 * column of y, 32 bytes of input of all pairs, 36 whether a column is left, 40 bytes of x and 44 of y from the last pair
 * of a row to the row after the next, 48 pairs of rows left, 52 whether a row is left, 92 the argument rows. */
/* clang-format off */
#define LOAD(at) "ldrd r10, r11, [r12, #" at "]\n"
#define LEFT_FROM(from, a, wa, wb)           \
    "smlad " a ", r10, " wa ", " from "\n"   \
    "smlabt " a ", r11, " wb ", " a "\n"
#define LEFT_SUM(a, wa, wb) LEFT_FROM(a, a, wa, wb)
/* From one column on. */
#define RIGHT_FROM(from, b, wa, wb)          \
    "smlatb " b ", r10, " wa ", " from "\n"  \
    "smlad " b ", r11, " wb ", " b "\n"
#define UPPER_FIRST(wa, wb) LEFT_FROM("r9", "r6", wa, wb) RIGHT_FROM("r9", "r7", wa, wb)
#define LOWER_FIRST(wa, wb) LEFT_FROM("r9", "r8", wa, wb) RIGHT_FROM("r9", "r9", wa, wb)
#define UPPER(wa, wb) LEFT_SUM("r6", wa, wb) RIGHT_FROM("r7", "r7", wa, wb)
#define LOWER(wa, wb) LEFT_SUM("r8", wa, wb) RIGHT_FROM("r9", "r9", wa, wb)
/* From two columns on: r11, then the fifth column, which is read over r10. */
#define UPPER_STEP_FIRST(wa, wb) LEFT_FROM("r9", "r6", wa, wb) "smlad r7, r11, " wa ", r9\n"
#define LOWER_STEP_FIRST(wa, wb) LEFT_FROM("r9", "r8", wa, wb) "smlad r9, r11, " wa ", r9\n"
#define UPPER_STEP_1(wa, wb) LEFT_SUM("r6", wa, wb) "smlad r7, r11, " wa ", r7\n"
#define LOWER_STEP_1(wa, wb) LEFT_SUM("r8", wa, wb) "smlad r9, r11, " wa ", r9\n"
#define FIFTH(at) "ldr r10, [r12, #8 + " at "]\n"
#define UPPER_STEP_2(wb) "smlabt r7, r10, " wb ", r7\n"
#define LOWER_STEP_2(wb) "smlabt r9, r10, " wb ", r9\n"

#define SUMS_2X2(bytes)                                     \
    LOAD("0") UPPER_FIRST("r0", "r1")                       \
    LOAD(bytes) UPPER("r2", "r3") LOWER_FIRST("r0", "r1")   \
    LOAD("2 * " bytes) UPPER("r4", "r5") LOWER("r2", "r3")  \
    LOAD("3 * " bytes) LOWER("r4", "r5")
#define SUMS_2X1(bytes)                                                             \
    LOAD("0") LEFT_FROM("r9", "r6", "r0", "r1")                                     \
    LOAD(bytes) LEFT_SUM("r6", "r2", "r3") LEFT_FROM("r9", "r8", "r0", "r1")        \
    LOAD("2 * " bytes) LEFT_SUM("r6", "r4", "r5") LEFT_SUM("r8", "r2", "r3")        \
    LOAD("3 * " bytes) LEFT_SUM("r8", "r4", "r5")
#define SUMS_2X2_STEP(bytes)                                                         \
    LOAD("0") UPPER_STEP_FIRST("r0", "r1") FIFTH("0") UPPER_STEP_2("r1")             \
    LOAD(bytes) UPPER_STEP_1("r2", "r3") FIFTH(bytes) UPPER_STEP_2("r3")             \
    LOAD("2 * " bytes) UPPER_STEP_1("r4", "r5") LOWER_STEP_FIRST("r0", "r1")         \
    FIFTH("2 * " bytes) UPPER_STEP_2("r5") LOWER_STEP_2("r1")                        \
    LOAD("3 * " bytes) LOWER_STEP_1("r2", "r3") FIFTH("3 * " bytes) LOWER_STEP_2("r3") \
    LOAD("4 * " bytes) LOWER_STEP_1("r4", "r5") FIFTH("4 * " bytes) LOWER_STEP_2("r5")
#define SUMS_2X1_STEP(bytes)                                                         \
    LOAD("0") LEFT_FROM("r9", "r6", "r0", "r1")                                      \
    LOAD(bytes) LEFT_SUM("r6", "r2", "r3")                                           \
    LOAD("2 * " bytes) LEFT_SUM("r6", "r4", "r5") LEFT_FROM("r9", "r8", "r0", "r1")  \
    LOAD("3 * " bytes) LEFT_SUM("r8", "r2", "r3")                                    \
    LOAD("4 * " bytes) LEFT_SUM("r8", "r4", "r5")

/* columns: bytes of input that two columns of the output advance, and the power of two that they are. */
#define ROWS_3X3(name, bytes, columns, power, stride, sums_2x2, sums_2x1)                                \
    MCG_CODE(name) __attribute__((naked, noinline)) static void                      \
    name(MCG_UNUSED const mcg_depthwise_t *d, MCG_UNUSED const uint32_t *w, MCG_UNUSED const int16_t *x, \
         MCG_UNUSED int8_t *y, MCG_UNUSED uint32_t rows)                                                 \
    {                                                                                                    \
        __asm__ volatile(                                                                                \
            ".syntax unified\n"                                                                          \
            "push {r4-r11, lr}\n"                                                                        \
            "sub sp, sp, #56\n"                                                                          \
            "ldrd r4, r5, [r0, #16]\n" /* bytes to the next row and column of y */                       \
            "ldrh r6, [r0, #34]\n" /* columns of y */                                                    \
            "add r7, r4, r5\n"                                                                           \
            "strd r4, r7, [sp, #0]\n"                                                                    \
            "str r5, [sp, #28]\n"                                                                        \
            "and r7, r6, #1\n"                                                                           \
            "lsr r6, r6, #1\n"                                                                           \
            "mul r9, r6, r5\n"                                                                           \
            "lsl r6, r6, #" power "\n"                                                                   \
            "strd r6, r7, [sp, #32]\n"                                                                   \
            "rsb r8, r6, #2 * " stride " * " bytes "\n"                                                  \
            "lsl r4, r4, #1\n"                                                                           \
            "sub r9, r4, r9, lsl #1\n"                                                                   \
            "strd r8, r9, [sp, #40]\n"                                                                   \
            "ldr r4, [sp, #92]\n"                                                                        \
            "and r5, r4, #1\n"                                                                           \
            "lsr r4, r4, #1\n"                                                                           \
            "strd r4, r5, [sp, #48]\n"                                                                   \
            "mov r10, r2\n"                                                                              \
            "mov r11, r3\n"                                                                              \
            "ldr r12, [r1], #4\n"                                                                        \
            "add lr, r1, #24\n"                                                                          \
            "ldm lr, {r6-r8}\n"                                                                          \
            "strd r12, r6, [sp, #12]\n"                                                                  \
            "strd r7, r8, [sp, #20]\n"                                                                   \
            "ldm r1, {r0-r5}\n"                                                                          \
            "mov r12, r10\n"                                                                             \
            "mov lr, r11\n"                                                                              \
            "1:\n" /* two rows */                                                                        \
            "ldr r10, [sp, #32]\n"                                                                       \
            "add r10, r10, r12\n"                                                                        \
            "str r10, [sp, #8]\n"                                                                        \
            "2:\n" /* two columns of them */                                                             \
            "ldr r9, [sp, #12]\n"                                                                        \
            sums_2x2(bytes)                                                                              \
            "ldrd r10, r11, [sp, #16]\n"                                                                 \
            "smmla r6, r6, r10, r11\n"                                                                   \
            "smmla r7, r7, r10, r11\n"                                                                   \
            "smmla r8, r8, r10, r11\n"                                                                   \
            "smmla r9, r9, r10, r11\n"                                                                   \
            "ldrd r10, r11, [sp, #24]\n"                                                                 \
            "asr r6, r10\n"                                                                              \
            "asr r7, r10\n"                                                                              \
            "asr r8, r10\n"                                                                              \
            "asr r9, r10\n"                                                                              \
            "ssat r6, #8, r6\n"                                                                          \
            "ssat r7, #8, r7\n"                                                                          \
            "ssat r8, #8, r8\n"                                                                          \
            "ssat r9, #8, r9\n"                                                                          \
            "strb r6, [lr]\n"                                                                            \
            "strb r7, [lr, r11]\n"                                                                       \
            "ldm sp, {r6, r7, r10}\n" /* to the next row, to its next column, end */                     \
            "add r12, r12, #" columns "\n"                                                               \
            "strb r8, [lr, r6]\n"                                                                        \
            "strb r9, [lr, r7]\n"                                                                        \
            "add lr, lr, r11, lsl #1\n"                                                                  \
            "cmp r12, r10\n"                                                                             \
            "bne 2b\n"                                                                                   \
            "ldr r10, [sp, #36]\n" /* a column that is left */                                           \
            "cmp r10, #0\n"                                                                              \
            "beq 4f\n"                                                                                   \
            "ldr r9, [sp, #12]\n"                                                                        \
            sums_2x1(bytes)                                                                              \
            "ldrd r10, r11, [sp, #16]\n"                                                                 \
            "smmla r6, r6, r10, r11\n"                                                                   \
            "smmla r8, r8, r10, r11\n"                                                                   \
            "ldr r10, [sp, #24]\n"                                                                       \
            "asr r6, r10\n"                                                                              \
            "asr r8, r10\n"                                                                              \
            "ldr r11, [sp, #0]\n"                                                                        \
            "ssat r6, #8, r6\n"                                                                          \
            "ssat r8, #8, r8\n"                                                                          \
            "strb r6, [lr]\n"                                                                            \
            "strb r8, [lr, r11]\n"                                                                       \
            "4:\n" /* two rows on */                                                                     \
            "ldr r10, [sp, #48]\n"                                                                       \
            "ldrd r8, r9, [sp, #40]\n"                                                                   \
            "add r12, r12, r8\n"                                                                         \
            "add lr, lr, r9\n"                                                                           \
            "subs r10, r10, #1\n"                                                                        \
            "str r10, [sp, #48]\n"                                                                       \
            "bne 1b\n"                                                                                   \
            "ldr r10, [sp, #52]\n" /* one is left: one row back, once */                                 \
            "cmp r10, #0\n"                                                                              \
            "beq 5f\n"                                                                                   \
            "ldr r11, [sp, #0]\n"                                                                        \
            "mov r9, #0\n"                                                                               \
            "str r9, [sp, #52]\n"                                                                        \
            "mov r9, #1\n"                                                                               \
            "str r9, [sp, #48]\n"                                                                        \
            "sub r12, r12, #" stride " * " bytes "\n"                                                    \
            "sub lr, lr, r11\n"                                                                          \
            "b 1b\n"                                                                                     \
            "5:\n"                                                                                       \
            "add sp, sp, #56\n"                                                                          \
            "pop {r4-r11, pc}\n");                                                                       \
    }
/* clang-format on */
#define ROWS_1(name, bytes) ROWS_3X3(name, bytes, "4", "2", "1", SUMS_2X2, SUMS_2X1)
#define ROWS_2(name, bytes) ROWS_3X3(name, bytes, "8", "3", "2", SUMS_2X2_STEP, SUMS_2X1_STEP)

_Static_assert(offsetof(mcg_depthwise_t, out_row) == 16 && offsetof(mcg_depthwise_t, out_col) == 20 &&
                   offsetof(mcg_depthwise_t, out_w) == 34,
               "the assembly above knows these offsets");

ROWS_1(rows_16, "32")
ROWS_1(rows_32, "64")
ROWS_1(rows_64, "128")
ROWS_2(rows_16_step, "32")
ROWS_2(rows_32_step, "64")
ROWS_2(rows_64_step, "128")

#else

MCG_INLINE void rows_3x3(const mcg_depthwise_t *d, uint32_t pitch, uint32_t step, const uint32_t *w, const int16_t *x,
                         int8_t *y, uint32_t rows)
{
    const mcg_nn_requant_t q = mcg_nn_requant(w + 7);
    for (; rows != 0u; --rows, x += step * pitch, y += d->out_row) {
        const int16_t *p = x;
        int8_t *o = y;
        for (uint32_t n = d->out_w; n != 0u; --n, p += step, o += d->out_col) {
            int32_t a = (int32_t)w[0];
            for (uint32_t i = 0; i < 3u; ++i) {
                a = mcg_smlad(mcg_load32(p + i * pitch), w[1u + 2u * i], a);
                a = mcg_smlabt((uint32_t)p[i * pitch + 2u], w[2u + 2u * i], a);
            }
            *o = mcg_nn_scale(a, q);
        }
    }
}

#define ROWS_3X3(name, pitch, step)                                                                         \
    MCG_CODE(name)                                                                                          \
    MCG_NOINLINE static void name(const mcg_depthwise_t *d, const uint32_t *w, const int16_t *x, int8_t *y, \
                                  uint32_t rows)                                                            \
    {                                                                                                       \
        rows_3x3(d, pitch, step, w, x, y, rows);                                                            \
    }

ROWS_3X3(rows_16, 16u, 1u)
ROWS_3X3(rows_32, 32u, 1u)
ROWS_3X3(rows_64, 64u, 1u)
ROWS_3X3(rows_16_step, 16u, 2u)
ROWS_3X3(rows_32_step, 32u, 2u)
ROWS_3X3(rows_64_step, 64u, 2u)

#endif

MCG_KERNELS_END

#endif
