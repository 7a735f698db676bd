/* mixed: lightgbm model mean.txt, exported by mcugen.
 * SPDX-License-Identifier: MIT-0
 */
#include "mixed.h"

#include "mcugen/mcg_sections.h"
#include "mcugen/mcg_trees.h"
#include "mcugen/mcg_trees_branch.h"
_Static_assert(sizeof(float) == 4, "float has another size here");
_Static_assert(sizeof(int32_t) == 4, "int32_t has another size here");
/* input, number of keys, rank of a missing value, flags: 16 bytes. */
MCG_SECTION(".rodata.mcugen.mixed_columns") static _Alignas(4) const mcg_column16_t mixed_columns[2] = {
    {0, 4, 0, 0},
    {1, 2, 0, 0},
};

/* sorted thresholds of each column, as keys: 24 bytes. */
MCG_SECTION(".rodata.mcugen.mixed_keys") static const int32_t mixed_keys[6] = {
    89435438, 1038845214, 1044885012, 1052099215, 1077076295, 1078187786,
};

/* from bit 0 on: distance and column, then rank; or, behind 2 bits of 0, a leaf: 16 bytes. */
MCG_SECTION(".rodata.mcugen.mixed_words_nodes") static _Alignas(4) const uint16_t mixed_words_nodes[8] = {
    0x0000, 0x0015, 0x0019, 0x0012, 0xE4E8, 0xB99C, 0xA22C, 0x5DD4,
};

/* trees of one unit: how many, output, units: 8 bytes. */
MCG_SECTION(".rodata.mcugen.mixed_words_groups_of_trees") static const mcg_tree_group_t mixed_words_groups_of_trees[1] = {
    {1, 0, 1},
};

/* where the sums start: 4 bytes. */
MCG_SECTION(".rodata.mcugen.mixed_words_base") static const int32_t mixed_words_base[1] = {
    2625,
};

typedef uint8_t mixed_rank_t;

#define MCG_R_NAME mixed_rank
#define MCG_R_SECTION MCG_SECTION(".text.mcugen.mixed_rank") MCG_NOINLINE
#define MCG_R_TYPE f32
#define MCG_R_RANK mixed_rank_t
#define MCG_R_WIDTH 16
#define MCG_R_COLUMNS 2
#define MCG_R_GROUPS 0
#define MCG_R_EXACT 0
#define MCG_R_ZERO 0
#define MCG_R_SENTINEL 0
#include "mcugen/mcg_trees_rank.h"

typedef mixed_rank_t mixed_code_rank_t;
typedef mixed_rank_t mixed_words_rank_t;

MCG_BRANCHES_BEGIN_FEW
MCG_SECTION(".text.mcugen.mixed_code_trees_0") MCG_NOINLINE static void mixed_code_trees_0(const mixed_code_rank_t *r, int32_t *sum MCG_BRANCH_TRACE(uint16_t))
{
    int32_t a;
    a = 0;
    if (MCG_BRANCH_IF(r[1] <= 0u, 79)) {
        if (MCG_BRANCH_IF(r[0] <= 3u, 52)) {
            MCG_BRANCH_ADD(-507, 0, 0);
        } else {
            MCG_BRANCH_ADD(-2198, 0, 3);
        }
    } else {
        if (MCG_BRANCH_IF(r[0] > 0u, 60)) {
            MCG_BRANCH_ADD(3219, 0, 2);
        } else {
            MCG_BRANCH_ADD(-3219, 0, 1);
        }
    }
    sum[0] = a + 970;
    (void)r;
}

MCG_BRANCHES_END
MCG_INLINE void mixed_code_sum_all(const mixed_code_rank_t *r, int32_t *sum MCG_BRANCH_TRACE(uint16_t))
{
    mixed_code_trees_0(r, sum MCG_BRANCH_PASS);
}

MCG_SECTION(".text.mcugen.mixed_code_sum") MCG_NOINLINE static void mixed_code_sum(const mixed_code_rank_t *r, int32_t *sum)
{
#if defined(MCG_TRACE)
    uint16_t leaf[1];
#endif
    mixed_code_sum_all(r, sum MCG_BRANCH_PASS);
}
#if defined(MCG_TRACE)
static void mixed_code_sum_leaves(const mixed_code_rank_t *r, uint16_t *leaf)
{
    int32_t sum[1];
    mixed_code_sum_all(r, sum, leaf);
}
#endif

#define MCG_P_NAME mixed_words_sum
#define MCG_P_SECTION MCG_SECTION(".text.mcugen.mixed_words_sum") MCG_NOINLINE
#define MCG_P_RANK mixed_words_rank_t
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
#define MCG_P_TREES 1u
#define MCG_P_ID uint16_t
#include "mcugen/mcg_trees_packed.h"
#if defined(MCG_TRACE)
static const uint16_t mixed_words_trace_names[8] = {
    0LL, 0LL, 0LL, 0LL, 0LL,
    3LL, 1LL, 2LL,
};
static const uint32_t mixed_words_trace_order[1] = {
    0LL,
};
#endif

MCG_SECTION(".text.mcugen.mixed_sum") MCG_NOINLINE static void mixed_sum(const mixed_rank_t *rank, int32_t *sum)
{
    int32_t code[1];
    mixed_words_sum(mixed_words_nodes, NULL, mixed_words_groups_of_trees, mixed_words_base, rank, sum);
    mixed_code_sum(rank, code);
    mcg_trees_join(sum, code, 1u, 1, 2);
}
#if defined(MCG_TRACE)
static const uint32_t mixed_code_trees[1] = {
    1LL,
};
static const uint32_t mixed_words_trees[1] = {
    0LL,
};
static void mixed_sum_leaves(const mixed_rank_t *rank, uint16_t *all)
{
    {
        uint16_t leaf[1];
        mixed_code_sum_leaves(rank, leaf);
        for (uint32_t i = 0; i < 1u; ++i) {
            all[mixed_code_trees[i]] = leaf[i];
        }
    }
    {
        uint16_t leaf[1];
        mixed_words_sum_leaves(mixed_words_nodes, NULL, mixed_words_trace_names, mixed_words_trace_order, rank, leaf);
        for (uint32_t i = 0; i < 1u; ++i) {
            all[mixed_words_trees[i]] = leaf[i];
        }
    }
}
#endif

static int mixed_usable(const float *x, const void *y, size_t y_align)
{
    return x != NULL && y != NULL && MCG_ALIGNED(x, sizeof *x) && MCG_ALIGNED(y, y_align);
}

static void mixed_compute(const float *x, int32_t *y)
{
    uint8_t rank[2];
    mixed_rank(mixed_columns, mixed_keys, NULL, NULL, NULL, NULL, x, rank);
    mixed_sum(rank, y);
}

mcg_status_t mixed_run(const float *x, int32_t *y)
{
    if (!mixed_usable(x, y, sizeof *y)) {
        return MCG_ERR_ARG;
    }
    mixed_compute(x, y);
    return MCG_OK;
}

mcg_status_t mixed_run_batch(const float *x, int32_t *y, uint32_t n)
{
    if (!mixed_usable(x, y, sizeof *y)) {
        return MCG_ERR_ARG;
    }
    for (uint32_t i = 0; i < n; ++i) {
        mixed_compute(x, y);
        x += MIXED_INPUTS;
        y += MIXED_OUTPUTS;
    }
    return MCG_OK;
}
#if defined(MCG_TRACE)

mcg_status_t mixed_leaves(const float *x, uint16_t *leaf)
{
    if (!mixed_usable(x, leaf, sizeof *leaf)) {
        return MCG_ERR_ARG;
    }
    uint8_t rank[2];
    mixed_rank(mixed_columns, mixed_keys, NULL, NULL, NULL, NULL, x, rank);
    mixed_sum_leaves(rank, leaf);
    return MCG_OK;
}
#endif

/* The plan, for mcugen check-elf: a section without memory. */
#if defined(__ELF__) && defined(__arm__)
__asm__(".pushsection .mcugen.plan,\"\",%progbits\n"
        ".ascii \"mcugen-plan 1\\n\"\n"
        ".ascii \"model mixed\\n\"\n"
        ".ascii \"source b0bfb9504c8734f9c1404cf8331b9a5e3f7d078972e24df56088f8c3490eba3d\\n\"\n"
        ".ascii \"code c5acced25bb33fcf998f7875f48a397c3f3c5dcf5a48d2c931aab3ca8836ebd1\\n\"\n"
        ".ascii \"abi 3\\n\"\n"
        ".ascii \"board none\\n\"\n"
        ".ascii \"item mixed_rank code default 180 4\\n\"\n"
        ".ascii \"item mixed_columns table default 16 2\\n\"\n"
        ".ascii \"item mixed_keys table default 24 4\\n\"\n"
        ".ascii \"item mixed_sum code default 60 4\\n\"\n"
        ".ascii \"item mixed_code_sum code default 36 4\\n\"\n"
        ".ascii \"item mixed_code_trees_0 code default 108 4\\n\"\n"
        ".ascii \"item mixed_words_sum code default 330 4\\n\"\n"
        ".ascii \"item mixed_words_nodes table default 16 2\\n\"\n"
        ".ascii \"item mixed_words_groups_of_trees table default 8 4\\n\"\n"
        ".ascii \"item mixed_words_base table default 4 4\\n\"\n"
        ".ascii \"end\\n\"\n"
        ".popsection");
#endif
