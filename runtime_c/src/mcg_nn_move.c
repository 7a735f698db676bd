/* mcugen runtime: strided copies and concatenation. See mcg_nn_move.h for the contracts.
 * SPDX-License-Identifier: MIT-0
 */
#include "mcg_nn_move.h"

#include "mcg_dsp.h"

#include <string.h>

/* Offsets wrap modulo 2^32 on the way; each element's index is inside its array. */
#define MOVE(T)                                                                                                      \
    const T *const from = (const T *)x;                                                                              \
    T *const to = (T *)y;                                                                                            \
    for (uint32_t i = 0; i < d->fill_count; ++i) {                                                                   \
        to[i] = (T)d->fill;                                                                                          \
    }                                                                                                                \
    for (uint32_t a = 0; a < d->dim0; ++a)                                                                           \
        for (uint32_t b = 0; b < d->dim1; ++b)                                                                       \
            for (uint32_t c = 0; c < d->dim2; ++c)                                                                   \
                for (uint32_t e = 0; e < d->dim3; ++e) {                                                             \
                    uint32_t i = d->in_offset + a * (uint32_t)d->in0 + b * (uint32_t)d->in1 + c * (uint32_t)d->in2 + \
                                 e * (uint32_t)d->in3;                                                               \
                    uint32_t o = d->out_offset + a * (uint32_t)d->out0 + b * (uint32_t)d->out1 +                     \
                                 c * (uint32_t)d->out2 + e * (uint32_t)d->out3;                                      \
                    if (d->in4 == 1 && d->out4 == 1) {                                                               \
                        memcpy(to + o, from + i, d->dim4 * sizeof(T));                                               \
                        continue;                                                                                    \
                    }                                                                                                \
                    for (uint32_t f = 0; f < d->dim4; ++f) {                                                         \
                        to[o] = from[i];                                                                             \
                        i += (uint32_t)d->in4;                                                                       \
                        o += (uint32_t)d->out4;                                                                      \
                    }                                                                                                \
                }

MCG_CODE(mcg_move_8)
void mcg_move_8(const mcg_move_t *d, const void *x, void *y){MOVE(uint8_t)}

MCG_CODE(mcg_move_16)
void mcg_move_16(const mcg_move_t *d, const void *x, void *y) { MOVE(uint16_t) }

#if defined(__GNUC__) || defined(__clang__)
typedef uint32_t __attribute__((may_alias)) word_t; /* int32 and float elements */
#else
typedef uint32_t word_t; /* compile with the equivalent of -fno-strict-aliasing */
#endif

MCG_CODE(mcg_move_32)
void mcg_move_32(const mcg_move_t *d, const void *x, void *y){MOVE(word_t)}

/* n bytes, from the first to the last; `to` may lie before `from` in the same memory. */
MCG_CODE(copy_on)
static void copy_on(unsigned char *to, const unsigned char *from, uint32_t n)
{
    for (; n >= 16u; n -= 16u, to += 16, from += 16) {
        const uint32_t a = mcg_load32(from), b = mcg_load32(from + 4);
        const uint32_t c = mcg_load32(from + 8), d = mcg_load32(from + 12);
        mcg_store32(to, a);
        mcg_store32(to + 4, b);
        mcg_store32(to + 8, c);
        mcg_store32(to + 12, d);
    }
    for (; n >= 4u; n -= 4u, to += 4, from += 4) {
        mcg_store32(to, mcg_load32(from));
    }
    for (; n != 0u; --n) {
        *to++ = *from++;
    }
}

MCG_CODE(mcg_concat)
void mcg_concat(const void *const *parts, const uint32_t *bytes, uint32_t n, uint32_t outer, void *y)
{
    unsigned char *to = (unsigned char *)y;
    for (uint32_t o = 0; o < outer; ++o) {
        for (uint32_t i = 0; i < n; ++i) {
            copy_on(to, (const unsigned char *)parts[i] + (size_t)o * bytes[i], bytes[i]);
            to += bytes[i];
        }
    }
}
