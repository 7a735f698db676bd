/* mcugen runtime: LSTM and GRU layers over a whole sequence, int8 weights and input, int16 state.
 *
 * Numbers inside: state h in units of 2^-15 (int16), cell c in 2^-20 (int32, saturated), gates in 2^-15 (0..32768), the
 * arguments of tanh and sigmoid in 2^-16 (int32, terms clamped at +-2^28). Every product is rounded once, half up.
 * SPDX-License-Identifier: MIT-0
 */
#ifndef MCG_NN_RECURRENT_H
#define MCG_NN_RECURRENT_H

#include "mcg_nn_requant.h"

MCG_BEGIN_DECLS

typedef struct {
    uint32_t steps, inputs, hidden;
    int32_t zp_in;
    uint32_t reset_after; /* GRU: the reset gate multiplies the product with h (1), or h itself (0) */
    mcg_requant_t every;  /* h of every step to int8 */
    mcg_requant_t last;   /* the last h to int8 */
    mcg_requant_t cell;   /* the last c to int8 */
} mcg_recurrent_t;

/* Words of a vector of n int16 in groups of four; bytes of scratch, 4-byte aligned. */
#define MCG_RECURRENT_WORDS(n) (((n) + 3u) / 4u * 2u)
#define MCG_LSTM_SCRATCH(inputs, hidden) \
    (MCG_RECURRENT_WORDS(inputs) * 4u + MCG_RECURRENT_WORDS(hidden) * 8u + (hidden) * 4u)
#define MCG_GRU_SCRATCH(inputs, hidden) \
    (MCG_RECURRENT_WORDS(inputs) * 4u + MCG_RECURRENT_WORDS(hidden) * 8u + (hidden) * 4u)

/* LSTM. Gates i, o, f, g: c = f * c + i * g, h = o * tanh(c).
 *
 * w: a block a unit: for each four inputs a word (four int8) of each gate; the same for each four states; then 8 words of
 * each gate {bias of x, bias of h, m, shift, c of the requantization of the product with x, the same of that with h}.
 * tanh: 513 entries of 2^15 * tanh(i / 64), at most 32767; linear between them. start: h then c before the first step, or
 * NULL for zeros. x (steps, inputs). every (steps, hidden), last, cell (hidden): each NULL where it is not wanted.
 * scratch: MCG_LSTM_SCRATCH bytes. Overflow: none, proven by mcugen. Aliasing: all apart.
 * Cost: about 1.4 instructions per multiply-accumulate and 150 a unit and step. */
void mcg_lstm_s8(const mcg_recurrent_t *d, const uint32_t *w, const int16_t *tanh, const int32_t *start,
                 uint32_t *scratch, const int8_t *x, int8_t *every, int8_t *last, int8_t *cell);

/* GRU. Gates z, r, n: h = z * h + (1 - z) * n.
 *
 * w: with reset_after blocks of the gates z, r, n as above; else first the blocks of z and r of all units, then those of n.
 * start: h, or NULL. The rest as above; scratch: MCG_GRU_SCRATCH bytes. */
void mcg_gru_s8(const mcg_recurrent_t *d, const uint32_t *w, const int16_t *tanh, const int32_t *start,
                uint32_t *scratch, const int8_t *x, int8_t *every, int8_t *last);

/* The same for a sequence that goes on in the next call: state is what start is above, read and then replaced by that
 * after the last of the steps (h; of an LSTM then c). Never NULL. */
void mcg_lstm_step_s8(const mcg_recurrent_t *d, const uint32_t *w, const int16_t *tanh, int32_t *state,
                      uint32_t *scratch, const int8_t *x, int8_t *every, int8_t *last, int8_t *cell);
void mcg_gru_step_s8(const mcg_recurrent_t *d, const uint32_t *w, const int16_t *tanh, int32_t *state,
                     uint32_t *scratch, const int8_t *x, int8_t *every, int8_t *last);

MCG_END_DECLS

#endif
