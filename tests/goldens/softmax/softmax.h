/* softmax: lightgbm model classes.txt, exported by mcugen.
 *
 * Source sha256 3d6198582d79b824b0cc5a7100f9d37ae62fb0de674148bceea6765c87ee3c3c
 * Verified: the C equals the integer reference in Python, every bit.
 *
 * Input: 2 double, the features in the order of the model.
 * NaN stands for a missing value.
 *
 * Output: 3 float, one probability a class, as the library predicts. Classes: 0, 1, 2. The score before the transform is within 1.51966e-05.
 * SPDX-License-Identifier: MIT-0
 */
#ifndef SOFTMAX_H
#define SOFTMAX_H

#include "mcugen/mcg.h"

#if MCG_ABI != 3
#error "softmax needs runtime ABI 3: take the folder mcugen/ from the same export"
#endif

MCG_BEGIN_DECLS

#define SOFTMAX_INPUTS 2
#define SOFTMAX_OUTPUTS 3
/* Index of each input in x. */
enum {
    SOFTMAX_x_mode = 0,
    SOFTMAX_x_slope = 1,
};

/* One prediction. Reentrant. x has SOFTMAX_INPUTS elements, y has SOFTMAX_OUTPUTS; they may not overlap and need the
 * natural alignment of their types. Returns MCG_OK, or MCG_ERR_ARG for a null or misaligned pointer. */
mcg_status_t softmax_run(const double *x, float *y);

/* n predictions, row after row. */
mcg_status_t softmax_run_batch(const double *x, float *y, uint32_t n);

#if defined(MCG_TRACE)
/* The leaf that each of the 3 trees reaches, as the model file numbers them. For proofs only. */
mcg_status_t softmax_leaves(const double *x, uint16_t *leaf);
#endif

MCG_END_DECLS

#endif
