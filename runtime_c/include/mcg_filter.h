/* mcugen runtime: what the filter kernels share.
 *
 * A filter's state is the caller's, one piece for each channel; all zero bytes is the fresh state unless a kernel says
 * otherwise. Blocks of any size give the same output as sample by sample.
 * SPDX-License-Identifier: MIT-0
 */
#ifndef MCG_FILTER_H
#define MCG_FILTER_H

#include "mcg_dsp.h"

#if defined(__FAST_MATH__)
#error "mcugen: filters are computed in a stated order; compile this file without -ffast-math"
#endif

/* Inner loops in assembly take more registers than compilers leave at -O0: there their C stands in, with the same bits. */
#if MCG_HAS_ASM && defined(__OPTIMIZE__)
#define MCG_FILTER_ASM 1
#else
#define MCG_FILTER_ASM 0
#endif

/* Clears `bytes` of state. */
MCG_INLINE void mcg_zero(void *p, size_t bytes)
{
    unsigned char *b = (unsigned char *)p;
    for (size_t i = 0; i < bytes; ++i) {
        b[i] = 0;
    }
}

#if MCG_HAS_DSP

/* acc + lo(x) * lo(y) + hi(x) * hi(y), on 64 bits */
MCG_INLINE int64_t mcg_smlald(uint32_t x, uint32_t y, int64_t acc) { return __smlald((int16x2_t)x, (int16x2_t)y, acc); }
/* lo(x) * lo(y) + hi(x) * hi(y) */
MCG_INLINE int32_t mcg_smuad(uint32_t x, uint32_t y)
{
    int32_t r; /* not the intrinsic, which says that it sets the Q flag, and so can't move */
    __asm__("smuad %0, %1, %2" : "=r"(r) : "r"(x), "r"(y));
    return r;
}
/* hi(x) * lo(y) */
MCG_INLINE int32_t mcg_smultb(uint32_t x, uint32_t y)
{
    int32_t r;
    __asm__("smultb %0, %1, %2" : "=r"(r) : "r"(x), "r"(y));
    return r;
}
/* x clamped to int16. */
MCG_INLINE int32_t mcg_ssat16(int32_t x)
{
    int32_t r; /* the intrinsic must keep the Q flag alive; nobody reads it */
    __asm__("ssat %0, #16, %1" : "=r"(r) : "r"(x));
    return r;
}
/* x >> 15, clamped to int16. */
MCG_INLINE int32_t mcg_ssat16_asr15(int32_t x)
{
    int32_t r;
    __asm__("ssat %0, #16, %1, asr #15" : "=r"(r) : "r"(x));
    return r;
}

#else

MCG_INLINE int64_t mcg_smlald(uint32_t x, uint32_t y, int64_t acc)
{
    return acc + (int64_t)(mcg_lo(x) * mcg_lo(y)) + (int64_t)(mcg_hi(x) * mcg_hi(y));
}
MCG_INLINE int32_t mcg_smuad(uint32_t x, uint32_t y) { return mcg_smlad(x, y, 0); }
MCG_INLINE int32_t mcg_smultb(uint32_t x, uint32_t y) { return mcg_hi(x) * mcg_lo(y); }
MCG_INLINE int32_t mcg_ssat16(int32_t x) { return x < -32768 ? -32768 : x > 32767 ? 32767 : x; }
MCG_INLINE int32_t mcg_ssat16_asr15(int32_t x) { return mcg_ssat16(x >> 15); }

#endif

#if defined(__ARM_FEATURE_FMA) && !defined(MCG_PLAIN)

/* a * b + c, rounded once. */
MCG_INLINE float mcg_fma_f32(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

#else

/* The product of two floats is exact in double; the sum is rounded to odd there (Boldo and Melquiond 2008), after which
 * the rounding to float is the only one that shows. Sums and differences only: nothing can be fused. */
MCG_INLINE float mcg_fma_f32(float a, float b, float c)
{
    const double q = (double)c;
    double p = (double)a * (double)b;
    MCG_ROUNDED_F64(p);
    union {
        double value;
        uint64_t bits;
    } s;
    s.value = p + q;
    const double t = s.value - p;
    const double error = (p - (s.value - t)) + (q - t);
    if ((error > 0.0 || error < 0.0) && (s.bits & 1u) == 0u) {
        s.bits += (error > 0.0) == (s.value > 0.0) ? 1u : UINT64_MAX;
    }
    return (float)s.value;
}

#endif

#endif
