/* Clock, caches, cycle counter.
 *
 * SPDX-License-Identifier: MIT-0
 */
#include "system.h"

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define SCB_CCR REGISTER(0xE000ED14u)
#define SCB_CCSIDR REGISTER(0xE000ED80u)
#define SCB_CSSELR REGISTER(0xE000ED84u)
#define SCB_ICIALLU REGISTER(0xE000EF50u)
#define SCB_DCISW REGISTER(0xE000EF60u)
#define DEMCR REGISTER(0xE000EDFCu)
#define DWT_CTRL REGISTER(0xE0001000u)
#define DWT_CYCCNT REGISTER(0xE0001004u)
#define DWT_LAR REGISTER(0xE0001FB0u)

#define CCR_DCACHE (1u << 16)
#define CCR_ICACHE (1u << 17)
#define DEMCR_TRCENA (1u << 24)
#define DWT_KEY 0xC5ACCE55u

/* YOUR CLOCK GOES HERE. After reset the part runs from its internal 64 MHz oscillator, and so does this program until you
 * set up the PLL, the voltage scaling and the flash wait states: call what CubeMX generates (SystemClock_Config), or
 * write your own. */
static void clock_init(void) {}

static void barrier(void) { __asm volatile("dsb 0xF\n\tisb 0xF" ::: "memory"); }

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

void system_init(void)
{
    clock_init();
    caches_on();
}

void cycles_start(void)
{
    DEMCR |= DEMCR_TRCENA;
    DWT_LAR = DWT_KEY; /* the counter is locked after reset */
    DWT_CYCCNT = 0u;
    DWT_CTRL |= 1u;
}

uint32_t cycles_now(void) { return DWT_CYCCNT; }
