/* mcugen runtime, trees, template: trees whose leaves are linear models, in double. Include after mcg_trees_sum.h, whose
 * macros it shares (MCG_S_LEAF and MCG_S_SUM are double).
 *
 *   MCG_L_NAME      name of the function          MCG_L_SECTION   its section attribute, may be empty
 *   MCG_L_TYPE      f64 f32 i32 ...: inputs       MCG_L_FIRST     type of an index into the terms
 *   MCG_L_SCALED    1: inputs are counts          MCG_L_SENTINEL  1: some inputs have a sentinel
 *   MCG_L_BAND      inputs of this magnitude or less are 0.0
 *
 * void NAME(nodes, sizes, leaves, sets, base, linear..., rank, x, sum): as the sum, and
 *   constant [leaves], first [leaves + 1]: terms of each leaf; feature, coef [terms]; maps [2 * inputs] scale and offset;
 *   sentinels [2 * inputs] {has, value}
 *
 * A leaf gives constant + coef * x + ..., term by term; where one of its inputs is NaN, the plain leaf.
 * Rounding: each product and each sum to double, never fused. Aliasing: sum must not overlap x.
 * SPDX-License-Identifier: MIT-0
 */
#if defined(__FAST_MATH__)
#error "mcugen: linear trees need NaN and the order of sums; build without -ffast-math"
#endif

MCG_INLINE double MCG_PASTE(MCG_L_NAME, _value)(const MCG_PASTE(mcg_input_, MCG_L_TYPE) * x, uint32_t feature,
                                                const double *maps, const int32_t *sentinels, int *missing)
{
    double value = (double)x[feature];
    *missing |= MCG_PASTE(mcg_is_nan_, MCG_L_TYPE)(MCG_PASTE(mcg_key_of_, MCG_L_TYPE)(&x[feature]));
#if MCG_L_SENTINEL
    *missing |= (sentinels[2u * feature] != 0) & (value == (double)sentinels[2u * feature + 1u]);
#endif
#if MCG_L_SCALED
    value = maps[2u * feature] * value;
    MCG_ROUNDED_F64(value);
    value = value + maps[2u * feature + 1u];
#endif
    (void)maps;
    (void)sentinels;
    return (value <= MCG_L_BAND && value >= -MCG_L_BAND) ? 0.0 : value;
}

/* What leaf `leaf` of a tree gives, whose tables start at these. */
MCG_INLINE double MCG_PASTE(MCG_L_NAME, _leaf)(uint32_t leaf, const double *leaves, const double *constant,
                                               const MCG_L_FIRST *first, const uint16_t *feature, const double *coef,
                                               const double *maps, const int32_t *sentinels,
                                               const MCG_PASTE(mcg_input_, MCG_L_TYPE) * x)
{
    double value = constant[leaf];
    int missing = 0;
    for (uint32_t j = first[leaf]; j < first[leaf + 1u]; ++j) {
        double product = coef[j] * MCG_PASTE(MCG_L_NAME, _value)(x, feature[j], maps, sentinels, &missing);
        MCG_ROUNDED_F64(product);
        value = value + product;
    }
    return missing ? leaves[leaf] : value;
}

MCG_L_SECTION static void MCG_L_NAME(const MCG_S_NODE *nodes, const MCG_S_SIZE *sizes, const double *leaves,
                                     const uint32_t *sets, const double *base, const double *constant,
                                     const MCG_L_FIRST *first, const uint16_t *feature, const double *coef,
                                     const double *maps, const int32_t *sentinels, const MCG_W_RANK *rank,
                                     const MCG_PASTE(mcg_input_, MCG_L_TYPE) * x, double *sum)
{
    uint32_t k = 0;
    for (uint32_t i = 0; i < MCG_S_OUTPUTS; ++i) {
        sum[i] = base[i];
    }
    for (uint32_t t = 0; t < MCG_S_TREES; ++t) {
        const uint32_t size = sizes[t];
        const uint32_t leaf = MCG_W_NAME(nodes, size, rank, sets);
        sum[k] =
            sum[k] + MCG_PASTE(MCG_L_NAME, _leaf)(leaf, leaves, constant, first, feature, coef, maps, sentinels, x);
        k = k + 1u < MCG_S_OUTPUTS ? k + 1u : 0u;
        nodes += size;
        leaves += size + 1u;
        constant += size + 1u;
        first += size + 1u;
    }
}
