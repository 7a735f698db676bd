/* mcugen runtime: 16-bit SIMD and saturating primitives of the integer kernels.
 *
 * Where the core has the DSP extension (Cortex-M4, M7, M33...) each is one instruction; elsewhere, or with
 * -DMCG_PLAIN, it is portable C that gives the same bits. All arithmetic wraps modulo 2^32. "lo" and "hi" are the
 * signed 16-bit halves of a word.
 * SPDX-License-Identifier: MIT-0
 */
#ifndef MCG_DSP_H
#define MCG_DSP_H

#include "mcg.h"

#if defined(__ARM_FEATURE_DSP) && defined(__ARM_FEATURE_SIMD32) && !defined(MCG_PLAIN)
#include <arm_acle.h>
#define MCG_HAS_DSP 1
#else
#define MCG_HAS_DSP 0
#endif

/* Kernels that stand in assembly too: -DMCG_NO_ASM takes their C, which gives the same bits. */
#if MCG_HAS_DSP && defined(__thumb2__) && !defined(MCG_NO_ASM)
#define MCG_HAS_ASM 1
#else
#define MCG_HAS_ASM 0
#endif

/* GCC's first scheduling pass lengthens the lifetimes of loaded words until the kernels' accumulators spill: 1.7
 * instructions per multiply-accumulate instead of 0.9; its induction variables take registers that are short. Stands
 * before and after the functions that it concerns. */
#if MCG_HAS_DSP && defined(__GNUC__) && !defined(__clang__)
#define MCG_KERNELS_BEGIN _Pragma("GCC push_options") _Pragma("GCC optimize (\"no-schedule-insns,no-ivopts\")")
#define MCG_KERNELS_END _Pragma("GCC pop_options")
#else
#define MCG_KERNELS_BEGIN
#define MCG_KERNELS_END
#endif

/* Words of memory that other code accesses as smaller elements. */
#if defined(__GNUC__) || defined(__clang__)
typedef uint32_t __attribute__((may_alias)) mcg_words_t;
#else
typedef uint32_t mcg_words_t; /* compile with the equivalent of -fno-strict-aliasing */
#endif

/* Copies of four bytes: the builtin stays one instruction under -ffreestanding and -fno-builtin. */
#if defined(__GNUC__) || defined(__clang__)
#define MCG_COPY4(to, from) ((void)__builtin_memcpy((to), (from), 4))
#else
#include <string.h>
#define MCG_COPY4(to, from) ((void)memcpy((to), (from), 4))
#endif

/* The word at any address. */
MCG_INLINE uint32_t mcg_load32(const void *p)
{
    uint32_t v;
    MCG_COPY4(&v, p);
    return v;
}

/* Writes a word to any address. */
MCG_INLINE void mcg_store32(void *p, uint32_t v) { MCG_COPY4(p, &v); }

/* The word with `low` below and `high` above; both keep their low 16 bits. */
MCG_INLINE uint32_t mcg_pair(int32_t low, int32_t high) { return ((uint32_t)low & 0xFFFFu) | ((uint32_t)high << 16); }

MCG_INLINE int32_t mcg_lo(uint32_t v) { return (int16_t)(uint16_t)v; }
MCG_INLINE int32_t mcg_hi(uint32_t v) { return (int32_t)v >> 16; }

MCG_INLINE int32_t mcg_add32(int32_t x, int32_t y) { return (int32_t)((uint32_t)x + (uint32_t)y); }

#if MCG_HAS_DSP

/* acc + lo(x) * lo(y) + hi(x) * hi(y) */
MCG_INLINE int32_t mcg_smlad(uint32_t x, uint32_t y, int32_t acc) { return __smlad((int16x2_t)x, (int16x2_t)y, acc); }
/* acc + lo(x) * lo(y), lo(x) * hi(y), hi(x) * lo(y) */
MCG_INLINE int32_t mcg_smlabb(uint32_t x, uint32_t y, int32_t acc) { return __smlabb((int32_t)x, (int32_t)y, acc); }
MCG_INLINE int32_t mcg_smlabt(uint32_t x, uint32_t y, int32_t acc) { return __smlabt((int32_t)x, (int32_t)y, acc); }
MCG_INLINE int32_t mcg_smlatb(uint32_t x, uint32_t y, int32_t acc) { return __smlatb((int32_t)x, (int32_t)y, acc); }
/* Bytes 0 and 2 of x, sign-extended to halves. */
MCG_INLINE uint32_t mcg_sxtb16(uint32_t x) { return (uint32_t)__sxtb16((int8x4_t)x); }
/* Bytes 1 and 3 of x, sign-extended to halves. */
MCG_INLINE uint32_t mcg_sxtb16_odd(uint32_t x)
{
    uint32_t r;
    __asm__("sxtb16 %0, %1, ror #8" : "=r"(r) : "r"(x));
    return r;
}
/* Bytes 0 and 2 of x, sign-extended to halves, added to the halves of acc. */
MCG_INLINE uint32_t mcg_sxtab16(uint32_t acc, uint32_t x)
{
    uint32_t r;
    __asm__("sxtab16 %0, %1, %2" : "=r"(r) : "r"(acc), "r"(x));
    return r;
}
/* Bytes 1 and 3 of x, sign-extended to halves, added to the halves of acc. */
MCG_INLINE uint32_t mcg_sxtab16_odd(uint32_t acc, uint32_t x)
{
    uint32_t r;
    __asm__("sxtab16 %0, %1, %2, ror #8" : "=r"(r) : "r"(acc), "r"(x));
    return r;
}
/* The halves of x minus the halves of y. */
MCG_INLINE uint32_t mcg_ssub16(uint32_t x, uint32_t y)
{
    uint32_t r; /* not the intrinsic, which says that it sets the GE flags, and so can't move */
    __asm__("ssub16 %0, %1, %2" : "=r"(r) : "r"(x), "r"(y) : "cc");
    return r;
}
/* The sums of the halves. */
MCG_INLINE uint32_t mcg_sadd16(uint32_t x, uint32_t y)
{
    uint32_t r;
    __asm__("sadd16 %0, %1, %2" : "=r"(r) : "r"(x), "r"(y) : "cc");
    return r;
}
/* lo(x) below lo(y). */
MCG_INLINE uint32_t mcg_pack_low(uint32_t x, uint32_t y)
{
    uint32_t r;
    __asm__("pkhbt %0, %1, %2, lsl #16" : "=r"(r) : "r"(x), "r"(y));
    return r;
}
/* hi(x) below hi(y). */
MCG_INLINE uint32_t mcg_pack_high(uint32_t x, uint32_t y)
{
    uint32_t r;
    __asm__("pkhtb %0, %1, %2, asr #16" : "=r"(r) : "r"(y), "r"(x));
    return r;
}
/* acc + the upper word of the 64-bit product, rounded down. */
MCG_INLINE int32_t mcg_smmla(int32_t x, int32_t y, int32_t acc)
{
    int32_t r;
    __asm__("smmla %0, %1, %2, %3" : "=r"(r) : "r"(x), "r"(y), "r"(acc));
    return r;
}
/* Each byte, signed, to the nearest in that of least..that of most. */
MCG_INLINE uint32_t mcg_clamp4(uint32_t x, uint32_t least, uint32_t most)
{
    uint32_t t;
    __asm__("ssub8 %1, %0, %2\n\t" /* GE: bytes that are not below; SEL takes the others from `least` */
            "sel %0, %0, %2\n\t"
            "ssub8 %1, %3, %0\n\t"
            "sel %0, %0, %3"
            : "+r"(x), "=&r"(t)
            : "r"(least), "r"(most)
            : "cc");
    return x;
}
/* The larger of each pair of signed bytes. */
MCG_INLINE uint32_t mcg_max4(uint32_t x, uint32_t y)
{
    uint32_t t;
    __asm__("ssub8 %1, %0, %2\n\t"
            "sel %0, %0, %2"
            : "+r"(x), "=&r"(t)
            : "r"(y)
            : "cc");
    return x;
}
/* x clamped to -128..127. */
MCG_INLINE int32_t mcg_ssat8(int32_t x)
{
    int32_t r; /* the intrinsic must keep the Q flag alive; nobody reads it */
    __asm__("ssat %0, #8, %1" : "=r"(r) : "r"(x));
    return r;
}
/* x >> 20, clamped to -128..127. */
MCG_INLINE int32_t mcg_ssat8_asr20(int32_t x)
{
    int32_t r;
    __asm__("ssat %0, #8, %1, asr #20" : "=r"(r) : "r"(x));
    return r;
}

#else

MCG_INLINE int32_t mcg_smlad(uint32_t x, uint32_t y, int32_t acc)
{
    return (int32_t)((uint32_t)acc + (uint32_t)(mcg_lo(x) * mcg_lo(y)) + (uint32_t)(mcg_hi(x) * mcg_hi(y)));
}
MCG_INLINE int32_t mcg_smlabb(uint32_t x, uint32_t y, int32_t acc)
{
    return (int32_t)((uint32_t)acc + (uint32_t)(mcg_lo(x) * mcg_lo(y)));
}
MCG_INLINE int32_t mcg_smlabt(uint32_t x, uint32_t y, int32_t acc)
{
    return (int32_t)((uint32_t)acc + (uint32_t)(mcg_lo(x) * mcg_hi(y)));
}
MCG_INLINE int32_t mcg_smlatb(uint32_t x, uint32_t y, int32_t acc)
{
    return (int32_t)((uint32_t)acc + (uint32_t)(mcg_hi(x) * mcg_lo(y)));
}
MCG_INLINE uint32_t mcg_sxtb16(uint32_t x) { return mcg_pair((int8_t)(uint8_t)x, (int8_t)(uint8_t)(x >> 16)); }
MCG_INLINE uint32_t mcg_sxtb16_odd(uint32_t x) { return mcg_sxtb16(x >> 8); }
MCG_INLINE uint32_t mcg_sxtab16(uint32_t acc, uint32_t x)
{
    const uint32_t v = mcg_sxtb16(x);
    return mcg_pair(mcg_lo(acc) + mcg_lo(v), mcg_hi(acc) + mcg_hi(v));
}
MCG_INLINE uint32_t mcg_sxtab16_odd(uint32_t acc, uint32_t x) { return mcg_sxtab16(acc, x >> 8); }
MCG_INLINE uint32_t mcg_ssub16(uint32_t x, uint32_t y)
{
    return mcg_pair(mcg_lo(x) - mcg_lo(y), mcg_hi(x) - mcg_hi(y));
}
MCG_INLINE uint32_t mcg_sadd16(uint32_t x, uint32_t y)
{
    return mcg_pair(mcg_lo(x) + mcg_lo(y), mcg_hi(x) + mcg_hi(y));
}
MCG_INLINE uint32_t mcg_pack_low(uint32_t x, uint32_t y) { return (x & 0xFFFFu) | (y << 16); }
MCG_INLINE uint32_t mcg_pack_high(uint32_t x, uint32_t y) { return (x >> 16) | (y & 0xFFFF0000u); }
MCG_INLINE int32_t mcg_smmla(int32_t x, int32_t y, int32_t acc)
{
    return (int32_t)((uint32_t)acc + (uint32_t)(((int64_t)x * y) >> 32));
}
MCG_INLINE uint32_t mcg_max4(uint32_t x, uint32_t y)
{
    uint32_t r = 0;
    for (uint32_t i = 0; i < 32u; i += 8u) {
        const int8_t a = (int8_t)(uint8_t)(x >> i), b = (int8_t)(uint8_t)(y >> i);
        r |= (uint32_t)(uint8_t)(a > b ? a : b) << i;
    }
    return r;
}
MCG_INLINE uint32_t mcg_clamp4(uint32_t x, uint32_t least, uint32_t most)
{
    uint32_t y = 0;
    for (uint32_t i = 0; i < 32u; i += 8u) {
        const int8_t v = (int8_t)(uint8_t)(x >> i), a = (int8_t)(uint8_t)(least >> i), b = (int8_t)(uint8_t)(most >> i);
        y |= (uint32_t)(uint8_t)(v < a ? a : v > b ? b : v) << i;
    }
    return y;
}
MCG_INLINE int32_t mcg_ssat8(int32_t x) { return x < -128 ? -128 : x > 127 ? 127 : x; }
MCG_INLINE int32_t mcg_ssat8_asr20(int32_t x) { return mcg_ssat8(x >> 20); }

#endif

#endif
