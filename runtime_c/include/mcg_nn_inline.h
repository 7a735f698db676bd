/* mcugen runtime: what the int8 kernels share: packing of activations, requantization. Internal; no interface.
 *
 * SPDX-License-Identifier: MIT-0
 */
#ifndef MCG_NN_INLINE_H
#define MCG_NN_INLINE_H

#include "mcg_dsp.h"

/* Both lanes -127, and the constant that isolates bytes 0 and 2. */
#define MCG_NN_ODD_OFFSET 0xFF81FF81u
#define MCG_NN_EVEN_BYTES 0x00FF00FFu

/* Four activations a0..a3 (a word) to two words of lanes.
 *
 * Packed form: first = a_odd - 127, in -255..0; second = 256 * a_even - first, which is in -32768..32767 for every
 * pair of int8. With weight lanes L = 256 * w_odd + w_even and l = w_even: L * first + l * second = 256 * (w_odd *
 * (a_odd - 127) + w_even * a_even). Form "any": first = a_odd, second = a_even. */
MCG_INLINE void mcg_nn_pack4(int any, uint32_t a, uint32_t *dst)
{
    if (any) {
        const uint32_t first = mcg_sxtb16_odd(a);
        const uint32_t second = mcg_sxtb16(a);
        dst[0] = first;
        dst[1] = second;
    } else {
        const uint32_t first = mcg_sxtab16_odd(MCG_NN_ODD_OFFSET, a);
        const uint32_t second = mcg_ssub16((a & MCG_NN_EVEN_BYTES) << 8, first);
        dst[0] = first;
        dst[1] = second;
    }
}

/* Lanes that multiply `first` and `second` for a word of weights. */
MCG_INLINE uint32_t mcg_nn_first(int any, uint32_t w) { return any ? mcg_sxtb16_odd(w) : w; }
MCG_INLINE uint32_t mcg_nn_second(uint32_t w) { return mcg_sxtb16(w); }

/* The four words that end a channel. */
typedef struct {
    int32_t bias, m, c, shift;
} mcg_nn_requant_t;

/* Zero point and clamps of the form "any". */
typedef struct {
    int32_t zp, low, high;
} mcg_nn_range_t;

MCG_INLINE mcg_nn_requant_t mcg_nn_requant(const uint32_t *w)
{
    const mcg_nn_requant_t q = {(int32_t)w[0], (int32_t)w[1], (int32_t)w[2], (int32_t)w[3]};
    return q;
}

/* One rounding in four instructions: c holds 2^(s-33) and the zero point, so that the upper word of v * m, plus c,
 * shifted by s - 32, is the rounded value with the zero point added. Nothing is lost: the lower word of v * m lies
 * below the bit that c rounds at. */
MCG_INLINE int8_t mcg_nn_scale(int32_t v, mcg_nn_requant_t q)
{
    return (int8_t)mcg_ssat8(mcg_smmla(v, q.m, q.c) >> q.shift);
}

MCG_INLINE int8_t mcg_nn_scale_any(int32_t v, mcg_nn_requant_t q, mcg_nn_range_t r)
{
    int64_t y;
    if (q.shift > 32) {
        y = mcg_smmla(v, q.m, q.c) >> (q.shift - 32);
    } else {
        y = ((int64_t)v * q.m + ((int64_t)1 << (q.shift - 1))) >> q.shift;
    }
    y += r.zp;
    return (int8_t)(y < r.low ? r.low : y > r.high ? r.high : y);
}

#endif
