/* linear: lightgbm model linear.txt, exported by mcugen.
 *
 * Source sha256 15f4c975b36f0f7599ce8d8d12cdd006125b5054ddb6d5ccedd21bec4209eb67
 * Verified: the C equals the integer reference in Python, every bit.
 *
 * Input: 2 double, the features in the order of the model.
 * NaN stands for a missing value.
 *
 * Output: 1 raw score, as the library's raw prediction.
 * Proven: the same bits as the library's double.
 * SPDX-License-Identifier: MIT-0
 */
#ifndef LINEAR_H
#define LINEAR_H

#include "mcugen/mcg.h"

#if MCG_ABI != 3
#error "linear needs runtime ABI 3: take the folder mcugen/ from the same export"
#endif

MCG_BEGIN_DECLS

#define LINEAR_INPUTS 2
#define LINEAR_OUTPUTS 1
/* Index of each input in x. */
enum {
    LINEAR_x_a = 0,
    LINEAR_x_b = 1,
};

/* One prediction. Reentrant. x has LINEAR_INPUTS elements, y has LINEAR_OUTPUTS; they may not overlap and need the
 * natural alignment of their types. Returns MCG_OK, or MCG_ERR_ARG for a null or misaligned pointer. */
mcg_status_t linear_run(const double *x, double *y);

/* n predictions, row after row. */
mcg_status_t linear_run_batch(const double *x, double *y, uint32_t n);

#if defined(MCG_TRACE)
/* The leaf that each of the 2 trees reaches, as the model file numbers them. For proofs only. */
mcg_status_t linear_leaves(const double *x, uint16_t *leaf);
#endif

MCG_END_DECLS

#endif
