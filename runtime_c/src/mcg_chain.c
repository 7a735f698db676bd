/* mcugen runtime: from filtered samples or features to the input of a net. See mcg_chain.h for the contracts.
 * SPDX-License-Identifier: MIT-0
 */
#include "mcg_chain.h"

#include <string.h>

MCG_CODE(in_units)
static int32_t in_units(const mcg_unit_t *u, int32_t x, int32_t low, int32_t high)
{
    const int64_t v = ((int64_t)u->multiplier * x + u->add) >> u->shift;
    return v < low ? low : v > high ? high : (int32_t)v;
}

MCG_CODE(mcg_units_i16_i8)
void mcg_units_i16_i8(const mcg_unit_t *u, const int16_t *x, int8_t *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        y[i] = (int8_t)in_units(&u[i], x[i], INT8_MIN, INT8_MAX);
    }
}

MCG_CODE(mcg_units_i32_i8)
void mcg_units_i32_i8(const mcg_unit_t *u, const int32_t *x, int8_t *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        y[i] = (int8_t)in_units(&u[i], x[i], INT8_MIN, INT8_MAX);
    }
}

MCG_CODE(mcg_units_i16_i16)
void mcg_units_i16_i16(const mcg_unit_t *u, const int16_t *x, int16_t *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        y[i] = (int16_t)in_units(&u[i], x[i], INT16_MIN, INT16_MAX);
    }
}

MCG_CODE(mcg_units_i32_i16)
void mcg_units_i32_i16(const mcg_unit_t *u, const int32_t *x, int16_t *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        y[i] = (int16_t)in_units(&u[i], x[i], INT16_MIN, INT16_MAX);
    }
}

/* The product is rounded before the sum: no compiler may make one operation of both. */
MCG_CODE(real_of)
static float real_of(const mcg_real_t *r, float x)
{
    float product = r->scale * x;
    MCG_ROUNDED_F32(product);
    return product + r->offset;
}

MCG_CODE(mcg_reals_i16_f32)
void mcg_reals_i16_f32(const mcg_real_t *r, const int16_t *x, float *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        y[i] = real_of(&r[i], (float)x[i]);
    }
}

MCG_CODE(mcg_reals_i32_f32)
void mcg_reals_i32_f32(const mcg_real_t *r, const int32_t *x, float *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i) {
        y[i] = real_of(&r[i], (float)x[i]);
    }
}

MCG_CODE(mcg_frame_push)
uint32_t mcg_frame_push(const mcg_frame_t *f, void *ring, uint32_t *at, uint32_t *wait, const void *x)
{
    const uint32_t unit = f->unit, row = f->length * unit;
    uint8_t *to = (uint8_t *)ring + *at * unit;
    const uint8_t *from = x;
    for (uint32_t r = 0; r < f->rows; ++r) {
        for (uint32_t i = 0; i < unit; ++i) {
            to[i] = from[i];
        }
        to += row;
        from += unit;
    }
    *at = *at + 1u == f->length ? 0u : *at + 1u;
    *wait -= 1u;
    if (*wait != 0u) {
        return 0;
    }
    *wait = f->step;
    return 1;
}

MCG_CODE(mcg_frame_copy)
void mcg_frame_copy(const mcg_frame_t *f, const void *ring, uint32_t at, void *y)
{
    const uint32_t row = f->length * f->unit, newest = at * f->unit;
    const uint8_t *from = ring;
    uint8_t *to = y;
    for (uint32_t r = 0; r < f->rows; ++r) {
        memcpy(to, from + newest, row - newest);
        memcpy(to + (row - newest), from, newest);
        from += row;
        to += row;
    }
}
