/* mcugen runtime: windows of samples in a ring, and the exact sums that features are made of.
 *
 * A sample is one value of each channel at one instant. A window is the last `length` samples; it is due at push number
 * `length`, then at every `step`-th. The ring has a row of `length` samples for each channel; `at` is where the next
 * sample goes, so the oldest lies there once the ring is full. `wait` counts the pushes to the next result, that one
 * included. All sums are exact, whichever way they are made: at once from the ring (scan), by what enters and leaves
 * (run), or from one window after the other without a ring (stream, where step >= length).
 *
 * Overflow: none for samples in the ranges that mcugen planned for; it clamps where the type holds more.
 * Aliasing: x, ring and sums are apart. Names end in the type of the samples.
 * SPDX-License-Identifier: MIT-0
 */
#ifndef MCG_WINDOW_H
#define MCG_WINDOW_H

#include "mcg.h"

typedef struct {
    uint32_t channels;
    uint32_t length; /* 1..32767 */
    uint32_t step;
    uint32_t tracks;   /* how many of mcg_track_t there are */
    uint32_t features; /* how many of mcg_feature_t there are */
} mcg_window_t;

/* What is wanted of a channel. */
#define MCG_SUM 1u
#define MCG_SQUARES 2u
#define MCG_RAMP 4u /* with MCG_SUM */
#define MCG_EXTREMES 8u
#define MCG_TRAVEL 16u
#define MCG_CROSSINGS 32u
#define MCG_LAST 64u

typedef struct {
    uint16_t channel;
    uint8_t uses; /* MCG_SUM and others, added */
    uint8_t pre;  /* bits that u drops from x, rounded down */
    int32_t level;
} mcg_track_t;

typedef struct {
    int64_t sum;                /* of x */
    int64_t narrow;             /* of u = x >> pre */
    int64_t squares;            /* of u * u */
    int64_t ramp;               /* of i * x, i = 0 for the oldest */
    int64_t travel;             /* of |x - the sample before it| */
    int32_t low, high;          /* the extremes */
    int32_t last;               /* the newest */
    uint32_t crossings;         /* neighbours of which one is below the level and one is not */
    uint32_t low_age, high_age; /* samples since the extremes, where they are kept by mcg_window_run */
} mcg_sums_t;

MCG_BEGIN_DECLS

/* A ring of zeros, n samples in all (channels * length). */
void mcg_window_init_s16(int16_t *ring, uint32_t n);
void mcg_window_init_s32(int32_t *ring, uint32_t n);
void mcg_window_init_f32(float *ring, uint32_t n);
/* The sums of a ring of zeros. */
void mcg_window_init_sums(mcg_sums_t *sums, uint32_t tracks);

/* y[c] = x[c] clamped to [-limit[c] - 1, limit[c]]. y may be x. */
void mcg_window_clamp_s16(const int16_t *x, const int16_t *limit, int16_t *y, uint32_t channels);
void mcg_window_clamp_s32(const int32_t *x, const int32_t *limit, int32_t *y, uint32_t channels);

/* Counts a push: 1 where a window is due, else 0. */
MCG_INLINE uint32_t mcg_window_due(const mcg_window_t *d, uint32_t *wait)
{
    const uint32_t due = --*wait == 0u;
    if (due != 0u) {
        *wait = d->step;
    }
    return due;
}

/* Takes the sample x (channels) into the ring and counts it: 1 where a window is due, else 0.
 * Cost: about 24 instructions and 4 a channel. */
uint32_t mcg_window_push_s16(const mcg_window_t *d, int16_t *ring, uint32_t *at, uint32_t *wait, const int16_t *x);
uint32_t mcg_window_push_s32(const mcg_window_t *d, int32_t *ring, uint32_t *at, uint32_t *wait, const int32_t *x);
uint32_t mcg_window_push_f32(const mcg_window_t *d, float *ring, uint32_t *at, uint32_t *wait, const float *x);

/* The sums of the window in a full ring. Cost, instructions a sample (s16, s32): sum 1.75, 5; squares with it 2.25, 9;
 * ramp with both 3.25, 11; extremes 3.5, 7; travel 6.5, 10; crossings 6, 9. */
void mcg_window_scan_s16(const mcg_window_t *d, const mcg_track_t *tracks, const int16_t *ring, uint32_t at,
                         mcg_sums_t *sums);
void mcg_window_scan_s32(const mcg_window_t *d, const mcg_track_t *tracks, const int32_t *ring, uint32_t at,
                         mcg_sums_t *sums);

/* Before x is pushed: keeps the sums by what enters and what leaves, and an extreme until it leaves the window.
 * Cost: about 25 instructions and 30 a track; sum 9, squares 22, ramp 15, extremes 19, travel 20, crossings 24. */
void mcg_window_run_s16(const mcg_window_t *d, const mcg_track_t *tracks, const int16_t *ring, uint32_t at,
                        mcg_sums_t *sums, const int16_t *x);
void mcg_window_run_s32(const mcg_window_t *d, const mcg_track_t *tracks, const int32_t *ring, uint32_t at,
                        mcg_sums_t *sums, const int32_t *x);

/* After mcg_window_run, where a window is due: finds the extremes that have left. Cost: nothing, or a scan. */
void mcg_window_renew_s16(const mcg_window_t *d, const mcg_track_t *tracks, const int16_t *ring, uint32_t at,
                          mcg_sums_t *sums);
void mcg_window_renew_s32(const mcg_window_t *d, const mcg_track_t *tracks, const int32_t *ring, uint32_t at,
                          mcg_sums_t *sums);

/* Before x is counted, where step >= length: adds x to the sums of its window, if it belongs to one. */
void mcg_window_stream_s16(const mcg_window_t *d, const mcg_track_t *tracks, uint32_t wait, mcg_sums_t *sums,
                           const int16_t *x);
void mcg_window_stream_s32(const mcg_window_t *d, const mcg_track_t *tracks, uint32_t wait, mcg_sums_t *sums,
                           const int32_t *x);

/* The sample `lag` before the newest. */
int32_t mcg_window_lag_s16(const mcg_window_t *d, const int16_t *ring, uint32_t at, uint32_t channel, uint32_t lag);
int32_t mcg_window_lag_s32(const mcg_window_t *d, const int32_t *ring, uint32_t at, uint32_t channel, uint32_t lag);

MCG_END_DECLS

#endif
