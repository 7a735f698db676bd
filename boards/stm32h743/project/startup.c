/* Start-up of the program: vector table, FPU, .data and .bss, then main. No vendor code: registers by address.
 *
 * SPDX-License-Identifier: MIT-0
 */
#include <stdint.h>

#include "system.h"

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define SCB_VTOR REGISTER(0xE000ED08u)
#define SCB_CPACR REGISTER(0xE000ED88u)
#define CPACR_FPU (0xFu << 20)

#define INTERRUPTS 150

/* Set by the linker script. */
extern uint32_t _estack[];
extern uint32_t _sdata[];
extern uint32_t _edata[];
extern const uint32_t _sidata[];
extern uint32_t _sbss[];
extern uint32_t _ebss[];

int main(void);
void Reset_Handler(void);
void Default_Handler(void);
void NMI_Handler(void) __attribute__((weak, alias("Default_Handler")));
void HardFault_Handler(void) __attribute__((weak, alias("Default_Handler")));
void MemManage_Handler(void) __attribute__((weak, alias("Default_Handler")));
void BusFault_Handler(void) __attribute__((weak, alias("Default_Handler")));
void UsageFault_Handler(void) __attribute__((weak, alias("Default_Handler")));
void SVC_Handler(void) __attribute__((weak, alias("Default_Handler")));
void DebugMon_Handler(void) __attribute__((weak, alias("Default_Handler")));
void PendSV_Handler(void) __attribute__((weak, alias("Default_Handler")));
void SysTick_Handler(void) __attribute__((weak, alias("Default_Handler")));

typedef void (*handler_t)(void);

typedef struct {
    uint32_t *stack;
    handler_t core[15];
    handler_t interrupt[INTERRUPTS];
} vectors_t;

/* Your interrupts: name the handler at its position, which the reference manual lists, and end the range before it. */
__attribute__((section(".isr_vector"), used, aligned(1024))) const vectors_t vectors = {
    .stack = _estack,
    .core =
        {
            Reset_Handler,
            NMI_Handler,
            HardFault_Handler,
            MemManage_Handler,
            BusFault_Handler,
            UsageFault_Handler,
            0,
            0,
            0,
            0,
            SVC_Handler,
            DebugMon_Handler,
            0,
            PendSV_Handler,
            SysTick_Handler,
        },
    .interrupt = {[0 ... INTERRUPTS - 1] = Default_Handler},
};

/* Apart from Reset_Handler, so that no floating-point register is touched before the FPU is on. */
static void __attribute__((noinline)) start(void)
{
    SCB_VTOR = (uint32_t)(uintptr_t)&vectors;
    const uint32_t *from = _sidata;
    /* Volatile: each store stays one aligned word, for the RAM's error code, and no call of memcpy. */
    for (volatile uint32_t *to = _sdata; (uintptr_t)to < (uintptr_t)_edata; to++) {
        *to = *from++;
    }
    for (volatile uint32_t *to = _sbss; (uintptr_t)to < (uintptr_t)_ebss; to++) {
        *to = 0u;
    }
    system_init();
    (void)main();
    for (;;) {
    }
}

void Reset_Handler(void)
{
    SCB_CPACR |= CPACR_FPU;
    __asm volatile("dsb 0xF\n\tisb 0xF" ::: "memory");
    start();
}

void Default_Handler(void)
{
    for (;;) {
    }
}
