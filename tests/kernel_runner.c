/* Runs int8 kernels on cases from stdin and writes their outputs to stdout. A case: {function, descriptor bytes,
 * words of weights, scratch bytes, input bytes, output bytes, misalignment, lag} as int32; with a lag of 0 or more the
 * output starts so many bytes before the input, in one buffer; then descriptor, weights and
 * input. An answer: the output, then the number of scratch bytes up to the last that the kernel wrote. Every buffer
 * is allocated at its exact size and ends where its allocation ends, so that a sanitizer sees each access past it.
 * SPDX-License-Identifier: MIT-0
 */
#include "mcg_nn_conv.h"
#include "mcg_nn_winograd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUARD 64

static void *take(size_t bytes, size_t shift)
{
    char *p = malloc(bytes + shift);
    if (p == NULL || fread(p + shift, 1, bytes, stdin) != bytes) {
        exit(5);
    }
    return p + shift;
}

typedef void depthwise_t(const mcg_depthwise_t *d, const uint32_t *w, int16_t *scratch, const int8_t *x, int8_t *y);

int main(void)
{
    depthwise_t *const depthwise[] = {mcg_depthwise_s8, mcg_depthwise_s8_any, mcg_depthwise_3x3_s8_p16,
                                      mcg_depthwise_3x3_s8_p32, mcg_depthwise_3x3_s8_p64};
    int32_t head[8];
    while (fread(head, sizeof head, 1, stdin) == 1) {
        const size_t size[] = {sizeof(mcg_conv_t), sizeof(mcg_dense_t), sizeof(mcg_depthwise_t),
                               sizeof(mcg_winograd_t)};
        if ((size_t)head[1] != size[head[0] == 10 ? 3 : head[0] == 9 ? 0 : head[0] < 4 ? head[0] / 2 : 2]) {
            return 4;
        }
        const size_t shift = (size_t)head[6];
        const size_t scratch = (size_t)head[3];
        void *d = take((size_t)head[1], 0);
        uint32_t *w = take((size_t)head[2] * 4u, 0);
        int8_t *x = take((size_t)head[4], shift);
        const size_t lag = head[7] < 0 ? 0u : (size_t)head[7];
        const size_t together = lag + (size_t)head[4] > (size_t)head[5] ? lag + (size_t)head[4] : (size_t)head[5];
        int8_t *y_base = malloc((head[7] < 0 ? (size_t)head[5] : together) + shift);
        unsigned char *guarded = malloc(scratch + 2u * GUARD);
        unsigned char *s = malloc(scratch);
        if (y_base == NULL || guarded == NULL || s == NULL) {
            return 5;
        }
        int8_t *y = y_base + shift;
        /* Twice: in an allocation of its own for the sanitizer, and between canaries. Both must give the same bits. */
        for (int pass = 0; pass < 2; ++pass) {
            unsigned char *at = pass == 0 ? s : guarded + GUARD;
            memset(guarded, 0xA5, scratch + 2u * GUARD);
            memset(s, 0x5A, scratch);
            memset(y, 0x11, (size_t)head[5]);
            const int8_t *from = x;
            if (head[7] >= 0) {
                memcpy(y + lag, x, (size_t)head[4]);
                from = y + lag;
            }
            switch (head[0]) {
            case 0:
                mcg_conv_s8(d, w, (uint32_t *)(void *)at, from, y);
                break;
            case 1:
                mcg_conv_s8_any(d, w, (uint32_t *)(void *)at, from, y);
                break;
            case 2:
                mcg_dense_s8(d, w, (uint32_t *)(void *)at, from, y);
                break;
            case 3:
                mcg_dense_s8_any(d, w, (uint32_t *)(void *)at, from, y);
                break;
            case 9:
                mcg_conv_nx3_s8(d, w, (uint32_t *)(void *)at, from, y);
                break;
            case 10:
                mcg_conv_winograd_s8(d, w, (uint32_t *)(void *)at, from, y);
                break;
            default:
                depthwise[head[0] - 4](d, w, (int16_t *)(void *)at, from, y);
                break;
            }
            fwrite(y, 1, (size_t)head[5], stdout);
        }
        uint32_t used = 0;
        for (size_t i = 0; i < scratch + 2u * GUARD; ++i) {
            const int guard = i < GUARD || i >= GUARD + scratch;
            if (guarded[i] != 0xA5 && guard) {
                return 3;
            }
            if (guarded[i] != 0xA5) {
                used = (uint32_t)(i - GUARD + 1u);
            }
        }
        fwrite(&used, sizeof used, 1, stdout);
        free(d);
        free(w);
        free(x - shift);
        free(y_base);
        free(guarded);
        free(s);
    }
    return 0;
}
