/* mcugen runtime: buffers that a DMA reads or writes, and the MPU region that keeps the data cache off them.
 *
 * For samples that arrive by DMA: a buffer in a memory that the controller reaches, alone in its cache lines. With the data
 * cache on, either clean and invalidate it around each transfer, or make it non-cacheable with one MPU region.
 * SPDX-License-Identifier: MIT-0
 */
#ifndef MCG_DMA_H
#define MCG_DMA_H

#include "mcg.h"

MCG_BEGIN_DECLS

/* Bytes of a cache line of the Cortex-M7. */
#define MCG_CACHE_LINE 32u

/* `bytes` rounded up to whole cache lines: the size of a DMA buffer that shares none with others. */
#define MCG_DMA_BYTES(bytes) (((bytes) + MCG_CACHE_LINE - 1u) & ~(MCG_CACHE_LINE - 1u))

/* Before the definition of a buffer: puts it into a memory by its name in `mcugen boards` (axi, sram1, sram4, ...) and onto a
 * cache line. The linker fragment places it; mcg_sections_init switches the memory on and zeroes it.
 *     MCG_DMA_BUFFER(sram1, samples) static int16_t samples[MCG_DMA_BYTES(1000) / 2u]; */
#define MCG_DMA_BUFFER(memory, symbol) \
    MCG_SECTION(".bss.mcugen." #memory "." #symbol) __attribute__((aligned(MCG_CACHE_LINE)))

/* The same for a buffer that is an MPU region: `bytes`, its size, is a power of two of at least 32. */
#define MCG_MPU_BUFFER(memory, symbol, bytes) \
    MCG_SECTION(".bss.mcugen." #memory "." #symbol) __attribute__((aligned(bytes)))

/* True for what an MPU region of ARMv7-M can be: a power of two of at least 32 bytes. A constant expression: assert it. */
#define MCG_MPU_IS_SIZE(bytes) ((bytes) >= 32u && ((bytes) & ((bytes) - 1u)) == 0u)

/* The smallest size of an MPU region that holds `bytes`; 0 for 0 and for more than 2^31.
 * Rounding: up. Overflow: none. Cost: at most 27 steps. */
static inline uint32_t mcg_mpu_size(uint32_t bytes)
{
    uint32_t size = 32u;
    if (bytes == 0u || bytes > 0x80000000u) {
        return 0u;
    }
    while (size < bytes) {
        size <<= 1;
    }
    return size;
}

/* The words for MPU_RBAR and MPU_RASR that make [base, base + bytes) normal memory without a cache, not executable, with
 * full access (TEX 1, C 0, B 0, S 1, AP 3, XN 1).
 * base: a multiple of bytes; bytes: MCG_MPU_IS_SIZE; region: 0 to 15, and the highest number wins where regions overlap.
 * Returns MCG_OK, or MCG_ERR_ARG with nothing written. */
static inline mcg_status_t mcg_mpu_uncached(uint32_t region, uint32_t base, uint32_t bytes, uint32_t *rbar,
                                            uint32_t *rasr)
{
    uint32_t log2 = 5u;
    if (region > 15u || !MCG_MPU_IS_SIZE(bytes) || (base & (bytes - 1u)) != 0u) {
        return MCG_ERR_ARG;
    }
    while ((1u << log2) != bytes) {
        ++log2;
    }
    *rbar = base | 0x10u | region; /* VALID: the word chooses the region itself */
    *rasr = (1u << 28) | (3u << 24) | (1u << 19) | (1u << 18) | ((log2 - 1u) << 1) | 1u;
    return MCG_OK;
}

#if defined(__arm__) && defined(__ARM_ARCH) && (__ARM_ARCH == 7)
/* Sets up the region on the processor. Call it before the data cache is switched on, or after cleaning it; the other
 * regions, and the background map for what no region covers, stay as they are. The same return values. */
static inline mcg_status_t mcg_mpu_make_uncached(uint32_t region, void *base, uint32_t bytes)
{
    volatile uint32_t *const mpu = (volatile uint32_t *)0xE000ED90u; /* TYPE, CTRL, RNR, RBAR, RASR */
    uint32_t rbar = 0u;
    uint32_t rasr = 0u;
    const mcg_status_t status = mcg_mpu_uncached(region, (uint32_t)(uintptr_t)base, bytes, &rbar, &rasr);
    if (status != MCG_OK) {
        return status;
    }
    __asm volatile("dmb 0xF" ::: "memory");
    mpu[1] &= ~1u; /* off while it changes */
    mpu[3] = rbar;
    mpu[4] = rasr;
    mpu[1] |= 5u; /* on, with the background map for privileged code */
    __asm volatile("dsb 0xF\n\tisb 0xF" ::: "memory");
    return MCG_OK;
}
#endif

MCG_END_DECLS

#endif
