/* mcugen runtime: filters of first order, changes of type. See mcg_filter_first.h for the contracts.
 * SPDX-License-Identifier: MIT-0
 */
#include "mcg_filter_first.h"

/* round(v * k / 2^31), ties up. */
MCG_INLINE int32_t part32(int32_t v, int32_t k) { return (int32_t)(((int64_t)v * k + 0x40000000) >> 31); }

/* The same of 64 bits; |v| <= 2^62: v = high * 2^32 + low. */
MCG_INLINE int64_t part64(int64_t v, int32_t k)
{
    const uint64_t low = (uint64_t)(uint32_t)(uint64_t)v * (uint32_t)k + 0x40000000u;
    return (v >> 32) * k * 2 + (int64_t)(low >> 31);
}

MCG_INLINE int32_t clamp32(int64_t v) { return v < INT32_MIN ? INT32_MIN : v > INT32_MAX ? INT32_MAX : (int32_t)v; }

MCG_CODE(mcg_smooth_q15_block)
void mcg_smooth_q15_block(int32_t alpha, int32_t *state, const int16_t *x, int16_t *y, uint32_t n)
{
    int32_t s = *state;
    for (; n != 0u; --n) {
        s += part32(*x++ * 32768 - s, alpha);
        *y++ = (int16_t)((s + 0x4000) >> 15);
    }
    *state = s;
}

MCG_CODE(mcg_smooth_q31_block)
void mcg_smooth_q31_block(int32_t alpha, int64_t *state, const int32_t *x, int32_t *y, uint32_t n)
{
    int64_t s = *state;
    for (; n != 0u; --n) {
        s += part64((int64_t)*x++ * 0x40000000 - s, alpha);
        *y++ = (int32_t)((s + 0x20000000) >> 30);
    }
    *state = s;
}

MCG_CODE(mcg_smooth_f32_block)
void mcg_smooth_f32_block(float alpha, float *state, const float *x, float *y, uint32_t n)
{
    float s = *state;
    for (; n != 0u; --n) {
        s = mcg_fma_f32(alpha, *x++ - s, s);
        *y++ = s;
    }
    *state = s;
}

MCG_CODE(mcg_dc_block_q15_block)
void mcg_dc_block_q15_block(int32_t k, int32_t *state, const int16_t *x, int16_t *y, uint32_t n)
{
    int32_t s = state[0], last = state[1];
    for (; n != 0u; --n) {
        const int32_t in = *x++;
        s = s - part32(s, k) + (in - last) * 16384;
        last = in;
        *y++ = (int16_t)mcg_ssat16((s + 0x2000) >> 14);
    }
    state[0] = s;
    state[1] = last;
}

MCG_CODE(mcg_dc_block_q31_block)
void mcg_dc_block_q31_block(int32_t k, int64_t *state, const int32_t *x, int32_t *y, uint32_t n)
{
    int64_t s = state[0], last = state[1];
    for (; n != 0u; --n) {
        const int64_t in = *x++;
        s = s - part64(s, k) + (in - last) * 0x20000000;
        last = in;
        *y++ = clamp32((s + 0x10000000) >> 29);
    }
    state[0] = s;
    state[1] = last;
}

MCG_CODE(mcg_dc_block_f32_block)
void mcg_dc_block_f32_block(float k, float *state, const float *x, float *y, uint32_t n)
{
    float s = state[0], last = state[1];
    for (; n != 0u; --n) {
        const float in = *x++;
        s = mcg_fma_f32(k, s, in - last);
        last = in;
        *y++ = s;
    }
    state[0] = s;
    state[1] = last;
}

MCG_INLINE int32_t within(int32_t v, int32_t low, int32_t high) { return v < low ? low : v > high ? high : v; }

/* v within lows[i]..-lows[i]; INT32_MIN stands for every int32. */
MCG_INLINE int32_t limited(const int32_t *lows, uint32_t i, int32_t v)
{
    return lows == NULL ? v : within(v, lows[i], lows[i] == INT32_MIN ? INT32_MAX : -lows[i]);
}

/* y[i] = what `load` gives for i, times 2^shift: to the left what would leave 32 bits is clamped before; to the right
 * floor(v / 2^s + 1/2) is (v >> s) plus the bit below, which does not overflow. */
#define SHIFT(type, load, store)                                           \
    if (shift >= 0) {                                                      \
        const int32_t most = INT32_MAX >> shift, least = -most - 1;        \
        for (uint32_t i = 0; i < n; ++i) {                                 \
            const int32_t v = within(limited(lows, i, load), least, most); \
            y[i] = (type)store(v * (1 << shift));                          \
        }                                                                  \
    } else {                                                               \
        for (uint32_t i = 0; i < n; ++i) {                                 \
            const int32_t v = limited(lows, i, load);                      \
            y[i] = (type)store((v >> -shift) + ((v >> (-shift - 1)) & 1)); \
        }                                                                  \
    }

#define WHOLE(v) (v)

MCG_CODE(mcg_shift_i16_i32)
void mcg_shift_i16_i32(const int32_t *lows, const int16_t *x, int32_t *y, uint32_t n,
                       int32_t shift){SHIFT(int32_t, x[i], WHOLE)}

MCG_CODE(mcg_shift_i32_i16)
void mcg_shift_i32_i16(const int32_t *lows, const int32_t *x, int16_t *y, uint32_t n,
                       int32_t shift){SHIFT(int16_t, x[i], mcg_ssat16)}

MCG_CODE(mcg_shift_i32_i32)
void mcg_shift_i32_i32(const int32_t *lows, const int32_t *x, int32_t *y, uint32_t n,
                       int32_t shift){SHIFT(int32_t, x[i], WHOLE)}

MCG_CODE(mcg_samples_i16_f32)
void mcg_samples_i16_f32(const float *scale, const int16_t *x, float *y, uint32_t n)
{
    for (; n != 0u; --n) {
        *y++ = (float)*x++ * *scale++;
    }
}

MCG_CODE(mcg_samples_i32_f32)
void mcg_samples_i32_f32(const float *scale, const int32_t *x, float *y, uint32_t n)
{
    for (; n != 0u; --n) {
        *y++ = (float)*x++ * *scale++;
    }
}
