/* mcugen runtime: requantization with the constants in a descriptor. Internal; no interface.
 *
 * y = clamp(((v * m + 2^(shift-1)) >> shift) + zp, low, high), one rounding, on 64 bits or as if.
 * SPDX-License-Identifier: MIT-0
 */
#ifndef MCG_NN_REQUANT_H
#define MCG_NN_REQUANT_H

#include "mcg_dsp.h"

typedef struct {
    int32_t m;         /* multiplier: 0, or in [2^30, 2^31) */
    int32_t shift;     /* 1..62 */
    int32_t c;         /* 2^(shift-33) where shift > 32, else 0 */
    int32_t zp;        /* zero point of the output */
    int32_t low, high; /* clamps */
} mcg_requant_t;

MCG_INLINE int32_t mcg_clamp64(int64_t y, int32_t low, int32_t high)
{
    return y < low ? low : y > high ? high : (int32_t)y;
}

/* Any v. Where shift > 32 the lower word of the product lies below the bit that c rounds at. */
MCG_INLINE int32_t mcg_requant(int32_t v, mcg_requant_t q)
{
    if (q.shift > 32) {
        const int32_t y = (mcg_smmla(v, q.m, q.c) >> (q.shift - 32)) + q.zp;
        return y < q.low ? q.low : y > q.high ? q.high : y;
    }
    return mcg_clamp64((((int64_t)v * q.m + ((int64_t)1 << (q.shift - 1))) >> q.shift) + q.zp, q.low, q.high);
}

/* The same for |v| < 2^47: the product in two parts. Below shift 17 everything beyond int32 is beyond the clamps. */
MCG_INLINE int32_t mcg_requant64(int64_t v, mcg_requant_t q)
{
    if (v == (int32_t)v || q.shift < 17) {
        return mcg_requant(mcg_clamp64(v, INT32_MIN, INT32_MAX), q);
    }
    const int64_t low_part = (int64_t)((uint64_t)v & 0xFFFFu) * q.m + ((int64_t)1 << (q.shift - 1));
    const int64_t sum = (v >> 16) * q.m + (low_part >> 16);
    return mcg_clamp64((sum >> (q.shift - 16)) + q.zp, q.low, q.high);
}

#endif
