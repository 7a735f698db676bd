/* mcugen runtime: LSTM and GRU layers. See mcg_nn_recurrent.h for the contracts.
 * SPDX-License-Identifier: MIT-0
 */
#include "mcg_nn_recurrent.h"

#define ONE 32768          /* 1 in units of 2^-15 */
#define TANH_END (8 << 16) /* from here on tanh is 32767 */
#define LIMIT (1 << 28)
#define GATE_WORDS 8u

/* Vectors of int16 in groups of four, in the order 0 2 1 3: what SXTB16 makes of four bytes. */
MCG_INLINE int32_t get(const uint32_t *v, uint32_t j)
{
    const uint32_t pair = v[(j >> 2) * 2u + (j & 1u)];
    return (j & 2u) != 0u ? mcg_hi(pair) : mcg_lo(pair);
}

MCG_INLINE void set(uint32_t *v, uint32_t j, int32_t value)
{
    uint32_t *const pair = v + (j >> 2) * 2u + (j & 1u);
    *pair = (j & 2u) != 0u ? mcg_pair((int32_t)*pair, value) : mcg_pair(value, mcg_hi(*pair));
}

MCG_CODE(clear)
static void clear(uint32_t *v, uint32_t words)
{
    for (uint32_t i = 0; i < words; ++i) {
        v[i] = 0;
    }
}

MCG_CODE(tanh_fixed)
static MCG_NOINLINE int32_t tanh_fixed(const int16_t *table, int32_t v)
{
    const int32_t a = v < 0 ? -v : v;
    int32_t y = ONE - 1;
    if (a < TANH_END) {
        const int32_t low = table[a >> 10], high = table[(a >> 10) + 1];
        y = low + (((high - low) * (a & 1023) + 512) >> 10);
    }
    return v < 0 ? -y : y;
}

/* sigmoid(v) = (1 + tanh(v / 2)) / 2 */
MCG_CODE(sigmoid_fixed)
static MCG_NOINLINE int32_t sigmoid_fixed(const int16_t *table, int32_t v)
{
    return (ONE + tanh_fixed(table, v / 2) + 1) >> 1;
}

/* What a gate gets from the input and from the state, in units of 2^-16. */
typedef struct {
    int32_t x, h;
} sums_t;

MCG_INLINE const uint32_t *dots(const uint32_t gates, const uint32_t *w, const uint32_t *v, uint32_t words,
                                int32_t *acc)
{
    for (uint32_t g = 0; g < gates; ++g) {
        acc[g] = 0;
    }
    for (uint32_t i = 0; i < words; i += 2u, w += gates) {
        const uint32_t even = v[i], odd = v[i + 1u];
        for (uint32_t g = 0; g < gates; ++g) {
            acc[g] = mcg_smlad(mcg_sxtb16(w[g]), even, acc[g]);
            acc[g] = mcg_smlad(mcg_sxtb16_odd(w[g]), odd, acc[g]);
        }
    }
    return w;
}

MCG_CODE(scaled)
static MCG_NOINLINE int32_t scaled(int32_t acc, const uint32_t *w)
{
    const mcg_requant_t q = {(int32_t)w[0], (int32_t)w[1], (int32_t)w[2], 0, -LIMIT, LIMIT};
    return mcg_requant(acc, q);
}

/* The gates of one unit; returns where the next block starts. */
MCG_INLINE const uint32_t *unit(const uint32_t gates, const uint32_t *w, const uint32_t *x, uint32_t x_words,
                                const uint32_t *h, uint32_t h_words, sums_t *out)
{
    int32_t from_x[4], from_h[4];
    w = dots(gates, w, x, x_words, from_x);
    w = dots(gates, w, h, h_words, from_h);
    for (uint32_t g = 0; g < gates; ++g, w += GATE_WORDS) {
        out[g].x = scaled(from_x[g], w + 2) + (int32_t)w[0];
        out[g].h = scaled(from_h[g], w + 5) + (int32_t)w[1];
    }
    return w;
}

MCG_CODE(load_input)
static void load_input(const mcg_recurrent_t *d, const int8_t *x, uint32_t *v)
{
    for (uint32_t i = 0; i < d->inputs; ++i) {
        set(v, i, x[i] - d->zp_in);
    }
}

MCG_CODE(store)
static MCG_NOINLINE void store(const uint32_t *h, uint32_t n, mcg_requant_t q, int8_t *y)
{
    for (uint32_t j = 0; j < n; ++j) {
        y[j] = (int8_t)mcg_requant(get(h, j), q);
    }
}

/* keep: where h and c after the last step go, or NULL; it may be start. */
MCG_CODE(lstm)
static void lstm(const mcg_recurrent_t *d, const uint32_t *w, const int16_t *tanh, const int32_t *start, int32_t *keep,
                 uint32_t *scratch, const int8_t *x, int8_t *every, int8_t *last, int8_t *cell)
{
    const uint32_t n = d->hidden;
    const uint32_t x_words = MCG_RECURRENT_WORDS(d->inputs), h_words = MCG_RECURRENT_WORDS(n);
    uint32_t *const in = scratch;
    uint32_t *h = in + x_words;
    uint32_t *next = h + h_words;
    int32_t *const c = (int32_t *)(next + h_words);
    clear(scratch, x_words + 2u * h_words);
    for (uint32_t j = 0; j < n; ++j) {
        c[j] = start != NULL ? start[n + j] : 0;
        set(h, j, start != NULL ? start[j] : 0);
    }
    for (uint32_t t = 0; t < d->steps; ++t, x += d->inputs) {
        load_input(d, x, in);
        const uint32_t *p = w;
        for (uint32_t j = 0; j < n; ++j) {
            sums_t s[4];
            p = unit(4u, p, in, x_words, h, h_words, s);
            const int32_t i = sigmoid_fixed(tanh, s[0].x + s[0].h);
            const int32_t o = sigmoid_fixed(tanh, s[1].x + s[1].h);
            const int32_t f = sigmoid_fixed(tanh, s[2].x + s[2].h);
            const int32_t g = tanh_fixed(tanh, s[3].x + s[3].h);
            const int64_t sum = (int64_t)f * c[j] + (int64_t)(i * g) * 32;
            const int32_t now = mcg_clamp64((sum + (1 << 14)) >> 15, INT32_MIN, INT32_MAX);
            c[j] = now;
            const int32_t argument = (now >> 4) + ((now >> 3) & 1);
            set(next, j, (o * tanh_fixed(tanh, argument) + (1 << 14)) >> 15);
        }
        uint32_t *const old = h;
        h = next;
        next = old;
        if (every != NULL) {
            store(h, n, d->every, every);
            every += n;
        }
    }
    if (last != NULL) {
        store(h, n, d->last, last);
    }
    for (uint32_t j = 0; cell != NULL && j < n; ++j) {
        cell[j] = (int8_t)mcg_requant(c[j], d->cell);
    }
    for (uint32_t j = 0; keep != NULL && j < n; ++j) {
        keep[j] = get(h, j);
        keep[n + j] = c[j];
    }
}

MCG_CODE(mcg_lstm_s8)
void mcg_lstm_s8(const mcg_recurrent_t *d, const uint32_t *w, const int16_t *tanh, const int32_t *start,
                 uint32_t *scratch, const int8_t *x, int8_t *every, int8_t *last, int8_t *cell)
{
    lstm(d, w, tanh, start, NULL, scratch, x, every, last, cell);
}

MCG_CODE(mcg_lstm_step_s8)
void mcg_lstm_step_s8(const mcg_recurrent_t *d, const uint32_t *w, const int16_t *tanh, int32_t *state,
                      uint32_t *scratch, const int8_t *x, int8_t *every, int8_t *last, int8_t *cell)
{
    lstm(d, w, tanh, state, state, scratch, x, every, last, cell);
}

/* z * h + (1 - z) * n */
MCG_INLINE int32_t blend(int32_t z, int32_t h, int32_t n) { return (z * h + (ONE - z) * n + (1 << 14)) >> 15; }

MCG_CODE(gru_after)
static void gru_after(const mcg_recurrent_t *d, const uint32_t *w, const int16_t *tanh, const uint32_t *in,
                      const uint32_t *h, uint32_t *next)
{
    const uint32_t x_words = MCG_RECURRENT_WORDS(d->inputs), h_words = MCG_RECURRENT_WORDS(d->hidden);
    for (uint32_t j = 0; j < d->hidden; ++j) {
        sums_t s[4];
        w = unit(3u, w, in, x_words, h, h_words, s);
        const int32_t z = sigmoid_fixed(tanh, s[0].x + s[0].h);
        const int32_t r = sigmoid_fixed(tanh, s[1].x + s[1].h);
        const int32_t part = (int32_t)(((int64_t)r * s[2].h + (1 << 14)) >> 15);
        set(next, j, blend(z, get(h, j), tanh_fixed(tanh, s[2].x + part)));
    }
}

MCG_CODE(gru_before)
static void gru_before(const mcg_recurrent_t *d, const uint32_t *w, const int16_t *tanh, const uint32_t *in,
                       const uint32_t *h, uint32_t *next, uint32_t *reset, int32_t *update)
{
    const uint32_t x_words = MCG_RECURRENT_WORDS(d->inputs), h_words = MCG_RECURRENT_WORDS(d->hidden);
    sums_t s[4];
    for (uint32_t j = 0; j < d->hidden; ++j) {
        w = unit(2u, w, in, x_words, h, h_words, s);
        update[j] = sigmoid_fixed(tanh, s[0].x + s[0].h);
        set(reset, j, (sigmoid_fixed(tanh, s[1].x + s[1].h) * get(h, j) + (1 << 14)) >> 15);
    }
    for (uint32_t j = 0; j < d->hidden; ++j) {
        w = unit(1u, w, in, x_words, reset, h_words, s);
        set(next, j, blend(update[j], get(h, j), tanh_fixed(tanh, s[0].x + s[0].h)));
    }
}

MCG_CODE(gru)
static void gru(const mcg_recurrent_t *d, const uint32_t *w, const int16_t *tanh, const int32_t *start, int32_t *keep,
                uint32_t *scratch, const int8_t *x, int8_t *every, int8_t *last)
{
    const uint32_t n = d->hidden;
    const uint32_t x_words = MCG_RECURRENT_WORDS(d->inputs), h_words = MCG_RECURRENT_WORDS(n);
    uint32_t *const in = scratch;
    uint32_t *h = in + x_words;
    uint32_t *other = h + h_words;
    int32_t *const update = (int32_t *)(other + h_words);
    clear(scratch, x_words + 2u * h_words);
    for (uint32_t j = 0; start != NULL && j < n; ++j) {
        set(h, j, start[j]);
    }
    for (uint32_t t = 0; t < d->steps; ++t, x += d->inputs) {
        load_input(d, x, in);
        if (d->reset_after != 0u) {
            gru_after(d, w, tanh, in, h, other);
            uint32_t *const old = h;
            h = other;
            other = old;
        } else { /* h[j] is read once, just before it is written */
            gru_before(d, w, tanh, in, h, h, other, update);
        }
        if (every != NULL) {
            store(h, n, d->every, every);
            every += n;
        }
    }
    if (last != NULL) {
        store(h, n, d->last, last);
    }
    for (uint32_t j = 0; keep != NULL && j < n; ++j) {
        keep[j] = get(h, j);
    }
}

MCG_CODE(mcg_gru_s8)
void mcg_gru_s8(const mcg_recurrent_t *d, const uint32_t *w, const int16_t *tanh, const int32_t *start,
                uint32_t *scratch, const int8_t *x, int8_t *every, int8_t *last)
{
    gru(d, w, tanh, start, NULL, scratch, x, every, last);
}

MCG_CODE(mcg_gru_step_s8)
void mcg_gru_step_s8(const mcg_recurrent_t *d, const uint32_t *w, const int16_t *tanh, int32_t *state,
                     uint32_t *scratch, const int8_t *x, int8_t *every, int8_t *last)
{
    gru(d, w, tanh, state, state, scratch, x, every, last);
}
