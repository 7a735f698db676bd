/* mcugen runtime: int8 convolution of 3 x 3 kernels in 4 instead of 9 multiplications an output.
 *
 * The minimal filtering of Winograd in integers: Y = At [(G g Gt) * (Bt d B)] A, each output tile of 2 x 2 from an input
 * tile d of 4 x 4, the elementwise products summed over the input channels. With G doubled every factor is an integer,
 * and the result is exactly four times the convolution: no rounding, the bits of mcg_conv_s8.
 * SPDX-License-Identifier: MIT-0
 */
#ifndef MCG_NN_WINOGRAD_H
#define MCG_NN_WINOGRAD_H

#include "mcg.h"

MCG_BEGIN_DECLS

typedef struct {
    uint32_t out_channel;  /* bytes from one output channel to the next */
    uint32_t out_pixel;    /* bytes from one output pixel to the next */
    uint16_t in_h, in_w;   /* input rows and columns */
    uint16_t in_c;         /* input channels, a multiple of 4 */
    uint16_t out_h, out_w; /* output rows and columns */
    uint16_t out_c;        /* output channels */
    uint16_t pad_top, pad_left;
    uint16_t rows;     /* rows of tiles that are transformed before the weights are read */
    int16_t in_zp;     /* zero point of the input, the value of padding */
    int16_t low, high; /* clamps of the output; its zero point is in the words of the table */
} mcg_winograd_t;

/* Bytes of scratch; 4-byte aligned. Tiles are taken in fours, each with 16 int16 a channel; then 128 sums. */
#define MCG_WINOGRAD_SCRATCH(rows, out_w, in_c) (((rows) * (((out_w) + 1u) / 2u) + 3u) / 4u * (in_c) * 128u + 512u)

/* Convolution of an interleaved int8 tensor with 3 x 3 kernels, no strides, no dilation.
 *
 * d: shape. w: for each pair of output channels four times the values at which their sums start, for each of the 16
 * positions of a transformed tile, row by row, and each two words of four input channels {word of the first, word of the
 * second}: int16 (G g Gt) of channels 0 and 2, then 1 and 3; then {m, c, shift} of the first and of the second, as in
 * the packed form of mcg_nn_conv.h. An odd last channel is paired with zeros. scratch: MCG_WINOGRAD_SCRATCH bytes. x:
 * in_h * in_w * in_c. y: out_h * out_w * out_c. x and y: any alignment.
 * Rounding: once, half up. Overflow: sums wrap modulo 2^32; four times the convolution fits, proven by mcugen for every
 * input. Aliasing: scratch apart; where pixels of y are contiguous, y may overlap x from below as far as QWinograd.lag
 * says: `rows` rows of tiles are read before their outputs are written.
 * Cost on a Cortex-M7: 0.31 instructions per multiply-accumulate of the convolution, 34 per output, 12 per input, 28 at the
 * border. */
void mcg_conv_winograd_s8(const mcg_winograd_t *d, const uint32_t *w, uint32_t *scratch, const int8_t *x, int8_t *y);

MCG_END_DECLS

#endif
