/* mcugen runtime: cascades of second-order sections. See mcg_filter_biquad.h for the contracts.
 *
 * A section takes the whole block before the next does, so that its coefficients stay in registers. The inputs that a
 * section remembers are the results that the one before it remembers: they are kept once.
 * SPDX-License-Identifier: MIT-0
 */
#include "mcg_filter_biquad.h"

MCG_KERNELS_BEGIN

/* Coefficients of a q15 section, as the table has them. */
typedef struct {
    uint32_t b10, b21, a21;
    int32_t shift;
} q15_t;

MCG_INLINE q15_t q15_of(const uint32_t *t)
{
    const q15_t q = {t[0], t[1], t[2], (int32_t)t[3]};
    return q;
}

/* The low word of v >> s, 1 <= s <= 31. */
MCG_INLINE int32_t shifted(int64_t v, int32_t s)
{
    const uint32_t high = (uint32_t)((uint64_t)v >> 32), word = (uint32_t)(uint64_t)v;
    return (int32_t)(high << (32 - s) | word >> s);
}

/* x: two samples, xs: the two before them, ys: the two results before. The result of the first sample. */
MCG_INLINE int32_t q15_first(int narrow, q15_t q, uint32_t x, uint32_t xs, uint32_t ys)
{
    if (narrow) {
        return mcg_ssat16(mcg_smlad(q.a21, ys, mcg_smlad(q.b21, xs, mcg_smultb(q.b10, x))) >> q.shift);
    }
    const int64_t acc = mcg_smlald(q.a21, ys, mcg_smlald(q.b21, xs, (int64_t)mcg_smultb(q.b10, x)));
    return mcg_ssat16(shifted(acc, q.shift));
}

/* The result of the second sample; y: that of the first. */
MCG_INLINE int32_t q15_second(int narrow, q15_t q, uint32_t x, uint32_t xs, uint32_t ys, int32_t y)
{
    if (narrow) {
        const int32_t sum = mcg_smlabt(q.b21, xs, mcg_smuad(q.b10, x));
        return mcg_ssat16(mcg_smlabt(q.a21, ys, mcg_smlatb(q.a21, (uint32_t)y, sum)) >> q.shift);
    }
    /* b2 | 0 and a2 | a1 against pairs: what SMLALD adds. Two products of coefficients above -32768 fit in 32 bits. */
    const int64_t acc = mcg_smlald(q.a21, mcg_pack_high(ys, (uint32_t)y << 16), (int64_t)mcg_smuad(q.b10, x));
    return mcg_ssat16(shifted(acc + (int64_t)(mcg_lo(q.b21) * mcg_hi(xs)), q.shift));
}

MCG_INLINE uint32_t remember(uint32_t history, int32_t value) { return mcg_pack_high(history, (uint32_t)value << 16); }

/* One sample through all sections; a section's results are the next one's inputs, and so are their histories. */
#if MCG_FILTER_ASM

#define SAMPLE(multiply, shift)                                                                                \
    __asm__ volatile(                                                                                          \
        ".syntax unified\n"                                                                                    \
        "1:\n"                                                                                                 \
        "ldm %[table]!, {r4, r5, r6, r8}\n"                                                                    \
        "ldr %[ys], [%[state], #4]\n"                                                                          \
        "smultb %[t], r4, %[in]\n" multiply "lsl %[in], %[in], #16\n"                                          \
        "pkhtb %[xs], %[in], %[xs], asr #16\n"                                                                 \
        "str %[xs], [%[state]], #4\n"                                                                          \
        "mov %[xs], %[ys]\n" shift "ssat %[in], #16, %[t]\n"                                                   \
        "cmp %[table], %[end]\n"                                                                               \
        "bne 1b\n"                                                                                             \
        : [table] "+r"(table), [state] "+r"(state), [in] "+r"(in), [xs] "+r"(xs), [ys] "=&r"(ys), [t] "=&r"(t) \
        : [end] "r"(end)                                                                                       \
        : "r4", "r5", "r6", "r8", "cc", "memory")

MCG_INLINE int16_t q15_sample(int narrow, const uint32_t *table, uint32_t sections, uint32_t *state, int32_t in)
{
    uint32_t xs = state[0], ys, t;
    const uint32_t *const end = table + 4u * sections;
    if (narrow) {
        SAMPLE("smlad %[t], r5, %[xs], %[t]\n"
               "smlad %[t], r6, %[ys], %[t]\n",
               "asr %[t], %[t], r8\n");
    } else {
        SAMPLE("asr r4, %[t], #31\n"
               "smlald %[t], r4, r5, %[xs]\n"
               "smlald %[t], r4, r6, %[ys]\n",
               "lsr %[t], %[t], r8\n"
               "rsb r8, r8, #32\n"
               "lsl r4, r4, r8\n"
               "orr %[t], %[t], r4\n");
    }
    *state = remember(xs, in);
    return (int16_t)in;
}

#else

MCG_INLINE int16_t q15_sample(int narrow, const uint32_t *table, uint32_t sections, uint32_t *state, int32_t in)
{
    uint32_t xs = state[0];
    const uint32_t *const end = table + 4u * sections;
    do {
        const q15_t q = q15_of(table);
        const uint32_t ys = state[1];
        const int32_t out = q15_first(narrow, q, (uint32_t)in, xs, ys);
        *state++ = remember(xs, in);
        xs = ys;
        in = out;
        table += 4;
    } while (table != end);
    *state = remember(xs, in);
    return (int16_t)in;
}

#endif

/* Two samples at `from` become two results at `to`; xs, ys: the words before, nx, ny: the new ones. */
#define TWO_SAMPLES(xs, ys, nx, ny)                                                             \
    do {                                                                                        \
        nx = mcg_load32(from);                                                                  \
        const int32_t first = q15_first(narrow, q, nx, xs, ys);                                 \
        ny = mcg_pack_low((uint32_t)first, (uint32_t)q15_second(narrow, q, nx, xs, ys, first)); \
        mcg_store32(to, ny);                                                                    \
        from += 2;                                                                              \
        to += 2;                                                                                \
    } while (0)

#if MCG_FILTER_ASM

/* r4 r5 r6 coefficients, r7 the shift, r8 32 less it, r10 the results before, r12 lr the sum, r3 the first result. */
#define SHIFTED          \
    "lsr r12, r12, r7\n" \
    "lsl lr, lr, r8\n"   \
    "orr r12, r12, lr\n"

#define WIDE_PAIR(x, xs)                                        \
    "ldr " x ", [r0], #4\n"                                     \
    "smultb r12, r4, " x "\n"                                   \
    "asr lr, r12, #31\n"                                        \
    "smlald r12, lr, r5, " xs "\n"                              \
    "smlald r12, lr, r6, r10\n" SHIFTED "ssat r3, #16, r12\n"   \
    "smuad r12, r4, " x "\n"                                    \
    "asr lr, r12, #31\n"                                        \
    "smlalbt r12, lr, r5, " xs "\n"                             \
    "smlaltb r12, lr, r6, r3\n"                                 \
    "smlalbt r12, lr, r6, r10\n" SHIFTED "ssat r12, #16, r12\n" \
    "pkhbt r10, r3, r12, lsl #16\n"                             \
    "str r10, [r1], #4\n"

/* Pairs of samples from x to end through one section; history: the inputs and results before, and after. */
MCG_CODE(wide_pairs)
__attribute__((naked, noinline)) static void wide_pairs(MCG_UNUSED const int16_t *x, MCG_UNUSED int16_t *y,
                                                        MCG_UNUSED const int16_t *end, MCG_UNUSED uint32_t *history,
                                                        MCG_UNUSED const uint32_t *table)
{
    __asm__ volatile(".syntax unified\n"
                     "push {r3-r11, lr}\n"
                     "ldr r12, [sp, #40]\n"
                     "ldm r12, {r4, r5, r6, r7}\n"
                     "rsb r8, r7, #32\n"
                     "ldrd r9, r10, [r3]\n"
                     "sub r12, r2, r0\n"
                     "tst r12, #4\n"
                     "beq 2f\n" WIDE_PAIR("r11", "r9") "mov r9, r11\n"
                                                       "b 2f\n"
                                                       "1:\n" WIDE_PAIR("r11", "r9")
                                                           WIDE_PAIR("r9", "r11") "2:\n"
                                                                                  "cmp r0, r2\n"
                                                                                  "bne 1b\n"
                                                                                  "pop {r3}\n"
                                                                                  "strd r9, r10, [r3]\n"
                                                                                  "pop {r4-r11, pc}\n");
}

#endif

/* Pairs of samples, a section for the whole block before the next. */
MCG_INLINE void q15_pairs(int narrow, const uint32_t *table, uint32_t sections, uint32_t *state, const int16_t *x,
                          int16_t *y, uint32_t n)
{
    uint32_t before = *state;
    for (; sections != 0u; --sections, table += 4) {
#if MCG_FILTER_ASM
        if (!narrow) {
            uint32_t history[2] = {before, state[1]};
            before = state[1];
            wide_pairs(x, y, x + n, history, table);
            *state++ = history[0];
            *state = history[1];
            x = y;
            continue;
        }
#endif
        const q15_t q = q15_of(table);
        const int16_t *from = x, *const end = x + n;
        int16_t *to = y;
        uint32_t xs = before, ys = state[1], nx, ny;
        before = ys;
        if ((n & 2u) != 0u) {
            TWO_SAMPLES(xs, ys, nx, ny);
            xs = nx;
            ys = ny;
        }
        while (from != end) {
            TWO_SAMPLES(xs, ys, nx, ny);
            TWO_SAMPLES(nx, ny, xs, ys);
        }
        *state++ = xs;
        *state = ys; /* the last section's stays; the others are written again as the next one's inputs */
        x = y;
    }
}

MCG_INLINE void q15_block(int narrow, const uint32_t *table, uint32_t sections, uint32_t *state, const int16_t *x,
                          int16_t *y, uint32_t n)
{
    if ((n & 1u) != 0u) {
        *y++ = q15_sample(narrow, table, sections, state, *x++);
    }
    if (n > 1u) {
        q15_pairs(narrow, table, sections, state, x, y, n & ~1u);
    }
}

MCG_CODE(mcg_biquad_q15_block)
void mcg_biquad_q15_block(const uint32_t *table, uint32_t sections, uint32_t *state, const int16_t *x, int16_t *y,
                          uint32_t n)
{
    q15_block(0, table, sections, state, x, y, n);
}

MCG_CODE(mcg_biquad_q15_narrow_block)
void mcg_biquad_q15_narrow_block(const uint32_t *table, uint32_t sections, uint32_t *state, const int16_t *x,
                                 int16_t *y, uint32_t n)
{
    q15_block(1, table, sections, state, x, y, n);
}

/* ---- q31 */

#if !MCG_FILTER_ASM

MCG_INLINE int64_t mac(int32_t c, int32_t x, int64_t sum)
{
    return (int64_t)((uint64_t)sum + (uint64_t)((int64_t)c * x));
}

#endif

#if MCG_FILTER_ASM

/* One sample through all sections: r4 and %[in] hold the sum, r5 r6 r8 coefficients, r9-r12 x1 x2 y1 y2. */
MCG_INLINE int32_t q31_sample(const int32_t *table, uint32_t sections, int32_t *state, int32_t in)
{
    const int32_t *const end = table + 6u * sections;
    __asm__ volatile(".syntax unified\n"
                     "1:\n"
                     "ldm %[table]!, {r4, r5, r6}\n"
                     "ldm %[state], {r9, r10, r11, r12}\n"
                     "strd %[in], r9, [%[state]], #8\n"
                     "smull r4, %[in], r4, %[in]\n"
                     "smlal r4, %[in], r5, r9\n"
                     "smlal r4, %[in], r6, r10\n"
                     "ldm %[table]!, {r5, r6, r8}\n"
                     "smlal r4, %[in], r5, r11\n"
                     "smlal r4, %[in], r6, r12\n"
                     "lsr r4, r4, r8\n"
                     "rsb r8, r8, #32\n"
                     "lsl %[in], %[in], r8\n"
                     "orr %[in], %[in], r4\n"
                     "cmp %[table], %[end]\n"
                     "bne 1b\n"
                     "strd %[in], r11, [%[state]]\n"
                     : [table] "+r"(table), [state] "+r"(state), [in] "+r"(in)
                     : [end] "r"(end)
                     : "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "cc", "memory");
    return in;
}

/* A sample: x1 x2 in one order of r8 r9, y1 y2 in one of r10 r11; the new ones replace the oldest. */
#define Q31_STEP(x1, x2, y1, y2, left, right) \
    "smull r7, r12, r4, " x2 "\n"             \
    "ldr " x2 ", [r2]\n"                      \
    "smlal r7, r12, r1, " x1 "\n"             \
    "smlal r7, r12, r0, " x2 "\n"             \
    "smlal r7, r12, r5, " y1 "\n"             \
    "smlal r7, r12, r6, " y2 "\n"             \
    "lsl " y2 ", r12, " left "\n"             \
    "orr " y2 ", " y2 ", r7, lsr " right "\n" \
    "str " y2 ", [r2], #4\n"

/* Pairs of samples from p to end through one section, in place; the new history of inputs and results to state. */
#define Q31_PAIRS(name, left, right)                                                                              \
    MCG_CODE(name)                                                                                                \
    __attribute__((naked, noinline)) static void name(MCG_UNUSED const int32_t *table, MCG_UNUSED int32_t *state, \
                                                      MCG_UNUSED int32_t *p, MCG_UNUSED const int32_t *end)       \
    {                                                                                                             \
        __asm__ volatile(".syntax unified\n"                                                                      \
                         "push {r1, r4-r11, lr}\n"                                                                \
                         "ldm r1, {r8-r11}\n"                                                                     \
                         "ldm r0, {r0, r1, r4, r5, r6}\n"                                                         \
                         "1:\n" Q31_STEP("r8", "r9", "r10", "r11", left, right)                                   \
                             Q31_STEP("r9", "r8", "r11", "r10", left, right) "cmp r2, r3\n"                       \
                                                                             "bne 1b\n"                           \
                                                                             "pop {r0}\n"                         \
                                                                             "stm r0, {r8-r11}\n"                 \
                                                                             "pop {r4-r11, pc}\n");               \
    }

Q31_PAIRS(q31_pairs_31, "#1", "#31")
Q31_PAIRS(q31_pairs_30, "#2", "#30")
Q31_PAIRS(q31_pairs_29, "#3", "#29")

/* 1 where the pairs were treated: post shifts of 0, 1 and 2 in all sections. */
MCG_INLINE int q31_pairs(const int32_t *table, uint32_t sections, int32_t *state, const int32_t *x, int32_t *y,
                         uint32_t n)
{
    for (uint32_t i = 0; i < sections; ++i) {
        if (table[6u * i + 5u] < 29) {
            return 0;
        }
    }
    if (x != y) {
        for (uint32_t i = 0; i < n; i += 2u) {
            const int32_t a = x[i], b = x[i + 1u];
            y[i] = a;
            y[i + 1u] = b;
        }
    }
    for (; sections != 0u; --sections, table += 6, state += 2) {
        const int32_t x1 = state[2], x2 = state[3];
        if (table[5] == 31) {
            q31_pairs_31(table, state, y, y + n);
        } else if (table[5] == 30) {
            q31_pairs_30(table, state, y, y + n);
        } else {
            q31_pairs_29(table, state, y, y + n);
        }
        if (sections != 1u) {
            /* The next section starts from the inputs that it had; it writes the new ones. */
            state[2] = x1;
            state[3] = x2;
        }
    }
    return 1;
}

#else

MCG_INLINE int32_t q31_sample(const int32_t *table, uint32_t sections, int32_t *state, int32_t in)
{
    int32_t x1 = state[0], x2 = state[1];
    for (; sections != 0u; --sections, table += 6, state += 2) {
        const int32_t y1 = state[2], y2 = state[3];
        int64_t acc = mac(table[1], x1, mac(table[0], in, 0));
        acc = mac(table[4], y2, mac(table[3], y1, mac(table[2], x2, acc)));
        state[0] = in;
        state[1] = x1;
        x1 = y1;
        x2 = y2;
        in = shifted(acc, table[5]);
    }
    state[0] = in;
    state[1] = x1;
    return in;
}

MCG_INLINE int q31_pairs(const int32_t *table, uint32_t sections, int32_t *state, const int32_t *x, int32_t *y,
                         uint32_t n)
{
    (void)table;
    (void)sections;
    (void)state;
    (void)x;
    (void)y;
    return n == 0u;
}

#endif

MCG_CODE(mcg_biquad_q31_block)
void mcg_biquad_q31_block(const int32_t *table, uint32_t sections, int32_t *state, const int32_t *x, int32_t *y,
                          uint32_t n)
{
    if ((n & 1u) != 0u) {
        *y++ = q31_sample(table, sections, state, *x++);
        --n;
    }
    if (n != 0u && !q31_pairs(table, sections, state, x, y, n)) {
        for (; n != 0u; --n) {
            *y++ = q31_sample(table, sections, state, *x++);
        }
    }
}

/* ---- q31 with a memory of 64 bits */

#if MCG_FILTER_ASM

/* sum r4 r8 += c * (high:word), without the lowest 32 bits of the product; r2 and r3 are free. */
#define PART64(c, word, high)            \
    "umull r2, r3, " word ", " c "\n"    \
    "and r2, " word ", " c ", asr #31\n" \
    "sub r3, r3, r2\n"                   \
    "smlal r4, r8, " c ", " high "\n"    \
    "adds r4, r4, r3\n"                  \
    "adc r8, r8, r3, asr #31\n"

/* One sample through all sections, whose table ends at `end`. */
MCG_CODE(q63_sample)
__attribute__((naked, noinline)) static int32_t q63_sample(MCG_UNUSED const int32_t *table, MCG_UNUSED int32_t *state,
                                                           MCG_UNUSED int32_t in, MCG_UNUSED const int32_t *end)
{
    __asm__ volatile(".syntax unified\n"
                     "push {r4-r11, lr}\n"
                     "mov lr, r3\n"
                     "ldrd r3, r7, [r1]\n"
                     "strd r2, r3, [r1], #8\n"
                     "1:\n"
                     "ldm r0!, {r4, r5, r6}\n"
                     "smull r4, r8, r4, r2\n"
                     "smlal r4, r8, r5, r3\n"
                     "smlal r4, r8, r6, r7\n"
                     "ldm r0!, {r5, r6, r7}\n"
                     "ldm r1, {r9, r10, r11, r12}\n" PART64("r5", "r9", "r10")
                         PART64("r6", "r11", "r12") "lsl r8, r8, r7\n"
                                                    "rsb r2, r7, #32\n"
                                                    "lsr r2, r4, r2\n"
                                                    "lsl r4, r4, r7\n"
                                                    "orr r8, r8, r2\n"
                                                    "stm r1!, {r4, r8, r9, r10}\n"
                                                    "mov r2, r8\n"
                                                    "mov r3, r10\n"
                                                    "mov r7, r12\n"
                                                    "cmp r0, lr\n"
                                                    "bne 1b\n"
                                                    "mov r0, r8\n"
                                                    "pop {r4-r11, pc}\n");
}

#else

MCG_INLINE int64_t joined(int32_t high, int32_t word)
{
    return (int64_t)(((uint64_t)(uint32_t)high << 32) | (uint32_t)word);
}

/* sum + c * y, the product without its lowest 32 bits. */
MCG_INLINE int64_t mac64(int32_t c, int64_t y, int64_t sum)
{
    const uint32_t word = (uint32_t)(uint64_t)y;
    /* word * c: as unsigned numbers, less 2^32 * word where c is negative. */
    const uint32_t upper = (uint32_t)(((uint64_t)word * (uint32_t)c) >> 32) - (word & (uint32_t)(c >> 31));
    return mac(c, (int32_t)(y >> 32), (int64_t)((uint64_t)sum + (uint64_t)(int64_t)(int32_t)upper));
}

MCG_INLINE int32_t q63_sample(const int32_t *table, int32_t *state, int32_t in, const int32_t *end)
{
    int32_t x1 = state[0], x2 = state[1];
    state[0] = in;
    state[1] = x1;
    for (state += 2; table != end; table += 6, state += 4) {
        const int64_t y1 = joined(state[1], state[0]), y2 = joined(state[3], state[2]);
        const int64_t acc =
            mac64(table[4], y2, mac64(table[3], y1, mac(table[2], x2, mac(table[1], x1, mac(table[0], in, 0)))));
        const uint64_t y = (uint64_t)acc << table[5];
        x1 = state[1];
        x2 = state[3];
        state[3] = state[1];
        state[2] = state[0];
        state[0] = (int32_t)(uint32_t)y;
        state[1] = in = (int32_t)(uint32_t)(y >> 32);
    }
    return in;
}

#endif

MCG_CODE(mcg_biquad_q63_block)
void mcg_biquad_q63_block(const int32_t *table, uint32_t sections, int32_t *state, const int32_t *x, int32_t *y,
                          uint32_t n)
{
    const int32_t *const end = table + 6u * sections;
    for (; n != 0u; --n) {
        *y++ = q63_sample(table, state, *x++, end);
    }
}

/* ---- f32 */

#if MCG_FILTER_ASM && defined(__ARM_FEATURE_FMA)

/* One sample through all sections. */
MCG_INLINE float f32_sample(const float *table, uint32_t sections, float *state, float in)
{
    const float *const end = table + 5u * sections;
    __asm__ volatile(".syntax unified\n"
                     "1:\n"
                     "vldmia %[table]!, {s4-s8}\n"
                     "vldmia %[state], {s9, s10}\n"
                     "vfma.f32 s9, s4, %[in]\n"
                     "vfma.f32 s10, s5, %[in]\n"
                     "vmul.f32 s11, s6, %[in]\n"
                     "vfma.f32 s10, s7, s9\n"
                     "vfma.f32 s11, s8, s9\n"
                     "vmov.f32 %[in], s9\n"
                     "vstmia %[state]!, {s10, s11}\n"
                     "cmp %[table], %[end]\n"
                     "bne 1b\n"
                     : [table] "+r"(table), [state] "+r"(state), [in] "+t"(in)
                     : [end] "r"(end)
                     : "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "cc", "memory");
    return in;
}

/* A section: y comes to stand where d1 was, the new d1 where d2 was, the new d2 in t. */
#define F32_SECTION(b0, b1, b2, a1, a2, in, d1, d2, t) \
    "vfma.f32 " d1 ", " b0 ", " in "\n"                \
    "vfma.f32 " d2 ", " b1 ", " in "\n"                \
    "vmul.f32 " t ", " b2 ", " in "\n"                 \
    "vfma.f32 " d2 ", " a1 ", " d1 "\n"                \
    "vfma.f32 " t ", " a2 ", " d1 "\n"

#define F32_ONE(d1, d2, t) \
    "vldmia %[x]!, {s8}\n" F32_SECTION("s0", "s1", "s2", "s3", "s4", "s8", d1, d2, t) "vstmia %[y]!, {" d1 "}\n"

#define F32_TWO(d1, d2, t, e1, e2, u)                                                   \
    "vldmia %[x]!, {s16}\n" F32_SECTION("s0", "s1", "s2", "s3", "s4", "s16", d1, d2, t) \
        F32_SECTION("s5", "s6", "s7", "s8", "s9", d1, e1, e2, u) "vstmia %[y]!, {" e1 "}\n"

/* Threes of samples, from x to end, through one section. */
MCG_INLINE void f32_one(const float *table, float *state, const float *x, float *y, const float *end)
{
    __asm__ volatile(".syntax unified\n"
                     "vldmia %[table], {s0-s4}\n"
                     "vldmia %[state], {s5, s6}\n"
                     "1:\n" F32_ONE("s5", "s6", "s7") F32_ONE("s6", "s7", "s5")
                         F32_ONE("s7", "s5", "s6") "cmp %[x], %[end]\n"
                                                   "bne 1b\n"
                                                   "vstmia %[state], {s5, s6}\n"
                     : [x] "+r"(x), [y] "+r"(y)
                     : [table] "r"(table), [state] "r"(state), [end] "r"(end)
                     : "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "cc", "memory");
}

/* The same through two sections. */
MCG_INLINE void f32_two(const float *table, float *state, const float *x, float *y, const float *end)
{
    __asm__ volatile(".syntax unified\n"
                     "vldmia %[table], {s0-s9}\n"
                     "vldmia %[state]!, {s10, s11}\n"
                     "vldmia %[state], {s13, s14}\n"
                     "1:\n" F32_TWO("s10", "s11", "s12", "s13", "s14", "s15")
                         F32_TWO("s11", "s12", "s10", "s14", "s15", "s13")
                             F32_TWO("s12", "s10", "s11", "s15", "s13", "s14") "cmp %[x], %[end]\n"
                                                                               "bne 1b\n"
                                                                               "vstmia %[state], {s13, s14}\n"
                                                                               "vstmdb %[state]!, {s10, s11}\n"
                     : [x] "+r"(x), [y] "+r"(y), [state] "+r"(state)
                     : [table] "r"(table), [end] "r"(end)
                     : "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s14",
                       "s15", "s16", "cc", "memory");
}

MCG_INLINE void f32_threes(const float *table, uint32_t sections, float *state, const float *x, float *y, uint32_t n)
{
    for (; sections >= 2u; sections -= 2u, table += 10, state += 4, x = y) {
        f32_two(table, state, x, y, x + n);
    }
    if (sections != 0u) {
        f32_one(table, state, x, y, x + n);
    }
}

#else

MCG_INLINE float f32_sample(const float *table, uint32_t sections, float *state, float in)
{
    for (; sections != 0u; --sections, table += 5, state += 2) {
        const float out = mcg_fma_f32(table[0], in, state[0]);
        float product = table[2] * in;
        MCG_ROUNDED_F32(product);
        state[0] = mcg_fma_f32(table[3], out, mcg_fma_f32(table[1], in, state[1]));
        state[1] = mcg_fma_f32(table[4], out, product);
        in = out;
    }
    return in;
}

MCG_INLINE void f32_threes(const float *table, uint32_t sections, float *state, const float *x, float *y, uint32_t n)
{
    for (; n != 0u; --n) {
        *y++ = f32_sample(table, sections, state, *x++);
    }
}

#endif

MCG_CODE(mcg_biquad_f32_block)
void mcg_biquad_f32_block(const float *table, uint32_t sections, float *state, const float *x, float *y, uint32_t n)
{
    uint32_t few = n < 3u ? n : n % 3u;
    n -= few;
    for (; few != 0u; --few) {
        *y++ = f32_sample(table, sections, state, *x++);
    }
    if (n != 0u) {
        f32_threes(table, sections, state, x, y, n);
    }
}

MCG_KERNELS_END
