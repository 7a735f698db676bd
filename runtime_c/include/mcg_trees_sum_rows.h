/* mcugen runtime, trees, template: mcg_trees_sum.h for several rows. Include after it; its macros, those of the walk and
 *
 *   MCG_S_COLUMNS  ranks of a row
 *
 * void NAME_rows(nodes, sizes, leaves, sets, base, rank, sum, n)
 *   rank [n][COLUMNS], sum [n][OUTPUTS]; the rest as for NAME
 *
 * Tree by tree, so that each is read from its memory once for all rows.
 *
 * Rounding: as NAME: each row adds the trees in their order. Overflow: as NAME. Aliasing: sum must not overlap rank.
 * Cost: that of n calls of NAME, less what waits for memory.
 * SPDX-License-Identifier: MIT-0
 */
MCG_UNUSED MCG_NOINLINE static void MCG_PASTE(MCG_S_NAME, _rows)(const MCG_S_NODE *nodes, const MCG_S_SIZE *sizes,
                                                                 const MCG_S_LEAF *leaves, const uint32_t *sets,
                                                                 const MCG_S_SUM *base, const MCG_W_RANK *rank,
                                                                 MCG_S_SUM *sum, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        for (uint32_t k = 0; k < MCG_S_OUTPUTS; ++k) {
            sum[i * MCG_S_OUTPUTS + k] = base[k];
        }
    }
#if MCG_S_VALUES == 1 && MCG_S_OUTPUTS > 1
    uint32_t output = 0;
#endif
    for (uint32_t t = 0; t < MCG_S_TREES; ++t) {
        const uint32_t size = sizes[t];
        const MCG_W_RANK *row = rank;
        MCG_S_SUM *to = sum;
#if MCG_S_VALUES == 1 && MCG_S_OUTPUTS > 1
        to += output;
        output = output + 1u < MCG_S_OUTPUTS ? output + 1u : 0u;
#endif
        for (uint32_t i = 0; i < n; ++i) {
            const MCG_S_LEAF *value = &leaves[MCG_W_NAME(nodes, size, row, sets) * MCG_S_VALUES];
            for (uint32_t k = 0; k < MCG_S_VALUES; ++k) {
                to[k] += value[k];
            }
            row += MCG_S_COLUMNS;
            to += MCG_S_OUTPUTS;
        }
        nodes += size;
        leaves += (size + 1u) * MCG_S_VALUES;
    }
}

#undef MCG_S_COLUMNS
