/* mcugen runtime: FIR filters, sample by sample or in blocks.
 *
 * SPDX-License-Identifier: MIT-0
 */
#ifndef MCG_FILTER_FIR_H
#define MCG_FILTER_FIR_H

#include "mcg_filter.h"

MCG_BEGIN_DECLS

typedef struct {
    uint32_t taps;   /* taps in the table; q15 and q31: a multiple of 4, zeros stand first */
    uint32_t room;   /* even, at least `taps`: samples that the line takes before its history moves back to the start */
    uint32_t narrow; /* q15: 1 where the magnitudes of the taps sum to 65535 at most, so that 32 bits hold every sum */
} mcg_fir_t;

/* Elements of a channel's state; all zero is the fresh one. It begins with the position and a spare, and ends with a spare. */
#define MCG_FIR_STATE(taps, room) (3u + (taps) + (room))

/* y[i] = (sum over k of tap k * x[i - k]) for n samples of one channel; x continues where the last call ended.
 *
 * taps: the oldest sample's tap first, aligned to 4; state: MCG_FIR_STATE elements, aligned to 4; x, y: n samples, may
 * be the same.
 * Rounding: q15 and q31 shift right (towards minus infinity) by 15 and 31; f32 rounds once a tap, the oldest first.
 * Overflow: q15 saturates; q31 wraps, as the sum of 64 bits does.
 * Aliasing: x == y, or apart.
 * Cost: q15 32 bits 1.1 instructions a tap in blocks. */
void mcg_fir_q15_block(const mcg_fir_t *d, const int16_t *taps, int16_t *state, const int16_t *x, int16_t *y,
                       uint32_t n);
void mcg_fir_q31_block(const mcg_fir_t *d, const int32_t *taps, int32_t *state, const int32_t *x, int32_t *y,
                       uint32_t n);
void mcg_fir_f32_block(const mcg_fir_t *d, const float *taps, float *state, const float *x, float *y, uint32_t n);

MCG_END_DECLS

#endif
