/* nan_class: lightgbm model nan.txt, exported by mcugen.
 * SPDX-License-Identifier: MIT-0
 */
#include "nan_class.h"

#include "mcugen/mcg_sections.h"
#include "mcugen/mcg_scores.h"
#include "mcugen/mcg_trees.h"
_Static_assert(sizeof(float) == 4, "float has another size here");
_Static_assert(sizeof(int32_t) == 4, "int32_t has another size here");
/* input, number of keys, rank of a missing value, flags: 24 bytes, in dtcm. */
MCG_SECTION(".rodata.mcugen.nan_class_columns") static _Alignas(4) const mcg_column16_t nan_class_columns_image[3] = {
    {0, 1, 0, 0},
    {0, 1, 1, 0},
    {1, 1, 1, 0},
};
MCG_SECTION(".bss.mcugen.dtcm.nan_class_columns") static _Alignas(4) mcg_column16_t nan_class_columns_copy[3];
static const void *nan_class_columns_active = nan_class_columns_image;
MCG_TABLE_COPY static const mcg_table_copy_t nan_class_columns_entry = {nan_class_columns_image, nan_class_columns_copy, &nan_class_columns_active, (uint32_t)sizeof nan_class_columns_copy};

/* sorted thresholds of each column, as keys: 12 bytes, in dtcm. */
MCG_SECTION(".rodata.mcugen.nan_class_keys") static const int32_t nan_class_keys_image[3] = {
    1050253721, -1056796837, 2139095040,
};
MCG_SECTION(".bss.mcugen.dtcm.nan_class_keys") static int32_t nan_class_keys_copy[3];
static const void *nan_class_keys_active = nan_class_keys_image;
MCG_TABLE_COPY static const mcg_table_copy_t nan_class_keys_entry = {nan_class_keys_image, nan_class_keys_copy, &nan_class_keys_active, (uint32_t)sizeof nan_class_keys_copy};

/* bits 0..1 column, then 1 rank or set, then distance: 12 bytes, in dtcm. */
MCG_SECTION(".rodata.mcugen.nan_class_nodes") static _Alignas(4) const uint16_t nan_class_nodes_image[6] = {
    0x0018, 0x000A, 0x0009, 0x0018, 0x000A, 0x0009,
};
MCG_SECTION(".bss.mcugen.dtcm.nan_class_nodes") static _Alignas(4) uint16_t nan_class_nodes_copy[6];
static const void *nan_class_nodes_active = nan_class_nodes_image;
MCG_TABLE_COPY static const mcg_table_copy_t nan_class_nodes_entry = {nan_class_nodes_image, nan_class_nodes_copy, &nan_class_nodes_active, (uint32_t)sizeof nan_class_nodes_copy};

/* nodes of each tree: 4 bytes, in dtcm. */
MCG_SECTION(".rodata.mcugen.nan_class_sizes") static _Alignas(4) const uint16_t nan_class_sizes_image[2] = {
    3, 3,
};
MCG_SECTION(".bss.mcugen.dtcm.nan_class_sizes") static _Alignas(4) uint16_t nan_class_sizes_copy[2];
static const void *nan_class_sizes_active = nan_class_sizes_image;
MCG_TABLE_COPY static const mcg_table_copy_t nan_class_sizes_entry = {nan_class_sizes_image, nan_class_sizes_copy, &nan_class_sizes_active, (uint32_t)sizeof nan_class_sizes_copy};

/* leaves from left to right, tree after tree: 16 bytes, in dtcm. */
MCG_SECTION(".rodata.mcugen.nan_class_leaf") static _Alignas(4) const int16_t nan_class_leaf_image[8] = {
    -19859, -3972, 19860, 19860, -15246, -2156, 15245, 15245,
};
MCG_SECTION(".bss.mcugen.dtcm.nan_class_leaf") static _Alignas(4) int16_t nan_class_leaf_copy[8];
static const void *nan_class_leaf_active = nan_class_leaf_image;
MCG_TABLE_COPY static const mcg_table_copy_t nan_class_leaf_entry = {nan_class_leaf_image, nan_class_leaf_copy, &nan_class_leaf_active, (uint32_t)sizeof nan_class_leaf_copy};

/* where the sums start: 4 bytes, in dtcm. */
MCG_SECTION(".rodata.mcugen.nan_class_base") static const int32_t nan_class_base_image[1] = {
    -3836,
};
MCG_SECTION(".bss.mcugen.dtcm.nan_class_base") static int32_t nan_class_base_copy[1];
static const void *nan_class_base_active = nan_class_base_image;
MCG_TABLE_COPY static const mcg_table_copy_t nan_class_base_entry = {nan_class_base_image, nan_class_base_copy, &nan_class_base_active, (uint32_t)sizeof nan_class_base_copy};

typedef uint8_t nan_class_rank_t;

#define MCG_R_NAME nan_class_rank
#define MCG_R_SECTION MCG_SECTION(".text.mcugen.itcm.nan_class_rank") MCG_NOINLINE
#define MCG_R_TYPE f32
#define MCG_R_RANK nan_class_rank_t
#define MCG_R_WIDTH 16
#define MCG_R_COLUMNS 3
#define MCG_R_GROUPS 0
#define MCG_R_EXACT 0
#define MCG_R_ZERO 0
#define MCG_R_SENTINEL 0
#include "mcugen/mcg_trees_rank.h"

#define MCG_W_NAME nan_class_walk
#define MCG_W_RANK nan_class_rank_t
#define MCG_W_NODE uint16_t
#define MCG_W_COLUMN_BITS 2
#define MCG_W_OPERAND_BITS 1
#define MCG_W_SETS 0
#define MCG_W_FIRST_SET 3u
#include "mcugen/mcg_trees_walk.h"
#define MCG_S_NAME nan_class_sum
#define MCG_S_SECTION MCG_SECTION(".text.mcugen.itcm.nan_class_sum") MCG_NOINLINE
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

static int nan_class_usable(const float *x, const void *y, size_t y_align)
{
    return x != NULL && y != NULL && MCG_ALIGNED(x, sizeof *x) && MCG_ALIGNED(y, y_align);
}

static void nan_class_compute(const float *x, int32_t *y)
{
    uint8_t rank[3];
    int32_t score[1];
    nan_class_rank((const mcg_column16_t *)nan_class_columns_active, (const int32_t *)nan_class_keys_active, NULL, NULL, NULL, NULL, x, rank);
    nan_class_sum((const uint16_t *)nan_class_nodes_active, (const uint16_t *)nan_class_sizes_active, (const int16_t *)nan_class_leaf_active, NULL, (const int32_t *)nan_class_base_active, rank, score);
    y[0] = mcg_above_i32(score[0], 0);
}

mcg_status_t nan_class_run(const float *x, int32_t *y)
{
    if (!nan_class_usable(x, y, sizeof *y)) {
        return MCG_ERR_ARG;
    }
    nan_class_compute(x, y);
    return MCG_OK;
}

mcg_status_t nan_class_run_batch(const float *x, int32_t *y, uint32_t n)
{
    if (!nan_class_usable(x, y, sizeof *y)) {
        return MCG_ERR_ARG;
    }
    for (uint32_t i = 0; i < n; ++i) {
        nan_class_compute(x, y);
        x += NAN_CLASS_INPUTS;
        y += NAN_CLASS_OUTPUTS;
    }
    return MCG_OK;
}
#if defined(MCG_TRACE)
/* what the model calls each leaf: 16 bytes. */
static _Alignas(4) const uint16_t nan_class_leaf_names[8] = {
    0, 2, 3, 1, 0, 2, 3, 1,
};

mcg_status_t nan_class_leaves(const float *x, uint16_t *leaf)
{
    if (!nan_class_usable(x, leaf, sizeof *leaf)) {
        return MCG_ERR_ARG;
    }
    uint8_t rank[3];
    nan_class_rank((const mcg_column16_t *)nan_class_columns_active, (const int32_t *)nan_class_keys_active, NULL, NULL, NULL, NULL, x, rank);
    nan_class_sum_leaves((const uint16_t *)nan_class_nodes_active, (const uint16_t *)nan_class_sizes_active, nan_class_leaf_names, NULL, rank, leaf);
    return MCG_OK;
}
#endif

/* The plan, for mcugen check-elf: a section without memory. */
#if defined(__ELF__) && defined(__arm__)
__asm__(".pushsection .mcugen.plan,\"\",%progbits\n"
        ".ascii \"mcugen-plan 1\\n\"\n"
        ".ascii \"model nan_class\\n\"\n"
        ".ascii \"source a0de7e1d0033a830b0421823c35b9a9c0203992de51e5da64284ca42b2b47c5c\\n\"\n"
        ".ascii \"code 563aaa134f23292829aeaa4c67ae193597f0359d33926d00e8f4e9b21796feb9\\n\"\n"
        ".ascii \"abi 3\\n\"\n"
        ".ascii \"board stm32h743\\n\"\n"
        ".ascii \"item nan_class_rank code itcm 180 4 copied\\n\"\n"
        ".ascii \"item nan_class_columns table dtcm 24 2 copied\\n\"\n"
        ".ascii \"item nan_class_keys table dtcm 12 4 copied\\n\"\n"
        ".ascii \"item nan_class_sum code itcm 160 4 copied\\n\"\n"
        ".ascii \"item nan_class_nodes table dtcm 12 2 copied\\n\"\n"
        ".ascii \"item nan_class_sizes table dtcm 4 2 copied\\n\"\n"
        ".ascii \"item nan_class_leaf table dtcm 16 2 copied\\n\"\n"
        ".ascii \"item nan_class_base table dtcm 4 4 copied\\n\"\n"
        ".ascii \"item mcg_above_i32 code itcm 12 4 copied\\n\"\n"
        ".ascii \"end\\n\"\n"
        ".popsection");
#endif
