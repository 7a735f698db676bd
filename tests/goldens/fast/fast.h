/* fast: lightgbm model nan.txt, exported by mcugen.
 *
 * Source sha256 a0de7e1d0033a830b0421823c35b9a9c0203992de51e5da64284ca42b2b47c5c
 * Verified: the C equals the integer reference in Python, every bit.
 *
 * Input: 3 float, the features in the order of the model.
 * NaN stands for a missing value.
 *
 * Output: 1 raw score, as the library's raw prediction. Classes: 0, 1.
 * score = y * 0x1p-13 (0.0001220703125)
 * Proven: |score - library's score| <= 0.000125637 for every input.
 * SPDX-License-Identifier: MIT-0
 */
#ifndef FAST_H
#define FAST_H

#include "mcugen/mcg.h"

#if MCG_ABI != 3
#error "fast needs runtime ABI 3: take the folder mcugen/ from the same export"
#endif

MCG_BEGIN_DECLS

#define FAST_INPUTS 3
#define FAST_OUTPUTS 1
#define FAST_SCALE 0x1p-13 /* score = y * scale */
/* Index of each input in x. */
enum {
    FAST_x_pressure = 0,
    FAST_x_flow = 1,
    FAST_x_level = 2,
};

/* One prediction. Reentrant. x has FAST_INPUTS elements, y has FAST_OUTPUTS; they may not overlap and need the
 * natural alignment of their types. Returns MCG_OK, or MCG_ERR_ARG for a null or misaligned pointer. */
mcg_status_t fast_run(const float *x, int32_t *y);

/* n predictions, row after row. */
mcg_status_t fast_run_batch(const float *x, int32_t *y, uint32_t n);

#if defined(MCG_TRACE)
/* The leaf that each of the 2 trees reaches, as the model file numbers them. For proofs only. */
mcg_status_t fast_leaves(const float *x, uint16_t *leaf);
#endif

MCG_END_DECLS

#endif
