/* softmax: lightgbm model classes.txt, exported by mcugen.
 * SPDX-License-Identifier: MIT-0
 */
#include "softmax.h"

#include "mcugen/mcg_sections.h"
#include "mcugen/mcg_scores.h"
#include "mcugen/mcg_trees.h"
_Static_assert(sizeof(double) == 8, "double has another size here");
_Static_assert(sizeof(float) == 4, "float has another size here");
/* input, number of keys, rank of a missing value, flags: 8 bytes. */
MCG_SECTION(".rodata.mcugen.softmax_columns") static _Alignas(4) const mcg_column16_t softmax_columns[1] = {
    {1, 4, 1, 0},
};

/* sorted thresholds of each column, as keys: 32 bytes. */
MCG_SECTION(".rodata.mcugen.softmax_keys") static const int64_t softmax_keys[4] = {
    -4601778099247172813LL, 4083240551288143872LL, 4607407598781385934LL, 4608758678669597083LL,
};

/* input, number of categories: 4 bytes. */
MCG_SECTION(".rodata.mcugen.softmax_groups") static _Alignas(4) const mcg_category16_t softmax_groups[1] = {
    {0, 3},
};

/* categories that have a code: 12 bytes. */
MCG_SECTION(".rodata.mcugen.softmax_categories") static const int32_t softmax_categories[3] = {
    1, 4, 7,
};

/* bits 0..0 column, then 2 rank or set, then distance: 16 bytes. */
MCG_SECTION(".rodata.mcugen.softmax_nodes") static _Alignas(4) const uint16_t softmax_nodes[8] = {
    0x0012, 0x0009, 0x000A, 0x0009, 0x000E, 0x0011, 0x0008, 0x000C,
};

/* nodes of each tree: 6 bytes. */
MCG_SECTION(".rodata.mcugen.softmax_sizes") static _Alignas(4) const uint16_t softmax_sizes[3] = {
    2, 3, 3,
};

/* categories that go left, a bit a code: 4 bytes. */
MCG_SECTION(".rodata.mcugen.softmax_sets") static const uint32_t softmax_sets[1] = {
    0x00000007U,
};

/* leaves from left to right, tree after tree: 22 bytes. */
MCG_SECTION(".rodata.mcugen.softmax_leaf") static _Alignas(4) const int16_t softmax_leaf[11] = {
    -8756, 12509, -12509, -14138, -10220, 14138, 14138, 17594, 17594, -17595, -17595,
};

/* where the sums start: 12 bytes. */
MCG_SECTION(".rodata.mcugen.softmax_base") static const int32_t softmax_base[3] = {
    -29256, -29208, -36870,
};

typedef uint8_t softmax_rank_t;

#define MCG_R_NAME softmax_rank
#define MCG_R_SECTION MCG_SECTION(".text.mcugen.softmax_rank") MCG_NOINLINE
#define MCG_R_TYPE f64
#define MCG_R_RANK softmax_rank_t
#define MCG_R_WIDTH 16
#define MCG_R_COLUMNS 1
#define MCG_R_GROUPS 1
#define MCG_R_EXACT 0
#define MCG_R_ZERO 0
#define MCG_R_SENTINEL 0
#include "mcugen/mcg_trees_rank.h"

#define MCG_W_NAME softmax_walk
#define MCG_W_RANK softmax_rank_t
#define MCG_W_NODE uint16_t
#define MCG_W_COLUMN_BITS 1
#define MCG_W_OPERAND_BITS 2
#define MCG_W_SETS 1
#define MCG_W_FIRST_SET 1u
#include "mcugen/mcg_trees_walk.h"
#define MCG_S_NAME softmax_sum
#define MCG_S_SECTION MCG_SECTION(".text.mcugen.softmax_sum") MCG_NOINLINE
#define MCG_S_NODE uint16_t
#define MCG_S_SIZE uint16_t
#define MCG_S_ID uint16_t
#define MCG_S_LEAF int16_t
#define MCG_S_SUM int32_t
#define MCG_S_TREES 3u
#define MCG_S_OUTPUTS 3
#define MCG_S_VALUES 1
#define MCG_S_FLOAT 0
#include "mcugen/mcg_trees_sum.h"

static int softmax_usable(const double *x, const void *y, size_t y_align)
{
    return x != NULL && y != NULL && MCG_ALIGNED(x, sizeof *x) && MCG_ALIGNED(y, y_align);
}

static void softmax_compute(const double *x, float *y)
{
    uint8_t rank[2];
    int32_t score[3];
    float real[3];
    softmax_rank(softmax_columns, softmax_keys, NULL, NULL, softmax_groups, softmax_categories, x, rank);
    softmax_sum(softmax_nodes, softmax_sizes, softmax_leaf, softmax_sets, softmax_base, rank, score);
    mcg_scale_i32_f32(score, 0x1p-15f, real, 3u);
    mcg_softmax_f32(real, y, 3u);
}

mcg_status_t softmax_run(const double *x, float *y)
{
    if (!softmax_usable(x, y, sizeof *y)) {
        return MCG_ERR_ARG;
    }
    softmax_compute(x, y);
    return MCG_OK;
}

mcg_status_t softmax_run_batch(const double *x, float *y, uint32_t n)
{
    if (!softmax_usable(x, y, sizeof *y)) {
        return MCG_ERR_ARG;
    }
    for (uint32_t i = 0; i < n; ++i) {
        softmax_compute(x, y);
        x += SOFTMAX_INPUTS;
        y += SOFTMAX_OUTPUTS;
    }
    return MCG_OK;
}
#if defined(MCG_TRACE)
/* what the model calls each leaf: 22 bytes. */
static _Alignas(4) const uint16_t softmax_leaf_names[11] = {
    0, 2, 1, 0, 1, 2, 3, 0, 2, 1, 3,
};

mcg_status_t softmax_leaves(const double *x, uint16_t *leaf)
{
    if (!softmax_usable(x, leaf, sizeof *leaf)) {
        return MCG_ERR_ARG;
    }
    uint8_t rank[2];
    softmax_rank(softmax_columns, softmax_keys, NULL, NULL, softmax_groups, softmax_categories, x, rank);
    softmax_sum_leaves(softmax_nodes, softmax_sizes, softmax_leaf_names, softmax_sets, rank, leaf);
    return MCG_OK;
}
#endif

/* The plan, for mcugen check-elf: a section without memory. */
#if defined(__ELF__) && defined(__arm__)
__asm__(".pushsection .mcugen.plan,\"\",%progbits\n"
        ".ascii \"mcugen-plan 1\\n\"\n"
        ".ascii \"model softmax\\n\"\n"
        ".ascii \"source 3d6198582d79b824b0cc5a7100f9d37ae62fb0de674148bceea6765c87ee3c3c\\n\"\n"
        ".ascii \"code dbe13ff5b4d5b015f4674e0339b45cf961c5d5b3194c55da1d0c9c5e10007d3d\\n\"\n"
        ".ascii \"abi 3\\n\"\n"
        ".ascii \"board none\\n\"\n"
        ".ascii \"item softmax_rank code default 180 4\\n\"\n"
        ".ascii \"item softmax_columns table default 8 2\\n\"\n"
        ".ascii \"item softmax_keys table default 32 8\\n\"\n"
        ".ascii \"item softmax_groups table default 4 2\\n\"\n"
        ".ascii \"item softmax_categories table default 12 4\\n\"\n"
        ".ascii \"item softmax_sum code default 160 4\\n\"\n"
        ".ascii \"item softmax_nodes table default 16 2\\n\"\n"
        ".ascii \"item softmax_sizes table default 6 2\\n\"\n"
        ".ascii \"item softmax_sets table default 4 4\\n\"\n"
        ".ascii \"item softmax_leaf table default 22 2\\n\"\n"
        ".ascii \"item softmax_base table default 12 4\\n\"\n"
        ".ascii \"end\\n\"\n"
        ".popsection");
#endif
