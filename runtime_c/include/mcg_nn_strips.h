/* mcugen runtime: layers of int8 that are computed together, a few rows of each at a time.
 *
 * Between two layers of such a run only a window exists: the rows that later layers still read. Each row of each layer
 * is computed once. The layers keep their own kernels and tables; a kernel sees the rows at hand as a small tensor.
 * SPDX-License-Identifier: MIT-0
 */
#ifndef MCG_NN_STRIPS_H
#define MCG_NN_STRIPS_H

#include "mcg_nn_conv.h"
#include "mcg_nn_elementwise.h"
#include "mcg_nn_pool.h"

MCG_BEGIN_DECLS

/* Layers and tensors of a run, at most. */
#define MCG_STRIPS_MOST_LAYERS 20u
#define MCG_STRIPS_MOST_VALUES 24u

/* A tensor of the run: an input, the output (both whole), or a window. */
typedef struct {
    uint32_t offset; /* of a window, from the start of the memory */
    uint32_t bytes;  /* of all rows that are kept, in all planes */
    uint32_t row;    /* bytes from a row to the next */
    uint16_t rows;   /* that are kept */
    uint16_t height; /* rows of the tensor, as far as they are read */
} mcg_strips_value_t;

/* A layer. Its output is value `inputs + index`. Row r is computed from rows r * stride - pad_top on, `reach` of them. */
typedef struct {
    uint16_t x, b; /* values that it reads; the same one twice where it has one operand */
    uint16_t reach, stride, pad_top;
    uint16_t rows;  /* of a call; the last one takes what is left */
    uint16_t least; /* not fewer rows are ever left */
} mcg_strips_layer_t;

typedef struct {
    const mcg_strips_value_t *values; /* inputs, then the output of each layer */
    const mcg_strips_layer_t *layers; /* each reads what stands before it */
    uint16_t inputs, count;           /* inputs and layers */
} mcg_strips_t;

/* Rows of a layer that are computed now. */
typedef struct {
    const int8_t *x, *b;  /* the first row that they are computed from, of each operand */
    int8_t *y;            /* the first of them */
    uint8_t *scratch;     /* of the kernel */
    uint32_t bytes;       /* of x, as far as it is kept, from the first row on */
    uint32_t elements;    /* of an interleaved y */
    uint16_t in_h, out_h; /* rows of x and of y */
    uint16_t pad_top;     /* rows of padding above x */
    uint16_t row, height; /* the index of the first row of x in its tensor, and the rows of that */
} mcg_strips_part_t;

/* Computes the rows `part` of a layer: a function of the model, which knows tables and kernels. */
typedef void mcg_strips_compute_t(uint32_t layer, const mcg_strips_part_t *part);

/* Runs the layers. The last value is the output y.
 *
 * memory: the scratch of the kernels, then the windows, aligned to 8. inputs: one pointer each. y may start before
 * input 0, in its memory, as far as mcugen has proven (RowChain.lag); else all apart.
 * Rounding and overflow: those of the layers. Cost: about 150 instructions a call of a kernel, and 0.7 for each byte by
 * which a window moves on. */
void mcg_strips_s8(const mcg_strips_t *d, mcg_strips_compute_t *compute, uint8_t *memory, const int8_t *const *inputs,
                   int8_t *y);

/* What a kernel is told of its rows: the descriptor of the whole layer, changed. */
MCG_INLINE mcg_conv_t mcg_strips_conv(const mcg_conv_t *d, const mcg_strips_part_t *p)
{
    mcg_conv_t c = *d;
    c.in_bytes = p->bytes;
    c.in_h = p->in_h;
    c.out_h = p->out_h;
    c.pad_top = p->pad_top;
    return c;
}

MCG_INLINE mcg_depthwise_t mcg_strips_depthwise(const mcg_depthwise_t *d, const mcg_strips_part_t *p)
{
    mcg_depthwise_t c = *d;
    c.in_h = p->in_h;
    c.out_h = p->out_h;
    c.pad_top = p->pad_top;
    c.strip = c.strip < p->out_h ? c.strip : p->out_h;
    return c;
}

MCG_INLINE mcg_add_t mcg_strips_add(const mcg_add_t *d, const mcg_strips_part_t *p)
{
    mcg_add_t c = *d;
    c.n = p->elements;
    return c;
}

MCG_INLINE mcg_pool_t mcg_strips_pool(const mcg_pool_t *d, const mcg_strips_part_t *p)
{
    mcg_pool_t c = *d;
    c.in_h = p->in_h;
    c.out_h = p->out_h;
    c.pad_top = p->pad_top;
    c.count_top -= p->row;
    c.count_bottom += (int32_t)p->height - d->in_h - p->row;
    return c;
}

MCG_END_DECLS

#endif
