/* mcugen runtime: pools. See mcg_nn_pool.h for the contracts.
 * SPDX-License-Identifier: MIT-0
 */
#include "mcg_nn_pool.h"

#include "mcg_nn_window.h"

/* One window: its elements inside the input, and how many an average counts. */
typedef struct {
    uint32_t at, rows, cols;
    int32_t count;
} window_t;

static window_t window(const mcg_pool_t *d, int32_t oh, int32_t ow)
{
    const int32_t top = oh * d->stride_h - d->pad_top, left = ow * d->stride_w - d->pad_left;
    const mcg_taps_t r = mcg_taps(top, d->kernel_h, d->dilation_h, 0, d->in_h);
    const mcg_taps_t c = mcg_taps(left, d->kernel_w, d->dilation_w, 0, d->in_w);
    const mcg_taps_t cr = mcg_taps(top, d->kernel_h, d->dilation_h, d->count_top, d->count_bottom);
    const mcg_taps_t cc = mcg_taps(left, d->kernel_w, d->dilation_w, d->count_left, d->count_right);
    window_t w = {0, (uint32_t)(r.last - r.first), (uint32_t)(c.last - c.first),
                  (cr.last - cr.first) * (cc.last - cc.first)};
    if (w.rows != 0u && w.cols != 0u) {
        w.at = (uint32_t)(top + r.first * d->dilation_h) * d->in_row +
               (uint32_t)(left + c.first * d->dilation_w) * d->in_col;
    }
    return w;
}

#define FOR_EACH_WINDOW(T)                                                      \
    const uint32_t row_step = (uint32_t)d->dilation_h * d->in_row;              \
    const uint32_t col_step = (uint32_t)d->dilation_w * d->in_col;              \
    for (int32_t oh = 0; oh < d->out_h; ++oh)                                   \
        for (int32_t ow = 0; ow < d->out_w; ++ow) {                             \
            const window_t win = window(d, oh, ow);                             \
            const T *channel = x + win.at;                                      \
            T *out = y + (uint32_t)oh * d->out_row + (uint32_t)ow * d->out_col; \
            PER_WINDOW                                                          \
            for (uint32_t c = 0; c < d->channels; ++c) {                        \
                START                                                           \
                const T *row = channel;                                         \
                for (uint32_t i = 0; i < win.rows; ++i, row += row_step) {      \
                    const T *p = row;                                           \
                    for (uint32_t j = 0; j < win.cols; ++j, p += col_step) {    \
                        ELEMENT                                                 \
                    }                                                           \
                }                                                               \
                *out = (T)(RESULT);                                             \
                channel += d->in_channel;                                       \
                out += d->out_channel;                                          \
            }                                                                   \
        }

#define PER_WINDOW
#define ELEMENT best = *p > best ? *p : best;
#define RESULT best

#define START int32_t best = INT8_MIN;
void mcg_max_pool_s8(const mcg_pool_t *d, const int8_t *x, int8_t *y) { FOR_EACH_WINDOW(int8_t) }
#undef START

#define START int32_t best = INT16_MIN;
void mcg_max_pool_s16(const mcg_pool_t *d, const int16_t *x, int16_t *y) { FOR_EACH_WINDOW(int16_t) }
#undef START

#undef PER_WINDOW
#undef ELEMENT
#undef RESULT

/* The requantization of a window that counts so many elements; mcugen lists every count that occurs. */
static mcg_requant_t requant_of(const mcg_pool_t *d, const mcg_pool_count_t *counts, int32_t count)
{
    uint32_t i = 0;
    while (i + 1u < d->counts && counts[i].count != count) {
        ++i;
    }
    const mcg_requant_t q = {counts[i].m, counts[i].shift, counts[i].c, d->zp, d->low, d->high};
    return q;
}

#define PER_WINDOW                                            \
    const mcg_requant_t q = requant_of(d, counts, win.count); \
    const int32_t offset = (int32_t)(win.rows * win.cols) * d->zp_in;
#define ELEMENT sum += *p;

#define START int32_t sum = 0;
#define RESULT mcg_requant(sum - offset, q)
void mcg_avg_pool_s8(const mcg_pool_t *d, const mcg_pool_count_t *counts, const int8_t *x, int8_t *y)
{
    FOR_EACH_WINDOW(int8_t)
}
#undef START
#undef RESULT

#define START int64_t sum = 0;
#define RESULT mcg_requant64(sum - offset, q)
void mcg_avg_pool_s16(const mcg_pool_t *d, const mcg_pool_count_t *counts, const int16_t *x, int16_t *y)
{
    FOR_EACH_WINDOW(int16_t)
}
#undef START
#undef RESULT
#undef PER_WINDOW

#if !defined(__FAST_MATH__) /* whoever calls these functions includes mcg_nn_float.h, which refuses -ffast-math */

#include "mcg_nn_float.h"

#define PER_WINDOW const float count = (float)win.count;
#define START float sum = 0.0f;
#define RESULT sum / count
void mcg_avg_pool_f32(const mcg_pool_t *d, const float *x, float *y) { FOR_EACH_WINDOW(float) }
#undef PER_WINDOW
#undef START
#undef RESULT
#undef ELEMENT

#define PER_WINDOW
#define START float best = -MCG_INFINITY_F32;
#define ELEMENT best = *p > best || *p != *p ? *p : best;
#define RESULT best
void mcg_max_pool_f32(const mcg_pool_t *d, const float *x, float *y) { FOR_EACH_WINDOW(float) }

#endif
