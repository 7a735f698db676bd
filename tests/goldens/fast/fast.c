/* fast: lightgbm model nan.txt, exported by mcugen.
 * SPDX-License-Identifier: MIT-0
 */
#include "fast.h"

#include "mcugen/mcg_sections.h"
#include "mcugen/mcg_trees.h"
#include "mcugen/mcg_trees_branch.h"
_Static_assert(sizeof(float) == 4, "float has another size here");
_Static_assert(sizeof(int32_t) == 4, "int32_t has another size here");
/* sorted thresholds of each search, as keys: 12 bytes, in dtcm. */
MCG_SECTION(".rodata.mcugen.fast_keys") static const int32_t fast_keys_image[3] = {
    -1056796837, 1050253721, 2139095040,
};
MCG_SECTION(".bss.mcugen.dtcm.fast_keys") static int32_t fast_keys_copy[3];
static const void *fast_keys_active = fast_keys_image;
MCG_TABLE_COPY static const mcg_table_copy_t fast_keys_entry = {fast_keys_image, fast_keys_copy, &fast_keys_active, (uint32_t)sizeof fast_keys_copy};

/* rank in a column by rank in its search: 8 bytes, in dtcm. */
MCG_SECTION(".rodata.mcugen.fast_maps") static _Alignas(4) const uint8_t fast_maps_image[8] = {
    0, 0, 1, 0, 0, 1, 1, 1,
};
MCG_SECTION(".bss.mcugen.dtcm.fast_maps") static _Alignas(4) uint8_t fast_maps_copy[8];
static const void *fast_maps_active = fast_maps_image;
MCG_TABLE_COPY static const mcg_table_copy_t fast_maps_entry = {fast_maps_image, fast_maps_copy, &fast_maps_active, (uint32_t)sizeof fast_maps_copy};

typedef uint8_t fast_rank_t;

#define MCG_C_NAME fast_rank
#define MCG_C_TYPE f32
#define MCG_C_WORK int32_t
#define MCG_C_WIDE uint32_t
#define MCG_C_CELL uint8_t
#include "mcugen/mcg_trees_coarse.h"

MCG_SECTION(".text.mcugen.itcm.fast_rank") MCG_NOINLINE static void fast_rank(const int32_t *keys, const uint8_t *maps, const float *x, fast_rank_t *rank)
{
    {
        const uint32_t at = fast_rank_few(x + 0, keys + 0, 2u, 3u);
        rank[0] = (fast_rank_t)maps[0u + at];
        rank[1] = (fast_rank_t)maps[4u + at];
    }
    rank[2] = (fast_rank_t)(fast_rank_few(x + 1, keys + 2, 1u, 1u));
}

MCG_BRANCHES_BEGIN_FEW
MCG_SECTION(".text.mcugen.itcm.fast_trees_0") MCG_NOINLINE static void fast_trees_0(const fast_rank_t *r, int32_t *sum MCG_BRANCH_TRACE(uint16_t))
{
    int32_t a;
    a = 0;
    if (MCG_BRANCH_IF(r[0] <= 0u, 68)) {
        if (MCG_BRANCH_IF(r[2] <= 0u, 77)) {
            MCG_BRANCH_ADD(-2482, 0, 0);
        } else {
            if (MCG_BRANCH_IF(r[1] > 0u, 68)) {
                MCG_BRANCH_ADD(2483, 0, 3);
            } else {
                MCG_BRANCH_ADD(-496, 0, 2);
            }
        }
    } else {
        MCG_BRANCH_ADD(2483, 0, 1);
    }
    a *= 2;
    if (MCG_BRANCH_IF(r[0] <= 0u, 68)) {
        if (MCG_BRANCH_IF(r[2] <= 0u, 77)) {
            MCG_BRANCH_ADD(-3811, 1, 0);
        } else {
            if (MCG_BRANCH_IF(r[1] > 0u, 68)) {
                MCG_BRANCH_ADD(3812, 1, 3);
            } else {
                MCG_BRANCH_ADD(-538, 1, 2);
            }
        }
    } else {
        MCG_BRANCH_ADD(3812, 1, 1);
    }
    sum[0] = a + -960;
    (void)r;
}

MCG_BRANCHES_END
MCG_INLINE void fast_sum_all(const fast_rank_t *r, int32_t *sum MCG_BRANCH_TRACE(uint16_t))
{
    fast_trees_0(r, sum MCG_BRANCH_PASS);
}

MCG_SECTION(".text.mcugen.itcm.fast_sum") MCG_NOINLINE static void fast_sum(const fast_rank_t *r, int32_t *sum)
{
#if defined(MCG_TRACE)
    uint16_t leaf[2];
#endif
    fast_sum_all(r, sum MCG_BRANCH_PASS);
}
#if defined(MCG_TRACE)
static void fast_sum_leaves(const fast_rank_t *r, uint16_t *leaf)
{
    int32_t sum[1];
    fast_sum_all(r, sum, leaf);
}
#endif

static int fast_usable(const float *x, const void *y, size_t y_align)
{
    return x != NULL && y != NULL && MCG_ALIGNED(x, sizeof *x) && MCG_ALIGNED(y, y_align);
}

static void fast_compute(const float *x, int32_t *y)
{
    uint8_t rank[3];
    fast_rank((const int32_t *)fast_keys_active, (const uint8_t *)fast_maps_active, x, rank);
    fast_sum(rank, y);
}

mcg_status_t fast_run(const float *x, int32_t *y)
{
    if (!fast_usable(x, y, sizeof *y)) {
        return MCG_ERR_ARG;
    }
    fast_compute(x, y);
    return MCG_OK;
}

mcg_status_t fast_run_batch(const float *x, int32_t *y, uint32_t n)
{
    if (!fast_usable(x, y, sizeof *y)) {
        return MCG_ERR_ARG;
    }
    for (uint32_t i = 0; i < n; ++i) {
        fast_compute(x, y);
        x += FAST_INPUTS;
        y += FAST_OUTPUTS;
    }
    return MCG_OK;
}
#if defined(MCG_TRACE)

mcg_status_t fast_leaves(const float *x, uint16_t *leaf)
{
    if (!fast_usable(x, leaf, sizeof *leaf)) {
        return MCG_ERR_ARG;
    }
    uint8_t rank[3];
    fast_rank((const int32_t *)fast_keys_active, (const uint8_t *)fast_maps_active, x, rank);
    fast_sum_leaves(rank, leaf);
    return MCG_OK;
}
#endif

/* The plan, for mcugen check-elf: a section without memory. */
#if defined(__ELF__) && defined(__arm__)
__asm__(".pushsection .mcugen.plan,\"\",%progbits\n"
        ".ascii \"mcugen-plan 1\\n\"\n"
        ".ascii \"model fast\\n\"\n"
        ".ascii \"source a0de7e1d0033a830b0421823c35b9a9c0203992de51e5da64284ca42b2b47c5c\\n\"\n"
        ".ascii \"code ae63c6137b2c4b54fea9956f39a9521ad80350d4f9569af0a9ad0669c088889b\\n\"\n"
        ".ascii \"abi 3\\n\"\n"
        ".ascii \"board stm32h743\\n\"\n"
        ".ascii \"item fast_rank code itcm 312 4 copied\\n\"\n"
        ".ascii \"item fast_keys table dtcm 12 4 copied\\n\"\n"
        ".ascii \"item fast_maps table dtcm 8 1 copied\\n\"\n"
        ".ascii \"item fast_sum code itcm 36 4 copied\\n\"\n"
        ".ascii \"item fast_trees_0 code itcm 176 4 copied\\n\"\n"
        ".ascii \"end\\n\"\n"
        ".popsection");
#endif
