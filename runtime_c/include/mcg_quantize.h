/* mcugen runtime: real values to quantized ones and back.
 *
 * q = saturate(round_half_even(real / scale) + zero_point), NaN gives zero_point; real = scale * (q - zero_point).
 * scale > 0 and finite; zero_point in the range of the type; arrays of n elements that do not overlap.
 * Floats round to nearest in the order written: numpy's float32 gives the same bits.
 * SPDX-License-Identifier: MIT-0
 */
#ifndef MCG_QUANTIZE_H
#define MCG_QUANTIZE_H

#include "mcg.h"

MCG_BEGIN_DECLS

void mcg_quantize_i8(const float *real, float scale, int32_t zero_point, int8_t *q, uint32_t n);
void mcg_quantize_i16(const float *real, float scale, int32_t zero_point, int16_t *q, uint32_t n);
void mcg_dequantize_i8(const int8_t *q, float scale, int32_t zero_point, float *real, uint32_t n);
void mcg_dequantize_i16(const int16_t *q, float scale, int32_t zero_point, float *real, uint32_t n);

MCG_END_DECLS

#endif
