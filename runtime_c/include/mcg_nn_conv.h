/* mcugen runtime: int8 convolution, depthwise convolution and dense layers.
 *
 * All kernels accumulate in int32 and requantize with one rounding: y = clamp(((acc * m + 2^(s-1)) >> s) + zero point).
 * The tables are written by mcugen, in words, in the order in which a kernel reads them; each output channel begins
 * with a word at which its sum starts, and ends in three words {m, c, shift}. There are two forms of each kernel:
 *
 *  - packed: sums are kept times 256; convolution and dense layers hold weights as 16-bit lanes 256 * odd + even, so
 *    that one SXTB16 unpacks four. Every channel's sum is in [-2^23, 2^23), c holds the rounding bit and the zero point
 *    and shift = s - 24, from 1 on. Clamps inside of -128..127 are applied to the finished layer.
 *  - any: for the rest. Weights as plain bytes, c = 2^(s-33) where s >= 33, shift = s.
 *
 * Both give the bits of the same formula; mcugen proves which form a layer may take. An output may be written twice,
 * with the same value.
 * SPDX-License-Identifier: MIT-0
 */
#ifndef MCG_NN_CONV_H
#define MCG_NN_CONV_H

#include "mcg.h"

MCG_BEGIN_DECLS

/* A convolution reads each patch of its input as runs: stretches of memory that hold `cols` kernel columns of `unit`
 * bytes. Interleaved (HWC) input: unit = channels and one run a kernel row (one a kernel element, if dilated). Planar
 * (CHW) input: unit = 1 and one run a channel and kernel row. Every run is padded to whole groups of four with zero
 * weights. Planar runs of three bytes, at most MCG_CONV_MOST_THREES, have no gaps: the groups hold first and last bytes of
 * the runs as pairs, then the middle bytes of each two runs as pairs; of two pairs, those of a group, the first stands at
 * its bytes 1 and 3, the second at 0 and 2. */
#define MCG_CONV_MOST_THREES 32u

typedef struct {
    uint32_t in_bytes;     /* size of the input tensor */
    uint32_t in_plane;     /* bytes from one plane of the input to the next; 0 with one plane */
    uint32_t in_row;       /* bytes from one input row to the next */
    uint32_t in_col;       /* bytes from one input column to the next */
    uint32_t out_channel;  /* bytes from one output channel to the next */
    uint32_t out_pixel;    /* bytes from one output pixel to the next */
    uint32_t groups;       /* groups of four in a patch */
    uint16_t in_h, in_w;   /* input rows and columns */
    uint16_t out_h, out_w; /* output rows and columns */
    uint16_t out_c;        /* output channels */
    uint16_t planes;       /* input channels if planar, else 1 */
    uint16_t kernel_h;     /* kernel rows */
    uint16_t col_runs;     /* runs a kernel row: kernel columns if interleaved and dilated, else 1 */
    uint16_t cols;         /* kernel columns in a run */
    uint16_t unit;         /* bytes of a run that belong to one kernel column */
    uint16_t run_groups;   /* groups of four in a run: ceil(cols * unit / 4); 0: threes side by side */
    uint16_t col_step;     /* input columns between the kernel columns of a run: the dilation if planar, else 1 */
    uint16_t stride_h, stride_w;
    uint16_t dilation_h, dilation_w;
    uint16_t pad_top, pad_left;
    uint16_t tile;             /* output pixels that are packed before the weights are read; a multiple of 4 */
    int16_t in_zp;             /* zero point of the input, the value of padding */
    int16_t out_zp, low, high; /* zero point (form "any"; packed has it in its words) and clamps of the output */
} mcg_conv_t;

/* Bytes of scratch of a convolution; 4-byte aligned. */
#define MCG_CONV_SCRATCH(tile, groups) ((tile) * (groups) * 8u)

/* Convolution of int8 tensors, dilation, strides and padding of any size; a pointwise one is the case of one run.
 *
 * d: shape. w: for each pair of output channels the words at which their sums start, `groups` times {word of the
 * first, word of the second}, {m, c, shift} of the first and of the second; an odd last channel is paired with zeros. scratch: MCG_CONV_SCRATCH
 * bytes, 4-byte aligned. x: d->in_bytes. y: out_h * out_w * out_c. x and y: any alignment.
 * Rounding: once, half up. Overflow: none, proven by mcugen for every input. Aliasing: scratch apart; where
 * pixels of y are contiguous, y may overlap x from below: each tile is packed before it is written, front to back, and
 * mcugen computes from that how far in front of x y must begin (QConv.lag).
 * Cost on a Cortex-M7: about 0.72 instructions per multiply-accumulate, 6 per output, 5 to 7 per group and pixel, nx3
 * 3.5. */
void mcg_conv_s8(const mcg_conv_t *d, const uint32_t *w, uint32_t *scratch, const int8_t *x, int8_t *y);
/* The same where the input is interleaved, of a multiple of four channels, stride_w is 1 and each kernel row is one run
 * of three columns: neighbouring pixels share what is packed. */
void mcg_conv_nx3_s8(const mcg_conv_t *d, const uint32_t *w, uint32_t *scratch, const int8_t *x, int8_t *y);
void mcg_conv_s8_any(const mcg_conv_t *d, const uint32_t *w, uint32_t *scratch, const int8_t *x, int8_t *y);

typedef struct {
    uint32_t in_channel, in_row, in_col; /* bytes from one channel, row, column of the input to the next */
    uint32_t out_channel;                /* bytes from one channel of the output to the next */
    uint32_t out_row, out_col;           /* the same for rows and columns */
    uint16_t channels;                   /* input channels */
    uint16_t multiplier;                 /* output channels an input channel */
    uint16_t in_h, in_w;
    uint16_t out_h, out_w;
    uint16_t kernel_h, kernel_w;
    uint16_t stride_h, stride_w;
    uint16_t dilation_h, dilation_w;
    uint16_t pad_top, pad_left;
    uint16_t pitch;            /* int16 elements of an expanded row, even */
    uint16_t strip;            /* output rows that are computed from one expansion */
    int16_t in_zp;             /* zero point of the input, the value of padding */
    int16_t out_zp, low, high; /* as in mcg_conv_t */
} mcg_depthwise_t;

/* Rows of the input that a strip of output rows touches, and bytes of scratch; 4-byte aligned. */
#define MCG_DEPTHWISE_ROWS(strip, stride_h, kernel_h, dilation_h) \
    (((strip) - 1u) * (stride_h) + ((kernel_h) - 1u) * (dilation_h) + 1u)
#define MCG_DEPTHWISE_SCRATCH(rows, pitch) ((rows) * (pitch) * 2u)

/* Depthwise convolution of int8 tensors: output channel c * multiplier + j is computed from input channel c alone.
 *
 * One channel at a time is expanded into padded rows of int16 in the scratch. d: shape. w, "3x3" (kernel 3 x 3, no
 * dilation, both strides 1 or both 2, two or more output rows and columns, a pitch of 16, 32 or 64): for each output channel its
 * start, for each kernel row {w0 w1, w1 w2} as halves, {m, c, shift}. w, others: for each channel its start, for each
 * row and pair of columns {w0 w1} (an odd last column is paired with 0), {m, c, shift}. In the packed form (all but
 * "any") the halves are 256 times the weights. scratch: MCG_DEPTHWISE_SCRATCH bytes, 4-byte aligned. x, y: any
 * alignment. Rounding: once, half up. Overflow: none, proven by mcugen for every input. Aliasing: scratch, x and y apart.
 * Cost on a Cortex-M7: 3x3: 14.5 instructions an output, 30 for two rows, 2.5 per input element; others: 1.2 per
 * multiply-accumulate and 18 an output, "any" 30 an output. */
void mcg_depthwise_3x3_s8_p16(const mcg_depthwise_t *d, const uint32_t *w, int16_t *scratch, const int8_t *x,
                              int8_t *y);
void mcg_depthwise_3x3_s8_p32(const mcg_depthwise_t *d, const uint32_t *w, int16_t *scratch, const int8_t *x,
                              int8_t *y);
void mcg_depthwise_3x3_s8_p64(const mcg_depthwise_t *d, const uint32_t *w, int16_t *scratch, const int8_t *x,
                              int8_t *y);
void mcg_depthwise_s8(const mcg_depthwise_t *d, const uint32_t *w, int16_t *scratch, const int8_t *x, int8_t *y);
void mcg_depthwise_s8_any(const mcg_depthwise_t *d, const uint32_t *w, int16_t *scratch, const int8_t *x, int8_t *y);

typedef struct {
    uint32_t inputs;           /* K */
    uint32_t outputs;          /* N */
    int16_t out_zp, low, high; /* as in mcg_conv_t */
    int16_t reserved;
} mcg_dense_t;

/* Bytes of scratch of a dense layer; 4-byte aligned. */
#define MCG_DENSE_SCRATCH(inputs) (((inputs) + 3u) / 4u * 8u)

/* Dense layer: y[n] = requantize(sum over k of w[n][k] * (x[k] - zero point) + bias[n]).
 *
 * d: shape. w: for each four outputs the words at which their sums start, ceil(K / 4) times a word of each, {m, c,
 * shift} of each; outputs past the last are zeros. scratch: MCG_DENSE_SCRATCH bytes, 4-byte aligned. x: K, y: N, any alignment.
 * Rounding: once, half up. Overflow: none, proven by mcugen for every input. Aliasing: y may be x.
 * Cost on a Cortex-M7: about 1 instruction per multiply-accumulate and 9 an output. */
void mcg_dense_s8(const mcg_dense_t *d, const uint32_t *w, uint32_t *scratch, const int8_t *x, int8_t *y);
void mcg_dense_s8_any(const mcg_dense_t *d, const uint32_t *w, uint32_t *scratch, const int8_t *x, int8_t *y);

MCG_END_DECLS

#endif
