/* mcugen runtime: which functions of it run from fast memory; of all that mcugen writes beside a model the only one
 * that depends on models.
 *
 * A line a function, #define MCG_AT_name 0, MCG_SECTION("..."); mcg.h says how it works. Without lines all of the
 * runtime stands in flash. The linker fragment takes the sections, mcg_sections_init copies them.
 * SPDX-License-Identifier: MIT-0
 */
#ifndef MCG_PLACEMENT_H
#define MCG_PLACEMENT_H

#endif
