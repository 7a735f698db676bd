/* mcugen runtime, trees, template: inputs to ranks. Include once per model; macros in, one static function out.
 *
 *   MCG_R_NAME       name of the function           MCG_R_SECTION   its section attribute, may be empty
 *   MCG_R_TYPE       f64 f32 i32 i16 u16 i8 u8      MCG_R_RANK      uint8_t uint16_t uint32_t
 *   MCG_R_WIDTH      16 or 32: mcg_column16_t ...   MCG_R_COLUMNS   number of numeric columns
 *   MCG_R_GROUPS     number of categorical columns  MCG_R_EXACT     1: categories match whole numbers only
 *   MCG_R_ZERO       1: some columns treat zero as missing          MCG_R_SENTINEL  1: some inputs have a sentinel
 *
 * void NAME(columns, keys, zeros, sentinels, groups, categories, x, rank)
 *   columns    [COLUMNS]; keys: all columns' keys, ascending within a column
 *   zeros      [2 * COLUMNS] lowest and highest key that count as zero (MCG_R_ZERO)
 *   sentinels  [COLUMNS] flags and keys as {has, key} pairs (MCG_R_SENTINEL)
 *   groups     [GROUPS]; categories: all groups' categories, ascending within a group
 *   x          the caller's inputs; rank [COLUMNS + GROUPS]
 *
 * Rounding: none. Overflow: none. Aliasing: rank must not overlap x. Cost: log2(count) steps a column.
 * SPDX-License-Identifier: MIT-0
 */
#include "mcg_trees.h"

#define MCG_R_INPUT MCG_PASTE(mcg_input_, MCG_R_TYPE)
#define MCG_R_KEY MCG_PASTE(mcg_key_, MCG_R_TYPE)
#define MCG_R_COLUMN MCG_PASTE(MCG_PASTE(mcg_column, MCG_R_WIDTH), _t)
#define MCG_R_GROUP MCG_PASTE(MCG_PASTE(mcg_category, MCG_R_WIDTH), _t)

MCG_R_SECTION static void MCG_R_NAME(const MCG_R_COLUMN *columns, const MCG_R_KEY *keys, const MCG_R_KEY *zeros,
                                     const MCG_R_KEY *sentinels, const MCG_R_GROUP *groups, const int32_t *categories,
                                     const MCG_R_INPUT *x, MCG_R_RANK *rank)
{
#if MCG_R_COLUMNS > 0
    for (uint32_t c = 0; c < MCG_R_COLUMNS; ++c) {
        const MCG_R_COLUMN column = columns[c];
        const MCG_R_KEY key = MCG_PASTE(mcg_key_of_, MCG_R_TYPE)(&x[column.input]);
        int missing = MCG_PASTE(mcg_is_nan_, MCG_R_TYPE)(key);
#if MCG_R_SENTINEL
        missing |= (sentinels[2u * c] != 0) & (key == sentinels[2u * c + 1u]);
#endif
#if MCG_R_ZERO
        missing |= ((column.flags & MCG_COLUMN_ZERO) != 0u) & (key >= zeros[2u * c]) & (key <= zeros[2u * c + 1u]);
#endif
        uint32_t below = column.missing_rank;
        if (!missing) {
            const MCG_R_KEY *at = keys;
            uint32_t left = column.count;
            while (left > 0u) {
                const uint32_t half = left >> 1;
                if (at[half] < key) {
                    at += half + 1u;
                    left -= half + 1u;
                } else {
                    left = half;
                }
            }
            below = (uint32_t)(at - keys);
        }
        rank[c] = (MCG_R_RANK)below;
        keys += column.count;
    }
#else
    (void)columns;
    (void)keys;
#endif
#if MCG_R_GROUPS > 0
    for (uint32_t g = 0; g < MCG_R_GROUPS; ++g) {
        const MCG_R_GROUP group = groups[g];
        const int32_t category = MCG_PASTE(mcg_category_, MCG_R_TYPE)(&x[group.input], MCG_R_EXACT);
        rank[MCG_R_COLUMNS + g] = (MCG_R_RANK)mcg_category_code(categories, group.count, category);
        categories += group.count;
    }
#else
    (void)groups;
    (void)categories;
#endif
    (void)zeros;
    (void)sentinels;
#if MCG_R_COLUMNS + MCG_R_GROUPS == 0
    rank[0] = 0; /* single leaves read no input; rank has one element all the same */
    (void)x;
#endif
}

#undef MCG_R_INPUT
#undef MCG_R_KEY
#undef MCG_R_COLUMN
#undef MCG_R_GROUP
#undef MCG_R_NAME
#undef MCG_R_SECTION
#undef MCG_R_TYPE
#undef MCG_R_RANK
#undef MCG_R_WIDTH
#undef MCG_R_COLUMNS
#undef MCG_R_GROUPS
#undef MCG_R_EXACT
#undef MCG_R_ZERO
#undef MCG_R_SENTINEL
