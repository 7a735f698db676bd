/* mean: lightgbm model mean.txt, exported by mcugen.
 *
 * Source sha256 b0bfb9504c8734f9c1404cf8331b9a5e3f7d078972e24df56088f8c3490eba3d
 * Verified: the C equals the integer reference in Python, every bit.
 *
 * Input: 2 float, the features in the order of the model.
 * NaN stands for a missing value.
 *
 * Output: 1 float, the prediction, as the library predicts. The score before the transform is within 2.33126e-06.
 * SPDX-License-Identifier: MIT-0
 */
#ifndef MEAN_H
#define MEAN_H

#include "mcugen/mcg.h"

#if MCG_ABI != 3
#error "mean needs runtime ABI 3: take the folder mcugen/ from the same export"
#endif

MCG_BEGIN_DECLS

#define MEAN_INPUTS 2
#define MEAN_OUTPUTS 1
/* Index of each input in x. */
enum {
    MEAN_x_a = 0,
    MEAN_x_b = 1,
};

/* One prediction. Reentrant. x has MEAN_INPUTS elements, y has MEAN_OUTPUTS; they may not overlap and need the
 * natural alignment of their types. Returns MCG_OK, or MCG_ERR_ARG for a null or misaligned pointer. */
mcg_status_t mean_run(const float *x, float *y);

/* n predictions, row after row. */
mcg_status_t mean_run_batch(const float *x, float *y, uint32_t n);

#if defined(MCG_TRACE)
/* The leaf that each of the 2 trees reaches, as the model file numbers them. For proofs only. */
mcg_status_t mean_leaves(const float *x, uint16_t *leaf);
#endif

MCG_END_DECLS

#endif
