/* mcugen runtime: windows in rings and their exact sums. See mcg_window.h for the contracts.
 * SPDX-License-Identifier: MIT-0
 */
#include "mcg_window.h"

#include "mcg_window_inline.h"

#define SUMS (MCG_SUM | MCG_SQUARES | MCG_RAMP)

MCG_CODE(mcg_window_init_s16)
void mcg_window_init_s16(int16_t *ring, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        ring[i] = 0;
    }
}

MCG_CODE(mcg_window_init_s32)
void mcg_window_init_s32(int32_t *ring, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        ring[i] = 0;
    }
}

MCG_CODE(mcg_window_init_f32)
void mcg_window_init_f32(float *ring, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        ring[i] = 0.0f;
    }
}

MCG_CODE(mcg_window_init_sums)
void mcg_window_init_sums(mcg_sums_t *sums, uint32_t tracks)
{
    const mcg_sums_t zero = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    for (uint32_t i = 0; i < tracks; ++i) {
        sums[i] = zero;
    }
}

MCG_CODE(mcg_window_clamp_s16)
void mcg_window_clamp_s16(const int16_t *x, const int16_t *limit, int16_t *y, uint32_t channels)
{
    for (uint32_t c = 0; c < channels; ++c) {
        const int32_t high = limit[c], low = -high - 1, v = x[c];
        y[c] = (int16_t)(v > high ? high : v < low ? low : v);
    }
}

MCG_CODE(mcg_window_clamp_s32)
void mcg_window_clamp_s32(const int32_t *x, const int32_t *limit, int32_t *y, uint32_t channels)
{
    for (uint32_t c = 0; c < channels; ++c) {
        const int32_t high = limit[c], low = -high - 1, v = x[c];
        y[c] = v > high ? high : v < low ? low : v;
    }
}

#define PUSH                                            \
    const uint32_t length = d->length;                  \
    ring += *at;                                        \
    for (uint32_t c = 0, n = d->channels; c < n; ++c) { \
        *ring = x[c];                                   \
        ring += length;                                 \
    }                                                   \
    *at = *at + 1u == length ? 0u : *at + 1u;           \
    return mcg_window_due(d, wait);

MCG_CODE(mcg_window_push_s16)
uint32_t mcg_window_push_s16(const mcg_window_t *d, int16_t *ring, uint32_t *at, uint32_t *wait, const int16_t *x){PUSH}

MCG_CODE(mcg_window_push_s32)
uint32_t mcg_window_push_s32(const mcg_window_t *d, int32_t *ring, uint32_t *at, uint32_t *wait, const int32_t *x){PUSH}

MCG_CODE(mcg_window_push_f32)
uint32_t mcg_window_push_f32(const mcg_window_t *d, float *ring, uint32_t *at, uint32_t *wait, const float *x){PUSH}

/* The loop over one run, with what it has to compute known to the compiler. */
MCG_CODE(sums_s16)
static void sums_s16(const int16_t *x, uint32_t n, uint32_t first, uint32_t uses, mcg_sums_t *s)
{
    if ((uses & MCG_RAMP) != 0u) {
        mcg_run_sums_s16(x, n, first, SUMS, s);
    } else if ((uses & MCG_SQUARES) != 0u) {
        mcg_run_sums_s16(x, n, first, MCG_SUM | MCG_SQUARES, s);
    } else {
        mcg_run_sums_s16(x, n, first, MCG_SUM, s);
    }
}

MCG_CODE(sums_s32)
static void sums_s32(const int32_t *x, uint32_t n, uint32_t first, uint32_t pre, uint32_t uses, mcg_sums_t *s)
{
    /* Squares only where they are wanted: pre is planned for them, else they could overflow. */
    switch (uses & (MCG_SQUARES | MCG_RAMP)) {
    case MCG_SQUARES | MCG_RAMP:
        mcg_run_sums_s32(x, n, first, pre, SUMS, s);
        break;
    case MCG_SQUARES:
        mcg_run_sums_s32(x, n, first, pre, MCG_SUM | MCG_SQUARES, s);
        break;
    case MCG_RAMP:
        mcg_run_sums_s32(x, n, first, pre, MCG_SUM | MCG_RAMP, s);
        break;
    default:
        mcg_run_sums_s32(x, n, first, pre, MCG_SUM, s);
        break;
    }
}

MCG_CODE(start)
static void start(int32_t oldest, mcg_sums_t *s)
{
    s->sum = s->narrow = s->squares = s->ramp = s->travel = 0;
    s->low = s->high = s->last = oldest;
    s->crossings = 0;
}

#define SCAN(TYPE, SUMS_OF, CALL)                                    \
    const uint32_t length = d->length, older = length - at;          \
    for (uint32_t t = 0; t < d->tracks; ++t) {                       \
        const uint32_t uses = tracks[t].uses;                        \
        const int32_t level = tracks[t].level;                       \
        const TYPE *const young = ring + tracks[t].channel * length; \
        const TYPE *const old = young + at;                          \
        mcg_sums_t *const s = sums + t;                              \
        start(*old, s);                                              \
        if ((uses & SUMS) != 0u) {                                   \
            SUMS_OF(old, older, 0u);                                 \
            SUMS_OF(young, at, older);                               \
        }                                                            \
        if ((uses & MCG_EXTREMES) != 0u) {                           \
            CALL(extremes)(old, older, s);                           \
            CALL(extremes)(young, at, s);                            \
        }                                                            \
        if ((uses & MCG_TRAVEL) != 0u) {                             \
            CALL(travel)(old, older, s);                             \
            s->last = old[older - 1u];                               \
            CALL(travel)(young, at, s);                              \
            s->last = *old;                                          \
        }                                                            \
        if ((uses & MCG_CROSSINGS) != 0u) {                          \
            CALL(crossings)(old, older, level, s);                   \
            s->last = old[older - 1u];                               \
            CALL(crossings)(young, at, level, s);                    \
        }                                                            \
        s->last = at != 0u ? young[at - 1u] : old[older - 1u];       \
    }

#define S16(what) mcg_run_##what##_s16
#define SUMS_OF(x, n, first) sums_s16(x, n, first, uses, s)
MCG_CODE(mcg_window_scan_s16)
void mcg_window_scan_s16(const mcg_window_t *d, const mcg_track_t *tracks, const int16_t *ring, uint32_t at,
                         mcg_sums_t *sums){SCAN(int16_t, SUMS_OF, S16)}
#undef SUMS_OF

#define S32(what) mcg_run_##what##_s32
#define SUMS_OF(x, n, first) sums_s32(x, n, first, tracks[t].pre, uses, s)
MCG_CODE(mcg_window_scan_s32)
void mcg_window_scan_s32(const mcg_window_t *d, const mcg_track_t *tracks, const int32_t *ring, uint32_t at,
                         mcg_sums_t *sums){SCAN(int32_t, SUMS_OF, S32)}
#undef SUMS_OF

/* One sample enters, the oldest leaves. */
MCG_INLINE void slide(const mcg_track_t *t, uint32_t uses, int32_t length, int32_t v, int32_t oldest, mcg_sums_t *s)
{
    if ((uses & MCG_RAMP) != 0u) { /* the samples move down by one place */
        s->ramp += (int64_t)v * (length - 1) - (s->sum - oldest);
    }
    if ((uses & (MCG_SUM | MCG_RAMP)) != 0u) {
        s->sum += (int64_t)v - oldest;
    }
    if ((uses & MCG_SQUARES) != 0u) {
        const int32_t in = v >> t->pre, out = oldest >> t->pre;
        s->narrow += (int64_t)in - out;
        s->squares += (int64_t)in * in - (int64_t)out * out;
    }
    if ((uses & MCG_EXTREMES) != 0u) {
        s->low_age = v <= s->low ? 0u : s->low_age + 1u;
        s->high_age = v >= s->high ? 0u : s->high_age + 1u;
        mcg_run_extreme(v, s);
    }
    s->last = v;
}

/* The step to the sample that enters, from the newest; and that from the oldest to the second, which leaves. */
MCG_INLINE void slide_steps(const mcg_track_t *t, uint32_t uses, int32_t v, int32_t newest, int32_t second,
                            int32_t oldest, mcg_sums_t *s)
{
    if ((uses & MCG_TRAVEL) != 0u) {
        s->travel += (int64_t)mcg_distance(v, newest) - (int64_t)mcg_distance(second, oldest);
    }
    if ((uses & MCG_CROSSINGS) != 0u) {
        const int32_t level = t->level;
        s->crossings += (uint32_t)((v < level) != (newest < level));
        s->crossings -= (uint32_t)((second < level) != (oldest < level));
    }
}

#define RUN(TYPE)                                                                 \
    const uint32_t length = d->length;                                            \
    const uint32_t newest = at != 0u ? at - 1u : length - 1u;                     \
    const uint32_t second = at + 1u == length ? 0u : at + 1u;                     \
    const mcg_track_t *const end = tracks + d->tracks;                            \
    for (; tracks != end; ++tracks, ++sums) {                                     \
        const uint32_t uses = tracks->uses;                                       \
        const TYPE *const row = ring + tracks->channel * length;                  \
        const int32_t v = x[tracks->channel], oldest = row[at];                   \
        slide(tracks, uses, (int32_t)length, v, oldest, sums);                    \
        if ((uses & (MCG_TRAVEL | MCG_CROSSINGS)) != 0u) {                        \
            slide_steps(tracks, uses, v, row[newest], row[second], oldest, sums); \
        }                                                                         \
    }

MCG_CODE(mcg_window_run_s16)
void mcg_window_run_s16(const mcg_window_t *d, const mcg_track_t *tracks, const int16_t *ring, uint32_t at,
                        mcg_sums_t *sums, const int16_t *x){RUN(int16_t)}

MCG_CODE(mcg_window_run_s32)
void mcg_window_run_s32(const mcg_window_t *d, const mcg_track_t *tracks, const int32_t *ring, uint32_t at,
                        mcg_sums_t *sums, const int32_t *x)
{
    RUN(int32_t)
}

/* An extreme that has left is not the window's: all of them are looked for, and how old they are. Where many samples are
 * equal the newest counts, which stays longest. */
#define RENEW(EXTREMES_OF)                                                                            \
    const uint32_t length = d->length, older = length - at;                                           \
    for (uint32_t t = 0; t < d->tracks; ++t) {                                                        \
        mcg_sums_t *const s = sums + t;                                                               \
        if ((tracks[t].uses & MCG_EXTREMES) == 0u || (s->low_age < length && s->high_age < length)) { \
            continue;                                                                                 \
        }                                                                                             \
        row = ring + tracks[t].channel * length;                                                      \
        s->low = s->high = row[at];                                                                   \
        EXTREMES_OF(row + at, older, s);                                                              \
        EXTREMES_OF(row, at, s);                                                                      \
        AGE(s->low_age, s->low)                                                                       \
        AGE(s->high_age, s->high)                                                                     \
    }

#define AGE(age, value)                                     \
    for (age = 0; row[before(at, age, length)] != value;) { \
        ++age;                                              \
    }

/* The place of the sample `age` before the newest. */
MCG_INLINE uint32_t before(uint32_t at, uint32_t age, uint32_t length)
{
    return at > age ? at - age - 1u : at + length - age - 1u;
}

MCG_CODE(mcg_window_renew_s16)
void mcg_window_renew_s16(const mcg_window_t *d, const mcg_track_t *tracks, const int16_t *ring, uint32_t at,
                          mcg_sums_t *sums)
{
    const int16_t *row;
    RENEW(mcg_run_extremes_s16)
}

MCG_CODE(mcg_window_renew_s32)
void mcg_window_renew_s32(const mcg_window_t *d, const mcg_track_t *tracks, const int32_t *ring, uint32_t at,
                          mcg_sums_t *sums)
{
    const int32_t *row;
    RENEW(mcg_run_extremes_s32)
}

/* Sample number i of a window. */
MCG_INLINE void append(const mcg_track_t *t, int32_t i, int32_t v, mcg_sums_t *s)
{
    if (i == 0) {
        start(v, s);
    }
    const uint32_t uses = t->uses;
    s->sum += v;
    if ((uses & MCG_SQUARES) != 0u) {
        const int32_t u = v >> t->pre;
        s->narrow += u;
        s->squares += (int64_t)u * u;
    }
    if ((uses & MCG_RAMP) != 0u) {
        s->ramp += (int64_t)v * i;
    }
    if ((uses & MCG_EXTREMES) != 0u) {
        mcg_run_extreme(v, s);
    }
    if ((uses & MCG_TRAVEL) != 0u) {
        s->travel += mcg_distance(v, s->last);
    }
    if ((uses & MCG_CROSSINGS) != 0u) {
        s->crossings += (uint32_t)((v < t->level) != (s->last < t->level));
    }
    s->last = v;
}

#define STREAM                                         \
    const uint32_t length = d->length;                 \
    if (wait > length) { /* between two windows */     \
        return;                                        \
    }                                                  \
    const int32_t i = (int32_t)(length - wait);        \
    const mcg_track_t *const end = tracks + d->tracks; \
    for (; tracks != end; ++tracks, ++sums) {          \
        append(tracks, i, x[tracks->channel], sums);   \
    }

MCG_CODE(mcg_window_stream_s16)
void mcg_window_stream_s16(const mcg_window_t *d, const mcg_track_t *tracks, uint32_t wait, mcg_sums_t *sums,
                           const int16_t *x){STREAM}

MCG_CODE(mcg_window_stream_s32)
void mcg_window_stream_s32(const mcg_window_t *d, const mcg_track_t *tracks, uint32_t wait, mcg_sums_t *sums,
                           const int32_t *x){STREAM}

MCG_CODE(mcg_window_lag_s16)
int32_t mcg_window_lag_s16(const mcg_window_t *d, const int16_t *ring, uint32_t at, uint32_t channel, uint32_t lag)
{
    return ring[channel * d->length + before(at, lag, d->length)];
}

MCG_CODE(mcg_window_lag_s32)
int32_t mcg_window_lag_s32(const mcg_window_t *d, const int32_t *ring, uint32_t at, uint32_t channel, uint32_t lag)
{
    return ring[channel * d->length + before(at, lag, d->length)];
}
