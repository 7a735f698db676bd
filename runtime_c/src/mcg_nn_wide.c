/* mcugen runtime: int16 activations, element by element. See mcg_nn_wide.h for the contracts.
 * SPDX-License-Identifier: MIT-0
 */
#include "mcg_nn_wide.h"

MCG_CODE(mcg_add_s16)
void mcg_add_s16(const mcg_wide_add_t *d, const int16_t *a, const int16_t *b, int16_t *y)
{
    const mcg_requant_t q = d->requant;
    const int64_t ma = d->a, mb = d->b;
    for (uint32_t i = 0, n = d->n; i < n; ++i) {
        y[i] = (int16_t)mcg_requant64(a[i] * ma + b[i] * mb, q);
    }
}

MCG_CODE(mcg_mul_s16)
void mcg_mul_s16(const mcg_wide_add_t *d, const int16_t *a, const int16_t *b, int16_t *y)
{
    const mcg_requant_t q = d->requant;
    for (uint32_t i = 0, n = d->n; i < n; ++i) {
        y[i] = (int16_t)mcg_requant(a[i] * b[i], q);
    }
}

MCG_CODE(mcg_table_s16)
void mcg_table_s16(const int16_t *table, const int16_t *x, int16_t *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        const int32_t at = x[i] + 32768;
        const int32_t low = table[at >> 6], high = table[(at >> 6) + 1];
        y[i] = (int16_t)(low + (((high - low) * (at & 63) + 32) >> 6));
    }
}

MCG_CODE(mcg_rescale_s8_s16)
void mcg_rescale_s8_s16(const mcg_wide_add_t *d, const int8_t *x, int16_t *y)
{
    const mcg_requant_t q = d->requant;
    for (uint32_t i = 0, n = d->n; i < n; ++i) {
        y[i] = (int16_t)mcg_requant(x[i] - d->a, q);
    }
}

MCG_CODE(mcg_rescale_s16_s8)
void mcg_rescale_s16_s8(const mcg_wide_add_t *d, const int16_t *x, int8_t *y)
{
    const mcg_requant_t q = d->requant;
    const int32_t zp = d->a;
    for (uint32_t i = 0, n = d->n; i < n; ++i) {
        y[i] = (int8_t)mcg_requant(x[i] - zp, q);
    }
}

MCG_CODE(mcg_rescale_s16_s16)
void mcg_rescale_s16_s16(const mcg_wide_add_t *d, const int16_t *x, int16_t *y)
{
    const mcg_requant_t q = d->requant;
    const int32_t zp = d->a;
    for (uint32_t i = 0, n = d->n; i < n; ++i) {
        y[i] = (int16_t)mcg_requant(x[i] - zp, q);
    }
}
