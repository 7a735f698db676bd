/* nan_proba: lightgbm model nan.txt, exported by mcugen.
 *
 * Source sha256 a0de7e1d0033a830b0421823c35b9a9c0203992de51e5da64284ca42b2b47c5c
 * Verified: the C equals the integer reference in Python, every bit.
 *
 * Input: 3 float, the features in the order of the model.
 * NaN stands for a missing value.
 *
 * Output: 1 float, the probability of class 1, as the library predicts. Classes: 0, 1. The score before the transform is within 1.86348e-05.
 * SPDX-License-Identifier: MIT-0
 */
#ifndef NAN_PROBA_H
#define NAN_PROBA_H

#include "mcugen/mcg.h"

#if MCG_ABI != 3
#error "nan_proba needs runtime ABI 3: take the folder mcugen/ from the same export"
#endif

MCG_BEGIN_DECLS

#define NAN_PROBA_INPUTS 3
#define NAN_PROBA_OUTPUTS 1
/* Index of each input in x. */
enum {
    NAN_PROBA_x_pressure = 0,
    NAN_PROBA_x_flow = 1,
    NAN_PROBA_x_level = 2,
};

/* One prediction. Reentrant. x has NAN_PROBA_INPUTS elements, y has NAN_PROBA_OUTPUTS; they may not overlap and need the
 * natural alignment of their types. Returns MCG_OK, or MCG_ERR_ARG for a null or misaligned pointer. */
mcg_status_t nan_proba_run(const float *x, float *y);

/* n predictions, row after row. */
mcg_status_t nan_proba_run_batch(const float *x, float *y, uint32_t n);

#if defined(MCG_TRACE)
/* The leaf that each of the 2 trees reaches, as the model file numbers them. For proofs only. */
mcg_status_t nan_proba_leaves(const float *x, uint16_t *leaf);
#endif

MCG_END_DECLS

#endif
