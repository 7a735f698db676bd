/* mcugen runtime, trees: what trees as branches are made of.
 *
 * A generated function holds some trees as nested ifs over ranks `r`, and adds their leaves to `a`. The likelier side of
 * a node, by the training rows, is the fall-through.
 *
 *   MCG_BRANCH_ADD(value, tree, id)  a leaf: adds its value; with MCG_TRACE also notes which leaf of which tree it is
 *   MCG_BRANCH_IF(test, percent)     the test of a node, true for about so many of a hundred rows
 *   MCG_BRANCH_IN(sets, first, rank) the test of a categorical node: is the bit of the rank set?
 *
 * Rounding: none for integers; floats are added in the order of the trees of an output. Overflow: integer sums are
 * proven at export. Cost: a compare and a branch a node of the path, less where a compiler joins trees.
 * SPDX-License-Identifier: MIT-0
 */
#ifndef MCG_TREES_BRANCH_H
#define MCG_TREES_BRANCH_H

#include "mcg_trees.h"

/* The same text serves the proof: there each function takes the array that says which leaves were reached. */
#if defined(MCG_TRACE)
#define MCG_BRANCH_TRACE(type) , type *leaf
#define MCG_BRANCH_PASS , leaf
#define MCG_BRANCH_ADD(value, tree, id) (a += (value), leaf[tree] = (id))
#else
#define MCG_BRANCH_TRACE(type)
#define MCG_BRANCH_PASS
#define MCG_BRANCH_ADD(value, tree, id) (a += (value))
#endif

/* sum[k] = sum[k] * units + other[k] * other_units for k < count: two sums in one unit (SumMixed). Rounding: none.
 * Overflow: proven at export. Aliasing: none. Cost: four instructions an output. */
MCG_INLINE void mcg_trees_join(int32_t *sum, const int32_t *other, uint32_t count, int32_t units, int32_t other_units)
{
    for (uint32_t k = 0; k < count; ++k) {
        sum[k] = sum[k] * units + other[k] * other_units;
    }
}

/* Functions of trees are optimized in debug builds too: twice as large, they would not fit the memory they were placed in.
 * Stands before and after functions of trees. GCC's default order of blocks keeps cold code apart from hot code and pays
 * with long branches: a tenth more bytes for the same instructions. Where all ranks stay in registers (FEW), most of -O2
 * only copies code: without it a sixth to a third of the bytes is saved, again for the same instructions. */
#if defined(__GNUC__) && !defined(__clang__) && defined(MCG_TRACE)
/* Host builds that tell leaves run once: compiling is what they cost. */
#define MCG_BRANCHES_BEGIN _Pragma("GCC push_options") _Pragma("GCC optimize (\"O0\")")
#define MCG_BRANCHES_BEGIN_FEW MCG_BRANCHES_BEGIN
#define MCG_BRANCHES_END _Pragma("GCC pop_options")
#elif defined(__GNUC__) && !defined(__clang__)
#define MCG_BRANCHES_BEGIN _Pragma("GCC push_options") _Pragma("GCC optimize (\"O2,reorder-blocks-algorithm=simple\")")
#define MCG_BRANCHES_BEGIN_FEW \
    _Pragma("GCC push_options") _Pragma("GCC optimize (\"O1,tree-pre,gcse,reorder-blocks-algorithm=simple\")")
#define MCG_BRANCHES_END _Pragma("GCC pop_options")
#else
#define MCG_BRANCHES_BEGIN
#define MCG_BRANCHES_BEGIN_FEW
#define MCG_BRANCHES_END
#endif

#if defined(__has_builtin)
#if __has_builtin(__builtin_expect_with_probability)
#define MCG_BRANCH_IF(test, percent) __builtin_expect_with_probability((test), 1, (percent) / 100.0)
#endif
#endif
#if !defined(MCG_BRANCH_IF) && (defined(__GNUC__) || defined(__clang__))
#define MCG_BRANCH_IF(test, percent) __builtin_expect((test), (percent) >= 50)
#elif !defined(MCG_BRANCH_IF)
#define MCG_BRANCH_IF(test, percent) (test)
#endif

#define MCG_BRANCH_IN(sets, first, rank) ((((sets)[(first) + ((uint32_t)(rank) >> 5)] >> ((rank) & 31u)) & 1u) != 0u)

#endif
