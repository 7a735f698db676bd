/* mcugen runtime: real values to quantized ones and back. See mcg_quantize.h for the contract.
 * SPDX-License-Identifier: MIT-0
 */
#include "mcg_quantize.h"

#if !defined(__FAST_MATH__) /* rounding by a large addend does not survive it; the linker then says so */

MCG_CODE(quantized)
static int32_t quantized(float real, float scale, int32_t zero_point, int32_t low, int32_t high)
{
    const float ratio = real / scale;
    if (!(ratio == ratio)) {
        return zero_point;
    }
    /* Beyond this every result saturates, and inside it adding 1.5 * 2^23 rounds to a whole number, ties to even. */
    if (ratio < -131072.0f) {
        return low;
    }
    if (ratio > 131072.0f) {
        return high;
    }
    float shifted = ratio + 0x1.8p+23f;
    MCG_ROUNDED_F32(shifted);
    const int32_t q = (int32_t)(shifted - 0x1.8p+23f) + zero_point;
    return q < low ? low : (q > high ? high : q);
}

MCG_CODE(mcg_quantize_i8)
void mcg_quantize_i8(const float *real, float scale, int32_t zero_point, int8_t *q, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        q[i] = (int8_t)quantized(real[i], scale, zero_point, INT8_MIN, INT8_MAX);
    }
}

MCG_CODE(mcg_quantize_i16)
void mcg_quantize_i16(const float *real, float scale, int32_t zero_point, int16_t *q, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        q[i] = (int16_t)quantized(real[i], scale, zero_point, INT16_MIN, INT16_MAX);
    }
}

MCG_CODE(mcg_dequantize_i8)
void mcg_dequantize_i8(const int8_t *q, float scale, int32_t zero_point, float *real, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        real[i] = scale * (float)((int32_t)q[i] - zero_point);
    }
}

MCG_CODE(mcg_dequantize_i16)
void mcg_dequantize_i16(const int16_t *q, float scale, int32_t zero_point, float *real, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        real[i] = scale * (float)((int32_t)q[i] - zero_point);
    }
}

#endif
