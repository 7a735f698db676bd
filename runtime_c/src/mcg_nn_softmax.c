/* mcugen runtime: softmax and argmax of tensors. See mcg_nn_softmax.h for the contracts.
 * SPDX-License-Identifier: MIT-0
 */
#include "mcg_nn_softmax.h"

MCG_CODE(mcg_softmax_s8)
void mcg_softmax_s8(const uint32_t *table, const int8_t *x, int8_t *y, uint32_t rows, uint32_t k, uint32_t units)
{
    for (; rows != 0u; --rows, x += k, y += k) {
        int32_t largest = x[0];
        for (uint32_t i = 1; i < k; ++i) {
            largest = x[i] > largest ? x[i] : largest;
        }
        uint64_t sum = 0;
        for (uint32_t i = 0; i < k; ++i) {
            sum += table[largest - x[i]];
        }
        for (uint32_t i = 0; i < k; ++i) {
            const uint32_t e = table[largest - x[i]];
            uint32_t p;
            if (k < 512u) { /* e <= 2^23 and sum < 2^32: the numerator stays below 2^32 */
                const uint32_t s = (uint32_t)sum;
                p = (units * e + (s >> 1)) / s;
            } else {
                p = (uint32_t)(((uint64_t)units * e + (sum >> 1)) / sum);
            }
            y[i] = (int8_t)((int32_t)(p > 255u ? 255u : p) - 128);
        }
    }
}

MCG_CODE(exp_s16)
static uint32_t exp_s16(const uint32_t *table, uint32_t d)
{
    const uint64_t e = (uint64_t)table[d >> 8] * table[256u + (d & 255u)];
    return (uint32_t)((e + (1u << 22)) >> 23);
}

MCG_CODE(mcg_softmax_s16)
void mcg_softmax_s16(const uint32_t *table, const int16_t *x, int16_t *y, uint32_t rows, uint32_t k)
{
    for (; rows != 0u; --rows, x += k, y += k) {
        int32_t largest = x[0];
        for (uint32_t i = 1; i < k; ++i) {
            largest = x[i] > largest ? x[i] : largest;
        }
        uint64_t sum = 0;
        for (uint32_t i = 0; i < k; ++i) {
            sum += exp_s16(table, (uint32_t)(largest - x[i]));
        }
        for (uint32_t i = 0; i < k; ++i) {
            const uint64_t e = exp_s16(table, (uint32_t)(largest - x[i]));
            const uint64_t p = ((e << 15) + (sum >> 1)) / sum;
            y[i] = (int16_t)(p > 32767u ? 32767u : p);
        }
    }
}

#define ARGMAX(T, GREATER)                              \
    for (; rows != 0u; --rows, x += (k - 1u) * inner) { \
        for (uint32_t i = 0; i < inner; ++i, ++x) {     \
            uint32_t best = 0;                          \
            T largest = x[0];                           \
            for (uint32_t j = 1; j < k; ++j) {          \
                const T v = x[j * inner];               \
                if (GREATER) {                          \
                    best = j;                           \
                    largest = v;                        \
                }                                       \
            }                                           \
            *y++ = (int32_t)best;                       \
        }                                               \
    }

MCG_CODE(mcg_argmax_rows_s8)
void mcg_argmax_rows_s8(const int8_t *x, int32_t *y, uint32_t rows, uint32_t k,
                        uint32_t inner){ARGMAX(int8_t, v > largest)}

MCG_CODE(mcg_argmax_rows_s16)
void mcg_argmax_rows_s16(const int16_t *x, int32_t *y, uint32_t rows, uint32_t k,
                         uint32_t inner){ARGMAX(int16_t, v > largest)}

#if !defined(__FAST_MATH__) /* whoever calls these functions includes mcg_nn_float.h, which refuses -ffast-math */

#include "mcg_nn_float.h"
#include "mcg_scores.h"

MCG_CODE(mcg_softmax_rows_f32)
void mcg_softmax_rows_f32(const float *x, float *y, uint32_t rows, uint32_t k)
{
    for (; rows != 0u; --rows, x += k, y += k) {
        mcg_softmax_f32(x, y, k);
    }
}

MCG_CODE(mcg_argmax_rows_f32)
void mcg_argmax_rows_f32(const float *x, int32_t *y, uint32_t rows, uint32_t k, uint32_t inner)
{
    ARGMAX(float, v > largest || (v != v && largest == largest))
}

#endif
