/* mcugen runtime, trees, template: the walk through one tree. Include before mcg_trees_sum.h or mcg_trees_linear.h.
 *
 *   MCG_W_NAME          name of the function        MCG_W_RANK          uint8_t uint16_t uint32_t
 *   MCG_W_NODE          uint16_t uint32_t uint64_t  MCG_W_COLUMN_BITS   bits 0.. of a node: column
 *   MCG_W_OPERAND_BITS  the next bits: rank or set  MCG_W_SETS          1: columns from MCG_W_FIRST_SET on test sets
 *   MCG_W_FIRST_SET     0: no column compares
 *
 * uint32_t NAME(node, size, rank, sets): the leaf that is reached, counted from left to right.
 *   node  the tree's nodes in preorder; the bits above the operand are the distance to the right child
 *   size  number of nodes, 0 for a tree of one leaf
 *
 * A subtree of n nodes has n + 1 leaves: going left leaves distance - 1 nodes, going right skips as many leaves as
 * nodes. So no node says whether its child is a leaf: the walk ends where no nodes remain.
 *
 * Rounding: none. Overflow: none. Aliasing: none. Cost: the depth of the leaf.
 * SPDX-License-Identifier: MIT-0
 */
#include "mcg_trees.h"

MCG_INLINE uint32_t MCG_W_NAME(const MCG_W_NODE *node, uint32_t size, const MCG_W_RANK *rank, const uint32_t *sets)
{
    uint32_t leaf = 0;
    while (size > 0u) {
        const MCG_W_NODE n = *node;
        const uint32_t column = (uint32_t)n & ((UINT32_C(1) << MCG_W_COLUMN_BITS) - 1u);
        const uint32_t operand = (uint32_t)(n >> MCG_W_COLUMN_BITS) & ((UINT32_C(1) << MCG_W_OPERAND_BITS) - 1u);
        const uint32_t distance = (uint32_t)(n >> (MCG_W_COLUMN_BITS + MCG_W_OPERAND_BITS));
        const uint32_t r = rank[column];
#if MCG_W_SETS && MCG_W_FIRST_SET == 0
        const int left = (int)((sets[operand + (r >> 5)] >> (r & 31u)) & 1u);
#elif MCG_W_SETS
        const int left = column < MCG_W_FIRST_SET ? r <= operand : (int)((sets[operand + (r >> 5)] >> (r & 31u)) & 1u);
#else
        const int left = r <= operand;
#endif
        if (left) {
            node += 1;
            size = distance - 1u;
        } else {
            node += distance;
            leaf += distance;
            size -= distance;
        }
    }
    (void)sets;
    return leaf;
}

#undef MCG_W_NODE
#undef MCG_W_COLUMN_BITS
#undef MCG_W_OPERAND_BITS
#undef MCG_W_SETS
#undef MCG_W_FIRST_SET
