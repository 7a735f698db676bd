/* mcugen runtime: layer, instance and group normalization. See mcg_nn_normalize.h and mcg_nn_float.h for the contracts.
 * SPDX-License-Identifier: MIT-0
 */
#include "mcg_nn_normalize.h"

#include "mcg_features.h"

/* A row: elements times `factor` minus `less` are centred; their upper product with `root` is normalized. */
typedef struct {
    uint32_t factor, less;
    int32_t root;
} row_t;

/* v is k^2 times the variance, not 0. */
MCG_CODE(row_of)
static row_t row_of(const mcg_normalize_t *d, uint64_t v, int32_t sum)
{
    uint64_t w = (d->up >= 0 ? v << (uint32_t)d->up : d->up > -64 ? v >> (uint32_t)-d->up : 0u) + d->epsilon;
    int32_t t = 61 - d->digits - d->up / 2;
    for (; (w >> 60) == 0u; w <<= 2) {
        --t;
    }
    uint64_t r = ((uint64_t)1 << 61) / mcg_isqrt(w);
    r = r > 0x7fffffffu ? 0x7fffffffu : r;
    const uint32_t left = t < 32 ? (uint32_t)(32 - t) : 0u, right = t < 32 ? 0u : t < 63 ? (uint32_t)(t - 32) : 31u;
    const row_t row = {d->k << left, (uint32_t)sum << left, (int32_t)((uint32_t)r >> right)};
    return row;
}

/* The upper word of a product, rounded. */
MCG_INLINE int32_t upper(int32_t a, int32_t b) { return (int32_t)(((int64_t)a * b + ((int64_t)1 << 31)) >> 32); }

MCG_INLINE int8_t normalized(const row_t *row, int32_t x, int32_t scale, int32_t offset, uint32_t shift)
{
    const int32_t n = upper((int32_t)((uint32_t)x * row->factor - row->less), row->root);
    const int32_t v = (upper(n, scale) + offset) >> shift;
    return (int8_t)(v < -128 ? -128 : v > 127 ? 127 : v);
}

MCG_CODE(mcg_normalize_s8)
void mcg_normalize_s8(const mcg_normalize_t *d, const int32_t *scale, const int32_t *offset, const int8_t *x, int8_t *y)
{
    const uint32_t k = d->k, shift = d->shift;
    uint32_t c = 0;
    for (uint32_t rows = d->rows; rows != 0u; --rows, x += k, y += k) {
        int32_t sum = 0;
        uint32_t squares = 0;
        for (uint32_t i = 0; i < k; ++i) {
            const int32_t v = x[i];
            sum += v;
            squares += (uint32_t)(v * v);
        }
        const uint64_t spread = (uint64_t)k * squares - (uint64_t)((int64_t)sum * sum);
        row_t row = {0, 0, 0};
        if (spread != 0u) {
            row = row_of(d, spread, sum);
        }
        if (d->channels == k) { /* the same tables for every row */
            for (uint32_t i = 0; i < k; ++i) {
                y[i] = normalized(&row, x[i], scale[i], offset[i], shift);
            }
            continue;
        }
        for (uint32_t i = 0; i < k;) {
            const int32_t factor = scale[c];
            const int32_t added = offset[c];
            c = c + 1u == d->channels ? 0u : c + 1u;
            for (const uint32_t end = i + d->inner; i < end; ++i) {
                y[i] = normalized(&row, x[i], factor, added, shift);
            }
        }
    }
}

#if !defined(__FAST_MATH__) /* whoever calls this function includes mcg_nn_float.h, which refuses -ffast-math */

#include "mcg_features_float.h"
#include "mcg_nn_float.h"

MCG_CODE(mcg_normalize_f32)
void mcg_normalize_f32(const float *scale, const float *offset, float epsilon, const float *x, float *y, uint32_t rows,
                       uint32_t k, uint32_t inner, uint32_t channels)
{
    const float count = (float)k;
    uint32_t c = 0;
    for (; rows != 0u; --rows, x += k, y += k) {
        float sum = 0.0f;
        for (uint32_t i = 0; i < k; ++i) {
            sum = sum + x[i];
        }
        const float mean = sum / count;
        float squares = 0.0f;
        for (uint32_t i = 0; i < k; ++i) {
            const float v = x[i] - mean;
            float square = v * v;
            MCG_ROUNDED_F32(square);
            squares = squares + square;
        }
        const float r = 1.0f / mcg_sqrt_f32(squares / count + epsilon);
        for (uint32_t i = 0; i < k;) {
            const float factor = scale[c];
            const float added = offset[c];
            c = c + 1u == channels ? 0u : c + 1u;
            for (const uint32_t end = i + inner; i < end; ++i) {
                float v = x[i] - mean;
                v = v * r;
                MCG_ROUNDED_F32(v);
                v = v * factor;
                MCG_ROUNDED_F32(v);
                y[i] = v + added;
            }
        }
    }
}

#endif
