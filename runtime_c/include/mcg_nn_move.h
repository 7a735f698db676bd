/* mcugen runtime: strided copies and concatenation. Nothing is computed.
 *
 * SPDX-License-Identifier: MIT-0
 */
#ifndef MCG_NN_MOVE_H
#define MCG_NN_MOVE_H

#include "mcg.h"

MCG_BEGIN_DECLS

typedef struct {
    uint32_t dim0, dim1, dim2, dim3, dim4; /* sizes of the loops, outermost first; 1 where there is none */
    int32_t in0, in1, in2, in3, in4;       /* elements of x from one step of a loop to the next */
    int32_t out0, out1, out2, out3, out4;  /* the same of y */
    uint32_t in_offset, out_offset;        /* first elements */
    uint32_t fill_count;                   /* elements of y that are filled first; 0: none */
    int32_t fill;                          /* with this value (its low bytes) */
} mcg_move_t;

/* For every index of the five loops one element of x goes to y. x, y: apart, aligned to the element.
 * Cost: about 7 instructions an element; consecutive bytes of an innermost loop as memcpy. */
void mcg_move_8(const mcg_move_t *d, const void *x, void *y);
void mcg_move_16(const mcg_move_t *d, const void *x, void *y);
void mcg_move_32(const mcg_move_t *d, const void *x, void *y);

/* y = `outer` times: bytes[0] bytes of parts[0], then bytes[1] of parts[1]... of n parts, each read from front to end. y may
 * start before one of the parts, in its memory, as far as mcugen has proven (QConcat.lag); else all apart.
 * Cost: about 12 instructions for 16 bytes, 6 for each four and each one of what is left of a part, and 15 for each part. */
void mcg_concat(const void *const *parts, const uint32_t *bytes, uint32_t n, uint32_t outer, void *y);

MCG_END_DECLS

#endif
