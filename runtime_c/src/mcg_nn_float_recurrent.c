/* mcugen runtime: float32 LSTM and GRU layers. See mcg_nn_float.h for the contracts.
 * SPDX-License-Identifier: MIT-0
 */
#if !defined(__FAST_MATH__) /* whoever calls these functions includes mcg_nn_float.h, which refuses -ffast-math */

#include "mcg_nn_float.h"
#include "mcg_scores.h"

#include <string.h>

MCG_INLINE float product(float a, float b)
{
    float p = a * b;
    MCG_ROUNDED_F32(p);
    return p;
}

/* sum + products in order */
MCG_CODE(dot)
static float dot(float sum, const float *w, const float *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        sum += product(w[i], x[i]);
    }
    return sum;
}

MCG_CODE(begin)
static void begin(float *to, const float *start, uint32_t n)
{
    for (uint32_t j = 0; j < n; ++j) {
        to[j] = start != NULL ? start[j] : 0.0f;
    }
}

/* keep: where h and c after the last step go, or NULL; it may be start. */
MCG_CODE(lstm)
static void lstm(const mcg_wide_recurrent_t *d, const float *w, const float *r, const float *bias, const float *start,
                 float *keep, float *scratch, const float *x, float *every, float *last, float *cell)
{
    const uint32_t n = d->hidden, k = d->inputs;
    float *h = scratch, *next = scratch + n;
    float *const c = scratch + 2u * n;
    begin(h, start, n);
    begin(c, start != NULL ? start + n : NULL, n);
    for (uint32_t t = 0; t < d->steps; ++t, x += k) {
        for (uint32_t j = 0; j < n; ++j) {
            float gate[4]; /* input, output, forget, cell */
            for (uint32_t g = 0; g < 4u; ++g) {
                const uint32_t row = g * n + j;
                gate[g] = dot(dot(bias[row], w + row * k, x, k), r + row * n, h, n);
            }
            mcg_sigmoid_f32(gate, 1.0f, gate, 3u);
            mcg_tanh_f32(gate + 3, gate + 3, 1u);
            c[j] = product(gate[2], c[j]) + product(gate[0], gate[3]);
            float out;
            mcg_tanh_f32(c + j, &out, 1u);
            next[j] = gate[1] * out;
        }
        float *const old = h;
        h = next;
        next = old;
        if (every != NULL) {
            memcpy(every, h, n * sizeof *h);
            every += n;
        }
    }
    if (last != NULL) {
        memcpy(last, h, n * sizeof *h);
    }
    if (cell != NULL) {
        memcpy(cell, c, n * sizeof *c);
    }
    if (keep != NULL) {
        memcpy(keep, h, n * sizeof *h);
        memcpy(keep + n, c, n * sizeof *c);
    }
}

MCG_CODE(mcg_lstm_f32)
void mcg_lstm_f32(const mcg_wide_recurrent_t *d, const float *w, const float *r, const float *bias, const float *start,
                  float *scratch, const float *x, float *every, float *last, float *cell)
{
    lstm(d, w, r, bias, start, NULL, scratch, x, every, last, cell);
}

MCG_CODE(mcg_lstm_step_f32)
void mcg_lstm_step_f32(const mcg_wide_recurrent_t *d, const float *w, const float *r, const float *bias, float *state,
                       float *scratch, const float *x, float *every, float *last, float *cell)
{
    lstm(d, w, r, bias, state, state, scratch, x, every, last, cell);
}

/* z * h + (1 - z) * n */
MCG_INLINE float blend(float z, float h, float n) { return product(z, h) + product(1.0f - z, n); }

MCG_CODE(gru)
static void gru(const mcg_wide_recurrent_t *d, const float *w, const float *r, const float *bias, const float *start,
                float *keep, float *scratch, const float *x, float *every, float *last)
{
    const uint32_t n = d->hidden, k = d->inputs;
    const float *const bias_h = bias + 3u * n;
    float *const h = scratch, *const update = scratch + n, *const reset = scratch + 2u * n;
    begin(h, start, n);
    for (uint32_t t = 0; t < d->steps; ++t, x += k) {
        /* With reset_after, `reset` takes the new argument of tanh; else r * h. */
        for (uint32_t j = 0; j < n; ++j) {
            float gate[2]; /* update, reset */
            for (uint32_t g = 0; g < 2u; ++g) {
                const uint32_t row = g * n + j;
                gate[g] = dot(bias[row], w + row * k, x, k) + dot(bias_h[row], r + row * n, h, n);
            }
            mcg_sigmoid_f32(gate, 1.0f, gate, 2u);
            update[j] = gate[0];
            if (d->reset_after != 0u) {
                const uint32_t row = 2u * n + j;
                const float from_h = dot(bias_h[row], r + row * n, h, n);
                reset[j] = dot(bias[row], w + row * k, x, k) + product(gate[1], from_h);
            } else {
                reset[j] = gate[1] * h[j];
            }
        }
        for (uint32_t j = 0; j < n; ++j) {
            const uint32_t row = 2u * n + j;
            float value = reset[j];
            if (d->reset_after == 0u) {
                value = dot(bias[row], w + row * k, x, k) + dot(bias_h[row], r + row * n, reset, n);
            }
            mcg_tanh_f32(&value, &value, 1u);
            h[j] = blend(update[j], h[j], value);
        }
        if (every != NULL) {
            memcpy(every, h, n * sizeof *h);
            every += n;
        }
    }
    if (last != NULL) {
        memcpy(last, h, n * sizeof *h);
    }
    if (keep != NULL) {
        memcpy(keep, h, n * sizeof *h);
    }
}

MCG_CODE(mcg_gru_f32)
void mcg_gru_f32(const mcg_wide_recurrent_t *d, const float *w, const float *r, const float *bias, const float *start,
                 float *scratch, const float *x, float *every, float *last)
{
    gru(d, w, r, bias, start, NULL, scratch, x, every, last);
}

MCG_CODE(mcg_gru_step_f32)
void mcg_gru_step_f32(const mcg_wide_recurrent_t *d, const float *w, const float *r, const float *bias, float *state,
                      float *scratch, const float *x, float *every, float *last)
{
    gru(d, w, r, bias, state, state, scratch, x, every, last);
}

#endif
