/* small: lightgbm model mean.txt, exported by mcugen.
 * SPDX-License-Identifier: MIT-0
 */
#include "small.h"

#include "mcugen/mcg_sections.h"
#include "mcugen/mcg_trees.h"
_Static_assert(sizeof(float) == 4, "float has another size here");
_Static_assert(sizeof(int32_t) == 4, "int32_t has another size here");
/* first key, lowest with a cell, input, table, unit, shift, cells, bytes of a key: 32 bytes. */
MCG_SECTION(".rodata.mcugen.small_columns") static const mcg_lookup_t small_columns[2] = {
    {89435438, 1038845215, 0, 0, 0, 23, 2, 3},
    {1077076295, 1078187787, 1, 8, 0, 0, 1, 3},
};

/* of each column: rank of a missing value, keys below each coarse cell, thresholds above the first: 26 bytes. */
MCG_SECTION(".rodata.mcugen.small_keys") static _Alignas(4) const uint8_t small_keys[26] = {
    0, 2, 3, 4, 0, 0, 0, 0, 0, 0, 245, 40, 92, 112, 61, 202, 0, 2, 2, 0,
    0, 0, 0, 0, 0, 0,
};

/* from bit 0 on: distance and column, then rank; or, behind 2 bits of 0, a leaf: 30 bytes. */
MCG_SECTION(".rodata.mcugen.small_nodes") static _Alignas(4) const uint16_t small_nodes[15] = {
    0x0000, 0x0015, 0x0019, 0x0012, 0xE4E8, 0xB99C, 0xA22C, 0x5DD4, 0x000D, 0x0021, 0x000A, 0xF028, 0xBB50, 0x9B68,
    0x6498,
};

/* trees of one unit: how many, output, units: 8 bytes. */
MCG_SECTION(".rodata.mcugen.small_groups_of_trees") static const mcg_tree_group_t small_groups_of_trees[1] = {
    {2, 0, 1},
};

/* where the sums start: 4 bytes. */
MCG_SECTION(".rodata.mcugen.small_base") static const int32_t small_base[1] = {
    4565,
};

typedef uint8_t small_rank_t;

#define MCG_T_NAME small_rank
#define MCG_T_SECTION MCG_SECTION(".text.mcugen.small_rank") MCG_NOINLINE
#define MCG_T_TYPE f32
#define MCG_T_RANK small_rank_t
#define MCG_T_COLUMNS 2
#define MCG_T_WIDTH 3u
#define MCG_T_APART 1
#define MCG_T_SCAN 1
#define MCG_T_CELL uint8_t
#define MCG_T_GROUPS 0
#define MCG_T_EXACT 0
#include "mcugen/mcg_trees_lookup.h"

#define MCG_P_NAME small_sum
#define MCG_P_SECTION MCG_SECTION(".text.mcugen.small_sum") MCG_NOINLINE
#define MCG_P_RANK small_rank_t
#define MCG_P_DISTANCE_BITS 2
#define MCG_P_COLUMN_BITS 1
#define MCG_P_FLAG_BITS 2
#define MCG_P_DISTANCE_AT 0
#define MCG_P_COLUMN_AT 2
#define MCG_P_COLUMNS_USED 2u
#define MCG_P_STRIDE 7u
#define MCG_P_SIZE uint16_t
#define MCG_P_SURE 2
#define MCG_P_GROUPS 1u
#define MCG_P_OUTPUTS 1u
#define MCG_P_TREES 2u
#define MCG_P_ID uint16_t
#include "mcugen/mcg_trees_packed.h"
#if defined(MCG_TRACE)
static const uint16_t small_trace_names[15] = {
    0LL, 0LL, 0LL, 0LL, 0LL,
    3LL, 1LL, 2LL, 0LL, 0LL,
    0LL, 0LL, 3LL, 1LL, 2LL,
};
static const uint32_t small_trace_order[2] = {
    0LL, 1LL,
};
#endif

static int small_usable(const float *x, const void *y, size_t y_align)
{
    return x != NULL && y != NULL && MCG_ALIGNED(x, sizeof *x) && MCG_ALIGNED(y, y_align);
}

static void small_compute(const float *x, int32_t *y)
{
    uint8_t rank[2];
    small_rank(small_columns, small_keys, NULL, NULL, x, rank);
    small_sum(small_nodes, NULL, small_groups_of_trees, small_base, rank, y);
}

mcg_status_t small_run(const float *x, int32_t *y)
{
    if (!small_usable(x, y, sizeof *y)) {
        return MCG_ERR_ARG;
    }
    small_compute(x, y);
    return MCG_OK;
}

mcg_status_t small_run_batch(const float *x, int32_t *y, uint32_t n)
{
    if (!small_usable(x, y, sizeof *y)) {
        return MCG_ERR_ARG;
    }
    for (uint32_t i = 0; i < n; ++i) {
        small_compute(x, y);
        x += SMALL_INPUTS;
        y += SMALL_OUTPUTS;
    }
    return MCG_OK;
}
#if defined(MCG_TRACE)

mcg_status_t small_leaves(const float *x, uint16_t *leaf)
{
    if (!small_usable(x, leaf, sizeof *leaf)) {
        return MCG_ERR_ARG;
    }
    uint8_t rank[2];
    small_rank(small_columns, small_keys, NULL, NULL, x, rank);
    small_sum_leaves(small_nodes, NULL, small_trace_names, small_trace_order, rank, leaf);
    return MCG_OK;
}
#endif

/* The plan, for mcugen check-elf: a section without memory. */
#if defined(__ELF__) && defined(__arm__)
__asm__(".pushsection .mcugen.plan,\"\",%progbits\n"
        ".ascii \"mcugen-plan 1\\n\"\n"
        ".ascii \"model small\\n\"\n"
        ".ascii \"source b0bfb9504c8734f9c1404cf8331b9a5e3f7d078972e24df56088f8c3490eba3d\\n\"\n"
        ".ascii \"code 586bc355b01339900c5f2f7cf2fac9bf9d604b89b918c94145b461ff8bd37221\\n\"\n"
        ".ascii \"abi 3\\n\"\n"
        ".ascii \"board none\\n\"\n"
        ".ascii \"item small_rank code default 210 4\\n\"\n"
        ".ascii \"item small_columns table default 32 4\\n\"\n"
        ".ascii \"item small_keys table default 26 1\\n\"\n"
        ".ascii \"item small_sum code default 330 4\\n\"\n"
        ".ascii \"item small_nodes table default 30 2\\n\"\n"
        ".ascii \"item small_groups_of_trees table default 8 4\\n\"\n"
        ".ascii \"item small_base table default 4 4\\n\"\n"
        ".ascii \"end\\n\"\n"
        ".popsection");
#endif
