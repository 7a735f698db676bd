/* mcugen runtime: IIR filters as cascades of second-order sections, sample by sample or in blocks.
 *
 * SPDX-License-Identifier: MIT-0
 */
#ifndef MCG_FILTER_BIQUAD_H
#define MCG_FILTER_BIQUAD_H

#include "mcg_filter.h"

MCG_BEGIN_DECLS

/* A section: y[i] = b0 x[i] + b1 x[i-1] + b2 x[i-2] - a1 y[i-1] - a2 y[i-2]. The tables hold -a1 and -a2. */

/* Words of a section: b1 | b0 << 16, b2 | b1 << 16, -a2 | -a1 << 16, shift = 15 - post shift (3..15). No coefficient is
 * -32768. A word of state holds two samples, the older below. */
#define MCG_BIQUAD_Q15_TABLE(sections) (4u * (sections))
/* b0, b1, b2, -a1, -a2, shift = 31 - post shift (1..31). */
#define MCG_BIQUAD_Q31_TABLE(sections) (6u * (sections))
/* b0, b1, b2, -a1, -a2, shift = 1 + post shift (1..31). */
#define MCG_BIQUAD_Q63_TABLE(sections) (6u * (sections))
/* b0, b1, b2, -a1, -a2. */
#define MCG_BIQUAD_F32_TABLE(sections) (5u * (sections))
#define MCG_BIQUAD_F64_TABLE(sections) (5u * (sections))

/* Words of a channel's state; all zero is the fresh one. The history of the input, then that of each section. */
#define MCG_BIQUAD_Q15_STATE(sections) (1u + (sections))
#define MCG_BIQUAD_Q31_STATE(sections) (2u + 2u * (sections))
#define MCG_BIQUAD_Q63_STATE(sections) (2u + 4u * (sections))
#define MCG_BIQUAD_F32_STATE(sections) (2u * (sections))
#define MCG_BIQUAD_F64_STATE(sections) (2u * (sections))

/* n samples of one channel through all sections; x continues where the last call ended.
 *
 * table, state: as above, aligned to 4; x, y: n samples, may be the same.
 * Rounding: a section's sum is exact in 64 bits, then shifted right (towards minus infinity). q15: by 15 - post shift;
 * q31: by 31 - post shift. f32: direct form 2 transposed, a rounding for each product that is added.
 * Overflow: q15 saturates each section's result; q31 wraps, as the sum of 64 bits does.
 * Aliasing: x == y, or apart.
 * Cost: see benchmarks/results/filters.md. */
void mcg_biquad_q15_block(const uint32_t *table, uint32_t sections, uint32_t *state, const int16_t *x, int16_t *y,
                          uint32_t n);
/* The same bits where in every section the magnitudes of the five coefficients sum to 65535 at most: 32 bits hold every
 * sum. */
void mcg_biquad_q15_narrow_block(const uint32_t *table, uint32_t sections, uint32_t *state, const int16_t *x,
                                 int16_t *y, uint32_t n);
void mcg_biquad_q31_block(const int32_t *table, uint32_t sections, int32_t *state, const int32_t *x, int32_t *y,
                          uint32_t n);
/* The section's results are kept in 64 bits: acc << (1 + post shift), of which the upper word goes on. A product of such
 * a number is (its upper word * c) + ((its lower word, unsigned, * c) >> 32). */
void mcg_biquad_q63_block(const int32_t *table, uint32_t sections, int32_t *state, const int32_t *x, int32_t *y,
                          uint32_t n);
void mcg_biquad_f32_block(const float *table, uint32_t sections, float *state, const float *x, float *y, uint32_t n);
/* table, state: aligned to 8. Direct form 2 transposed in double, every product and every sum rounded; the result of the
 * last section is rounded to float. For poles that coefficients of float would move too far. */
void mcg_biquad_f64_block(const double *table, uint32_t sections, double *state, const float *x, float *y, uint32_t n);

MCG_END_DECLS

#endif
