/* mcugen runtime: FIR filters. See mcg_filter_fir.h for the contracts.
 *
 * A line is one stretch of memory: `taps` samples of history, then `room` for new ones. When the room is used up, the
 * last `taps` samples move to the front; so every window is a stretch, and a move costs about one instruction a sample.
 * The inner loops stand in C and, for cores with the DSP extension, in assembly: the same bits.
 * SPDX-License-Identifier: MIT-0
 */
#include "mcg_filter_fir.h"

MCG_INLINE uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* Copies n elements of 2 or 4 bytes; where the stretches overlap, forwards. */
MCG_INLINE void copy16(int16_t *to, const int16_t *from, uint32_t n)
{
    for (; n >= 8u; n -= 8u, from += 8, to += 8) {
        const uint32_t a = mcg_load32(from), b = mcg_load32(from + 2), c = mcg_load32(from + 4),
                       d = mcg_load32(from + 6);
        mcg_store32(to, a);
        mcg_store32(to + 2, b);
        mcg_store32(to + 4, c);
        mcg_store32(to + 6, d);
    }
    for (; n != 0u; --n) {
        *to++ = *from++;
    }
}

MCG_INLINE void copy32(mcg_words_t *to, const mcg_words_t *from, uint32_t n)
{
    for (; n >= 4u; n -= 4u, from += 4, to += 4) {
        const uint32_t a = from[0], b = from[1], c = from[2], d = from[3];
        to[0] = a;
        to[1] = b;
        to[2] = c;
        to[3] = d;
    }
    for (; n != 0u; --n) {
        *to++ = *from++;
    }
}

/* ---- q15, sums of 32 bits */

#if MCG_FILTER_ASM

/* One sum: taps of four and of eight samples. */
MCG_INLINE int32_t narrow_one(const int16_t *c, const int16_t *w, uint32_t taps)
{
    const int16_t *const end = c + taps;
    int32_t a = 0;
    uint32_t p, q;
    __asm__(".syntax unified\n"
            "tst %[n], #4\n"
            "beq 1f\n"
            "ldm %[c]!, {r4, r5}\n"
            "ldr %[p], [%[w]], #4\n"
            "ldr %[q], [%[w]], #4\n"
            "smlad %[a], %[p], r4, %[a]\n"
            "smlad %[a], %[q], r5, %[a]\n"
            "1:\n"
            "cmp %[c], %[end]\n"
            "beq 3f\n"
            "2:\n"
            "ldm %[c]!, {r4, r5, r6, r8}\n"
            "ldr %[p], [%[w]], #4\n"
            "ldr %[q], [%[w]], #4\n"
            "smlad %[a], %[p], r4, %[a]\n"
            "smlad %[a], %[q], r5, %[a]\n"
            "ldr %[p], [%[w]], #4\n"
            "ldr %[q], [%[w]], #4\n"
            "smlad %[a], %[p], r6, %[a]\n"
            "smlad %[a], %[q], r8, %[a]\n"
            "cmp %[c], %[end]\n"
            "bne 2b\n"
            "3:\n"
            : [c] "+r"(c), [w] "+r"(w), [a] "+r"(a), [p] "=&r"(p), [q] "=&r"(q)
            : [n] "r"(taps), [end] "r"(end)
            : "r4", "r5", "r6", "r8", "cc", "memory");
    return mcg_ssat16_asr15(a);
}

#define TWO_PAIRS             \
    "ldm r0!, {r10, r11}\n"   \
    "smlad r4, r8, r10, r4\n" \
    "ldr r8, [r12, #4]\n"     \
    "smlad r5, r9, r10, r5\n" \
    "ldr r9, [r12, #6]\n"     \
    "smlad r6, r8, r10, r6\n" \
    "smlad r7, r9, r10, r7\n" \
    "smlad r4, r8, r11, r4\n" \
    "ldr r8, [r12, #8]!\n"    \
    "smlad r5, r9, r11, r5\n" \
    "ldr r9, [r12, #2]\n"     \
    "smlad r6, r8, r11, r6\n" \
    "smlad r7, r9, r11, r7\n"

/* Four results to memory; the window goes on by four; one block less. */
#define FOUR_RESULTS              \
    "ssat r4, #16, r4, asr #15\n" \
    "strh r4, [r2], #2\n"         \
    "ssat r5, #16, r5, asr #15\n" \
    "strh r5, [r2], #2\n"         \
    "ldr r10, [sp]\n"             \
    "ssat r6, #16, r6, asr #15\n" \
    "strh r6, [r2], #2\n"         \
    "ssat r7, #16, r7, asr #15\n" \
    "strh r7, [r2], #2\n"         \
    "subs lr, lr, #1\n"           \
    "sub r0, r3, r10, lsl #1\n"

#define FOUR_STARTS       \
    "mov r12, r1\n"       \
    "ldr r8, [r1], #8\n"  \
    "ldr r9, [r12, #2]\n" \
    "mov r4, #0\n"        \
    "mov r5, #0\n"        \
    "mov r6, #0\n"        \
    "mov r7, #0\n"

/* `fours` times four results, of windows that begin at w, w + 1...: every word of samples serves two of them. The first
 * loop is for a multiple of eight taps, the second for four more. */
MCG_CODE(narrow_fours)
__attribute__((naked, noinline)) static void narrow_fours(MCG_UNUSED const int16_t *c, MCG_UNUSED const int16_t *w,
                                                          MCG_UNUSED int16_t *y, MCG_UNUSED uint32_t taps,
                                                          MCG_UNUSED uint32_t fours)
{
    __asm__ volatile(".syntax unified\n"
                     "push {r3-r11, lr}\n"
                     "ldr lr, [sp, #40]\n"
                     "tst r3, #4\n"
                     "add r3, r0, r3, lsl #1\n"
                     "bne 3f\n"
                     "1:\n" FOUR_STARTS "2:\n" TWO_PAIRS TWO_PAIRS "cmp r0, r3\n"
                     "bne 2b\n" FOUR_RESULTS "bne 1b\n"
                     "pop {r3-r11, pc}\n"
                     "3:\n" FOUR_STARTS TWO_PAIRS "b 5f\n"
                     "4:\n" TWO_PAIRS TWO_PAIRS "5:\n"
                     "cmp r0, r3\n"
                     "bne 4b\n" FOUR_RESULTS "bne 3b\n"
                     "pop {r3-r11, pc}\n");
}

#else

MCG_INLINE int32_t narrow_one(const int16_t *c, const int16_t *w, uint32_t taps)
{
    int32_t a = 0;
    for (; taps != 0u; taps -= 2u, c += 2, w += 2) {
        a = mcg_smlad(mcg_load32(w), mcg_load32(c), a);
    }
    return mcg_ssat16_asr15(a);
}

MCG_INLINE void narrow_fours(const int16_t *c, const int16_t *w, int16_t *y, uint32_t taps, uint32_t fours)
{
    for (uint32_t i = 0; i < 4u * fours; ++i) {
        y[i] = (int16_t)narrow_one(c, w + i, taps);
    }
}

#endif

/* ---- q15, sums of 64 bits */

#if MCG_FILTER_ASM

/* Two taps for four results: r4-r11 sums, r12 and lr samples. */
#define PAIR_OF_SUMS           \
    "ldr r2, [r0], #4\n"       \
    "smlald r4, r5, r12, r2\n" \
    "ldr r12, [r3, #4]!\n"     \
    "smlald r6, r7, lr, r2\n"  \
    "ldr lr, [r3, #2]\n"       \
    "smlald r8, r9, r12, r2\n" \
    "smlald r10, r11, lr, r2\n"

#define WIDE_RESULT(word, high)                   \
    "lsr " word ", " word ", #15\n"               \
    "orr " word ", " word ", " high ", lsl #17\n" \
    "ssat " word ", #16, " word "\n"              \
    "strh " word ", [r2], #2\n"

/* As narrow_fours. On the stack: w, y, taps, then the saved registers and `fours`. */
MCG_CODE(wide_fours)
__attribute__((naked, noinline)) static void wide_fours(MCG_UNUSED const int16_t *c, MCG_UNUSED const int16_t *w,
                                                        MCG_UNUSED int16_t *y, MCG_UNUSED uint32_t taps,
                                                        MCG_UNUSED uint32_t fours)
{
    __asm__ volatile(".syntax unified\n"
                     "push {r1-r11, lr}\n"
                     "1:\n"
                     "ldr r3, [sp]\n"
                     "ldr r1, [sp, #8]\n"
                     "ldr r12, [r3]\n"
                     "ldr lr, [r3, #2]\n"
                     "add r1, r0, r1, lsl #1\n"
                     "mov r4, #0\n"
                     "mov r5, #0\n"
                     "mov r6, #0\n"
                     "mov r7, #0\n"
                     "mov r8, #0\n"
                     "mov r9, #0\n"
                     "mov r10, #0\n"
                     "mov r11, #0\n"
                     "2:\n" PAIR_OF_SUMS PAIR_OF_SUMS "cmp r0, r1\n"
                     "bne 2b\n"
                     "ldrd r3, r2, [sp]\n" WIDE_RESULT("r4", "r5") WIDE_RESULT("r6", "r7") WIDE_RESULT("r8", "r9")
                         WIDE_RESULT("r10", "r11") "add r3, r3, #8\n"
                                                   "strd r3, r2, [sp]\n"
                                                   "ldr r1, [sp, #8]\n"
                                                   "ldr r12, [sp, #48]\n"
                                                   "sub r0, r0, r1, lsl #1\n"
                                                   "subs r12, r12, #1\n"
                                                   "str r12, [sp, #48]\n"
                                                   "bne 1b\n"
                                                   "pop {r1-r11, pc}\n");
}

MCG_INLINE int32_t wide_one(const int16_t *c, const int16_t *w, uint32_t taps)
{
    const int16_t *const end = c + taps;
    uint32_t p, q, u, v;
    int64_t a = 0;
    __asm__(".syntax unified\n"
            "1:\n"
            "ldrd %[u], %[v], [%[c]], #8\n"
            "ldr %[p], [%[w]], #4\n"
            "ldr %[q], [%[w]], #4\n"
            "smlald %Q[a], %R[a], %[p], %[u]\n"
            "smlald %Q[a], %R[a], %[q], %[v]\n"
            "cmp %[c], %[end]\n"
            "bne 1b\n"
            : [c] "+r"(c), [w] "+r"(w), [a] "+r"(a), [p] "=&r"(p), [q] "=&r"(q), [u] "=&r"(u), [v] "=&r"(v)
            : [end] "r"(end)
            : "cc", "memory");
    return mcg_ssat16((int32_t)(a >> 15));
}

#else

MCG_INLINE int32_t wide_one(const int16_t *c, const int16_t *w, uint32_t taps)
{
    int64_t a = 0;
    for (; taps != 0u; taps -= 2u, c += 2, w += 2) {
        a = mcg_smlald(mcg_load32(w), mcg_load32(c), a);
    }
    return mcg_ssat16((int32_t)(a >> 15));
}

MCG_INLINE void wide_fours(const int16_t *c, const int16_t *w, int16_t *y, uint32_t taps, uint32_t fours)
{
    for (uint32_t i = 0; i < 4u * fours; ++i) {
        y[i] = (int16_t)wide_one(c, w + i, taps);
    }
}

#endif

MCG_INLINE int16_t q15_one(const mcg_fir_t *d, const int16_t *taps, const int16_t *w)
{
    return (int16_t)(d->narrow != 0u ? narrow_one(taps, w, d->taps) : wide_one(taps, w, d->taps));
}

/* The line is full: its last samples become the history. */
MCG_INLINE uint32_t q15_wrap(const mcg_fir_t *d, int16_t *state)
{
    mcg_words_t *const line = (mcg_words_t *)(void *)(state + 2);
    copy32(line, line + d->room / 2u, d->taps / 2u);
    return 0u;
}

MCG_CODE(q15_many)
MCG_NOINLINE static void q15_many(const mcg_fir_t *d, const int16_t *taps, int16_t *state, const int16_t *x, int16_t *y,
                                  uint32_t n)
{
    const uint32_t count = d->taps, room = d->room;
    uint32_t at = (uint16_t)state[0];
    while (n != 0u) {
        const uint32_t m = smaller(room - at, n);
        const int16_t *w = state + 3 + at; /* the window of the first new sample ends with it */
        copy16(state + 2 + count + at, x, m);
        const uint32_t fours = m / 4u;
        uint32_t left = m;
        if (fours != 0u) {
            if (d->narrow != 0u) {
                narrow_fours(taps, w, y, count, fours);
            } else {
                wide_fours(taps, w, y, count, fours);
            }
            left = m % 4u;
            w += 4u * fours;
            y += 4u * fours;
        }
        for (; left != 0u; --left) {
            *y++ = q15_one(d, taps, w++);
        }
        x += m;
        n -= m;
        at += m;
        at = at == room ? q15_wrap(d, state) : at;
    }
    state[0] = (int16_t)at;
}

MCG_CODE(mcg_fir_q15_block)
void mcg_fir_q15_block(const mcg_fir_t *d, const int16_t *taps, int16_t *state, const int16_t *x, int16_t *y,
                       uint32_t n)
{
    if (n != 1u) {
        q15_many(d, taps, state, x, y, n);
        return;
    }
    const uint32_t at = (uint16_t)state[0];
    const int16_t *const w = state + 3 + at;
    state[2u + d->taps + at] = *x;
    *y = q15_one(d, taps, w);
    state[0] = (int16_t)(at + 1u == d->room ? q15_wrap(d, state) : at + 1u);
}

/* ---- q31 */

#if MCG_FILTER_ASM

/* Two results; taps is a multiple of four. */
MCG_INLINE void q31_two(const int32_t *c, const int32_t *w, uint32_t taps, int32_t *y)
{
    const int32_t *const end = c + taps;
    int32_t p, q, r, u, v;
    int64_t a = 0, b = 0;
    __asm__(".syntax unified\n"
            "ldr %[p], [%[w]], #4\n"
            "1:\n"
            "ldrd %[u], %[v], [%[c]], #8\n"
            "ldrd %[q], %[r], [%[w]], #8\n"
            "smlal %Q[a], %R[a], %[p], %[u]\n"
            "smlal %Q[b], %R[b], %[q], %[u]\n"
            "smlal %Q[a], %R[a], %[q], %[v]\n"
            "smlal %Q[b], %R[b], %[r], %[v]\n"
            "ldrd %[u], %[v], [%[c]], #8\n"
            "ldrd %[q], %[p], [%[w]], #8\n"
            "smlal %Q[a], %R[a], %[r], %[u]\n"
            "smlal %Q[b], %R[b], %[q], %[u]\n"
            "smlal %Q[a], %R[a], %[q], %[v]\n"
            "smlal %Q[b], %R[b], %[p], %[v]\n"
            "cmp %[c], %[end]\n"
            "bne 1b\n"
            : [c] "+r"(c), [w] "+r"(w), [a] "+r"(a), [b] "+r"(b), [p] "=&r"(p), [q] "=&r"(q), [r] "=&r"(r),
              [u] "=&r"(u), [v] "=&r"(v)
            : [end] "r"(end)
            : "cc", "memory");
    y[0] = (int32_t)(uint32_t)(uint64_t)(a >> 31);
    y[1] = (int32_t)(uint32_t)(uint64_t)(b >> 31);
}

MCG_INLINE int32_t q31_one(const int32_t *c, const int32_t *w, uint32_t taps)
{
    const int32_t *const end = c + taps;
    int32_t p, q, u, v;
    int64_t a = 0;
    __asm__(".syntax unified\n"
            "1:\n"
            "ldrd %[u], %[v], [%[c]], #8\n"
            "ldrd %[p], %[q], [%[w]], #8\n"
            "smlal %Q[a], %R[a], %[p], %[u]\n"
            "smlal %Q[a], %R[a], %[q], %[v]\n"
            "ldrd %[u], %[v], [%[c]], #8\n"
            "ldrd %[p], %[q], [%[w]], #8\n"
            "smlal %Q[a], %R[a], %[p], %[u]\n"
            "smlal %Q[a], %R[a], %[q], %[v]\n"
            "cmp %[c], %[end]\n"
            "bne 1b\n"
            : [c] "+r"(c), [w] "+r"(w), [a] "+r"(a), [p] "=&r"(p), [q] "=&r"(q), [u] "=&r"(u), [v] "=&r"(v)
            : [end] "r"(end)
            : "cc", "memory");
    return (int32_t)(uint32_t)(uint64_t)(a >> 31);
}

#else

MCG_INLINE int64_t mac(int32_t x, int32_t c, int64_t sum)
{
    return (int64_t)((uint64_t)sum + (uint64_t)((int64_t)x * c));
}

MCG_INLINE int32_t q31_one(const int32_t *c, const int32_t *w, uint32_t taps)
{
    int64_t a = 0;
    for (; taps != 0u; --taps) {
        a = mac(*w++, *c++, a);
    }
    return (int32_t)(uint32_t)(uint64_t)(a >> 31);
}

MCG_INLINE void q31_two(const int32_t *c, const int32_t *w, uint32_t taps, int32_t *y)
{
    y[0] = q31_one(c, w, taps);
    y[1] = q31_one(c, w + 1, taps);
}

#endif

MCG_INLINE uint32_t q31_wrap(const mcg_fir_t *d, void *state)
{
    mcg_words_t *const line = (mcg_words_t *)state + 2;
    copy32(line, line + d->room, d->taps);
    return 0u;
}

MCG_CODE(q31_many)
MCG_NOINLINE static void q31_many(const mcg_fir_t *d, const int32_t *taps, int32_t *state, const int32_t *x, int32_t *y,
                                  uint32_t n)
{
    const uint32_t count = d->taps, room = d->room;
    uint32_t at = (uint32_t)state[0];
    while (n != 0u) {
        const uint32_t m = smaller(room - at, n);
        const int32_t *w = state + 3 + at;
        copy32((mcg_words_t *)(state + 2 + count + at), (const mcg_words_t *)x, m);
        uint32_t left = m;
        for (; left >= 2u; left -= 2u, w += 2, y += 2) {
            q31_two(taps, w, count, y);
        }
        if (left != 0u) {
            *y++ = q31_one(taps, w, count);
        }
        x += m;
        n -= m;
        at += m;
        at = at == room ? q31_wrap(d, state) : at;
    }
    state[0] = (int32_t)at;
}

MCG_CODE(mcg_fir_q31_block)
void mcg_fir_q31_block(const mcg_fir_t *d, const int32_t *taps, int32_t *state, const int32_t *x, int32_t *y,
                       uint32_t n)
{
    if (n != 1u) {
        q31_many(d, taps, state, x, y, n);
        return;
    }
    const uint32_t at = (uint32_t)state[0];
    state[2u + d->taps + at] = *x;
    *y = q31_one(taps, state + 3 + at, d->taps);
    state[0] = (int32_t)(at + 1u == d->room ? q31_wrap(d, state) : at + 1u);
}

/* ---- f32 */

/* Taps that are left when eights are done; the oldest come first, so they are the first ones. */
MCG_INLINE float f32_few(const float *c, const float *w, uint32_t taps)
{
    float a = 0.0f;
    for (; taps != 0u; --taps) {
        a = mcg_fma_f32(*c++, *w++, a);
    }
    return a;
}

#if MCG_FILTER_ASM && defined(__ARM_FEATURE_FMA)

MCG_INLINE float f32_one(const float *c, const float *w, uint32_t taps)
{
    const uint32_t few = taps % 8u;
    const float *const end = c + taps;
    float a = f32_few(c, w, few);
    if (taps >= 8u) {
        c += few;
        w += few;
        __asm__(".syntax unified\n"
                "1:\n"
                "vldmia %[c]!, {s4-s11}\n"
                "vldmia %[w]!, {s16-s23}\n"
                "vfma.f32 %[a], s4, s16\n"
                "vfma.f32 %[a], s5, s17\n"
                "vfma.f32 %[a], s6, s18\n"
                "vfma.f32 %[a], s7, s19\n"
                "vfma.f32 %[a], s8, s20\n"
                "vfma.f32 %[a], s9, s21\n"
                "vfma.f32 %[a], s10, s22\n"
                "vfma.f32 %[a], s11, s23\n"
                "cmp %[c], %[end]\n"
                "bne 1b\n"
                : [c] "+r"(c), [w] "+r"(w), [a] "+t"(a)
                : [end] "r"(end)
                : "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s16", "s17", "s18", "s19", "s20", "s21", "s22",
                  "s23", "cc", "memory");
    }
    return a;
}

/* Four taps for four results; the window's first samples in x0..x3, the next in x4..x7. */
#define FOUR_TAPS(x0, x1, x2, x3, x4, x5, x6, x7) \
    "vldmia %[c]!, {s4-s7}\n"                     \
    "vldmia %[w]!, {" x4 "-" x7 "}\n"             \
    "vfma.f32 %[a0], s4, " x0 "\n"                \
    "vfma.f32 %[a1], s4, " x1 "\n"                \
    "vfma.f32 %[a2], s4, " x2 "\n"                \
    "vfma.f32 %[a3], s4, " x3 "\n"                \
    "vfma.f32 %[a0], s5, " x1 "\n"                \
    "vfma.f32 %[a1], s5, " x2 "\n"                \
    "vfma.f32 %[a2], s5, " x3 "\n"                \
    "vfma.f32 %[a3], s5, " x4 "\n"                \
    "vfma.f32 %[a0], s6, " x2 "\n"                \
    "vfma.f32 %[a1], s6, " x3 "\n"                \
    "vfma.f32 %[a2], s6, " x4 "\n"                \
    "vfma.f32 %[a3], s6, " x5 "\n"                \
    "vfma.f32 %[a0], s7, " x3 "\n"                \
    "vfma.f32 %[a1], s7, " x4 "\n"                \
    "vfma.f32 %[a2], s7, " x5 "\n"                \
    "vfma.f32 %[a3], s7, " x6 "\n"

/* Four results. Reads one sample beyond the last window: the line has a spare one at its end. */
MCG_INLINE void f32_four(const float *c, const float *w, uint32_t taps, float *y)
{
    const uint32_t few = taps % 8u;
    const float *const end = c + taps;
    float a0 = 0.0f, a1 = 0.0f, a2 = 0.0f, a3 = 0.0f;
    for (uint32_t i = 0; i < few; ++i, ++c, ++w) {
        a0 = mcg_fma_f32(c[0], w[0], a0);
        a1 = mcg_fma_f32(c[0], w[1], a1);
        a2 = mcg_fma_f32(c[0], w[2], a2);
        a3 = mcg_fma_f32(c[0], w[3], a3);
    }
    if (taps >= 8u) {
        __asm__(".syntax unified\n"
                "vldmia %[w]!, {s8-s11}\n"
                "1:\n" FOUR_TAPS("s8", "s9", "s10", "s11", "s12", "s13", "s14", "s15")
                    FOUR_TAPS("s12", "s13", "s14", "s15", "s8", "s9", "s10", "s11") "cmp %[c], %[end]\n"
                                                                                    "bne 1b\n"
                : [c] "+r"(c), [w] "+r"(w), [a0] "+t"(a0), [a1] "+t"(a1), [a2] "+t"(a2), [a3] "+t"(a3)
                : [end] "r"(end)
                : "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s14", "s15", "cc", "memory");
    }
    y[0] = a0;
    y[1] = a1;
    y[2] = a2;
    y[3] = a3;
}

#else

MCG_INLINE float f32_one(const float *c, const float *w, uint32_t taps) { return f32_few(c, w, taps); }

MCG_INLINE void f32_four(const float *c, const float *w, uint32_t taps, float *y)
{
    for (uint32_t i = 0; i < 4u; ++i) {
        y[i] = f32_few(c, w + i, taps);
    }
}

#endif

MCG_CODE(f32_many)
MCG_NOINLINE static void f32_many(const mcg_fir_t *d, const float *taps, float *state, const float *x, float *y,
                                  uint32_t n)
{
    const uint32_t count = d->taps, room = d->room;
    uint32_t at = *(const mcg_words_t *)(const void *)state;
    while (n != 0u) {
        const uint32_t m = smaller(room - at, n);
        const float *w = state + 3 + at;
        copy32((mcg_words_t *)(void *)(state + 2 + count + at), (const mcg_words_t *)(const void *)x, m);
        uint32_t left = m;
        for (; left >= 4u; left -= 4u, w += 4, y += 4) {
            f32_four(taps, w, count, y);
        }
        for (; left != 0u; --left) {
            *y++ = f32_one(taps, w++, count);
        }
        x += m;
        n -= m;
        at += m;
        at = at == room ? q31_wrap(d, state) : at;
    }
    *(mcg_words_t *)(void *)state = at;
}

MCG_CODE(mcg_fir_f32_block)
void mcg_fir_f32_block(const mcg_fir_t *d, const float *taps, float *state, const float *x, float *y, uint32_t n)
{
    if (n != 1u) {
        f32_many(d, taps, state, x, y, n);
        return;
    }
    const uint32_t at = *(const mcg_words_t *)(const void *)state;
    state[2u + d->taps + at] = *x;
    *y = f32_one(taps, state + 3 + at, d->taps);
    *(mcg_words_t *)(void *)state = at + 1u == d->room ? q31_wrap(d, state) : at + 1u;
}
