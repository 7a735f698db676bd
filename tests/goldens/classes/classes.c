/* classes: lightgbm model classes.txt, exported by mcugen.
 * SPDX-License-Identifier: MIT-0
 */
#include "classes.h"

#include "mcugen/mcg_sections.h"
#include "mcugen/mcg_scores.h"
#include "mcugen/mcg_trees.h"
_Static_assert(sizeof(float) == 4, "float has another size here");
_Static_assert(sizeof(int32_t) == 4, "int32_t has another size here");
/* input, number of keys, rank of a missing value, flags: 8 bytes. */
MCG_SECTION(".rodata.mcugen.classes_columns") static _Alignas(4) const mcg_column16_t classes_columns[1] = {
    {1, 4, 1, 0},
};

/* sorted thresholds of each column, as keys: 16 bytes. */
MCG_SECTION(".rodata.mcugen.classes_keys") static const int32_t classes_keys[4] = {
    -1055286888, 89435438, 1065772646, 1068289228,
};

/* input, number of categories: 4 bytes. */
MCG_SECTION(".rodata.mcugen.classes_groups") static _Alignas(4) const mcg_category16_t classes_groups[1] = {
    {0, 3},
};

/* categories that have a code: 12 bytes. */
MCG_SECTION(".rodata.mcugen.classes_categories") static const int32_t classes_categories[3] = {
    1, 4, 7,
};

/* bits 0..0 column, then 2 rank or set, then distance: 16 bytes. */
MCG_SECTION(".rodata.mcugen.classes_nodes") static _Alignas(4) const uint16_t classes_nodes[8] = {
    0x0012, 0x0009, 0x000A, 0x0009, 0x000E, 0x0011, 0x0008, 0x000C,
};

/* nodes of each tree: 6 bytes. */
MCG_SECTION(".rodata.mcugen.classes_sizes") static _Alignas(4) const uint16_t classes_sizes[3] = {
    2, 3, 3,
};

/* categories that go left, a bit a code: 4 bytes. */
MCG_SECTION(".rodata.mcugen.classes_sets") static const uint32_t classes_sets[1] = {
    0x00000007U,
};

/* leaves from left to right, tree after tree: 44 bytes. */
MCG_SECTION(".rodata.mcugen.classes_leaf") static const int32_t classes_leaf[11] = {
    -286923190, 409888811, -409888811, -463269032, -334876993, 463269031, 463269031, 576525016, 576525016,
    -576525015, -576525015,
};

/* where the sums start: 12 bytes. */
MCG_SECTION(".rodata.mcugen.classes_base") static const int32_t classes_base[3] = {
    -958670343, -957096577, -1208168572,
};

typedef uint8_t classes_rank_t;

#define MCG_R_NAME classes_rank
#define MCG_R_SECTION MCG_SECTION(".text.mcugen.classes_rank") MCG_NOINLINE
#define MCG_R_TYPE f32
#define MCG_R_RANK classes_rank_t
#define MCG_R_WIDTH 16
#define MCG_R_COLUMNS 1
#define MCG_R_GROUPS 1
#define MCG_R_EXACT 0
#define MCG_R_ZERO 0
#define MCG_R_SENTINEL 0
#include "mcugen/mcg_trees_rank.h"

#define MCG_W_NAME classes_walk
#define MCG_W_RANK classes_rank_t
#define MCG_W_NODE uint16_t
#define MCG_W_COLUMN_BITS 1
#define MCG_W_OPERAND_BITS 2
#define MCG_W_SETS 1
#define MCG_W_FIRST_SET 1u
#include "mcugen/mcg_trees_walk.h"
#define MCG_S_NAME classes_sum
#define MCG_S_SECTION MCG_SECTION(".text.mcugen.classes_sum") MCG_NOINLINE
#define MCG_S_NODE uint16_t
#define MCG_S_SIZE uint16_t
#define MCG_S_ID uint16_t
#define MCG_S_LEAF int32_t
#define MCG_S_SUM int32_t
#define MCG_S_TREES 3u
#define MCG_S_OUTPUTS 3
#define MCG_S_VALUES 1
#define MCG_S_FLOAT 0
#include "mcugen/mcg_trees_sum.h"

static int classes_usable(const float *x, const void *y, size_t y_align)
{
    return x != NULL && y != NULL && MCG_ALIGNED(x, sizeof *x) && MCG_ALIGNED(y, y_align);
}

static void classes_compute(const float *x, int32_t *y)
{
    uint8_t rank[2];
    int32_t score[3];
    classes_rank(classes_columns, classes_keys, NULL, NULL, classes_groups, classes_categories, x, rank);
    classes_sum(classes_nodes, classes_sizes, classes_leaf, classes_sets, classes_base, rank, score);
    y[0] = mcg_argmax_i32(score, 3u);
}

mcg_status_t classes_run(const float *x, int32_t *y)
{
    if (!classes_usable(x, y, sizeof *y)) {
        return MCG_ERR_ARG;
    }
    classes_compute(x, y);
    return MCG_OK;
}

mcg_status_t classes_run_batch(const float *x, int32_t *y, uint32_t n)
{
    if (!classes_usable(x, y, sizeof *y)) {
        return MCG_ERR_ARG;
    }
    for (uint32_t i = 0; i < n; ++i) {
        classes_compute(x, y);
        x += CLASSES_INPUTS;
        y += CLASSES_OUTPUTS;
    }
    return MCG_OK;
}
#if defined(MCG_TRACE)
/* what the model calls each leaf: 22 bytes. */
static _Alignas(4) const uint16_t classes_leaf_names[11] = {
    0, 2, 1, 0, 1, 2, 3, 0, 2, 1, 3,
};

mcg_status_t classes_leaves(const float *x, uint16_t *leaf)
{
    if (!classes_usable(x, leaf, sizeof *leaf)) {
        return MCG_ERR_ARG;
    }
    uint8_t rank[2];
    classes_rank(classes_columns, classes_keys, NULL, NULL, classes_groups, classes_categories, x, rank);
    classes_sum_leaves(classes_nodes, classes_sizes, classes_leaf_names, classes_sets, rank, leaf);
    return MCG_OK;
}
#endif

/* The plan, for mcugen check-elf: a section without memory. */
#if defined(__ELF__) && defined(__arm__)
__asm__(".pushsection .mcugen.plan,\"\",%progbits\n"
        ".ascii \"mcugen-plan 1\\n\"\n"
        ".ascii \"model classes\\n\"\n"
        ".ascii \"source 3d6198582d79b824b0cc5a7100f9d37ae62fb0de674148bceea6765c87ee3c3c\\n\"\n"
        ".ascii \"code 394fe115d6cd703a1e67cfde3dc2c72a448a006ed0dba5cd3ba29931a066c03c\\n\"\n"
        ".ascii \"abi 3\\n\"\n"
        ".ascii \"board none\\n\"\n"
        ".ascii \"item classes_rank code default 180 4\\n\"\n"
        ".ascii \"item classes_columns table default 8 2\\n\"\n"
        ".ascii \"item classes_keys table default 16 4\\n\"\n"
        ".ascii \"item classes_groups table default 4 2\\n\"\n"
        ".ascii \"item classes_categories table default 12 4\\n\"\n"
        ".ascii \"item classes_sum code default 160 4\\n\"\n"
        ".ascii \"item classes_nodes table default 16 2\\n\"\n"
        ".ascii \"item classes_sizes table default 6 2\\n\"\n"
        ".ascii \"item classes_sets table default 4 4\\n\"\n"
        ".ascii \"item classes_leaf table default 44 4\\n\"\n"
        ".ascii \"item classes_base table default 12 4\\n\"\n"
        ".ascii \"end\\n\"\n"
        ".popsection");
#endif
