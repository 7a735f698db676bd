/* nan_proba: lightgbm model nan.txt, exported by mcugen.
 * SPDX-License-Identifier: MIT-0
 */
#include "nan_proba.h"

#include "mcugen/mcg_sections.h"
#include "mcugen/mcg_scores.h"
#include "mcugen/mcg_trees.h"
_Static_assert(sizeof(float) == 4, "float has another size here");
/* input, number of keys, rank of a missing value, flags: 24 bytes. */
MCG_SECTION(".rodata.mcugen.nan_proba_columns") static _Alignas(4) const mcg_column16_t nan_proba_columns[3] = {
    {0, 1, 0, 0},
    {0, 1, 1, 0},
    {1, 1, 1, 0},
};

/* sorted thresholds of each column, as keys: 12 bytes. */
MCG_SECTION(".rodata.mcugen.nan_proba_keys") static const int32_t nan_proba_keys[3] = {
    1050253721, -1056796837, 2139095040,
};

/* bits 0..1 column, then 1 rank or set, then distance: 12 bytes. */
MCG_SECTION(".rodata.mcugen.nan_proba_nodes") static _Alignas(4) const uint16_t nan_proba_nodes[6] = {
    0x0018, 0x000A, 0x0009, 0x0018, 0x000A, 0x0009,
};

/* nodes of each tree: 4 bytes. */
MCG_SECTION(".rodata.mcugen.nan_proba_sizes") static _Alignas(4) const uint16_t nan_proba_sizes[2] = {
    3, 3,
};

/* leaves from left to right, tree after tree: 16 bytes. */
MCG_SECTION(".rodata.mcugen.nan_proba_leaf") static _Alignas(4) const int16_t nan_proba_leaf[8] = {
    -19859, -3972, 19860, 19860, -15246, -2156, 15245, 15245,
};

/* where the sums start: 4 bytes. */
MCG_SECTION(".rodata.mcugen.nan_proba_base") static const int32_t nan_proba_base[1] = {
    -3836,
};

typedef uint8_t nan_proba_rank_t;

#define MCG_R_NAME nan_proba_rank
#define MCG_R_SECTION MCG_SECTION(".text.mcugen.nan_proba_rank") MCG_NOINLINE
#define MCG_R_TYPE f32
#define MCG_R_RANK nan_proba_rank_t
#define MCG_R_WIDTH 16
#define MCG_R_COLUMNS 3
#define MCG_R_GROUPS 0
#define MCG_R_EXACT 0
#define MCG_R_ZERO 0
#define MCG_R_SENTINEL 0
#include "mcugen/mcg_trees_rank.h"

#define MCG_W_NAME nan_proba_walk
#define MCG_W_RANK nan_proba_rank_t
#define MCG_W_NODE uint16_t
#define MCG_W_COLUMN_BITS 2
#define MCG_W_OPERAND_BITS 1
#define MCG_W_SETS 0
#define MCG_W_FIRST_SET 3u
#include "mcugen/mcg_trees_walk.h"
#define MCG_S_NAME nan_proba_sum
#define MCG_S_SECTION MCG_SECTION(".text.mcugen.nan_proba_sum") MCG_NOINLINE
#define MCG_S_NODE uint16_t
#define MCG_S_SIZE uint16_t
#define MCG_S_ID uint16_t
#define MCG_S_LEAF int16_t
#define MCG_S_SUM int32_t
#define MCG_S_TREES 2u
#define MCG_S_OUTPUTS 1
#define MCG_S_VALUES 1
#define MCG_S_FLOAT 0
#include "mcugen/mcg_trees_sum.h"

static int nan_proba_usable(const float *x, const void *y, size_t y_align)
{
    return x != NULL && y != NULL && MCG_ALIGNED(x, sizeof *x) && MCG_ALIGNED(y, y_align);
}

static void nan_proba_compute(const float *x, float *y)
{
    uint8_t rank[3];
    int32_t score[1];
    float real[1];
    nan_proba_rank(nan_proba_columns, nan_proba_keys, NULL, NULL, NULL, NULL, x, rank);
    nan_proba_sum(nan_proba_nodes, nan_proba_sizes, nan_proba_leaf, NULL, nan_proba_base, rank, score);
    mcg_scale_i32_f32(score, 0x1p-15f, real, 1u);
    mcg_sigmoid_f32(real, 0x1p+0f, y, 1u);
}

mcg_status_t nan_proba_run(const float *x, float *y)
{
    if (!nan_proba_usable(x, y, sizeof *y)) {
        return MCG_ERR_ARG;
    }
    nan_proba_compute(x, y);
    return MCG_OK;
}

mcg_status_t nan_proba_run_batch(const float *x, float *y, uint32_t n)
{
    if (!nan_proba_usable(x, y, sizeof *y)) {
        return MCG_ERR_ARG;
    }
    for (uint32_t i = 0; i < n; ++i) {
        nan_proba_compute(x, y);
        x += NAN_PROBA_INPUTS;
        y += NAN_PROBA_OUTPUTS;
    }
    return MCG_OK;
}
#if defined(MCG_TRACE)
/* what the model calls each leaf: 16 bytes. */
static _Alignas(4) const uint16_t nan_proba_leaf_names[8] = {
    0, 2, 3, 1, 0, 2, 3, 1,
};

mcg_status_t nan_proba_leaves(const float *x, uint16_t *leaf)
{
    if (!nan_proba_usable(x, leaf, sizeof *leaf)) {
        return MCG_ERR_ARG;
    }
    uint8_t rank[3];
    nan_proba_rank(nan_proba_columns, nan_proba_keys, NULL, NULL, NULL, NULL, x, rank);
    nan_proba_sum_leaves(nan_proba_nodes, nan_proba_sizes, nan_proba_leaf_names, NULL, rank, leaf);
    return MCG_OK;
}
#endif

/* The plan, for mcugen check-elf: a section without memory. */
#if defined(__ELF__) && defined(__arm__)
__asm__(".pushsection .mcugen.plan,\"\",%progbits\n"
        ".ascii \"mcugen-plan 1\\n\"\n"
        ".ascii \"model nan_proba\\n\"\n"
        ".ascii \"source a0de7e1d0033a830b0421823c35b9a9c0203992de51e5da64284ca42b2b47c5c\\n\"\n"
        ".ascii \"code 4f029ecf1065d9ed151151dc8dd6f9ed46a20fc64490b3e5375c111e80b7c8cc\\n\"\n"
        ".ascii \"abi 3\\n\"\n"
        ".ascii \"board none\\n\"\n"
        ".ascii \"item nan_proba_rank code default 180 4\\n\"\n"
        ".ascii \"item nan_proba_columns table default 24 2\\n\"\n"
        ".ascii \"item nan_proba_keys table default 12 4\\n\"\n"
        ".ascii \"item nan_proba_sum code default 160 4\\n\"\n"
        ".ascii \"item nan_proba_nodes table default 12 2\\n\"\n"
        ".ascii \"item nan_proba_sizes table default 4 2\\n\"\n"
        ".ascii \"item nan_proba_leaf table default 16 2\\n\"\n"
        ".ascii \"item nan_proba_base table default 4 4\\n\"\n"
        ".ascii \"end\\n\"\n"
        ".popsection");
#endif
