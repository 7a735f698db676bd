/* classes: lightgbm model classes.txt, exported by mcugen.
 *
 * Source sha256 3d6198582d79b824b0cc5a7100f9d37ae62fb0de674148bceea6765c87ee3c3c
 * Verified: the C equals the integer reference in Python, every bit.
 *
 * Input: 2 float, the features in the order of the model.
 * NaN stands for a missing value.
 *
 * Output: the index of the class, the lowest on ties. Classes: 0, 1, 2. Scores it compares are within 3.20823e-10 of the library's.
 * SPDX-License-Identifier: MIT-0
 */
#ifndef CLASSES_H
#define CLASSES_H

#include "mcugen/mcg.h"

#if MCG_ABI != 3
#error "classes needs runtime ABI 3: take the folder mcugen/ from the same export"
#endif

MCG_BEGIN_DECLS

#define CLASSES_INPUTS 2
#define CLASSES_OUTPUTS 1
#define CLASSES_CLASSES 3
/* Index of each input in x. */
enum {
    CLASSES_x_mode = 0,
    CLASSES_x_slope = 1,
};

/* One prediction. Reentrant. x has CLASSES_INPUTS elements, y has CLASSES_OUTPUTS; they may not overlap and need the
 * natural alignment of their types. Returns MCG_OK, or MCG_ERR_ARG for a null or misaligned pointer. */
mcg_status_t classes_run(const float *x, int32_t *y);

/* n predictions, row after row. */
mcg_status_t classes_run_batch(const float *x, int32_t *y, uint32_t n);

#if defined(MCG_TRACE)
/* The leaf that each of the 3 trees reaches, as the model file numbers them. For proofs only. */
mcg_status_t classes_leaves(const float *x, uint16_t *leaf);
#endif

MCG_END_DECLS

#endif
