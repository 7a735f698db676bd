/* The test image: what start-up code, the model and the port to the emulator share.
 * SPDX-License-Identifier: MIT-0
 */
#ifndef MCG_IMAGE_H
#define MCG_IMAGE_H

#include <stdint.h>

/* Ends of what start-up fills and of the stack, set by the linker script; all are multiples of 4 bytes. */
extern const uint32_t mcg_image_data_load[];
extern uint32_t mcg_image_data_start[], mcg_image_data_end[];
extern uint32_t mcg_image_bss_start[], mcg_image_bss_end[];
extern uint32_t mcg_image_stack_limit[], mcg_image_stack_top[];

/* Called by start-up code when memory is ready. */
void mcg_image_main(void);

/* Tells of a fault and ends the run. frame: the eight words that the core stacked. Only with semihosting. */
void mcg_image_fault(const uint32_t *frame) __attribute__((noreturn));

#endif
