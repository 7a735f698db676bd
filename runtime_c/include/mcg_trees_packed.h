/* mcugen runtime, trees, template: walks trees of 16-bit words, two at a time, and adds their leaves. Include once per
 * model; macros in, one static function out.
 *
 *   MCG_P_NAME           name of the function        MCG_P_SECTION      its section attribute, may be empty
 *   MCG_P_RANK           uint8_t uint16_t            MCG_P_GROUPS       number of groups
 *   MCG_P_DISTANCE_AT, MCG_P_COLUMN_AT  the lowest bit of each in a word
 *   MCG_P_DISTANCE_BITS, MCG_P_COLUMN_BITS  bits of each; all above them: rank
 *   MCG_P_FLAG_BITS      the lowest bits, which are 0 in leaves alone
 *   MCG_P_COLUMNS_USED   number of ranks: for COLUMN_AT 0, where a code that leaves out multiples of 2^FLAG_BITS stands for
 *                        a column
 *   MCG_P_STRIDE         words of every tree, or 0   MCG_P_SIZE         type of `sizes`, where it is 0
 *   MCG_P_SURE           steps that every way has    MCG_P_OUTPUTS      number of sums
 *   MCG_P_TREES, MCG_P_ID  number of trees, type of a leaf's name: for MCG_TRACE
 *
 * void NAME(words, sizes, groups, base, rank, sum)
 *   words   one that is not used, then tree after tree: the root, then pairs of children. A node says how many pairs on its children are, the
 *           column, and the first rank that goes right; where the lowest FLAG_BITS are 0 it is a leaf, and the bits above
 *           them its value, signed
 *   sizes   words of each tree (STRIDE 0); groups [GROUPS]; base [OUTPUTS]; sum [OUTPUTS]
 * With MCG_TRACE also void NAME_leaves(words, sizes, names, order, rank, leaf): names [words]; order [TREES], the trees'
 * numbers as they stand.
 *
 * Rounding: none. Overflow: proven at export. Aliasing: sum must not overlap rank. Cost: eight instructions a step.
 * SPDX-License-Identifier: MIT-0
 */
#include "mcg_dsp.h"
#include "mcg_trees.h"

#define MCG_P_INNER(word) (((word) & ((UINT32_C(1) << MCG_P_FLAG_BITS) - 1u)) != 0u)
#define MCG_P_DISTANCE(word) (((word) >> MCG_P_DISTANCE_AT) & ((UINT32_C(1) << MCG_P_DISTANCE_BITS) - 1u))
#define MCG_P_COLUMN(word) (((word) >> MCG_P_COLUMN_AT) & ((UINT32_C(1) << MCG_P_COLUMN_BITS) - 1u))
#define MCG_P_FIRST_BIT (MCG_P_DISTANCE_BITS + MCG_P_COLUMN_BITS)

/* 2 * pair, + 1 if r >= word >> FIRST_BIT: the carry of the comparison is the child. Compilers make four instructions of
 * it, a fifth of the walk. */
MCG_INLINE uint32_t MCG_PASTE(MCG_P_NAME, _child)(uint32_t pair, uint32_t r, uint32_t word)
{
#if MCG_HAS_ASM
    uint32_t at;
    __asm__("cmp %1, %2, lsr %4\n\tadc %0, %3, %3"
            : "=r"(at)
            : "r"(r), "r"(word), "r"(pair), "i"(MCG_P_FIRST_BIT)
            : "cc");
    return at;
#else
    return pair + pair + (uint32_t)(r >= (word >> MCG_P_FIRST_BIT));
#endif
}

/* One step from a node of the tree whose root is words[1]: pair q, counted from 1, stands at words[2 * q]. */
MCG_INLINE uint32_t MCG_PASTE(MCG_P_NAME, _step)(const uint16_t *words, const MCG_P_RANK *rank, uint32_t word,
                                                 uint32_t *pair)
{
    const uint32_t r = rank[MCG_P_COLUMN(word)];
    *pair += MCG_P_DISTANCE(word);
    return words[MCG_PASTE(MCG_P_NAME, _child)(*pair, r, word)];
}

#if MCG_P_COLUMN_AT == 0
/* Ranks by the codes of their columns. */
MCG_INLINE const MCG_P_RANK *MCG_PASTE(MCG_P_NAME, _coded)(const MCG_P_RANK *rank, MCG_P_RANK *coded)
{
    for (uint32_t c = 0; c < MCG_P_COLUMNS_USED; ++c) {
        coded[c + c / ((UINT32_C(1) << MCG_P_FLAG_BITS) - 1u) + 1u] = rank[c];
    }
#if MCG_HAS_ASM
    /* Where the array stands is hidden: a compiler would add the stack pointer to every index. */
    const MCG_P_RANK *hidden = coded;
    __asm__("" : "+r"(hidden) : : "memory");
    return hidden;
#else
    return coded;
#endif
}
#endif

MCG_P_SECTION static void MCG_P_NAME(const uint16_t *words, const MCG_P_SIZE *sizes, const mcg_tree_group_t *groups,
                                     const int32_t *base, const MCG_P_RANK *rank, int32_t *sum)
{
#if MCG_P_COLUMN_AT == 0
    MCG_P_RANK coded[UINT32_C(1) << MCG_P_COLUMN_BITS];
    rank = MCG_PASTE(MCG_P_NAME, _coded)(rank, coded);
#endif
    for (uint32_t k = 0; k < MCG_P_OUTPUTS; ++k) {
        sum[k] = base[k];
    }
    for (uint32_t g = 0; g < MCG_P_GROUPS; ++g) {
        int32_t total = 0;
        int32_t trees = groups[g].trees;
        for (; trees > 1; trees -= 2) {
            const uint32_t size = MCG_P_STRIDE > 0u ? MCG_P_STRIDE : *sizes++;
            const uint16_t *const other = words + size;
            uint32_t a = words[1];
            uint32_t b = other[1];
            uint32_t p = 0;
            uint32_t q = 0;
#define MCG_P_STEPS                                       \
    a = MCG_PASTE(MCG_P_NAME, _step)(words, rank, a, &p); \
    b = MCG_PASTE(MCG_P_NAME, _step)(other, rank, b, &q);
#if MCG_P_SURE > 0
            MCG_P_STEPS
#endif
#if MCG_P_SURE > 1
            MCG_P_STEPS
#endif
#if MCG_P_SURE > 2
            MCG_P_STEPS
#endif
            while (MCG_P_INNER(a) && MCG_P_INNER(b)) {
                MCG_P_STEPS
            }
            while (MCG_P_INNER(a)) {
                a = MCG_PASTE(MCG_P_NAME, _step)(words, rank, a, &p);
            }
            while (MCG_P_INNER(b)) {
                b = MCG_PASTE(MCG_P_NAME, _step)(other, rank, b, &q);
            }
            total += (int16_t)(uint16_t)a >> MCG_P_FLAG_BITS;
            total += (int16_t)(uint16_t)b >> MCG_P_FLAG_BITS;
            words = other + (MCG_P_STRIDE > 0u ? MCG_P_STRIDE : *sizes++);
        }
        if (trees > 0) {
            uint32_t a = words[1];
            uint32_t p = 0;
            while (MCG_P_INNER(a)) {
                a = MCG_PASTE(MCG_P_NAME, _step)(words, rank, a, &p);
            }
            total += (int16_t)(uint16_t)a >> MCG_P_FLAG_BITS;
            words += MCG_P_STRIDE > 0u ? MCG_P_STRIDE : *sizes++;
        }
        sum[groups[g].output] += total * groups[g].units;
    }
}

#if defined(MCG_P_COLUMNS)
#include "mcg_trees_packed_rows.h"
#endif

#if defined(MCG_TRACE)
MCG_UNUSED static void MCG_PASTE(MCG_P_NAME, _leaves)(const uint16_t *words, const MCG_P_SIZE *sizes,
                                                      const MCG_P_ID *names, const uint32_t *order,
                                                      const MCG_P_RANK *rank, MCG_P_ID *leaf)
{
#if MCG_P_COLUMN_AT == 0
    MCG_P_RANK coded[UINT32_C(1) << MCG_P_COLUMN_BITS];
    rank = MCG_PASTE(MCG_P_NAME, _coded)(rank, coded);
#endif
    uint32_t first = 0;
    for (uint32_t t = 0; t < MCG_P_TREES; ++t) {
        uint32_t at = first + 1u;
        uint32_t pair = 0;
        while (MCG_P_INNER(words[at])) {
            const uint32_t word = words[at];
            pair += MCG_P_DISTANCE(word);
            at = first + MCG_PASTE(MCG_P_NAME, _child)(pair, rank[MCG_P_COLUMN(word)], word);
        }
        leaf[order[t]] = names[at];
        first += MCG_P_STRIDE > 0u ? MCG_P_STRIDE : sizes[t];
    }
}
#endif

#undef MCG_P_STEPS
#undef MCG_P_DISTANCE
#undef MCG_P_INNER
#undef MCG_P_COLUMN
#undef MCG_P_FIRST_BIT
#undef MCG_P_NAME
#undef MCG_P_SECTION
#undef MCG_P_RANK
#undef MCG_P_DISTANCE_AT
#undef MCG_P_COLUMN_AT
#undef MCG_P_COLUMNS_USED
#undef MCG_P_DISTANCE_BITS
#undef MCG_P_FLAG_BITS
#undef MCG_P_COLUMN_BITS
#undef MCG_P_STRIDE
#undef MCG_P_SIZE
#undef MCG_P_SURE
#undef MCG_P_GROUPS
#undef MCG_P_OUTPUTS
#undef MCG_P_TREES
#undef MCG_P_ID
