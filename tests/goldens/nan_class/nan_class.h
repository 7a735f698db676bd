/* nan_class: lightgbm model nan.txt, exported by mcugen.
 *
 * Source sha256 a0de7e1d0033a830b0421823c35b9a9c0203992de51e5da64284ca42b2b47c5c
 * Verified: the C equals the integer reference in Python, every bit.
 *
 * Input: 3 float, the features in the order of the model.
 * NaN stands for a missing value.
 *
 * Output: the index of the class, the lowest on ties. Classes: 0, 1. Scores it compares are within 1.86348e-05 of the library's.
 * SPDX-License-Identifier: MIT-0
 */
#ifndef NAN_CLASS_H
#define NAN_CLASS_H

#include "mcugen/mcg.h"

#if MCG_ABI != 3
#error "nan_class needs runtime ABI 3: take the folder mcugen/ from the same export"
#endif

MCG_BEGIN_DECLS

#define NAN_CLASS_INPUTS 3
#define NAN_CLASS_OUTPUTS 1
#define NAN_CLASS_CLASSES 2
/* Index of each input in x. */
enum {
    NAN_CLASS_x_pressure = 0,
    NAN_CLASS_x_flow = 1,
    NAN_CLASS_x_level = 2,
};

/* One prediction. Reentrant. x has NAN_CLASS_INPUTS elements, y has NAN_CLASS_OUTPUTS; they may not overlap and need the
 * natural alignment of their types. Returns MCG_OK, or MCG_ERR_ARG for a null or misaligned pointer. */
mcg_status_t nan_class_run(const float *x, int32_t *y);

/* n predictions, row after row. */
mcg_status_t nan_class_run_batch(const float *x, int32_t *y, uint32_t n);

#if defined(MCG_TRACE)
/* The leaf that each of the 2 trees reaches, as the model file numbers them. For proofs only. */
mcg_status_t nan_class_leaves(const float *x, uint16_t *leaf);
#endif

MCG_END_DECLS

#endif
