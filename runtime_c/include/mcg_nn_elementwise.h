/* mcugen runtime: integer ops that treat each element by itself: tables, sums, products, scales per channel.
 *
 * Arrays have any alignment that their type allows. Results are rounded once, half up, and clamped; no accumulator
 * overflows, proven by mcugen from the tables. Names end in the type of the elements: s8 is int8, s16 int16.
 * SPDX-License-Identifier: MIT-0
 */
#ifndef MCG_NN_ELEMENTWISE_H
#define MCG_NN_ELEMENTWISE_H

#include "mcg_nn_requant.h"

MCG_BEGIN_DECLS

/* y[i] = table[x[i] + 128]. table: 256. y may be x. Cost: about 6 instructions an element. */
void mcg_table_s8(const int8_t *table, const int8_t *x, int8_t *y, uint32_t n);

/* y[i] = the nearest value in low..high. Cost: about 1.9 instructions an element. */
void mcg_clamp_s8(int8_t *y, uint32_t n, int32_t low, int32_t high);

/* Powers of two units that a step of the output is, in the scaled form of mcg_add_s8. */
#define MCG_ADD_SHIFT 20

typedef struct {
    uint32_t n;
    int32_t unit; /* what one step of a counts: 2^20, or -2^20 where a is subtracted; scaled: in units of the output */
    mcg_requant_t requant;
} mcg_add_t;

/* y[i] = requantize(a[i] * unit + table[b[i] + 128]). table: 256, the zero point of a in it. y may be a or b.
 * The scaled form, where requant.shift is 0: y[i] = clamp((a[i] * unit + table[b[i] + 128]) >> MCG_ADD_SHIFT), clamps from
 * requant, rounding and zero point of y in the table.
 * Cost: about 7 instructions an element and 1.9 for clamps inside of -128..127; 24 if not scaled. */
void mcg_add_s8(const mcg_add_t *d, const int32_t *table, const int8_t *a, const int8_t *b, int8_t *y);

typedef struct {
    uint32_t n;
    int32_t zp_a, zp_b;
    mcg_requant_t requant;
} mcg_mul_t;

/* y[i] = requantize((a[i] - zp_a) * (b[i] - zp_b)). y may be a or b. Cost: about 12 instructions an element. */
void mcg_mul_s8(const mcg_mul_t *d, const int8_t *a, const int8_t *b, int8_t *y);

typedef struct {
    uint32_t outer, gates, inner; /* x has the shape (outer, gates, inner), g has `gates` elements */
    int32_t zp_x, zp_g;
    mcg_requant_t requant;
} mcg_gate_t;

/* y[o][c][i] = requantize((x[o][c][i] - zp_x) * (g[c] - zp_g)). y may be x. Cost: about 12 instructions an element. */
void mcg_gate_s8(const mcg_gate_t *d, const int8_t *x, const int8_t *g, int8_t *y);

typedef struct {
    uint32_t outer, channels, inner; /* x has the shape (outer, channels, inner) */
    int32_t zp;
    mcg_requant_t requant;
} mcg_scale_t;

/* y[o][c][i] = requantize((x[o][c][i] - zp) * multiplier[c] + add[c]). y may be x. Cost: about 14 instructions. */
void mcg_scale_s8(const mcg_scale_t *d, const int32_t *multiplier, const int32_t *add, const int8_t *x, int8_t *y);

MCG_END_DECLS

#endif
