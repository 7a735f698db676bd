/* mcugen runtime, trees, template: walks all trees and adds their leaves. Include after mcg_trees_walk.h.
 *
 *   MCG_S_NAME     name of the function         MCG_S_SECTION  its section attribute, may be empty
 *   MCG_S_NODE     type of a node               MCG_S_SIZE     type of a tree's number of nodes
 *   MCG_S_LEAF     type of a leaf               MCG_S_SUM      type of the sum: int32_t, float or double
 *   MCG_S_TREES    number of trees              MCG_S_OUTPUTS  number of sums
 *   MCG_S_VALUES   1: tree t adds to sum t % OUTPUTS; OUTPUTS: each leaf has a value for every sum
 *   MCG_S_FLOAT    1: sums are floats, and their order counts
 * Uses MCG_W_NAME and MCG_W_RANK of the walk.
 *
 * void NAME(nodes, sizes, leaves, sets, base, rank, sum)
 *   nodes, leaves: tree after tree; sizes [TREES]; base [OUTPUTS]: where the sums start; sum [OUTPUTS]
 * With MCG_TRACE also void NAME_leaves(nodes, sizes, names, sets, rank, leaf): the leaf of each tree, as the model names it.
 *
 * Rounding: none for integers; floats are added in the order of the trees. Overflow: integer sums are proven at export.
 * Aliasing: sum must not overlap rank. Cost: the sum of the depths.
 * SPDX-License-Identifier: MIT-0
 */
#if MCG_S_FLOAT && defined(__FAST_MATH__)
#error "mcugen: float sums lose their order under -ffast-math; build without it, or export with --leaf int16"
#endif

MCG_S_SECTION static void MCG_S_NAME(const MCG_S_NODE *nodes, const MCG_S_SIZE *sizes, const MCG_S_LEAF *leaves,
                                     const uint32_t *sets, const MCG_S_SUM *base, const MCG_W_RANK *rank,
                                     MCG_S_SUM *sum)
{
    for (uint32_t k = 0; k < MCG_S_OUTPUTS; ++k) {
        sum[k] = base[k];
    }
#if MCG_S_VALUES == 1 && MCG_S_OUTPUTS > 1
    uint32_t k = 0;
#endif
    for (uint32_t t = 0; t < MCG_S_TREES; ++t) {
        const uint32_t size = sizes[t];
        const uint32_t leaf = MCG_W_NAME(nodes, size, rank, sets);
#if MCG_S_VALUES > 1
        const MCG_S_LEAF *value = &leaves[leaf * MCG_S_VALUES];
        for (uint32_t k = 0; k < MCG_S_VALUES; ++k) {
            sum[k] += value[k];
        }
#elif MCG_S_OUTPUTS > 1
        sum[k] += leaves[leaf];
        k = k + 1u < MCG_S_OUTPUTS ? k + 1u : 0u;
#else
        sum[0] += leaves[leaf];
#endif
        nodes += size;
        leaves += (size + 1u) * MCG_S_VALUES;
    }
}

#if defined(MCG_TRACE)
MCG_UNUSED static void MCG_PASTE(MCG_S_NAME, _leaves)(const MCG_S_NODE *nodes, const MCG_S_SIZE *sizes,
                                                      const MCG_S_ID *names, const uint32_t *sets,
                                                      const MCG_W_RANK *rank, MCG_S_ID *leaf)
{
    for (uint32_t t = 0; t < MCG_S_TREES; ++t) {
        const uint32_t size = sizes[t];
        leaf[t] = names[MCG_W_NAME(nodes, size, rank, sets)];
        nodes += size;
        names += size + 1u;
    }
}
#endif
