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

MCG_CODE(window)
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

/* Channels that stand side by side in memory, in x and in y, are taken four at a time: PER_FOUR does so and counts
 * them in c. */
#define FOR_EACH_WINDOW(T)                                                      \
    const uint32_t row_step = (uint32_t)d->dilation_h * d->in_row;              \
    const uint32_t col_step = (uint32_t)d->dilation_w * d->in_col;              \
    for (int32_t oh = 0; oh < d->out_h; ++oh)                                   \
        for (int32_t ow = 0; ow < d->out_w; ++ow) {                             \
            const window_t win = window(d, oh, ow);                             \
            const T *channel = x + win.at;                                      \
            T *out = y + (uint32_t)oh * d->out_row + (uint32_t)ow * d->out_col; \
            uint32_t c = 0;                                                     \
            PER_WINDOW                                                          \
            PER_FOUR                                                            \
            for (; c < d->channels; ++c) {                                      \
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

#define PER_FOUR                                                        \
    for (; side_by_side && c + 4u <= d->channels; c += 4u) {            \
        max_four(channel, out, win.rows, win.cols, row_step, col_step); \
        channel += 4;                                                   \
        out += 4;                                                       \
    }
#define START int32_t best = INT8_MIN;
/* Four channels of a window that is not empty. */
MCG_INLINE void max_four(const int8_t *row, int8_t *y, uint32_t rows, uint32_t cols, uint32_t row_step,
                         uint32_t col_step)
{
    uint32_t best = 0x80808080u;
    for (; rows != 0u; --rows, row += row_step) {
        const int8_t *p = row;
        for (uint32_t n = cols; n != 0u; --n, p += col_step) {
            best = mcg_max4(best, mcg_load32(p));
        }
    }
    mcg_store32(y, best);
}

MCG_CODE(mcg_max_pool_s8)
void mcg_max_pool_s8(const mcg_pool_t *d, const int8_t *x, int8_t *y)
{
    const int side_by_side = d->in_channel == 1u && d->out_channel == 1u;
    FOR_EACH_WINDOW(int8_t)
}
#undef START
#undef PER_FOUR
#define PER_FOUR

#define START int32_t best = INT16_MIN;
MCG_CODE(mcg_max_pool_s16)
void mcg_max_pool_s16(const mcg_pool_t *d, const int16_t *x, int16_t *y){FOR_EACH_WINDOW(int16_t)}
#undef START

#undef PER_WINDOW
#undef ELEMENT
#undef RESULT

/* The requantization of a window that counts so many elements; mcugen lists every count that occurs. */
MCG_CODE(requant_of)
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

#undef PER_FOUR
#define PER_FOUR                                                                 \
    for (; side_by_side && win.cols <= MOST && c + 4u <= d->channels; c += 4u) { \
        int32_t sums[4];                                                         \
        sum_four(channel, sums, win.rows, win.cols, row_step, col_step);         \
        for (uint32_t k = 0; k < 4u; ++k) {                                      \
            *out++ = (int8_t)mcg_requant(sums[k] - offset, q);                   \
        }                                                                        \
        channel += 4;                                                            \
    }
/* Elements whose sum fits int16 whatever they are. */
#define MOST 255u
/* The sums of four channels; cols <= MOST. */
MCG_INLINE void sum_four(const int8_t *row, int32_t *sums, uint32_t rows, uint32_t cols, uint32_t row_step,
                         uint32_t col_step)
{
    int32_t a = 0, b = 0, c = 0, e = 0;
    while (rows != 0u) {
        uint32_t even = 0, odd = 0, room = MOST;
        do {
            const int8_t *p = row;
            uint32_t n = cols;
            for (; n >= 4u; n -= 4u, p += 4u * col_step) {
                const uint32_t u = mcg_load32(p), v = mcg_load32(p + col_step);
                const uint32_t s = mcg_load32(p + 2u * col_step), t = mcg_load32(p + 3u * col_step);
                even = mcg_sxtab16(mcg_sxtab16(mcg_sxtab16(mcg_sxtab16(even, u), v), s), t);
                odd = mcg_sxtab16_odd(mcg_sxtab16_odd(mcg_sxtab16_odd(mcg_sxtab16_odd(odd, u), v), s), t);
            }
            for (; n != 0u; --n, p += col_step) {
                const uint32_t v = mcg_load32(p);
                even = mcg_sxtab16(even, v);
                odd = mcg_sxtab16_odd(odd, v);
            }
            row += row_step;
            room -= cols;
        } while (--rows != 0u && room >= cols);
        a += mcg_lo(even);
        b += mcg_lo(odd);
        c += mcg_hi(even);
        e += mcg_hi(odd);
    }
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = e;
}

#define START int32_t sum = 0;
#define RESULT mcg_requant(sum - offset, q)
MCG_CODE(mcg_avg_pool_s8)
void mcg_avg_pool_s8(const mcg_pool_t *d, const mcg_pool_count_t *counts, const int8_t *x, int8_t *y)
{
    const int side_by_side = d->in_channel == 1u && d->out_channel == 1u;
    FOR_EACH_WINDOW(int8_t)
}
#undef START
#undef RESULT
#undef PER_FOUR
#define PER_FOUR

#define START int64_t sum = 0;
#define RESULT mcg_requant64(sum - offset, q)
MCG_CODE(mcg_avg_pool_s16)
void mcg_avg_pool_s16(const mcg_pool_t *d, const mcg_pool_count_t *counts, const int16_t *x,
                      int16_t *y){FOR_EACH_WINDOW(int16_t)}
#undef START
#undef RESULT
#undef PER_WINDOW

#if !defined(__FAST_MATH__) /* whoever calls these functions includes mcg_nn_float.h, which refuses -ffast-math */

#include "mcg_nn_float.h"

#define PER_WINDOW const float count = (float)win.count;
#define START float sum = 0.0f;
#define RESULT sum / count
MCG_CODE(mcg_avg_pool_f32)
void mcg_avg_pool_f32(const mcg_pool_t *d, const float *x, float *y){FOR_EACH_WINDOW(float)}
#undef PER_WINDOW
#undef START
#undef RESULT
#undef ELEMENT

#define PER_WINDOW
#define START float best = -MCG_INFINITY_F32;
#define ELEMENT best = *p > best || *p != *p ? *p : best;
#define RESULT best
MCG_CODE(mcg_max_pool_f32)
void mcg_max_pool_f32(const mcg_pool_t *d, const float *x, float *y) { FOR_EACH_WINDOW(float) }

#endif
