/* mcugen runtime: filters over the last samples. See mcg_filter_window.h for the contracts.
 * SPDX-License-Identifier: MIT-0
 */
#include "mcg_filter_window.h"

/* Floats as integers that are ordered as they are, and back. */
MCG_INLINE int32_t key_of(float v)
{
    uint32_t bits;
    MCG_COPY4(&bits, &v);
    return (int32_t)(bits ^ ((uint32_t)((int32_t)bits >> 31) & 0x7FFFFFFFu));
}

MCG_INLINE float value_of(int32_t key)
{
    const uint32_t bits = (uint32_t)key ^ ((uint32_t)(key >> 31) & 0x7FFFFFFFu);
    float v;
    MCG_COPY4(&v, &bits);
    return v;
}

MCG_INLINE uint32_t next(uint32_t i, uint32_t length) { return i + 1u == length ? 0u : i + 1u; }

MCG_CODE(mcg_mean_q15_block)
void mcg_mean_q15_block(uint32_t length, uint32_t *at, int32_t *sum, int16_t *ring, const int16_t *x, int16_t *y,
                        uint32_t n)
{
    uint32_t i = *at;
    int32_t s = *sum;
    for (; n != 0u; --n, i = next(i, length)) {
        const int16_t in = *x++;
        s += in - ring[i];
        ring[i] = in;
        /* From 0 to 65536 * length - 1, as samples plus 32768 would give it, and half a unit. */
        *y++ = (int16_t)((int32_t)(((uint32_t)s + 32768u * length + length / 2u) / length) - 32768);
    }
    *at = i;
    *sum = s;
}

MCG_CODE(mcg_mean_q31_block)
void mcg_mean_q31_block(uint32_t length, uint32_t *at, int64_t *sum, int32_t *ring, const int32_t *x, int32_t *y,
                        uint32_t n)
{
    uint32_t i = *at;
    int64_t s = *sum;
    for (; n != 0u; --n, i = next(i, length)) {
        const int32_t in = *x++;
        s += (int64_t)in - ring[i];
        ring[i] = in;
        /* A long division in two digits of 16 bits: below 2^32 * length < 2^48. */
        const uint64_t u = (uint64_t)s + ((uint64_t)length << 31) + length / 2u;
        const uint32_t upper = (uint32_t)(u >> 16);
        const uint32_t high = upper / length;
        const uint32_t rest = (upper - high * length) << 16 | ((uint32_t)u & 0xFFFFu);
        *y++ = (int32_t)(((high << 16) + rest / length) ^ 0x80000000u);
    }
    *at = i;
    *sum = s;
}

/* at: 0 in the fresh state, then 1 + the place of the oldest sample. */
#define MEDIAN(type, load, store)                             \
    const uint32_t middle = length / 2u;                      \
    for (; n != 0u; --n) {                                    \
        const type in = (type)load(*x++);                     \
        if (*at == 0u) {                                      \
            for (uint32_t i = 0; i < length; ++i) {           \
                ring[i] = in;                                 \
                sorted[i] = in;                               \
            }                                                 \
            *at = 1u;                                         \
        }                                                     \
        const type old = ring[*at - 1u];                      \
        ring[*at - 1u] = in;                                  \
        *at = *at == length ? 1u : *at + 1u;                  \
        uint32_t i = 0;                                       \
        while (sorted[i] != old) {                            \
            ++i;                                              \
        }                                                     \
        for (; i + 1u < length && sorted[i + 1u] < in; ++i) { \
            sorted[i] = sorted[i + 1u];                       \
        }                                                     \
        for (; i > 0u && sorted[i - 1u] > in; --i) {          \
            sorted[i] = sorted[i - 1u];                       \
        }                                                     \
        sorted[i] = in;                                       \
        *y++ = store(sorted[middle]);                         \
    }

#define AS_IT_IS(v) (v)

MCG_CODE(mcg_median_q15_block)
void mcg_median_q15_block(uint32_t length, uint32_t *at, int16_t *ring, int16_t *sorted, const int16_t *x, int16_t *y,
                          uint32_t n){MEDIAN(int16_t, AS_IT_IS, AS_IT_IS)}

MCG_CODE(mcg_median_q31_block)
void mcg_median_q31_block(uint32_t length, uint32_t *at, int32_t *ring, int32_t *sorted, const int32_t *x, int32_t *y,
                          uint32_t n){MEDIAN(int32_t, AS_IT_IS, AS_IT_IS)}

MCG_CODE(mcg_median_f32_block)
void mcg_median_f32_block(uint32_t length, uint32_t *at, int32_t *ring, int32_t *sorted, const float *x, float *y,
                          uint32_t n){MEDIAN(int32_t, key_of, value_of)}

/* Candidates in rising order: a sample makes all obsolete that came before it and are not less. queue: the time, the
 * place of the first candidate, their number. */
#define EXTREME(type, load, store)                                    \
    uint32_t now = queue[0], head = queue[1], count = queue[2];       \
    for (; n != 0u; --n, ++now) {                                     \
        const type in = (type)((int32_t)load(*x++) ^ flip);           \
        if (count != 0u && now - stamps[head] >= length) {            \
            head = next(head, length);                                \
            --count;                                                  \
        }                                                             \
        uint32_t end = head + count;                                  \
        end -= end >= length ? length : 0u;                           \
        while (count != 0u) {                                         \
            const uint32_t last = end == 0u ? length - 1u : end - 1u; \
            if (values[last] < in) {                                  \
                break;                                                \
            }                                                         \
            end = last;                                               \
            --count;                                                  \
        }                                                             \
        values[end] = in;                                             \
        stamps[end] = now;                                            \
        ++count;                                                      \
        *y++ = store((type)((int32_t)values[head] ^ flip));           \
    }                                                                 \
    queue[0] = now;                                                   \
    queue[1] = head;                                                  \
    queue[2] = count;

MCG_CODE(mcg_extreme_q15_block)
void mcg_extreme_q15_block(uint32_t length, int32_t flip, uint32_t *queue, uint32_t *stamps, int16_t *values,
                           const int16_t *x, int16_t *y, uint32_t n){EXTREME(int16_t, AS_IT_IS, AS_IT_IS)}

MCG_CODE(mcg_extreme_q31_block)
void mcg_extreme_q31_block(uint32_t length, int32_t flip, uint32_t *queue, uint32_t *stamps, int32_t *values,
                           const int32_t *x, int32_t *y, uint32_t n){EXTREME(int32_t, AS_IT_IS, AS_IT_IS)}

MCG_CODE(mcg_extreme_f32_block)
void mcg_extreme_f32_block(uint32_t length, int32_t flip, uint32_t *queue, uint32_t *stamps, int32_t *values,
                           const float *x, float *y, uint32_t n)
{
    EXTREME(int32_t, key_of, value_of)
}
