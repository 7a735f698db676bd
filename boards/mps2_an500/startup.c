/* Start-up of the test image for MPS2 AN500 under QEMU. A fault is told through semihosting.
 * SPDX-License-Identifier: MIT-0
 */
#include <stdint.h>

#include "mcugen/mcg_sections.h"

#include "mcg_image.h"

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define SCB_VTOR REGISTER(0xE000ED08u)
#define SCB_CPACR REGISTER(0xE000ED88u)
#define CPACR_FPU (0xFu << 20)
#define VECTORS 16u

void Reset_Handler(void);
void Fault_Handler(void);

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

/* Apart from Reset_Handler, so that no floating-point register is touched before the FPU is on. */
static void MCG_NOINLINE start(void)
{
    extern const void *const vectors[VECTORS];
    SCB_VTOR = (uint32_t)(uintptr_t)vectors;
    copy_data();
    mcg_sections_init();
    mcg_image_main();
}

void Reset_Handler(void)
{
    SCB_CPACR |= CPACR_FPU;
    barrier();
    start();
    for (;;) {
    }
}

/* A fresh stack: the old one may be the fault. */
__attribute__((naked)) void Fault_Handler(void)
{
    __asm volatile("mrs r0, msp\n\t"
                   "ldr r1, =mcg_image_stack_top\n\t"
                   "mov sp, r1\n\t"
                   "b mcg_image_fault\n\t"
                   ".ltorg");
}

#define HANDLER (const void *)(uintptr_t)Fault_Handler

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
    HANDLER, /* PendSV */
    HANDLER, /* SysTick */
};
