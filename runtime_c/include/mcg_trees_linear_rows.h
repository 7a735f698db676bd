/* mcugen runtime, trees, template: mcg_trees_linear.h for several rows. Include after it; its macros, those of the walk and
 *
 *   MCG_L_COLUMNS  ranks of a row         MCG_L_INPUTS  inputs of a row
 *
 * void NAME_rows(nodes, sizes, leaves, sets, base, linear..., rank, x, sum, n)
 *   rank [n][COLUMNS], x [n][INPUTS], sum [n][OUTPUTS]; the rest as for NAME
 *
 * Tree by tree, so that each is read from its memory once for all rows.
 *
 * Rounding: as NAME: each row adds the trees in their order. Aliasing: sum must not overlap x. Cost: that of n calls of
 * NAME, less what waits for memory.
 * SPDX-License-Identifier: MIT-0
 */
MCG_UNUSED MCG_NOINLINE static void
MCG_PASTE(MCG_L_NAME, _rows)(const MCG_S_NODE *nodes, const MCG_S_SIZE *sizes, const double *leaves,
                             const uint32_t *sets, const double *base, const double *constant, const MCG_L_FIRST *first,
                             const uint16_t *feature, const double *coef, const double *maps, const int32_t *sentinels,
                             const MCG_W_RANK *rank, const MCG_PASTE(mcg_input_, MCG_L_TYPE) * x, double *sum,
                             uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        for (uint32_t o = 0; o < MCG_S_OUTPUTS; ++o) {
            sum[i * MCG_S_OUTPUTS + o] = base[o];
        }
    }
    uint32_t k = 0;
    for (uint32_t t = 0; t < MCG_S_TREES; ++t) {
        const uint32_t size = sizes[t];
        for (uint32_t i = 0; i < n; ++i) {
            const uint32_t leaf = MCG_W_NAME(nodes, size, rank + i * MCG_L_COLUMNS, sets);
            double *const to = &sum[i * MCG_S_OUTPUTS + k];
            *to = *to + MCG_PASTE(MCG_L_NAME, _leaf)(leaf, leaves, constant, first, feature, coef, maps, sentinels,
                                                     x + i * MCG_L_INPUTS);
        }
        k = k + 1u < MCG_S_OUTPUTS ? k + 1u : 0u;
        nodes += size;
        leaves += size + 1u;
        constant += size + 1u;
        first += size + 1u;
    }
}

#undef MCG_L_COLUMNS
#undef MCG_L_INPUTS
