/* mcugen runtime, trees, template: the rank of one input by a coarse table. Include once per model; macros in, inline
 * functions out, which the generated code calls once a column with literals.
 *
 *   MCG_C_NAME  prefix of the functions     MCG_C_TYPE  f64 f32 i32 i16 u16 i8 u8: inputs
 *   MCG_C_WORK  int32_t, or int64_t for f64: keys in registers
 *   MCG_C_WIDE  its unsigned twin           MCG_C_CELL  uint8_t uint16_t: cells
 *
 * Keys of a column ascend; the rank of x is the number of keys below key(x). Where first < key(x) <= last, a cell of x says how many keys lie in lower cells; keys of its own cell are compared one by one. Any
 * monotone cell is right, as long as the table was made with it:
 *
 *   NAME_shift  cell = (key(x) - first - 1) >> shift
 *   NAME_scale  cell = (int32_t)(x * scale) - low, scale a power of two, so that the product is exact
 *   NAME_few    no cell: all keys are compared
 *   NAME_search no cell: a binary search
 *
 *   x      the input                  keys, count  the column's keys, count >= 1
 *   cells  keys in lower cells        most         the most keys that share a cell; 0: a cell has one rank
 *   lowest, first, last  the first key, the one behind which cells begin (the first or the second), and the last
 *   low_first  1: most inputs are not above the first key, and leave first       missing  the rank of NaN
 * NAME_within(x, low, high): is the key one of low..high (a sentinel, or zero where it counts as missing)?
 *
 * Rounding: none. Overflow: none: |x * scale| < 2^31 between the ends of the table. Cost: about 15 instructions.
 * SPDX-License-Identifier: MIT-0
 */
#include "mcg_trees.h"

#define MCG_C_INPUT MCG_PASTE(mcg_input_, MCG_C_TYPE)
#define MCG_C_KEY MCG_PASTE(mcg_key_, MCG_C_TYPE)
#define MCG_C_OF(x) ((MCG_C_WORK)MCG_PASTE(mcg_key_of_, MCG_C_TYPE)(x))
/* The bits of a number with its sign set are negative, or above all keys as unsigned: outside, where first >= 0. */
#define MCG_C_INSIDE(x) (first >= 0 ? (MCG_C_WORK)MCG_PASTE(mcg_bits_of_, MCG_C_TYPE)(x) : MCG_C_OF(x))
/* A number, and surely not above the first key: as unsigned, so that what has its sign set does not count. */
#define MCG_C_LOW(key) (lowest >= 0 && (MCG_C_WIDE)(key) <= (MCG_C_WIDE)lowest)

MCG_INLINE uint32_t MCG_PASTE(MCG_C_NAME, _outside)(MCG_C_WORK key, MCG_C_WORK lowest, MCG_C_WORK first, uint32_t count,
                                                    uint32_t missing)
{
    if (MCG_PASTE(mcg_is_nan_, MCG_C_TYPE)((MCG_C_KEY)key)) {
        return missing;
    }
    return key > first ? count : (uint32_t)(key > lowest);
}

/* The keys of a cell: the last key of the table is not below, so that the loop ends. */
MCG_INLINE uint32_t MCG_PASTE(MCG_C_NAME, _scan)(const MCG_C_KEY *keys, MCG_C_WORK key, uint32_t rank, uint32_t most)
{
    if (most == 0u) {
        return rank;
    }
    if (most <= 2u) {
        rank += (uint32_t)(keys[rank] < key);
        if (most == 2u) {
            rank += (uint32_t)(keys[rank] < key);
        }
        return rank;
    }
    while (keys[rank] < key) {
        ++rank;
    }
    return rank;
}

MCG_UNUSED MCG_INLINE uint32_t MCG_PASTE(MCG_C_NAME, _shift)(const MCG_C_INPUT *x, const MCG_C_KEY *keys,
                                                             uint32_t count, const MCG_C_CELL *cells, MCG_C_WORK lowest,
                                                             MCG_C_WORK first, MCG_C_WORK last, uint32_t shift,
                                                             uint32_t most, int low_first, uint32_t missing)
{
    const MCG_C_WORK key = MCG_C_INSIDE(x);
    const MCG_C_WIDE above = (MCG_C_WIDE)key - (MCG_C_WIDE)first - 1u;
    if (low_first && MCG_C_LOW(key)) {
        return 0u;
    }
    if (above < (MCG_C_WIDE)last - (MCG_C_WIDE)first) {
        return MCG_PASTE(MCG_C_NAME, _scan)(keys, key, cells[above >> shift], most);
    }
    return MCG_PASTE(MCG_C_NAME, _outside)(MCG_C_OF(x), lowest, first, count, missing);
}

MCG_UNUSED MCG_INLINE uint32_t MCG_PASTE(MCG_C_NAME, _scale)(const MCG_C_INPUT *x, const MCG_C_KEY *keys,
                                                             uint32_t count, const MCG_C_CELL *cells, MCG_C_WORK lowest,
                                                             MCG_C_WORK first, MCG_C_WORK last, MCG_C_INPUT scale,
                                                             int32_t low, uint32_t most, int low_first,
                                                             uint32_t missing)
{
    const MCG_C_WORK key = MCG_C_INSIDE(x);
    const MCG_C_WIDE above = (MCG_C_WIDE)key - (MCG_C_WIDE)first - 1u;
    if (low_first && MCG_C_LOW(key)) {
        return 0u;
    }
    if (above < (MCG_C_WIDE)last - (MCG_C_WIDE)first) {
        const uint32_t cell = (uint32_t)((int32_t)(*x * scale) - low);
        return MCG_PASTE(MCG_C_NAME, _scan)(keys, key, cells[cell], most);
    }
    return MCG_PASTE(MCG_C_NAME, _outside)(MCG_C_OF(x), lowest, first, count, missing);
}

MCG_UNUSED MCG_INLINE uint32_t MCG_PASTE(MCG_C_NAME, _few)(const MCG_C_INPUT *x, const MCG_C_KEY *keys, uint32_t count,
                                                           uint32_t missing)
{
    const MCG_C_WORK key = MCG_C_OF(x);
    uint32_t rank = 0;
    for (uint32_t i = 0; i < count; ++i) {
        rank += (uint32_t)(keys[i] < key);
    }
    return MCG_PASTE(mcg_is_nan_, MCG_C_TYPE)((MCG_C_KEY)key) ? missing : rank;
}

MCG_UNUSED static uint32_t MCG_PASTE(MCG_C_NAME, _search)(const MCG_C_INPUT *x, const MCG_C_KEY *keys, uint32_t count,
                                                          uint32_t missing)
{
    const MCG_C_WORK key = MCG_C_OF(x);
    uint32_t low = 0;
    uint32_t high = count;
    if (MCG_PASTE(mcg_is_nan_, MCG_C_TYPE)((MCG_C_KEY)key)) {
        return missing;
    }
    while (low < high) {
        const uint32_t middle = (low + high) >> 1;
        if (keys[middle] < key) {
            low = middle + 1u;
        } else {
            high = middle;
        }
    }
    return low;
}

MCG_UNUSED MCG_INLINE int MCG_PASTE(MCG_C_NAME, _within)(const MCG_C_INPUT *x, MCG_C_WORK low, MCG_C_WORK high)
{
    const MCG_C_WORK key = MCG_C_OF(x);
    return (key >= low) & (key <= high);
}

/* A category by a direct table of its code, `missing` for what has none. */
MCG_UNUSED MCG_INLINE uint32_t MCG_PASTE(MCG_C_NAME, _code)(const MCG_C_INPUT *x, const MCG_C_CELL *codes, int32_t low,
                                                            uint32_t span, int exact, uint32_t missing)
{
    const uint32_t at = (uint32_t)MCG_PASTE(mcg_category_, MCG_C_TYPE)(x, exact) - (uint32_t)low;
    return at < span ? codes[at] : missing;
}

#undef MCG_C_INPUT
#undef MCG_C_KEY
#undef MCG_C_OF
#undef MCG_C_INSIDE
#undef MCG_C_LOW
#undef MCG_C_NAME
#undef MCG_C_TYPE
#undef MCG_C_WORK
#undef MCG_C_WIDE
#undef MCG_C_CELL
