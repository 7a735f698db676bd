/* mcugen runtime, trees, template: mcg_trees_packed.h for several rows. Included by it, with its macros and
 *
 *   MCG_P_COLUMNS        ranks of a row           MCG_P_BLOCK        the most rows
 *
 * void NAME_rows(words, sizes, groups, base, rank, sum, n)
 *   rank [n][COLUMNS], sum [n][OUTPUTS], n <= BLOCK; the rest as for NAME
 *
 * Tree by tree, so that each is read from its memory once for all rows; two rows are walked side by side.
 *
 * Rounding: none. Overflow: none: sums of the base and any of the leaves fit, proven at export. Aliasing: sum must not
 * overlap rank. Cost: that of n calls of NAME, less what waits for memory. Stack: with COLUMN_AT 0, BLOCK << COLUMN_BITS
 * ranks.
 * SPDX-License-Identifier: MIT-0
 */
#define MCG_P_LEAF(word) ((int16_t)(uint16_t)(word) >> MCG_P_FLAG_BITS)
#if MCG_P_COLUMN_AT == 0
#define MCG_P_ROW (UINT32_C(1) << MCG_P_COLUMN_BITS)
#else
#define MCG_P_ROW MCG_P_COLUMNS
#endif

MCG_UNUSED MCG_NOINLINE static void MCG_PASTE(MCG_P_NAME, _rows)(const uint16_t *words, const MCG_P_SIZE *sizes,
                                                                 const mcg_tree_group_t *groups, const int32_t *base,
                                                                 const MCG_P_RANK *rank, int32_t *sum, uint32_t n)
{
#if MCG_P_COLUMN_AT == 0
    MCG_P_RANK coded[MCG_P_BLOCK * MCG_P_ROW];
    for (uint32_t i = 0; i < n; ++i) {
        (void)MCG_PASTE(MCG_P_NAME, _coded)(rank + i * MCG_P_COLUMNS, coded + i * MCG_P_ROW);
    }
    rank = coded;
#endif
    for (uint32_t i = 0; i < n; ++i) {
        for (uint32_t k = 0; k < MCG_P_OUTPUTS; ++k) {
            sum[i * MCG_P_OUTPUTS + k] = base[k];
        }
    }
    for (uint32_t g = 0; g < MCG_P_GROUPS; ++g) {
        const int32_t units = groups[g].units;
        for (uint32_t trees = groups[g].trees; trees > 0u; --trees) {
            const MCG_P_RANK *row = rank;
            int32_t *to = sum + groups[g].output;
            uint32_t left = n;
            for (; left > 1u; left -= 2u) {
                const MCG_P_RANK *const other = row + MCG_P_ROW;
                uint32_t a = words[1];
                uint32_t b = a;
                uint32_t p = 0;
                uint32_t q = 0;
#define MCG_P_STEPS_OF_ROWS                              \
    a = MCG_PASTE(MCG_P_NAME, _step)(words, row, a, &p); \
    b = MCG_PASTE(MCG_P_NAME, _step)(words, other, b, &q);
#if MCG_P_SURE > 0
                MCG_P_STEPS_OF_ROWS
#endif
#if MCG_P_SURE > 1
                MCG_P_STEPS_OF_ROWS
#endif
#if MCG_P_SURE > 2
                MCG_P_STEPS_OF_ROWS
#endif
                while (MCG_P_INNER(a) && MCG_P_INNER(b)) {
                    MCG_P_STEPS_OF_ROWS
                }
                while (MCG_P_INNER(a)) {
                    a = MCG_PASTE(MCG_P_NAME, _step)(words, row, a, &p);
                }
                while (MCG_P_INNER(b)) {
                    b = MCG_PASTE(MCG_P_NAME, _step)(words, other, b, &q);
                }
                to[0] += MCG_P_LEAF(a) * units;
                to[MCG_P_OUTPUTS] += MCG_P_LEAF(b) * units;
                row = other + MCG_P_ROW;
                to += 2u * MCG_P_OUTPUTS;
            }
            if (left > 0u) {
                uint32_t a = words[1];
                uint32_t p = 0;
                while (MCG_P_INNER(a)) {
                    a = MCG_PASTE(MCG_P_NAME, _step)(words, row, a, &p);
                }
                *to += MCG_P_LEAF(a) * units;
            }
            words += MCG_P_STRIDE > 0u ? MCG_P_STRIDE : *sizes++;
        }
    }
}

#undef MCG_P_STEPS_OF_ROWS
#undef MCG_P_LEAF
#undef MCG_P_ROW
#undef MCG_P_COLUMNS
#undef MCG_P_BLOCK
