/* mcugen runtime: second-order sections on float32 samples, computed and remembered in double.
 *
 * SPDX-License-Identifier: MIT-0
 */
#include "mcg_filter_biquad.h"

MCG_KERNELS_BEGIN

MCG_INLINE double rounded(double value)
{
    MCG_ROUNDED_F64(value);
    return value;
}

/* Each product is rounded before it is added, and each sum before it goes on: with or without instructions that fuse
 * the two, with or without -ffast-math, the same bits for numbers that are neither subnormal nor NaN. */
MCG_CODE(mcg_biquad_f64_block)
void mcg_biquad_f64_block(const double *table, uint32_t sections, double *state, const float *x, float *y, uint32_t n)
{
    for (; n != 0u; --n) {
        const double *row = table;
        double *memory = state;
        double in = (double)*x++;
        for (uint32_t s = sections; s != 0u; --s, row += 5, memory += 2) {
            const double out = rounded(rounded(row[0] * in) + memory[0]);
            const double old = rounded(rounded(row[1] * in) + memory[1]);
            memory[0] = old + rounded(row[3] * out);
            memory[1] = rounded(row[2] * in) + rounded(row[4] * out);
            in = out;
        }
        *y++ = (float)in;
    }
}

MCG_KERNELS_END
