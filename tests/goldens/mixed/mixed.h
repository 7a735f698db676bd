/* mixed: lightgbm model mean.txt, exported by mcugen.
 *
 * Source sha256 b0bfb9504c8734f9c1404cf8331b9a5e3f7d078972e24df56088f8c3490eba3d
 * Verified: the C equals the integer reference in Python, every bit.
 *
 * Input: 2 float, the features in the order of the model.
 * NaN stands for a missing value.
 *
 * Output: 1 raw score, as the library's raw prediction.
 * score = y * 0x1p-10 (0.0009765625)
 * Proven: |score - library's score| <= 0.000693672 for every input.
 * SPDX-License-Identifier: MIT-0
 */
#ifndef MIXED_H
#define MIXED_H

#include "mcugen/mcg.h"

#if MCG_ABI != 3
#error "mixed needs runtime ABI 3: take the folder mcugen/ from the same export"
#endif

MCG_BEGIN_DECLS

#define MIXED_INPUTS 2
#define MIXED_OUTPUTS 1
#define MIXED_SCALE 0x1p-10 /* score = y * scale */
/* Index of each input in x. */
enum {
    MIXED_x_a = 0,
    MIXED_x_b = 1,
};

/* One prediction. Reentrant. x has MIXED_INPUTS elements, y has MIXED_OUTPUTS; they may not overlap and need the
 * natural alignment of their types. Returns MCG_OK, or MCG_ERR_ARG for a null or misaligned pointer. */
mcg_status_t mixed_run(const float *x, int32_t *y);

/* n predictions, row after row. */
mcg_status_t mixed_run_batch(const float *x, int32_t *y, uint32_t n);

#if defined(MCG_TRACE)
/* The leaf that each of the 2 trees reaches, as the model file numbers them. For proofs only. */
mcg_status_t mixed_leaves(const float *x, uint16_t *leaf);
#endif

MCG_END_DECLS

#endif
