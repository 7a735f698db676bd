/* mcugen runtime: softmax, its logarithm and argmax of tensors. See mcg_nn_softmax.h for the contracts.
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

/* log2(sum / 2^23) in units of 2^-24, cut off; sum from 2^23 to below 2^47. */
MCG_CODE(log2_of)
static uint32_t log2_of(uint64_t sum)
{
    uint32_t y = 0;
    for (sum <<= 8; (sum >> 32) != 0u; sum >>= 1) {
        ++y;
    }
    uint32_t m = (uint32_t)sum; /* 1 to 2, in units of 2^-31 */
    for (uint32_t i = 0; i < 24u; ++i) {
        /* The logarithm of the square is twice as large: its digit before the point is the next one. */
        const uint64_t square = (uint64_t)m * m;
        const uint32_t high = (uint32_t)(square >> 32);
        const uint32_t digit = high >> 31;
        m = digit != 0u ? high : (high << 1) | ((uint32_t)square >> 31);
        y = (y << 1) | digit;
    }
    return y;
}

MCG_CODE(mcg_log_softmax_s8)
void mcg_log_softmax_s8(const mcg_log_softmax_t *d, const uint32_t *table, const int8_t *x, int8_t *y)
{
    const uint32_t k = d->k;
    const int32_t unit = (int32_t)(1u << d->shift);
    for (uint32_t rows = d->rows; rows != 0u; --rows, x += k, y += k) {
        int32_t largest = x[0];
        for (uint32_t i = 1; i < k; ++i) {
            largest = x[i] > largest ? x[i] : largest;
        }
        uint64_t sum = 0;
        for (uint32_t i = 0; i < k; ++i) {
            sum += table[largest - x[i]];
        }
        const uint64_t lost =
            ((uint64_t)log2_of(sum) * d->log_m + ((uint64_t)1 << (d->log_shift - 1u))) >> d->log_shift;
        const int64_t exact = (int64_t)d->zero_point * unit + unit / 2 - (int64_t)lost;
        const int32_t start = exact < -129 * unit ? -129 * unit : (int32_t)exact; /* below, all are -128 anyway */
        const int32_t step = (int32_t)d->step;
        for (uint32_t i = 0; i < k; ++i) {
            const int32_t v = (start - (largest - x[i]) * step) >> d->shift;
            y[i] = (int8_t)(v < -128 ? -128 : v > 127 ? 127 : v);
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

MCG_CODE(mcg_log_softmax_rows_f32)
void mcg_log_softmax_rows_f32(const float *x, float *y, uint32_t rows, uint32_t k)
{
    for (; rows != 0u; --rows, x += k, y += k) {
        float largest = x[0];
        for (uint32_t i = 1; i < k; ++i) {
            largest = x[i] > largest ? x[i] : largest;
        }
        float sum = 0.0f;
        for (uint32_t i = 0; i < k; ++i) {
            sum = sum + mcg_exp_f32(x[i] - largest);
        }
        mcg_log_f32(&sum, &sum, 1);
        for (uint32_t i = 0; i < k; ++i) {
            y[i] = (x[i] - largest) - sum;
        }
    }
}

MCG_CODE(mcg_argmax_rows_f32)
void mcg_argmax_rows_f32(const float *x, int32_t *y, uint32_t rows, uint32_t k, uint32_t inner)
{
    ARGMAX(float, v > largest || (v != v && largest == largest))
}

#endif
