/* mcugen runtime, trees, template: inputs to ranks by a table of columns, each with a coarse table. Include once per model;
 * macros in, one static function out. Smaller than code for each column, faster than a plain binary search.
 *
 *   MCG_T_NAME    name of the function          MCG_T_SECTION  its section attribute, may be empty
 *   MCG_T_TYPE    f32 i32 i16 u16 i8 u8         MCG_T_RANK     uint8_t uint16_t
 *   MCG_T_COLUMNS number of numeric columns     MCG_T_CELL     uint8_t uint16_t: cells
 *   MCG_T_WIDTH   bytes of a stored key, 0 where columns differ
 *   MCG_T_SCAN    1: cells hold few keys, which are compared one by one
 *   MCG_T_APART   1: NaN lies behind the cells of every column
 *   MCG_T_GROUPS  number of categorical columns MCG_T_EXACT    1: categories match whole numbers only
 *
 * void NAME(columns, tables, groups, categories, x, rank)
 *   columns [COLUMNS]
 *   tables  of a column, as bytes: the rank of NaN; for each cell the number of keys in lower cells, and that of all; then
 *           the keys, ascending: their distance from `from` in units, less one, the lowest `width` bytes of it
 *   groups  [GROUPS]; categories: all groups' categories, ascending within a group
 *   x       the caller's inputs; rank [COLUMNS + GROUPS]
 * From `from` on the cell of an input is (key(x) - from) >> unit >> shift: it never falls as the key rises, so that the
 * rank lies between the cell's number and the next one's. Keys of one cell differ below `shift`, which is at most
 * 8 * width: their lowest bytes settle it.
 *
 * Rounding: none. Overflow: none. Aliasing: rank must not overlap x. Cost: about 35 instructions a column.
 * SPDX-License-Identifier: MIT-0
 */
#include "mcg_trees.h"

#if MCG_T_COLUMNS > 0
MCG_INLINE uint32_t MCG_PASTE(MCG_T_NAME, _cell)(const uint8_t *at)
{
    MCG_T_CELL cell;
    memcpy(&cell, at, sizeof cell);
    return cell;
}

/* Key number i, as the upper bytes of a word; what stands before it is below. The cells stand before the keys, so that
 * the word is within the table. */
MCG_INLINE uint32_t MCG_PASTE(MCG_T_NAME, _word)(const uint8_t *keys, uint32_t i, uint32_t width)
{
#if MCG_T_WIDTH == 1
    return (void)width, keys[i];
#else
    uint32_t word;
    memcpy(&word, keys + (i + 1u) * width - 4u, sizeof word);
    return word;
#endif
}

/* Which of the keys low..high - 1 of a cell are below an input: the rank. */
MCG_INLINE uint32_t MCG_PASTE(MCG_T_NAME, _among)(const uint8_t *keys, uint32_t low, uint32_t high, uint32_t units,
                                                  uint32_t width)
{
#if MCG_T_WIDTH == 1
    const uint32_t target = units & 0xffu;
#else
    const uint32_t target = units << (32u - 8u * width);
#endif
#if MCG_T_SCAN
    while (low < high && MCG_PASTE(MCG_T_NAME, _word)(keys, low, width) < target) {
        ++low;
    }
#else
    while (low < high) {
        const uint32_t middle = (low + high) >> 1;
        if (MCG_PASTE(MCG_T_NAME, _word)(keys, middle, width) < target) {
            low = middle + 1u;
        } else {
            high = middle;
        }
    }
#endif
    return low;
}

MCG_INLINE uint32_t MCG_PASTE(MCG_T_NAME, _column)(const mcg_lookup_t *column, const uint8_t *tables,
                                                   MCG_PASTE(mcg_key_, MCG_T_TYPE) key)
{
    const uint8_t *const table = tables + 2u * column->table;
    if (key < column->from) {
        return MCG_PASTE(mcg_is_nan_, MCG_T_TYPE)(key) ? MCG_PASTE(MCG_T_NAME, _cell)(table)
                                                       : (uint32_t)(key > column->lowest);
    }
    const uint32_t width = MCG_T_WIDTH > 0u ? MCG_T_WIDTH : column->width;
    const uint32_t units = ((uint32_t)key - (uint32_t)column->from) >> column->unit;
    const uint32_t cell = units >> column->shift;
    const uint32_t count = column->cells;
    if (cell < count && (MCG_T_APART || !MCG_PASTE(mcg_is_nan_, MCG_T_TYPE)(key))) {
        const uint8_t *const at = table + (cell + 1u) * sizeof(MCG_T_CELL);
        const uint32_t low = MCG_PASTE(MCG_T_NAME, _cell)(at);
        const uint32_t high = MCG_PASTE(MCG_T_NAME, _cell)(at + sizeof(MCG_T_CELL));
        const uint8_t *const keys = table + (count + 2u) * sizeof(MCG_T_CELL);
        return MCG_PASTE(MCG_T_NAME, _among)(keys, low, high, units, width);
    }
    return MCG_PASTE(MCG_T_NAME, _cell)(
        MCG_PASTE(mcg_is_nan_, MCG_T_TYPE)(key) ? table : table + (count + 1u) * sizeof(MCG_T_CELL));
}
#endif

MCG_T_SECTION static void MCG_T_NAME(const mcg_lookup_t *columns, const uint8_t *tables, const mcg_category16_t *groups,
                                     const int32_t *categories, const MCG_PASTE(mcg_input_, MCG_T_TYPE) * x,
                                     MCG_T_RANK *rank)
{
#if MCG_T_COLUMNS > 0
    for (uint32_t c = 0; c < MCG_T_COLUMNS; ++c) {
        const mcg_lookup_t *const column = &columns[c];
        const MCG_PASTE(mcg_key_, MCG_T_TYPE) key = MCG_PASTE(mcg_key_of_, MCG_T_TYPE)(&x[column->input]);
        rank[c] = (MCG_T_RANK)MCG_PASTE(MCG_T_NAME, _column)(column, tables, key);
    }
#else
    (void)columns;
    (void)tables;
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
#undef MCG_T_WIDTH
#undef MCG_T_APART
#undef MCG_T_GROUPS
#undef MCG_T_EXACT
