/* mcugen runtime: what the int8 kernels share: packing of activations, requantization. Internal; no interface.
 *
 * SPDX-License-Identifier: MIT-0
 */
#ifndef MCG_NN_INLINE_H
#define MCG_NN_INLINE_H

#include "mcg_dsp.h"
#include "mcg_nn_elementwise.h"

/* Constants of the packed form: both lanes -127; the upper bytes of lanes. */
typedef struct {
    uint32_t offset, upper;
} mcg_nn_lanes_t;

MCG_INLINE mcg_nn_lanes_t mcg_nn_lanes(void)
{
    mcg_nn_lanes_t l = {0xFF81FF81u, 0xFF00FF00u};
#if MCG_HAS_DSP
    __asm__("" : "+r"(l.offset), "+r"(l.upper)); /* in registers: as an operand of AND beside a shift */
#endif
    return l;
}

/* Four activations a0..a3 (a word) to two words of lanes.
 *
 * Packed form: first = a_odd - 127, in -255..0; second = 256 * a_even - first, which is in -32768..32767 for every
 * pair of int8. With weight lanes L = 256 * w_odd + w_even and l = w_even: L * first + l * second = 256 * (w_odd *
 * (a_odd - 127) + w_even * a_even). Form "any": first = a_odd, second = a_even. */
MCG_INLINE void mcg_nn_pack4_to(int any, mcg_nn_lanes_t l, uint32_t a, uint32_t *to_first, uint32_t *to_second)
{
    const uint32_t first = any ? mcg_sxtb16_odd(a) : mcg_sxtab16_odd(l.offset, a);
    const uint32_t second = any ? mcg_sxtb16(a) : mcg_ssub16(l.upper & (a << 8), first);
    *to_first = first;
    *to_second = second;
}

/* The two words side by side. */
MCG_INLINE void mcg_nn_pack4(int any, mcg_nn_lanes_t l, uint32_t a, uint32_t *dst)
{
    mcg_nn_pack4_to(any, l, a, dst, dst + 1);
}

/* Lanes that multiply `first` and `second` for a word of weights. */
MCG_INLINE uint32_t mcg_nn_first(int any, uint32_t w) { return any ? mcg_sxtb16_odd(w) : w; }
MCG_INLINE uint32_t mcg_nn_second(uint32_t w) { return mcg_sxtb16(w); }

/* The three words that end a channel. */
typedef struct {
    int32_t m, c, shift;
} mcg_nn_requant_t;

/* Zero point and clamps of the form "any". */
typedef struct {
    int32_t zp, low, high;
} mcg_nn_range_t;

MCG_INLINE mcg_nn_requant_t mcg_nn_requant(const uint32_t *w)
{
    const mcg_nn_requant_t q = {(int32_t)w[0], (int32_t)w[1], (int32_t)w[2]};
    return q;
}

/* One rounding in three instructions: v is 256 times the sum. c holds 2^(s-25) and the zero point, so that the upper
 * word of v * m, plus c, shifted by s - 24, is the rounded value with the zero point added. Nothing is lost: the lower
 * word of v * m lies below the bit that c rounds at. */
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

MCG_INLINE int8_t mcg_nn_finish(int any, int32_t v, mcg_nn_requant_t q, mcg_nn_range_t r)
{
    return any ? mcg_nn_scale_any(v, q, r) : mcg_nn_scale(v, q);
}

/* Whether results of the packed form, in -128..127, are clamped further when the layer is finished. */
MCG_INLINE int mcg_nn_is_narrow(int32_t low, int32_t high) { return low > -128 || high < 127; }

#endif
