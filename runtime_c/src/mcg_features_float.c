/* mcugen runtime: features of a window of float32 samples. See mcg_features_float.h for the contracts.
 * SPDX-License-Identifier: MIT-0
 */
#if !defined(__FAST_MATH__) /* whoever calls these functions includes mcg_features_float.h, which refuses -ffast-math */

#include "mcg_features_float.h"

#include <string.h>

/* A window in the ring: the older run, then the younger one. */
typedef struct {
    const float *run[2];
    uint32_t n[2];
} parts_t;

MCG_CODE(parts_of)
static parts_t parts_of(const mcg_window_t *d, uint32_t channel, const float *ring, uint32_t at)
{
    const float *const row = ring + channel * d->length;
    const parts_t p = {{row + at, row}, {d->length - at, at}};
    return p;
}

MCG_INLINE float product(float a, float b)
{
    float p = a * b;
    MCG_ROUNDED_F32(p);
    return p;
}

#define FOR_EACH_SAMPLE(p)                     \
    for (uint32_t part = 0; part < 2u; ++part) \
        for (uint32_t i = 0; i < (p)->n[part]; ++i)

MCG_CODE(mcg_sqrt_f32)
float mcg_sqrt_f32(float x)
{
#if defined(__arm__) && defined(__ARM_FP) && (__ARM_FP & 4)
    float root;
    __asm__("vsqrt.f32 %0, %1" : "=t"(root) : "t"(x));
    return root;
#else
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7FFFFFFFu) == 0u || bits == 0x7F800000u || x != x) {
        return x;
    }
    if (bits > 0x7F800000u) {
        return (x - x) / (x - x);
    }
    int32_t exponent = (int32_t)(bits >> 23);
    uint32_t mantissa = bits & 0x7FFFFFu;
    if (exponent == 0) {
        for (exponent = 1; (mantissa & 0x800000u) == 0u; --exponent) {
            mantissa <<= 1;
        }
    }
    mantissa |= 0x800000u;
    exponent -= 127;
    if ((exponent & 1) != 0) {
        mantissa <<= 1;
        exponent -= 1;
    }
    /* x = mantissa * 2^(exponent - 23), exponent even. The root of mantissa << 25 has 25 bits: one more than a float, so
     * that adding 1 and dropping it rounds to nearest. There are no ties: a square of an odd 25-bit number is odd. */
    const uint32_t root = mcg_isqrt((uint64_t)mantissa << 25);
    bits = ((root + 1u) >> 1) + (uint32_t)((exponent / 2 + 126) * (1 << 23));
    memcpy(&x, &bits, sizeof x);
    return x;
#endif
}

MCG_CODE(mcg_roots_f32)
void mcg_roots_f32(const float *x, float *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        y[i] = mcg_sqrt_f32(x[i]);
    }
}

MCG_CODE(sum_of)
static float sum_of(const parts_t *p)
{
    float sum = 0.0f;
    FOR_EACH_SAMPLE(p) { sum += p->run[part][i]; }
    return sum;
}

/* Squares of the distance from a level. */
MCG_CODE(squares_of)
static float squares_of(const parts_t *p, float from)
{
    float sum = 0.0f;
    FOR_EACH_SAMPLE(p)
    {
        const float v = p->run[part][i] - from;
        sum += product(v, v);
    }
    return sum;
}

MCG_CODE(least_of)
static float least_of(const parts_t *p)
{
    float best = p->run[0][0];
    FOR_EACH_SAMPLE(p)
    {
        const float v = p->run[part][i];
        best = v < best || v != v ? v : best;
    }
    return best;
}

MCG_CODE(largest_of)
static float largest_of(const parts_t *p)
{
    float best = p->run[0][0];
    FOR_EACH_SAMPLE(p)
    {
        const float v = p->run[part][i];
        best = v > best || v != v ? v : best;
    }
    return best;
}

MCG_CODE(ramp_of)
static float ramp_of(const parts_t *p, int32_t length)
{
    float sum = 0.0f;
    int32_t t = 1 - length;
    FOR_EACH_SAMPLE(p)
    {
        sum += product((float)t, p->run[part][i]);
        t += 2;
    }
    return sum;
}

MCG_CODE(travel_of)
static float travel_of(const parts_t *p)
{
    /* From the second sample on: infinity minus itself would be NaN. */
    const parts_t rest = {{p->run[0] + 1, p->run[1]}, {p->n[0] - 1u, p->n[1]}};
    float sum = 0.0f, last = p->run[0][0];
    FOR_EACH_SAMPLE(&rest)
    {
        const float v = rest.run[part][i], step = v - last;
        sum += step < 0.0f ? -step : step;
        last = v;
    }
    return sum;
}

MCG_CODE(crossings_of)
static float crossings_of(const parts_t *p, float level)
{
    uint32_t count = 0, last = p->run[0][0] < level;
    FOR_EACH_SAMPLE(p)
    {
        const uint32_t below = p->run[part][i] < level;
        count += below ^ last;
        last = below;
    }
    return (float)count;
}

MCG_CODE(feature_of)
static float feature_of(const mcg_window_t *d, const mcg_float_feature_t *f, const float *ring, uint32_t at)
{
    const parts_t parts = parts_of(d, f->channel, ring, at);
    const parts_t *const p = &parts;
    switch (f->kind) {
    case MCG_FLOAT_MEAN:
        return sum_of(p) / f->divisor;
    case MCG_FLOAT_VARIANCE:
        return squares_of(p, sum_of(p) / f->divisor) / f->divisor;
    case MCG_FLOAT_STD:
        return mcg_sqrt_f32(squares_of(p, sum_of(p) / f->divisor) / f->divisor);
    case MCG_FLOAT_RMS:
        return mcg_sqrt_f32(squares_of(p, 0.0f) / f->divisor);
    case MCG_FLOAT_MIN:
        return least_of(p);
    case MCG_FLOAT_MAX:
        return largest_of(p);
    case MCG_FLOAT_PEAK_TO_PEAK:
        return largest_of(p) - least_of(p);
    case MCG_FLOAT_SLOPE:
        return ramp_of(p, (int32_t)d->length) / f->divisor;
    case MCG_FLOAT_ZERO_CROSSINGS:
        return crossings_of(p, f->level);
    case MCG_FLOAT_MEAN_ABS_DIFFERENCE:
        return travel_of(p) / f->divisor;
    default:
        return ring[f->channel * d->length + (at > f->lag ? at - f->lag - 1u : at + d->length - f->lag - 1u)];
    }
}

MCG_CODE(mcg_features_f32)
void mcg_features_f32(const mcg_window_t *d, const mcg_float_feature_t *features, const float *ring, uint32_t at,
                      float *y)
{
    for (uint32_t i = 0, n = d->features; i < n; ++i) {
        y[features[i].out] = feature_of(d, features + i, ring, at);
    }
}

MCG_CODE(dot)
static float dot(const parts_t *p, const float *wave)
{
    float sum = 0.0f;
    FOR_EACH_SAMPLE(p) { sum += product(p->run[part][i], *wave++); }
    return sum;
}

MCG_CODE(mcg_band_power_f32)
float mcg_band_power_f32(const mcg_window_t *d, const mcg_band_t *band, const float *waves, const float *ring,
                         uint32_t at)
{
    const parts_t p = parts_of(d, band->channel, ring, at);
    float total = 0.0f;
    for (uint32_t bin = 0; bin < band->bins; ++bin) {
        const float re = dot(&p, waves), im = dot(&p, waves + d->length);
        const float power = product(re, re) + product(im, im);
        const uint32_t first = bin == 0u ? band->single & 1u : 0u;
        const uint32_t last = bin + 1u == band->bins ? band->single & 2u : 0u;
        total += product((first | last) != 0u ? 1.0f : 2.0f, power);
        waves += 2u * d->length;
    }
    return total / (float)(d->length * d->length);
}

#endif
