/* mcugen runtime: int8 convolution of 3 x 3 kernels by minimal filtering. See mcg_nn_winograd.h for the contract.
 *
 * The scratch holds transformed tiles in fours: for each four and each step, that is two input channels (0 and 2, then 1
 * and 3, of each four), the 16 positions of the four tiles, a word each; behind all of them the sums of two output
 * channels times four tiles. A pair of output channels reads its weights from front to back once for each four tiles.
 * SPDX-License-Identifier: MIT-0
 */
#include "mcg_nn_winograd.h"
#include "mcg_nn_inline.h"

#define TILES 4u
#define POSITIONS 16u
#define SUMS 8u                        /* of a position: four tiles of the first channel, of the second */
#define STEP_WORDS (POSITIONS * TILES) /* of two input channels of four tiles */

MCG_KERNELS_BEGIN

/* Bt d B of two channels, the bytes of each pixel's word that `odd` says, to 16 words TILES apart. src: the first of 4 x 4
 * words, `row` and `col` bytes apart. In -512..512. Column by column, so that two of them are all that registers hold. */
#define HALVES(w) (odd ? mcg_sxtb16_odd(w) : mcg_sxtb16(w))
#define COLUMN(c, j)                                       \
    do {                                                   \
        const int8_t *const at = src + (j) * col;          \
        const uint32_t d0 = HALVES(mcg_load32(at));        \
        const uint32_t d1 = HALVES(mcg_load32(at + row));  \
        const uint32_t d2 = HALVES(mcg_load32(at + row2)); \
        const uint32_t d3 = HALVES(mcg_load32(at + row3)); \
        c##0 = mcg_ssub16(d0, d2);                         \
        c##1 = mcg_sadd16(d1, d2);                         \
        c##2 = mcg_ssub16(d2, d1);                         \
        c##3 = mcg_ssub16(d1, d3);                         \
    } while (0)
#define STORE(j, f, a, b)                         \
    do {                                          \
        dst[TILES * (j)] = f(a##0, b##0);         \
        dst[TILES * (4u + (j))] = f(a##1, b##1);  \
        dst[TILES * (8u + (j))] = f(a##2, b##2);  \
        dst[TILES * (12u + (j))] = f(a##3, b##3); \
    } while (0)
MCG_INLINE void transform_half(int odd, const int8_t *src, uint32_t row, uint32_t col, uint32_t *dst)
{
    const uint32_t row2 = 2u * row, row3 = 3u * row;
    uint32_t a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3, e0, e1, e2, e3;
    COLUMN(a, 0u);
    COLUMN(c, 2u);
    STORE(0u, mcg_ssub16, a, c);
    COLUMN(b, 1u);
    STORE(1u, mcg_sadd16, b, c);
    STORE(2u, mcg_ssub16, c, b);
    COLUMN(e, 3u);
    STORE(3u, mcg_ssub16, b, e);
}

/* A tile inside the input. src: its first pixel. */
MCG_CODE(transform_inside)
MCG_NOINLINE static void transform_inside(const int8_t *src, uint32_t row, uint32_t col, uint32_t *dst)
{
    for (const int8_t *const end = src + col; src != end; src += 4, dst += 2u * STEP_WORDS) {
        transform_half(0, src, row, col, dst);
        transform_half(1, src, row, col, dst + STEP_WORDS);
    }
}

/* A tile that reaches over the border: its pixels beyond have the zero point. top, left: of its first pixel. */
MCG_CODE(transform_border)
MCG_NOINLINE static void transform_border(const mcg_winograd_t *d, const int8_t *x, int32_t top, int32_t left,
                                          uint32_t *dst)
{
    const uint32_t channels = d->in_c, pad = 0x01010101u * (uint8_t)d->in_zp;
    const int8_t *at[16];
    for (int32_t i = 0; i < 16; ++i) {
        const int32_t r = top + i / 4, c = left + i % 4;
        const int inside = r >= 0 && r < d->in_h && c >= 0 && c < d->in_w;
        at[i] = inside ? x + ((uint32_t)r * d->in_w + (uint32_t)c) * channels : NULL;
    }
    for (uint32_t c = 0; c < channels; c += 4u, dst += 2u * STEP_WORDS) {
        uint32_t pixels[16];
        for (uint32_t i = 0; i < 16u; ++i) {
            pixels[i] = at[i] != NULL ? mcg_load32(at[i] + c) : pad;
        }
        transform_half(0, (const int8_t *)pixels, 16u, 4u, dst);
        transform_half(1, (const int8_t *)pixels, 16u, 4u, dst + STEP_WORDS);
    }
}

/* Transforms `rows` rows of tiles from row `first` on. */
MCG_CODE(transform_rows)
MCG_NOINLINE static void transform_rows(const mcg_winograd_t *d, uint32_t *v, const int8_t *x, uint32_t first,
                                        uint32_t rows)
{
    const uint32_t across = (d->out_w + 1u) / 2u, row = (uint32_t)d->in_w * d->in_c;
    const uint32_t next_four = d->in_c / 2u * STEP_WORDS - TILES;
    uint32_t tile = 0;
    for (uint32_t r = first; r < first + rows; ++r) {
        const int32_t top = 2 * (int32_t)r - d->pad_top;
        const int inside = top >= 0 && top + 4 <= d->in_h;
        int32_t left = -(int32_t)d->pad_left;
        for (uint32_t n = across; n != 0u; --n, left += 2) {
            if (inside && left >= 0 && left + 4 <= d->in_w) {
                transform_inside(x + (uint32_t)top * row + (uint32_t)left * d->in_c, row, d->in_c, v);
            } else {
                transform_border(d, x, top, left, v);
            }
            ++v;
            if (++tile % TILES == 0u) {
                v += next_four;
            }
        }
    }
}

#if MCG_HAS_ASM

/* The same as the C below, and the same bits. The sums, the weights of two channels, two words of tiles and two pointers
 * are all registers that there are; -DMCG_NO_ASM takes the C, with 1.4 (GCC) to 1.7 (clang) times the instructions.
 *
 * The first step of a position starts its sums; then UNROLLED steps are unrolled, and a position enters them where those
 * begin that are left after whole turns, or at their end. A step is 11 instructions of four bytes.
 *
 * r0 weights, r1 tiles, r2-r5 sums of the first channel, r6-r9 of the second, r10 r11 weights, r12 lr tiles. Stack: 0
 * sums of the next position, 4 end of the weights of this one, 8 bytes of weights of a position, 12 end of the sums, 16
 * where a position enters. */
/* clang-format off */
#define UNROLLED "15"
#define STEP(sum)                                   \
    "ldrd r10, r11, [r0], #8\n"                     \
    "ldrd r12, lr, [r1], #8\n"                      \
    sum("r2", "r10", "r12") sum("r6", "r11", "r12") \
    sum("r3", "r10", "lr") sum("r7", "r11", "lr")   \
    "ldrd r12, lr, [r1], #248\n"                    \
    sum("r4", "r10", "r12") sum("r8", "r11", "r12") \
    sum("r5", "r10", "lr") sum("r9", "r11", "lr")
#define START_SUM(a, w, v) "smuad " a ", " w ", " v "\n"
#define MORE_SUM(a, w, v) "smlad " a ", " w ", " v ", " a "\n"
#define NEXT_STEP STEP(MORE_SUM)
MCG_CODE(multiply_tiles) __attribute__((naked, noinline)) static void
multiply_tiles(MCG_UNUSED const uint32_t *w, MCG_UNUSED const uint32_t *v, MCG_UNUSED uint32_t steps,
               MCG_UNUSED int32_t *sums)
{
    __asm__ volatile(
        ".syntax unified\n"
        "push {r4-r11, lr}\n"
        "sub sp, sp, #20\n"
        "sub r4, r2, #1\n" /* steps that are skipped, 1 to UNROLLED */
        "mov r10, #" UNROLLED "\n"
        "udiv r9, r4, r10\n"
        "mls r9, r9, r10, r4\n"
        "sub r9, r10, r9\n"
        "mov r10, #44\n"
        "adr r11, 3f\n"
        "mla r11, r9, r10, r11\n"
        "orr r11, r11, #1\n"
        "str r11, [sp, #16]\n"
        "lsl r10, r2, #3\n"
        "add r11, r3, #512\n"
        "strd r10, r11, [sp, #8]\n"
        "add r12, r0, r10\n"
        "strd r3, r12, [sp]\n"
        "2:\n" /* a position */
        STEP(START_SUM)
        "ldr pc, [sp, #16]\n"
        ".balign 4\n"
        "3:\n" /* UNROLLED steps */
        NEXT_STEP NEXT_STEP NEXT_STEP NEXT_STEP NEXT_STEP
        NEXT_STEP NEXT_STEP NEXT_STEP NEXT_STEP NEXT_STEP
        NEXT_STEP NEXT_STEP NEXT_STEP NEXT_STEP NEXT_STEP
        "ldrd r12, lr, [sp]\n"
        "cmp r0, lr\n"
        "bne 3b\n"
        "stm r12!, {r2-r9}\n"
        "ldrd r10, r11, [sp, #8]\n"
        "add lr, lr, r10\n"
        "sub r1, r1, r10, lsl #5\n" /* 256 bytes of tiles for each 8 of weights; the next position is 16 on */
        "add r1, r1, #16\n"
        "strd r12, lr, [sp]\n"
        "cmp r12, r11\n"
        "bne 2b\n"
        "add sp, sp, #20\n"
        "pop {r4-r11, pc}\n");
}
/* clang-format on */

#else

/* Sums of a pair of output channels and four tiles, at 16 positions. steps: pairs of input channels. */
MCG_CODE(multiply_tiles)
MCG_NOINLINE static void multiply_tiles(const uint32_t *w, const uint32_t *v, uint32_t steps, int32_t *sums)
{
    for (uint32_t p = 0; p < POSITIONS; ++p, sums += SUMS, v += TILES) {
        const uint32_t *t = v;
        int32_t a0 = 0, a1 = 0, a2 = 0, a3 = 0, b0 = 0, b1 = 0, b2 = 0, b3 = 0;
        for (uint32_t n = steps; n != 0u; --n, w += 2, t += STEP_WORDS) {
            const uint32_t u0 = w[0], u1 = w[1];
            a0 = mcg_smlad(u0, t[0], a0);
            b0 = mcg_smlad(u1, t[0], b0);
            a1 = mcg_smlad(u0, t[1], a1);
            b1 = mcg_smlad(u1, t[1], b1);
            a2 = mcg_smlad(u0, t[2], a2);
            b2 = mcg_smlad(u1, t[2], b2);
            a3 = mcg_smlad(u0, t[3], a3);
            b3 = mcg_smlad(u1, t[3], b3);
        }
        sums[0] = a0;
        sums[1] = a1;
        sums[2] = a2;
        sums[3] = a3;
        sums[4] = b0;
        sums[5] = b1;
        sums[6] = b2;
        sums[7] = b3;
    }
}

#endif

/* Four times a sum, wrapped, to 256 times it, and to int8. */
MCG_INLINE int8_t finish(uint32_t four, mcg_nn_requant_t q) { return mcg_nn_scale((int32_t)(four << 6), q); }

/* Two outputs side by side from three of the four rows of sums: how they are put together is `sum`. The right one first:
 * `right` is 0 where it lies beyond the output, and the left one then takes its place. */
#define PLUS(j) ((uint32_t)m[SUMS * (j)] + (uint32_t)m[SUMS * (4u + (j))] + (uint32_t)m[SUMS * (8u + (j))])
#define MINUS(j) ((uint32_t)m[SUMS * (4u + (j))] - (uint32_t)m[SUMS * (8u + (j))] - (uint32_t)m[SUMS * (12u + (j))])
#define FINISH_ROW(sum, y)                                 \
    do {                                                   \
        int8_t *const left = (y);                          \
        const uint32_t s1 = sum(1u) + start, s2 = sum(2u); \
        left[right] = finish(s1 - s2 - sum(3u), q);        \
        *left = finish(s1 + s2 + sum(0u), q);              \
    } while (0)

/* At m A of a tile and one channel, requantized. m: SUMS apart. start: four times where its sums start; each output
 * has the product at row 1, column 1 once. w: {m, c, shift}. below: bytes to the lower row, 0 where there is none. */
MCG_INLINE void finish_tile(const int32_t *m, uint32_t start, const uint32_t *w, int8_t *y, uint32_t right,
                            uint32_t below)
{
    const mcg_nn_requant_t q = mcg_nn_requant(w);
    FINISH_ROW(MINUS, y + below);
    FINISH_ROW(PLUS, y);
}

/* Where the tiles of a pass go. */
typedef struct {
    int8_t *y;               /* the first pixel of the pass */
    uint32_t pixel, channel; /* bytes to the next pixel, to the second channel of a pair */
    uint32_t tiles, across;  /* tiles of the pass, of a row */
    uint32_t height, width;  /* output rows of the pass, output columns */
} pass_t;

/* Two channels of four tiles, or of those that are left from tile `first` on. starts, ends: their words. */
MCG_CODE(finish_tiles)
MCG_NOINLINE static void finish_tiles(const pass_t *p, const int32_t *m, const uint32_t *starts, const uint32_t *ends,
                                      uint32_t first)
{
    const uint32_t pixel = p->pixel, width = p->width, n = p->tiles - first, row = first / p->across;
    uint32_t line = 2u * row, column = 2u * (first - row * p->across);
    for (const int32_t *const end = m + (n < TILES ? n : TILES); m != end; ++m) {
        int8_t *const y = p->y + (line * width + column) * pixel;
        const uint32_t right = column + 1u < width ? pixel : 0u;
        const uint32_t below = line + 1u < p->height ? pixel * width : 0u;
        finish_tile(m + TILES, starts[1], ends + 3, y + p->channel, right, below);
        finish_tile(m, starts[0], ends, y, right, below);
        column += 2u;
        if (column >= width) {
            column = 0;
            line += 2u;
        }
    }
}

MCG_CODE(mcg_conv_winograd_s8)
void mcg_conv_winograd_s8(const mcg_winograd_t *d, const uint32_t *w, uint32_t *scratch, const int8_t *x, int8_t *y)
{
    const uint32_t across = (d->out_w + 1u) / 2u, down = (d->out_h + 1u) / 2u, steps = d->in_c / 2u;
    const uint32_t words = POSITIONS * TILES * steps; /* of four tiles */
    int32_t *const sums = (int32_t *)(scratch + (d->rows * across + TILES - 1u) / TILES * words);
    pass_t p = {y, d->out_pixel, 0, 0, across, 0, d->out_w};
    for (uint32_t row = 0; row < down; row += d->rows) {
        const uint32_t rows = down - row < d->rows ? down - row : d->rows;
        const uint32_t *pair = w;
        p.tiles = rows * across;
        p.height = d->out_h - 2u * row;
        transform_rows(d, scratch, x, row, rows);
        for (uint32_t channel = 0; channel < d->out_c; channel += 2u) {
            const uint32_t *const ends = pair + 2u + 2u * POSITIONS * steps;
            const uint32_t *v = scratch;
            p.y = y + 2u * row * d->out_w * d->out_pixel + channel * d->out_channel;
            p.channel =
                channel + 1u < d->out_c ? d->out_channel : 0u; /* a lone last channel is written after its dummy */
            for (uint32_t tile = 0; tile < p.tiles; tile += TILES, v += words) {
                multiply_tiles(pair + 2u, v, steps, sums);
                finish_tiles(&p, sums, pair, ends, tile);
            }
            pair = ends + 6u;
        }
    }
    if (mcg_nn_is_narrow(d->low, d->high)) {
        mcg_clamp_s8(y, (uint32_t)d->out_h * d->out_w * d->out_c, d->low, d->high);
    }
}

MCG_KERNELS_END
