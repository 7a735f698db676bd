/* linear: lightgbm model linear.txt, exported by mcugen.
 * SPDX-License-Identifier: MIT-0
 */
#include "linear.h"

#include "mcugen/mcg_sections.h"
#include "mcugen/mcg_trees.h"
_Static_assert(sizeof(double) == 8, "double has another size here");
/* input, number of keys, rank of a missing value, flags: 16 bytes. */
MCG_SECTION(".rodata.mcugen.linear_columns") static _Alignas(4) const mcg_column16_t linear_columns[2] = {
    {0, 2, 0, 0},
    {1, 2, 0, 0},
};

/* sorted thresholds of each column, as keys: 32 bytes. */
MCG_SECTION(".rodata.mcugen.linear_keys") static const int64_t linear_keys[4] = {
    4083240551288143872LL, 4592951043977526641LL, 4592590756007337002LL, 4614072926229894268LL,
};

/* bits 0..0 column, then 1 rank or set, then distance: 12 bytes. */
MCG_SECTION(".rodata.mcugen.linear_nodes") static _Alignas(4) const uint16_t linear_nodes[6] = {
    0x000B, 0x0006, 0x0004, 0x0009, 0x0004, 0x0004,
};

/* nodes of each tree: 4 bytes. */
MCG_SECTION(".rodata.mcugen.linear_sizes") static _Alignas(4) const uint16_t linear_sizes[2] = {
    3, 3,
};

/* leaves where an input is missing: 64 bytes. */
MCG_SECTION(".rodata.mcugen.linear_leaf") static const double linear_leaf[8] = {
    0x1.06b1297d6d7fbp-1, -0x1.6fcd2e100bf51p-2, -0x1.1cbc63382a6c4p+0, 0x1.62144219dc28fp+1,
    0x1.29bcd185382bcp-1, -0x1.468ca476202edp+0, -0x1.adad9e9194aa4p-1, 0x1.517c1ce44946fp+0,
};

/* where the sums start: 8 bytes. */
MCG_SECTION(".rodata.mcugen.linear_base") static const double linear_base[1] = {
    0x0p+0,
};

/* constant of each leaf: 64 bytes. */
MCG_SECTION(".rodata.mcugen.linear_constant") static const double linear_constant[8] = {
    0x1.06b1297d6d7fbp-1, -0x1.6fcd2e100bf51p-2, -0x1.1cbc63382a6c4p+0, 0x1.62144219dc28fp+1,
    -0x1.3a740f445ac99p-3, 0x1.8590ca560e38p-4, -0x1.5287342a9ad19p-2, 0x1.69cd6d47adfcdp-2,
};

/* first term of each leaf: 18 bytes. */
MCG_SECTION(".rodata.mcugen.linear_first") static _Alignas(4) const uint16_t linear_first[9] = {
    0, 0, 0, 0, 0, 2, 4, 6, 8,
};

/* input of each term: 16 bytes. */
MCG_SECTION(".rodata.mcugen.linear_feature") static _Alignas(4) const uint16_t linear_feature[8] = {
    0, 1, 0, 1, 0, 1, 0, 1,
};

/* coefficient of each term: 64 bytes. */
MCG_SECTION(".rodata.mcugen.linear_coef") static const double linear_coef[8] = {
    0x1.eb3f219901433p-6, -0x1.330a536551d98p-2, 0x1.0c98faba3a50dp-5, 0x1.329404175f8fcp-1,
    0x1.38b316137fcap-5, -0x1.46c0eb3b1d83p-3, 0x1.b0efbca757eb3p-5, 0x1.4b1ecfda701edp-2,
};

typedef uint8_t linear_rank_t;

#define MCG_R_NAME linear_rank
#define MCG_R_SECTION MCG_SECTION(".text.mcugen.linear_rank") MCG_NOINLINE
#define MCG_R_TYPE f64
#define MCG_R_RANK linear_rank_t
#define MCG_R_WIDTH 16
#define MCG_R_COLUMNS 2
#define MCG_R_GROUPS 0
#define MCG_R_EXACT 0
#define MCG_R_ZERO 0
#define MCG_R_SENTINEL 0
#include "mcugen/mcg_trees_rank.h"

#define MCG_W_NAME linear_walk
#define MCG_W_RANK linear_rank_t
#define MCG_W_NODE uint16_t
#define MCG_W_COLUMN_BITS 1
#define MCG_W_OPERAND_BITS 1
#define MCG_W_SETS 0
#define MCG_W_FIRST_SET 2u
#include "mcugen/mcg_trees_walk.h"
#define MCG_S_NAME linear_plain
#define MCG_S_SECTION MCG_UNUSED
#define MCG_S_NODE uint16_t
#define MCG_S_SIZE uint16_t
#define MCG_S_ID uint16_t
#define MCG_S_LEAF double
#define MCG_S_SUM double
#define MCG_S_TREES 2u
#define MCG_S_OUTPUTS 1
#define MCG_S_VALUES 1
#define MCG_S_FLOAT 1
#include "mcugen/mcg_trees_sum.h"
#define MCG_L_NAME linear_linear
#define MCG_L_SECTION MCG_SECTION(".text.mcugen.linear_linear") MCG_NOINLINE
#define MCG_L_TYPE f64
#define MCG_L_FIRST uint16_t
#define MCG_L_SCALED 0
#define MCG_L_SENTINEL 0
#define MCG_L_BAND 0x1.a95a5cp-117
#include "mcugen/mcg_trees_linear.h"

static int linear_usable(const double *x, const void *y, size_t y_align)
{
    return x != NULL && y != NULL && MCG_ALIGNED(x, sizeof *x) && MCG_ALIGNED(y, y_align);
}

static void linear_compute(const double *x, double *y)
{
    uint8_t rank[2];
    linear_rank(linear_columns, linear_keys, NULL, NULL, NULL, NULL, x, rank);
    linear_linear(linear_nodes, linear_sizes, linear_leaf, NULL, linear_base, linear_constant, linear_first, linear_feature, linear_coef, NULL, NULL, rank, x, y);
}

mcg_status_t linear_run(const double *x, double *y)
{
    if (!linear_usable(x, y, sizeof *y)) {
        return MCG_ERR_ARG;
    }
    linear_compute(x, y);
    return MCG_OK;
}

mcg_status_t linear_run_batch(const double *x, double *y, uint32_t n)
{
    if (!linear_usable(x, y, sizeof *y)) {
        return MCG_ERR_ARG;
    }
    for (uint32_t i = 0; i < n; ++i) {
        linear_compute(x, y);
        x += LINEAR_INPUTS;
        y += LINEAR_OUTPUTS;
    }
    return MCG_OK;
}
#if defined(MCG_TRACE)
/* what the model calls each leaf: 16 bytes. */
static _Alignas(4) const uint16_t linear_leaf_names[8] = {
    0, 3, 1, 2, 0, 3, 1, 2,
};

mcg_status_t linear_leaves(const double *x, uint16_t *leaf)
{
    if (!linear_usable(x, leaf, sizeof *leaf)) {
        return MCG_ERR_ARG;
    }
    uint8_t rank[2];
    linear_rank(linear_columns, linear_keys, NULL, NULL, NULL, NULL, x, rank);
    linear_plain_leaves(linear_nodes, linear_sizes, linear_leaf_names, NULL, rank, leaf);
    return MCG_OK;
}
#endif

/* The plan, for mcugen check-elf: a section without memory. */
#if defined(__ELF__) && defined(__arm__)
__asm__(".pushsection .mcugen.plan,\"\",%progbits\n"
        ".ascii \"mcugen-plan 1\\n\"\n"
        ".ascii \"model linear\\n\"\n"
        ".ascii \"source 15f4c975b36f0f7599ce8d8d12cdd006125b5054ddb6d5ccedd21bec4209eb67\\n\"\n"
        ".ascii \"code dda7718b2fb026c6df98cb4ece068b0ac39d6b4491048b3777659383d07897d7\\n\"\n"
        ".ascii \"abi 3\\n\"\n"
        ".ascii \"board none\\n\"\n"
        ".ascii \"item linear_rank code default 180 4\\n\"\n"
        ".ascii \"item linear_columns table default 16 2\\n\"\n"
        ".ascii \"item linear_keys table default 32 8\\n\"\n"
        ".ascii \"item linear_linear code default 260 4\\n\"\n"
        ".ascii \"item linear_nodes table default 12 2\\n\"\n"
        ".ascii \"item linear_sizes table default 4 2\\n\"\n"
        ".ascii \"item linear_leaf table default 64 8\\n\"\n"
        ".ascii \"item linear_base table default 8 8\\n\"\n"
        ".ascii \"item linear_constant table default 64 8\\n\"\n"
        ".ascii \"item linear_first table default 18 2\\n\"\n"
        ".ascii \"item linear_feature table default 16 2\\n\"\n"
        ".ascii \"item linear_coef table default 64 8\\n\"\n"
        ".ascii \"end\\n\"\n"
        ".popsection");
#endif
