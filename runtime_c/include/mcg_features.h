/* mcugen runtime: features of a window of integers, from its exact sums.
 *
 * Every result is an exact integer, rounded once (ties up) or not at all, so that it fits int32; what a unit of it is
 * worth mcugen computes. Overflow: none, proven by mcugen from length and ranges.
 * SPDX-License-Identifier: MIT-0
 */
#ifndef MCG_FEATURES_H
#define MCG_FEATURES_H

#include "mcg_window.h"

typedef enum {
    MCG_FEATURE_MEAN,                /* sum */
    MCG_FEATURE_VARIANCE,            /* length * squares - narrow^2 */
    MCG_FEATURE_STD,                 /* the square root of that << shift, rounded down */
    MCG_FEATURE_RMS,                 /* the square root of squares << shift, rounded down */
    MCG_FEATURE_MIN,                 /* low */
    MCG_FEATURE_MAX,                 /* high */
    MCG_FEATURE_PEAK_TO_PEAK,        /* high - low */
    MCG_FEATURE_SLOPE,               /* 2 * ramp - (length - 1) * sum */
    MCG_FEATURE_ZERO_CROSSINGS,      /* crossings */
    MCG_FEATURE_MEAN_ABS_DIFFERENCE, /* travel */
    MCG_FEATURE_LAST                 /* last */
} mcg_feature_kind_t;

typedef struct {
    uint16_t out;   /* the element of y that it writes */
    uint16_t track; /* the sums that it is made of */
    uint8_t kind;   /* mcg_feature_kind_t */
    uint8_t shift;  /* bits dropped, rounded; of roots: bits added below the square */
} mcg_feature_t;

typedef struct {
    uint16_t channel;
    uint16_t bins;
    uint16_t single; /* bit 0: the first bin counts once, not twice; bit 1: the last bin */
    uint8_t pre;     /* bits dropped from each sum, rounded */
    uint8_t shift;   /* bits dropped from the power, rounded */
} mcg_band_t;

MCG_BEGIN_DECLS

/* y[f.out] for each of the window's features. Cost: about 25 instructions each, roots 150. */
void mcg_features(const mcg_window_t *d, const mcg_feature_t *features, const mcg_sums_t *sums, int32_t *y);

/* The power of one channel in a band: the sum over its bins of re^2 + im^2, with re and im the products of the window in
 * the ring with two waves. waves (bins, 2, length): cosine, sine. Cost: about 4 instructions a sample and bin for s16,
 * 7 for s32. */
int32_t mcg_band_power_s16(const mcg_window_t *d, const mcg_band_t *band, const int16_t *waves, const int16_t *ring,
                           uint32_t at);
int32_t mcg_band_power_s32(const mcg_window_t *d, const mcg_band_t *band, const int16_t *waves, const int32_t *ring,
                           uint32_t at);

/* The square root of v < 2^62, rounded down. Cost: about 120 instructions. */
uint32_t mcg_isqrt(uint64_t v);

MCG_END_DECLS

#endif
