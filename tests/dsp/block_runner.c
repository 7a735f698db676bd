/* Runs filter kernels block by block. A case on stdin: {function, taps or sections, room, narrow, table bytes, state
 * bytes, element bytes, samples, blocks, in place} as uint32, the sizes of the blocks, table, samples. An answer on stdout:
 * the samples. Every buffer has its exact size, so that a sanitizer sees each access past it.
 * SPDX-License-Identifier: MIT-0
 */
#include "mcg_filter_biquad.h"
#include "mcg_filter_fir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *take(size_t bytes)
{
    void *p = malloc(bytes);
    if (p == NULL || fread(p, 1, bytes, stdin) != bytes) {
        exit(5);
    }
    return p;
}

static void run(const uint32_t *h, const void *table, void *state, const void *x, void *y, uint32_t n)
{
    const mcg_fir_t d = {h[1], h[2], h[3]};
    switch (h[0]) {
    case 0:
        mcg_fir_q15_block(&d, table, state, x, y, n);
        break;
    case 1:
        mcg_fir_q31_block(&d, table, state, x, y, n);
        break;
    case 2:
        mcg_fir_f32_block(&d, table, state, x, y, n);
        break;
    case 3:
        mcg_biquad_q15_block(table, h[1], state, x, y, n);
        break;
    case 4:
        mcg_biquad_q15_narrow_block(table, h[1], state, x, y, n);
        break;
    case 5:
        mcg_biquad_q31_block(table, h[1], state, x, y, n);
        break;
    case 6:
        mcg_biquad_q63_block(table, h[1], state, x, y, n);
        break;
    default:
        mcg_biquad_f32_block(table, h[1], state, x, y, n);
        break;
    }
}

int main(void)
{
    uint32_t h[10];
    while (fread(h, sizeof h, 1, stdin) == 1) {
        uint32_t *blocks = take(4u * h[8]);
        void *table = take(h[4]);
        void *state = calloc(1, h[5]);
        for (uint32_t i = 0; i < h[8]; ++i) {
            const size_t bytes = (size_t)h[6] * blocks[i];
            void *x = take(bytes);
            void *y = h[9] != 0u ? x : malloc(bytes);
            if (state == NULL || y == NULL) {
                return 5;
            }
            run(h, table, state, x, y, blocks[i]);
            fwrite(y, 1, bytes, stdout);
            free(x);
            if (y != x) {
                free(y);
            }
        }
        free(state);
        free(table);
        free(blocks);
    }
    return 0;
}
