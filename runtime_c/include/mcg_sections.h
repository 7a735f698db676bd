/* mcugen runtime: code and tables that move from flash to fast RAM at start-up.
 *
 * SPDX-License-Identifier: MIT-0
 */
#ifndef MCG_SECTIONS_H
#define MCG_SECTIONS_H

#include "mcg.h"

MCG_BEGIN_DECLS

/* A constant table with an image in flash and a copy in RAM. *active points to the image until
 * mcg_sections_init has filled the copy: a program that never calls it is right, and only slower. */
typedef struct {
    const void *image;
    void *copy;
    const void **active;
    uint32_t bytes;
} mcg_table_copy_t;

/* Registers a mcg_table_copy_t: the linker collects the section, and gives it a start and a stop symbol. */
#if defined(__ELF__)
#define MCG_TABLE_COPY __attribute__((section("mcg_table_copies"), used, aligned(sizeof(void *))))
#else
#define MCG_TABLE_COPY MCG_UNUSED
#endif

/* Call once, early in main, before any NAME_run and before interrupts that use a model:
 * copies the code of ITCM sections, zeroes the sections that the user's start-up does not know, and fills the RAM
 * copies of tables. Sections that are empty or absent cost nothing. Calling it again is harmless. */
void mcg_sections_init(void);

MCG_END_DECLS

#endif
