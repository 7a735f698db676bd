/* Uses the exported model: one scan of 12 thermocouples to millimetres of lining. The same file builds on a PC, where
 * main prints what it found, and for the board, where the result stays in `remaining` for a debugger to read.
 * SPDX-License-Identifier: MIT-0
 */
#include "furnace.h"
#include "furnace_selftest.h"
#include "mcugen/mcg_sections.h"

#if defined(__unix__) || defined(__APPLE__) || defined(_WIN32)
#include <stdio.h>
#define REPORT(...) (void)printf(__VA_ARGS__)
#else
#define REPORT(...) (void)0
#endif

/* Raw counts as the amplifiers deliver them; the fourth wire is broken. */
static const int16_t scan[FURNACE_INPUTS] = {1553, 1816, 1613, 32767, 1466, 1567, 2817, 3211, 2865, 2768, 2555, 2729};

volatile int32_t remaining;

int main(void)
{
    int32_t y[FURNACE_OUTPUTS];

    mcg_sections_init(); /* fills fast RAM; does nothing on a PC without the linker fragment but copy the tables */
    if (furnace_selftest() != 0) {
        REPORT("self-test: failed\n");
        return 1;
    }
    REPORT("self-test: every bit as in Python\n");
    if (furnace_run(scan, y) != MCG_OK) {
        return 1;
    }
    remaining = y[0];
    REPORT("lining left: %.2f mm (y = %ld)\n", (double)y[0] * FURNACE_SCALE, (long)y[0]);
    return 0;
}
