/* mcugen runtime, trees, template: inputs to ranks by a table of columns, each with a coarse table. Include once per model;
 * macros in, one static function out. Smaller than code for each column, faster than a plain binary search.
 *
 *   MCG_T_NAME    name of the function          MCG_T_SECTION  its section attribute, may be empty
 *   MCG_T_TYPE    f32 i32 i16 u16 i8 u8         MCG_T_RANK     uint8_t uint16_t
 *   MCG_T_COLUMNS number of numeric columns     MCG_T_CELL     uint8_t uint16_t: cells
 *   MCG_T_KEY     uint16_t uint32_t: stored keys
 *   MCG_T_SCAN    1: cells hold few keys, which are compared one by one
 *   MCG_T_GROUPS  number of categorical columns MCG_T_EXACT    1: categories match whole numbers only
 *
 * void NAME(columns, keys, cells, groups, categories, x, rank)
 *   columns [COLUMNS]; keys: all columns' keys, ascending within a column, less the first, in units
 *   cells   of a column: for each cell the number of keys in lower cells, and once more behind the last
 *   groups  [GROUPS]; categories: all groups' categories, ascending within a group
 *   x       the caller's inputs; rank [COLUMNS + GROUPS]
 * Where first < key(x) <= last (first: the second key, where the first stands far from it), the cell is (key(x) - first - 1) >> unit >> shift: it never falls as the key rises, so that the rank
 * lies between its number and the next one's; comparisons settle it.
 *
 * Rounding: none. Overflow: none. Aliasing: rank must not overlap x. Cost: about 30 instructions a column.
 * SPDX-License-Identifier: MIT-0
 */
#include "mcg_trees.h"

MCG_T_SECTION static void MCG_T_NAME(const mcg_lookup_t *columns, const MCG_T_KEY *keys, const MCG_T_CELL *cells,
                                     const mcg_category16_t *groups, const int32_t *categories,
                                     const MCG_PASTE(mcg_input_, MCG_T_TYPE) * x, MCG_T_RANK *rank)
{
#if MCG_T_COLUMNS > 0
    for (uint32_t c = 0; c < MCG_T_COLUMNS; ++c) {
        const mcg_lookup_t *const column = &columns[c];
        const MCG_PASTE(mcg_key_, MCG_T_TYPE) key = MCG_PASTE(mcg_key_of_, MCG_T_TYPE)(&x[column->input]);
        const int32_t first = column->first;
        uint32_t low;
        if (MCG_PASTE(mcg_is_nan_, MCG_T_TYPE)(key)) {
            low = column->missing_rank;
        } else if (key <= first) {
            low = (uint32_t)(key > column->lowest);
        } else {
            const uint32_t above = (uint32_t)key - (uint32_t)first - 1u;
            low = column->count;
            if (above < column->span) {
                const uint32_t units = above >> column->unit;
                const MCG_T_CELL *const cell = &cells[column->cells + (units >> column->shift)];
                const MCG_T_KEY *const own = &keys[column->keys];
                low = cell[0];
#if MCG_T_SCAN
                while (own[low] <= units) { /* not so the last key of the column */
                    ++low;
                }
#else
                uint32_t high = cell[1];
                while (low < high) {
                    const uint32_t middle = (low + high) >> 1;
                    if (own[middle] <= units) {
                        low = middle + 1u;
                    } else {
                        high = middle;
                    }
                }
#endif
            }
        }
        rank[c] = (MCG_T_RANK)low;
    }
#else
    (void)columns;
    (void)keys;
    (void)cells;
#endif
#if MCG_T_GROUPS > 0
    for (uint32_t g = 0; g < MCG_T_GROUPS; ++g) {
        const int32_t category = MCG_PASTE(mcg_category_, MCG_T_TYPE)(&x[groups[g].input], MCG_T_EXACT);
        rank[MCG_T_COLUMNS + g] = (MCG_T_RANK)mcg_category_code(categories, groups[g].count, category);
        categories += groups[g].count;
    }
#else
    (void)groups;
    (void)categories;
#endif
#if MCG_T_COLUMNS + MCG_T_GROUPS == 0
    rank[0] = 0; /* single leaves read no input; rank has one element all the same */
    (void)x;
#endif
}

#undef MCG_T_NAME
#undef MCG_T_SECTION
#undef MCG_T_TYPE
#undef MCG_T_RANK
#undef MCG_T_COLUMNS
#undef MCG_T_CELL
#undef MCG_T_SCAN
#undef MCG_T_KEY
#undef MCG_T_GROUPS
#undef MCG_T_EXACT
