/* Clock, caches, cycle counter.
 *
 * SPDX-License-Identifier: MIT-0
 */
#ifndef SYSTEM_H
#define SYSTEM_H

#include <stdint.h>

/* Called by start-up, before main: your clock, then the caches. */
void system_init(void);

/* Starts the counter of core cycles. */
void cycles_start(void);

/* Core cycles since then, modulo 2^32; 0 where the part has no counter. */
uint32_t cycles_now(void);

#endif
