/* mcugen runtime: int16 activations with int8 weights, and the shapes that float32 kernels share with them.
 *
 * int16 tensors have the zero point 0. Sums are exact in 64 bits (below 2^47, proven by mcugen), then requantized with
 * one rounding, half up.
 * SPDX-License-Identifier: MIT-0
 */
#ifndef MCG_NN_WIDE_H
#define MCG_NN_WIDE_H

#include "mcg_nn_requant.h"

MCG_BEGIN_DECLS

/* Weights (out channels, kernel_h, kernel_w, channels of a group). */
typedef struct {
    uint32_t in_channel, in_row, in_col;    /* elements from one channel, row, column of the input to the next */
    uint32_t out_channel, out_row, out_col; /* the same of the output */
    uint32_t groups, group_in, group_out;   /* groups, and channels of one: of the input and of the output */
    int32_t in_h, in_w, out_h, out_w;
    int32_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w;
    int32_t pad_top, pad_left;
} mcg_wide_conv_t;

typedef struct {
    uint32_t steps, inputs, hidden;
    uint32_t reset_after; /* GRU: the reset gate multiplies the product with h (1), or h itself (0) */
} mcg_wide_recurrent_t;

/* How a channel is requantized, and where its sum starts. */
typedef struct {
    int64_t bias;
    int32_t m, shift, c;
    int32_t reserved;
} mcg_wide_channel_t;

/* Zero point and clamps of the result. quick: every sum of the layer, bias included, fits int32, and every shift is
 * above 32. */
typedef struct {
    int32_t zp, low, high;
    int32_t quick;
} mcg_wide_range_t;

/* Bytes of scratch; 4-byte aligned. patch: kernel_h * kernel_w * group_in. */
#define MCG_CONV_S16_SCRATCH(patch) (((patch) + 3u) / 4u * 16u)
#define MCG_DEPTHWISE_S16_SCRATCH(rows, pitch) ((rows) * (pitch) * 2u)

/* Convolution, dilation, strides, padding and groups of any size.
 *
 * w: for each group and pair of its outputs, for each four weights of a patch (kernel row, column, channel) a word of
 * the first and one of the second output, bytes in the order 0, 2, 1, 3; zeros where there is none. One entry of
 * `channels` for each output. x, y: apart. Cost on a Cortex-M7: about 1.35 instructions per multiply-accumulate, 30 an
 * output, 5 an element of each patch unless the layer is pointwise on interleaved channels. */
void mcg_conv_s16(const mcg_wide_conv_t *d, const uint32_t *w, const mcg_wide_channel_t *channels,
                  const mcg_wide_range_t *range, int16_t *scratch, const int16_t *x, int16_t *y);

/* The case of one input channel a group, kernels of at most 256 elements.
 *
 * w: for each output, kernel row and pair of columns {w0 w1}; an odd last column is paired with 0. Rows of one channel
 * are padded in the scratch: `pitch` elements each, as many as `strip` output rows read. x, y: apart. Cost: about 2.5
 * instructions per multiply-accumulate of a 3 x 3 kernel and 30 an output. */
void mcg_depthwise_s16(const mcg_wide_conv_t *d, const uint32_t *w, const mcg_wide_channel_t *channels,
                       const mcg_wide_range_t *range, uint32_t pitch, uint32_t strip, int16_t *scratch,
                       const int16_t *x, int16_t *y);

/* y[n] = requantize(bias[n] + sum of w[n][k] * x[k]); w: as a convolution with patches of k elements. x, y: apart. */
void mcg_dense_s16(const uint32_t *w, const mcg_wide_channel_t *channels, const mcg_wide_range_t *range, uint32_t n,
                   uint32_t k, const int16_t *x, int16_t *y);

typedef struct {
    uint32_t n;
    int32_t a, b; /* factors, each at most 2^22 in magnitude */
    mcg_requant_t requant;
} mcg_wide_add_t;

/* y[i] = requantize(a[i] * d->a + b[i] * d->b) and requantize(a[i] * b[i]). y may be a or b. */
void mcg_add_s16(const mcg_wide_add_t *d, const int16_t *a, const int16_t *b, int16_t *y);
void mcg_mul_s16(const mcg_wide_add_t *d, const int16_t *a, const int16_t *b, int16_t *y);

/* table: 1025 results for x = -32768, -32704, ..., 32768; linear between them, rounded half up. y may be x. */
void mcg_table_s16(const int16_t *table, const int16_t *x, int16_t *y, uint32_t n);

/* y[i] = requantize(x[i] - d->a): another scale, another type. s8_s16: from int8 to int16. y may be x if both are int16. */
void mcg_rescale_s8_s16(const mcg_wide_add_t *d, const int8_t *x, int16_t *y);
void mcg_rescale_s16_s8(const mcg_wide_add_t *d, const int16_t *x, int8_t *y);
void mcg_rescale_s16_s16(const mcg_wide_add_t *d, const int16_t *x, int16_t *y);

MCG_END_DECLS

#endif
