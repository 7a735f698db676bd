/* mean: lightgbm model mean.txt, exported by mcugen.
 * SPDX-License-Identifier: MIT-0
 */
#include "mean.h"

#include "mcugen/mcg_sections.h"
#include "mcugen/mcg_scores.h"
#include "mcugen/mcg_trees.h"
_Static_assert(sizeof(float) == 4, "float has another size here");
/* input, number of keys, rank of a missing value, flags: 16 bytes. */
MCG_SECTION(".rodata.mcugen.mean_columns") static _Alignas(4) const mcg_column16_t mean_columns[2] = {
    {0, 4, 0, 0},
    {1, 2, 0, 0},
};

/* sorted thresholds of each column, as keys: 24 bytes. */
MCG_SECTION(".rodata.mcugen.mean_keys") static const int32_t mean_keys[6] = {
    89435438, 1038845214, 1044885012, 1052099215, 1077076295, 1078187786,
};

/* bits 0..0 column, then 2 rank or set, then distance: 12 bytes. */
MCG_SECTION(".rodata.mcugen.mean_nodes") static _Alignas(4) const uint16_t mean_nodes[6] = {
    0x0013, 0x000C, 0x000A, 0x0011, 0x000E, 0x0008,
};

/* nodes of each tree: 4 bytes. */
MCG_SECTION(".rodata.mcugen.mean_sizes") static _Alignas(4) const uint16_t mean_sizes[2] = {
    3, 3,
};

/* leaves from left to right, tree after tree: 32 bytes. */
MCG_SECTION(".rodata.mcugen.mean_leaf") static const float mean_leaf[8] = {
    0x1.bd8e98p-1f, -0x1.d608fap+0f, -0x1.a6786cp+1f, 0x1.0dac8p+3f, 0x1.cedd04p-1f, -0x1.33061ap+1f,
    -0x1.1920acp+2f, 0x1.05ce74p+3f,
};

/* where the sums start: 4 bytes. */
MCG_SECTION(".rodata.mcugen.mean_base") static const float mean_base[1] = {
    0x0p+0f,
};

typedef uint8_t mean_rank_t;

#define MCG_R_NAME mean_rank
#define MCG_R_SECTION MCG_SECTION(".text.mcugen.mean_rank") MCG_NOINLINE
#define MCG_R_TYPE f32
#define MCG_R_RANK mean_rank_t
#define MCG_R_WIDTH 16
#define MCG_R_COLUMNS 2
#define MCG_R_GROUPS 0
#define MCG_R_EXACT 0
#define MCG_R_ZERO 0
#define MCG_R_SENTINEL 0
#include "mcugen/mcg_trees_rank.h"

#define MCG_W_NAME mean_walk
#define MCG_W_RANK mean_rank_t
#define MCG_W_NODE uint16_t
#define MCG_W_COLUMN_BITS 1
#define MCG_W_OPERAND_BITS 2
#define MCG_W_SETS 0
#define MCG_W_FIRST_SET 2u
#include "mcugen/mcg_trees_walk.h"
#define MCG_S_NAME mean_sum
#define MCG_S_SECTION MCG_SECTION(".text.mcugen.mean_sum") MCG_NOINLINE
#define MCG_S_NODE uint16_t
#define MCG_S_SIZE uint16_t
#define MCG_S_ID uint16_t
#define MCG_S_LEAF float
#define MCG_S_SUM float
#define MCG_S_TREES 2u
#define MCG_S_OUTPUTS 1
#define MCG_S_VALUES 1
#define MCG_S_FLOAT 1
#include "mcugen/mcg_trees_sum.h"

static int mean_usable(const float *x, const void *y, size_t y_align)
{
    return x != NULL && y != NULL && MCG_ALIGNED(x, sizeof *x) && MCG_ALIGNED(y, y_align);
}

static void mean_compute(const float *x, float *y)
{
    uint8_t rank[2];
    float score[1];
    mean_rank(mean_columns, mean_keys, NULL, NULL, NULL, NULL, x, rank);
    mean_sum(mean_nodes, mean_sizes, mean_leaf, NULL, mean_base, rank, score);
    mcg_divide_f32(score, 0x1p+1f, y, 1u);
}

mcg_status_t mean_run(const float *x, float *y)
{
    if (!mean_usable(x, y, sizeof *y)) {
        return MCG_ERR_ARG;
    }
    mean_compute(x, y);
    return MCG_OK;
}

mcg_status_t mean_run_batch(const float *x, float *y, uint32_t n)
{
    if (!mean_usable(x, y, sizeof *y)) {
        return MCG_ERR_ARG;
    }
    for (uint32_t i = 0; i < n; ++i) {
        mean_compute(x, y);
        x += MEAN_INPUTS;
        y += MEAN_OUTPUTS;
    }
    return MCG_OK;
}
#if defined(MCG_TRACE)
/* what the model calls each leaf: 16 bytes. */
static _Alignas(4) const uint16_t mean_leaf_names[8] = {
    0, 3, 1, 2, 0, 3, 1, 2,
};

mcg_status_t mean_leaves(const float *x, uint16_t *leaf)
{
    if (!mean_usable(x, leaf, sizeof *leaf)) {
        return MCG_ERR_ARG;
    }
    uint8_t rank[2];
    mean_rank(mean_columns, mean_keys, NULL, NULL, NULL, NULL, x, rank);
    mean_sum_leaves(mean_nodes, mean_sizes, mean_leaf_names, NULL, rank, leaf);
    return MCG_OK;
}
#endif

/* The plan, for mcugen check-elf: a section without memory. */
#if defined(__ELF__) && defined(__arm__)
__asm__(".pushsection .mcugen.plan,\"\",%progbits\n"
        ".ascii \"mcugen-plan 1\\n\"\n"
        ".ascii \"model mean\\n\"\n"
        ".ascii \"source b0bfb9504c8734f9c1404cf8331b9a5e3f7d078972e24df56088f8c3490eba3d\\n\"\n"
        ".ascii \"code fb766e49f44b912825d10d2efa022576681f8100c31ef601be9f647dfeb3661f\\n\"\n"
        ".ascii \"abi 3\\n\"\n"
        ".ascii \"board none\\n\"\n"
        ".ascii \"item mean_rank code default 180 4\\n\"\n"
        ".ascii \"item mean_columns table default 16 2\\n\"\n"
        ".ascii \"item mean_keys table default 24 4\\n\"\n"
        ".ascii \"item mean_sum code default 160 4\\n\"\n"
        ".ascii \"item mean_nodes table default 12 2\\n\"\n"
        ".ascii \"item mean_sizes table default 4 2\\n\"\n"
        ".ascii \"item mean_leaf table default 32 4\\n\"\n"
        ".ascii \"item mean_base table default 4 4\\n\"\n"
        ".ascii \"end\\n\"\n"
        ".popsection");
#endif
