/* mcugen runtime: features of a window of integers. See mcg_features.h for the contracts.
 * SPDX-License-Identifier: MIT-0
 */
#include "mcg_features.h"

#include "mcg_window_inline.h"

MCG_CODE(shifted)
static int64_t shifted(int64_t v, uint32_t shift)
{
    return shift == 0u ? v : (v + ((int64_t)1 << (shift - 1u))) >> shift;
}

MCG_CODE(leading_zeros)
static uint32_t leading_zeros(uint32_t v)
{
#if defined(__GNUC__) || defined(__clang__)
    return (uint32_t)__builtin_clz(v);
#else
    uint32_t n = 0;
    for (; (v & 0x80000000u) == 0u; v <<= 1) {
        ++n;
    }
    return n;
#endif
}

/* The root of the upper half bit by bit; one division gives the lower half, too large by 3 at most. */
MCG_CODE(mcg_isqrt)
uint32_t mcg_isqrt(uint64_t v)
{
    if (v == 0u) {
        return 0;
    }
    /* By an even shift to 2^60 <= n < 2^62. The root of v << 2k, shifted back by k, has the floor of v's. */
    const uint32_t top = (uint32_t)(v >> 32);
    const uint32_t zeros = top != 0u ? leading_zeros(top) : 32u + leading_zeros((uint32_t)v);
    const uint32_t even = (zeros - 2u) & ~1u;
    const uint64_t n = v << even;
    uint32_t high = 0, rest = (uint32_t)(n >> 32);
    for (uint32_t bit = 1u << 28; bit != 0u; bit >>= 2) {
        const uint32_t trial = high + bit;
        high >>= 1;
        if (rest >= trial) {
            rest -= trial;
            high += bit;
        }
    }
    /* high < 2^15 and rest <= 2 * high: the dividend fits. */
    uint32_t root = (high << 16) + ((rest << 16) + ((uint32_t)n >> 16)) / (2u * high);
    while ((uint64_t)root * root > n) {
        --root;
    }
    return root >> (even / 2u);
}

MCG_CODE(value_of)
static int64_t value_of(const mcg_window_t *d, const mcg_feature_t *f, const mcg_sums_t *s)
{
    const int64_t n = (int64_t)d->length;
    switch (f->kind) {
    case MCG_FEATURE_MEAN:
        return s->sum;
    case MCG_FEATURE_VARIANCE:
    case MCG_FEATURE_STD:
        return n * s->squares - s->narrow * s->narrow;
    case MCG_FEATURE_RMS:
        return s->squares;
    case MCG_FEATURE_MIN:
        return s->low;
    case MCG_FEATURE_MAX:
        return s->high;
    case MCG_FEATURE_PEAK_TO_PEAK:
        return (int64_t)s->high - s->low;
    case MCG_FEATURE_SLOPE:
        return 2 * s->ramp - (n - 1) * s->sum;
    case MCG_FEATURE_ZERO_CROSSINGS:
        return s->crossings;
    case MCG_FEATURE_MEAN_ABS_DIFFERENCE:
        return s->travel;
    default:
        return s->last;
    }
}

MCG_CODE(mcg_features)
void mcg_features(const mcg_window_t *d, const mcg_feature_t *features, const mcg_sums_t *sums, int32_t *y)
{
    for (uint32_t i = 0, n = d->features; i < n; ++i) {
        const mcg_feature_t *const f = features + i;
        const int64_t v = value_of(d, f, sums + f->track);
        const int root = f->kind == MCG_FEATURE_STD || f->kind == MCG_FEATURE_RMS;
        y[f->out] = root ? (int32_t)mcg_isqrt((uint64_t)v << f->shift) : (int32_t)shifted(v, f->shift);
    }
}

/* What a band makes of the products of one bin. */
MCG_CODE(bin_power)
static int64_t bin_power(const mcg_band_t *band, uint32_t bin, int64_t re, int64_t im)
{
    const int64_t r = (int32_t)shifted(re, band->pre), i = (int32_t)shifted(im, band->pre);
    const int64_t power = r * r + i * i;
    const uint32_t first = bin == 0u ? band->single & 1u : 0u;
    const uint32_t last = bin + 1u == band->bins ? band->single & 2u : 0u;
    return (first | last) != 0u ? power : 2 * power;
}

MCG_CODE(mcg_band_power_s16)
int32_t mcg_band_power_s16(const mcg_window_t *d, const mcg_band_t *band, const int16_t *waves, const int16_t *ring,
                           uint32_t at)
{
    const uint32_t length = d->length, older = length - at;
    const int16_t *const row = ring + band->channel * length;
    int64_t total = 0;
    for (uint32_t bin = 0; bin < band->bins; ++bin) {
        mcg_wave_t w = {0, 0};
        w = mcg_wave_s16(w, waves, waves + length, row + at, older);
        w = mcg_wave_s16(w, waves + older, waves + length + older, row, at);
        total += bin_power(band, bin, w.re, w.im);
        waves += 2u * length;
    }
    return (int32_t)shifted(total, band->shift);
}

MCG_CODE(mcg_band_power_s32)
int32_t mcg_band_power_s32(const mcg_window_t *d, const mcg_band_t *band, const int16_t *waves, const int32_t *ring,
                           uint32_t at)
{
    const uint32_t length = d->length, older = length - at;
    const int32_t *const row = ring + band->channel * length;
    int64_t total = 0;
    for (uint32_t bin = 0; bin < band->bins; ++bin) {
        mcg_wave_t w = {0, 0};
        w = mcg_wave_s32(w, waves, waves + length, row + at, older);
        w = mcg_wave_s32(w, waves + older, waves + length + older, row, at);
        total += bin_power(band, bin, w.re, w.im);
        waves += 2u * length;
    }
    return (int32_t)shifted(total, band->shift);
}
