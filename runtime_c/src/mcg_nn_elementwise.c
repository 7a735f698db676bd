/* mcugen runtime: integer ops that treat each element by itself. See mcg_nn_elementwise.h for the contracts.
 * SPDX-License-Identifier: MIT-0
 */
#include "mcg_nn_elementwise.h"

MCG_CODE(mcg_table_s8)
void mcg_table_s8(const int8_t *table, const int8_t *x, int8_t *y, uint32_t n)
{
    const int8_t *const middle = table + 128;
    for (uint32_t i = 0; i < n; ++i) {
        y[i] = middle[x[i]];
    }
}

MCG_CODE(mcg_clamp_s8)
void mcg_clamp_s8(int8_t *y, uint32_t n, int32_t low, int32_t high)
{
    const uint32_t least = (uint32_t)(uint8_t)low * 0x01010101u, most = (uint32_t)(uint8_t)high * 0x01010101u;
    uint32_t i = 0;
    for (; i + 16u <= n; i += 16u) {
        int8_t *const p = y + i;
        const uint32_t a = mcg_clamp4(mcg_load32(p), least, most), b = mcg_clamp4(mcg_load32(p + 4), least, most);
        const uint32_t c = mcg_clamp4(mcg_load32(p + 8), least, most), d = mcg_clamp4(mcg_load32(p + 12), least, most);
        mcg_store32(p, a);
        mcg_store32(p + 4, b);
        mcg_store32(p + 8, c);
        mcg_store32(p + 12, d);
    }
    for (; i < n; ++i) {
        const int32_t v = y[i];
        y[i] = (int8_t)(v < low ? low : v > high ? high : v);
    }
}

MCG_CODE(mcg_add_s8)
void mcg_add_s8(const mcg_add_t *d, const int32_t *table, const int8_t *a, const int8_t *b, int8_t *y)
{
    const mcg_requant_t q = d->requant;
    const int32_t *const middle = table + 128;
    const int32_t unit = d->unit;
    const uint32_t n = d->n;
    if (q.shift > 32 && q.shift <= 55 && q.low == -128 && q.high == 127) {
        /* The usual case. The zero point goes through the shift; |a * unit + table| < 2^30 leaves room for it. */
        const int32_t shift = q.shift - 32, c = q.c + q.zp * (1 << shift);
        uint32_t i = 0;
        for (; i + 4u <= n; i += 4u) {
            const int32_t v0 = a[i] * unit + middle[b[i]], v1 = a[i + 1u] * unit + middle[b[i + 1u]];
            const int32_t v2 = a[i + 2u] * unit + middle[b[i + 2u]], v3 = a[i + 3u] * unit + middle[b[i + 3u]];
            y[i] = (int8_t)mcg_ssat8(mcg_smmla(v0, q.m, c) >> shift);
            y[i + 1u] = (int8_t)mcg_ssat8(mcg_smmla(v1, q.m, c) >> shift);
            y[i + 2u] = (int8_t)mcg_ssat8(mcg_smmla(v2, q.m, c) >> shift);
            y[i + 3u] = (int8_t)mcg_ssat8(mcg_smmla(v3, q.m, c) >> shift);
        }
        for (; i < n; ++i) {
            y[i] = (int8_t)mcg_ssat8(mcg_smmla(a[i] * unit + middle[b[i]], q.m, c) >> shift);
        }
        return;
    }
    for (uint32_t i = 0; i < n; ++i) {
        y[i] = (int8_t)mcg_requant(a[i] * unit + middle[b[i]], q);
    }
}

MCG_CODE(mcg_mul_s8)
void mcg_mul_s8(const mcg_mul_t *d, const int8_t *a, const int8_t *b, int8_t *y)
{
    const mcg_requant_t q = d->requant;
    const int32_t zp_a = d->zp_a, zp_b = d->zp_b;
    for (uint32_t i = 0, n = d->n; i < n; ++i) {
        y[i] = (int8_t)mcg_requant((a[i] - zp_a) * (b[i] - zp_b), q);
    }
}

MCG_CODE(mcg_scale_s8)
void mcg_scale_s8(const mcg_scale_t *d, const int32_t *multiplier, const int32_t *add, const int8_t *x, int8_t *y)
{
    const mcg_requant_t q = d->requant;
    const int32_t zp = d->zp;
    for (uint32_t o = 0; o < d->outer; ++o) {
        for (uint32_t c = 0; c < d->channels; ++c) {
            const int32_t m = multiplier[c], plus = add[c];
            for (uint32_t i = 0; i < d->inner; ++i) {
                *y++ = (int8_t)mcg_requant((*x++ - zp) * m + plus, q);
            }
        }
    }
}
