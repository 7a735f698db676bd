/* Start-up of the test image for the STM32H743. No vendor code: registers by address, one line each.
 *
 * Order: FPU, vector table, clocks of the D2 memories, .data and .bss, what the models want in fast memory, caches. The
 * MPU stays as it is after reset: the test image has no DMA. The clock tree stays too: an emulator has none.
 * SPDX-License-Identifier: MIT-0
 */
#include <stdint.h>

#include "mcugen/mcg_sections.h"

#include "mcg_image.h"

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define SCB_VTOR REGISTER(0xE000ED08u)
#define SCB_CCR REGISTER(0xE000ED14u)
#define SCB_CCSIDR REGISTER(0xE000ED80u)
#define SCB_CSSELR REGISTER(0xE000ED84u)
#define SCB_CPACR REGISTER(0xE000ED88u)
#define SCB_ICIALLU REGISTER(0xE000EF50u)
#define SCB_DCISW REGISTER(0xE000EF60u)
#define RCC_AHB2ENR REGISTER(0x580244DCu)

#define CCR_DCACHE (1u << 16)
#define CCR_ICACHE (1u << 17)
#define CPACR_FPU (0xFu << 20)
#define AHB2ENR_SRAM123 (7u << 29)
#define VECTORS (16u + 150u)

void Reset_Handler(void);
void Default_Handler(void);

static void barrier(void) { __asm volatile("dsb 0xF\n\tisb 0xF" ::: "memory"); }

static void copy_data(void)
{
    const uint32_t *from = mcg_image_data_load;
    for (volatile uint32_t *to = mcg_image_data_start; (uintptr_t)to < (uintptr_t)mcg_image_data_end; to++) {
        *to = *from++;
    }
    for (volatile uint32_t *to = mcg_image_bss_start; (uintptr_t)to < (uintptr_t)mcg_image_bss_end; to++) {
        *to = 0u;
    }
}

static void caches_on(void)
{
    barrier();
    SCB_ICIALLU = 0u;
    barrier();
    SCB_CCR |= CCR_ICACHE;
    barrier();
    SCB_CSSELR = 0u; /* the level 1 data cache */
    barrier();
    const uint32_t size = SCB_CCSIDR;
    const uint32_t sets = ((size >> 13) & 0x7FFFu) + 1u;
    const uint32_t ways = ((size >> 3) & 0x3FFu) + 1u;
    for (uint32_t set = 0u; set < sets; set++) {
        for (uint32_t way = 0u; way < ways; way++) {
            SCB_DCISW = (set << 5) | (way << 30);
        }
    }
    barrier();
    SCB_CCR |= CCR_DCACHE;
    barrier();
}

/* Apart from Reset_Handler, so that no floating-point register is touched before the FPU is on. */
static void MCG_NOINLINE start(void)
{
    extern const void *const vectors[VECTORS];
    SCB_VTOR = (uint32_t)(uintptr_t)vectors;
    RCC_AHB2ENR |= AHB2ENR_SRAM123;
    (void)RCC_AHB2ENR; /* reading it back waits until the clocks run */
    barrier();
    copy_data();
    mcg_sections_init();
    caches_on();
    mcg_image_main();
}

void Reset_Handler(void)
{
    SCB_CPACR |= CPACR_FPU;
    barrier();
    start();
    Default_Handler();
}

/* Faults and interrupts, none of which the image expects. */
void Default_Handler(void)
{
    for (;;) {
        __asm volatile("bkpt 1");
    }
}

#define HANDLER (const void *)(uintptr_t)Default_Handler
#define TEN(x) x, x, x, x, x, x, x, x, x, x
#define FIFTY(x) TEN(x), TEN(x), TEN(x), TEN(x), TEN(x)

extern const void *const vectors[VECTORS];
MCG_SECTION(".isr_vector") __attribute__((used)) const void *const vectors[VECTORS] = {
    mcg_image_stack_top,
    (const void *)(uintptr_t)Reset_Handler,
    HANDLER, /* NMI */
    HANDLER, /* HardFault */
    HANDLER, /* MemManage */
    HANDLER, /* BusFault */
    HANDLER, /* UsageFault */
    0,
    0,
    0,
    0,
    HANDLER, /* SVCall */
    HANDLER, /* DebugMonitor */
    0,
    HANDLER,        /* PendSV */
    HANDLER,        /* SysTick */
    FIFTY(HANDLER), /* interrupts */
    FIFTY(HANDLER),
    FIFTY(HANDLER),
};
