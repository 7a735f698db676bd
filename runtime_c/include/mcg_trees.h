/* mcugen runtime, trees: what the templates mcg_trees_rank.h, mcg_trees_sum.h and mcg_trees_linear.h share.
 *
 * A generated file includes a template once per kernel, with the widths of its tables as macros, so that the compiler
 * sees constants; the logic stands here, written by hand.
 * SPDX-License-Identifier: MIT-0
 */
#ifndef MCG_TREES_H
#define MCG_TREES_H

#include "mcg.h"

#include <string.h>

/* How one column turns an input into a rank (docs/numerics.md, RankInputs). Fields of 32 bits where a model needs them. */
#define MCG_COLUMN_ZERO 1u /* zero counts as missing */
typedef struct {
    uint16_t input;        /* index into x */
    uint16_t count;        /* keys of the column; ranks are 0..count */
    uint16_t missing_rank; /* rank of NaN, of the sentinel, and of zero with MCG_COLUMN_ZERO */
    uint16_t flags;
} mcg_column16_t;
typedef struct {
    uint32_t input;
    uint32_t count;
    uint32_t missing_rank;
    uint32_t flags;
} mcg_column32_t;

/* A categorical column: codes 0..count-1 for its categories, count for everything else. */
typedef struct {
    uint16_t input;
    uint16_t count;
} mcg_category16_t;
typedef struct {
    uint32_t input;
    uint32_t count;
} mcg_category32_t;

/* A numeric column with a coarse table (mcg_trees_lookup.h): its first key, and the lowest that has a cell, which is the
 * one behind the first or the second key. */
typedef struct {
    int32_t lowest;
    int32_t from;
    uint16_t input;
    uint16_t table; /* where the column's table begins, in units of two bytes */
    uint8_t unit;   /* keys are stored in units of 1 << unit from there on */
    uint8_t shift;  /* from units to cells */
    uint8_t cells;  /* how many */
    uint8_t width;  /* bytes of a stored key */
} mcg_lookup_t;

/* Trees that stand together: how many, the sum they add to, and the units that their leaves count. */
typedef struct {
    uint16_t trees;
    uint16_t output;
    int32_t units;
} mcg_tree_group_t;

/* Input types, and the integers whose order is theirs. A float's key is its bit pattern with the negative half
 * mirrored: no FPU, and deaf to -ffast-math and flush-to-zero. Infinity's key bounds the numbers: beyond it is NaN. */
typedef double mcg_input_f64;
typedef float mcg_input_f32;
typedef int32_t mcg_input_i32;
typedef int16_t mcg_input_i16;
typedef uint16_t mcg_input_u16;
typedef int8_t mcg_input_i8;
typedef uint8_t mcg_input_u8;

typedef int64_t mcg_key_f64;
typedef int32_t mcg_key_f32;
typedef int32_t mcg_key_i32;
typedef int16_t mcg_key_i16;
typedef uint16_t mcg_key_u16;
typedef int8_t mcg_key_i8;
typedef uint8_t mcg_key_u8;

MCG_INLINE int64_t mcg_key_of_f64(const double *x)
{
    int64_t bits;
    memcpy(&bits, x, sizeof bits);
    return bits < 0 ? (bits ^ INT64_C(0x7fffffffffffffff)) : bits;
}

MCG_INLINE int32_t mcg_key_of_f32(const float *x)
{
    int32_t bits;
    memcpy(&bits, x, sizeof bits);
    return bits < 0 ? (bits ^ INT32_C(0x7fffffff)) : bits;
}

/* Bit patterns: for numbers that are not negative, the key. */
MCG_INLINE int64_t mcg_bits_of_f64(const double *x)
{
    int64_t bits;
    memcpy(&bits, x, sizeof bits);
    return bits;
}

MCG_INLINE int32_t mcg_bits_of_f32(const float *x)
{
    int32_t bits;
    memcpy(&bits, x, sizeof bits);
    return bits;
}

MCG_INLINE int32_t mcg_bits_of_i32(const int32_t *x) { return *x; }
MCG_INLINE int16_t mcg_bits_of_i16(const int16_t *x) { return *x; }
MCG_INLINE uint16_t mcg_bits_of_u16(const uint16_t *x) { return *x; }
MCG_INLINE int8_t mcg_bits_of_i8(const int8_t *x) { return *x; }
MCG_INLINE uint8_t mcg_bits_of_u8(const uint8_t *x) { return *x; }

MCG_INLINE int32_t mcg_key_of_i32(const int32_t *x) { return *x; }
MCG_INLINE int16_t mcg_key_of_i16(const int16_t *x) { return *x; }
MCG_INLINE uint16_t mcg_key_of_u16(const uint16_t *x) { return *x; }
MCG_INLINE int8_t mcg_key_of_i8(const int8_t *x) { return *x; }
MCG_INLINE uint8_t mcg_key_of_u8(const uint8_t *x) { return *x; }

MCG_INLINE int mcg_is_nan_f64(int64_t key)
{
    return key > INT64_C(0x7ff0000000000000) || key < -INT64_C(0x7ff0000000000000) - 1;
}
MCG_INLINE int mcg_is_nan_f32(int32_t key) { return key > INT32_C(0x7f800000) || key < -INT32_C(0x7f800000) - 1; }
MCG_INLINE int mcg_is_nan_i32(int32_t key) { return (void)key, 0; }
MCG_INLINE int mcg_is_nan_i16(int16_t key) { return (void)key, 0; }
MCG_INLINE int mcg_is_nan_u16(uint16_t key) { return (void)key, 0; }
MCG_INLINE int mcg_is_nan_i8(int8_t key) { return (void)key, 0; }
MCG_INLINE int mcg_is_nan_u8(uint8_t key) { return (void)key, 0; }

/* The category of an input, truncated toward zero, or -1 where it has none: negative, not below 2^31, NaN, or, with
 * exact, not whole. Keys of -1.0 and 2^31 bound what may be converted. */
MCG_INLINE int32_t mcg_category_f64(const double *x, int exact)
{
    const int64_t key = mcg_key_of_f64(x);
    if (key <= -INT64_C(0x3ff0000000000000) - 1 || key >= INT64_C(0x41e0000000000000)) {
        return -1;
    }
    const int32_t category = (int32_t)*x;
    return (exact && (double)category != *x) ? -1 : category;
}

MCG_INLINE int32_t mcg_category_f32(const float *x, int exact)
{
    const int32_t key = mcg_key_of_f32(x);
    if (key <= -INT32_C(0x3f800000) - 1 || key >= INT32_C(0x4f000000)) {
        return -1;
    }
    const int32_t category = (int32_t)*x;
    return (exact && (float)category != *x) ? -1 : category;
}

MCG_INLINE int32_t mcg_category_i32(const int32_t *x, int exact) { return (void)exact, *x; }
MCG_INLINE int32_t mcg_category_i16(const int16_t *x, int exact) { return (void)exact, *x; }
MCG_INLINE int32_t mcg_category_u16(const uint16_t *x, int exact) { return (void)exact, *x; }
MCG_INLINE int32_t mcg_category_i8(const int8_t *x, int exact) { return (void)exact, *x; }
MCG_INLINE int32_t mcg_category_u8(const uint8_t *x, int exact) { return (void)exact, *x; }

/* The code of a category: its place in the ascending table, or count. */
MCG_INLINE uint32_t mcg_category_code(const int32_t *table, uint32_t count, int32_t category)
{
    uint32_t low = 0;
    uint32_t high = count;
    while (low < high) {
        const uint32_t middle = (low + high) >> 1;
        if (table[middle] < category) {
            low = middle + 1u;
        } else {
            high = middle;
        }
    }
    return (low < count && table[low] == category) ? low : count;
}

#define MCG_PASTE_(a, b) a##b
#define MCG_PASTE(a, b) MCG_PASTE_(a, b)

#endif
