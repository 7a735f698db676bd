/* mcugen runtime: layers that are computed together, a few rows at a time. See mcg_nn_strips.h for the contract.
 * SPDX-License-Identifier: MIT-0
 */
#include "mcg_nn_strips.h"

#include "mcg_dsp.h"

/* How far a run is. Of each tensor the rows first..end-1 exist. */
typedef struct {
    const mcg_strips_t *d;
    uint8_t *memory;
    int8_t *y;
    int32_t first[MCG_STRIPS_MOST_VALUES], end[MCG_STRIPS_MOST_VALUES];
    int32_t next[MCG_STRIPS_MOST_VALUES]; /* where the call ends that is wanted, or `end` */
} run_t;

MCG_INLINE int32_t within(int32_t v, int32_t low, int32_t high) { return v < low ? low : v > high ? high : v; }

/* The first input row that row `row` of a layer is computed from. */
MCG_CODE(row_from)
static int32_t row_from(const mcg_strips_layer_t *l, int32_t row, int32_t height)
{
    return within(row * l->stride - l->pad_top, 0, height);
}

/* The end of the input rows that rows up to `end` are computed from. */
MCG_CODE(row_to)
static int32_t row_to(const mcg_strips_layer_t *l, int32_t end, int32_t height)
{
    return within((end - 1) * l->stride - l->pad_top + l->reach, 0, height);
}

/* n bytes to an address below. */
MCG_CODE(move_down)
static void move_down(int8_t *to, const int8_t *from, uint32_t n)
{
    for (; n >= 16u; n -= 16u, to += 16, from += 16) {
        const uint32_t a = mcg_load32(from), b = mcg_load32(from + 4);
        const uint32_t c = mcg_load32(from + 8), e = mcg_load32(from + 12);
        mcg_store32(to, a);
        mcg_store32(to + 4, b);
        mcg_store32(to + 8, c);
        mcg_store32(to + 12, e);
    }
    for (; n != 0u; --n) {
        *to++ = *from++;
    }
}

/* Which layers are wanted for the next rows of the last one, and where their next call ends. */
MCG_CODE(want)
static void want(run_t *r)
{
    const mcg_strips_t *const d = r->d;
    const uint32_t count = d->count, inputs = d->inputs, last = inputs + count - 1u;
    int32_t need[MCG_STRIPS_MOST_VALUES];
    for (uint32_t v = 0; v <= last; ++v) {
        need[v] = r->end[v];
    }
    need[last] += 1;
    for (uint32_t k = count; k-- != 0u;) {
        const mcg_strips_layer_t *const l = &d->layers[k];
        const uint32_t v = inputs + k;
        const int32_t height = d->values[v].height;
        int32_t to = r->end[v];
        if (need[v] > to) {
            to += l->rows;
            to = height - to < l->least ? height : to;
            const int32_t x = row_to(l, to, d->values[l->x].height), b = row_to(l, to, d->values[l->b].height);
            need[l->x] = need[l->x] < x ? x : need[l->x];
            need[l->b] = need[l->b] < b ? b : need[l->b];
        }
        r->next[v] = to;
    }
}

MCG_CODE(row_of)
static int8_t *row_of(const run_t *r, uint32_t v, int32_t row)
{
    const mcg_strips_value_t *const value = &r->d->values[v];
    int8_t *const start = v + 1u == (uint32_t)r->d->inputs + r->d->count ? r->y : (int8_t *)r->memory + value->offset;
    return start + (uint32_t)(row - r->first[v]) * value->row;
}

/* Drops the rows of a window that no later layer reads, so that there is room up to row `to`. */
MCG_CODE(make_room)
static void make_room(run_t *r, uint32_t layer, int32_t to)
{
    const mcg_strips_t *const d = r->d;
    const uint32_t v = d->inputs + layer;
    const mcg_strips_value_t *const value = &d->values[v];
    if (to - r->first[v] <= (int32_t)value->rows) {
        return;
    }
    int32_t keep = r->end[v];
    for (uint32_t k = layer + 1u; k < d->count; ++k) {
        const mcg_strips_layer_t *const l = &d->layers[k];
        const int32_t done = r->end[d->inputs + k];
        if ((l->x == v || l->b == v) && done < (int32_t)d->values[d->inputs + k].height) {
            const int32_t from = row_from(l, done, value->height);
            keep = from < keep ? from : keep;
        }
    }
    const uint32_t shift = (uint32_t)(keep - r->first[v]) * value->row;
    int8_t *const start = (int8_t *)r->memory + value->offset;
    /* In planes, too: each row goes up in its plane, and what crosses from plane to plane is old. */
    move_down(start, start + shift, value->bytes - shift);
    r->first[v] = keep;
}

MCG_CODE(mcg_strips_s8)
void mcg_strips_s8(const mcg_strips_t *d, mcg_strips_compute_t *compute, uint8_t *memory, const int8_t *const *inputs,
                   int8_t *y)
{
    run_t r = {.d = d, .memory = memory, .y = y};
    const uint32_t count = d->count, first = d->inputs, last = first + count - 1u;
    for (uint32_t v = 0; v <= last; ++v) {
        r.first[v] = 0;
        r.end[v] = v < first ? (int32_t)d->values[v].height : 0;
    }
    while (r.end[last] < (int32_t)d->values[last].height) {
        want(&r);
        for (uint32_t k = 0; k < count; ++k) {
            const mcg_strips_layer_t *const l = &d->layers[k];
            const uint32_t v = first + k;
            const int32_t from = r.end[v], to = r.next[v];
            if (to == from || r.end[l->x] < row_to(l, to, d->values[l->x].height) ||
                r.end[l->b] < row_to(l, to, d->values[l->b].height)) {
                continue;
            }
            make_room(&r, k, to);
            const mcg_strips_value_t *const x = &d->values[l->x], *const out = &d->values[v];
            const int32_t top = from * l->stride - l->pad_top;
            const int32_t row = row_from(l, from, x->height);
            mcg_strips_part_t p;
            p.x = l->x < first ? inputs[l->x] + (uint32_t)row * x->row : row_of(&r, l->x, row);
            p.b = l->b == l->x   ? p.x
                  : l->b < first ? inputs[l->b] + (uint32_t)from * d->values[l->b].row
                                 : row_of(&r, l->b, from);
            p.y = row_of(&r, v, from);
            p.scratch = memory;
            p.bytes = x->bytes - (uint32_t)(row - r.first[l->x]) * x->row;
            p.elements = (uint32_t)(to - from) * out->row;
            p.in_h = (uint16_t)(within(row_to(l, to, x->height), row, x->height) - row);
            p.out_h = (uint16_t)(to - from);
            p.pad_top = (uint16_t)(top < 0 ? -top : 0);
            p.row = (uint16_t)row;
            p.height = x->height;
            compute(k, &p);
            r.end[v] = to;
        }
    }
}
