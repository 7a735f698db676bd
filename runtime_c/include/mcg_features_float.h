/* mcugen runtime: features of a window of float32 samples.
 *
 * Sums start at 0 and go from the oldest sample to the newest; products are rounded before they are added, never fused;
 * quotients and square roots are rounded to nearest: numpy's float32 gives the same bits. A window that holds NaN gives
 * NaN, but for counts. SPDX-License-Identifier: MIT-0
 */
#ifndef MCG_FEATURES_FLOAT_H
#define MCG_FEATURES_FLOAT_H

#include "mcg_features.h"

#if defined(__FAST_MATH__)
#error "mcugen: float32 features need the order of operations and NaN; build without -ffast-math"
#endif

typedef enum {
    MCG_FLOAT_MEAN,                /* sum of x / divisor */
    MCG_FLOAT_VARIANCE,            /* sum of (x - mean)^2 / divisor, mean as above */
    MCG_FLOAT_STD,                 /* its square root */
    MCG_FLOAT_RMS,                 /* the square root of the sum of x^2 / divisor */
    MCG_FLOAT_MIN,                 /* the first of equals */
    MCG_FLOAT_MAX,                 /* the first of equals */
    MCG_FLOAT_PEAK_TO_PEAK,        /* max - min */
    MCG_FLOAT_SLOPE,               /* sum of (2 i - (length - 1)) * x / divisor */
    MCG_FLOAT_ZERO_CROSSINGS,      /* neighbours of which one is below the level and one is not */
    MCG_FLOAT_MEAN_ABS_DIFFERENCE, /* sum of |x - the sample before it| / divisor */
    MCG_FLOAT_LAG                  /* the sample `lag` before the newest */
} mcg_float_kind_t;

typedef struct {
    uint16_t out; /* the element of y that it writes */
    uint16_t channel;
    uint16_t kind; /* mcg_float_kind_t */
    uint16_t lag;
    float divisor;
    float level;
} mcg_float_feature_t;

MCG_BEGIN_DECLS

/* y[f.out] for each of the window's features. Cost: about 6 instructions a sample each, twice that for a variance. */
void mcg_features_f32(const mcg_window_t *d, const mcg_float_feature_t *features, const float *ring, uint32_t at,
                      float *y);

/* The sum over the band's bins of w * (re^2 + im^2), w = 1 or 2, divided by length^2. waves (bins, 2, length): cosine, sine.
 * Cost: about 8 instructions a sample and bin. */
float mcg_band_power_f32(const mcg_window_t *d, const mcg_band_t *band, const float *waves, const float *ring,
                         uint32_t at);

/* The square root of x >= 0, rounded to nearest; NaN for other x. */
float mcg_sqrt_f32(float x);
/* The same for n of them. y may be x. */
void mcg_roots_f32(const float *x, float *y, uint32_t n);

MCG_END_DECLS

#endif
