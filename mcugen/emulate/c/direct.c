/* The port to an emulator that calls functions and reads memory by itself: the image only has to hold them.
 * SPDX-License-Identifier: MIT-0
 */
#include "mcg_image.h"
#include "mcg_image_config.h"

void mcg_image_stop(void);

/* batch.c includes this file, and has room for more rows. */
#if !defined(MCG_IMAGE_ROWS)
#define MCG_IMAGE_ROWS 1
#endif

/* A row of inputs and one of outputs, laid out as a struct of them. */
_Alignas(MCG_IMAGE_X_ALIGN) uint8_t mcg_image_x[MCG_IMAGE_ROWS * MCG_IMAGE_X_BYTES];
_Alignas(MCG_IMAGE_Y_ALIGN) uint8_t mcg_image_y[MCG_IMAGE_ROWS * MCG_IMAGE_Y_BYTES];

#if defined(MCG_IMAGE_STATE)
MCG_IMAGE_STATE mcg_image_state;
typedef void mcg_image_init_t(MCG_IMAGE_STATE *s);
volatile void *volatile mcg_image_stream;
mcg_image_init_t *volatile mcg_image_init_entry;
#endif

/* Nothing here calls the model or touches the row: the pointers keep both in the program. */
typedef mcg_status_t mcg_image_run_t(MCG_IMAGE_PARAMETERS);
const volatile void *volatile mcg_image_row[2];
mcg_image_run_t *volatile mcg_image_run_entry;
#if defined(MCG_IMAGE_PLACES)
typedef void *mcg_image_place_t(void);
mcg_image_place_t *const volatile mcg_image_places[] = {MCG_IMAGE_PLACES};
#endif
#if MCG_IMAGE_ROWS > 1
typedef mcg_status_t mcg_image_batch_t(MCG_IMAGE_PARAMETERS, uint32_t n);
mcg_image_batch_t *volatile mcg_image_batch_entry; /* null where there is none */
#endif
typedef int32_t mcg_image_selftest_t(void);
mcg_image_selftest_t *volatile mcg_image_selftest_entry; /* null where the self-test is not linked */

/* Where every call returns to; the emulator stops in front of it. */
MCG_NOINLINE void mcg_image_stop(void)
{
    for (;;) {
        __asm volatile("bkpt 0");
    }
}

void mcg_image_main(void)
{
    mcg_image_row[0] = mcg_image_x;
    mcg_image_row[1] = mcg_image_y;
    mcg_image_run_entry = MCG_IMAGE_RUN;
#if MCG_IMAGE_ROWS > 1
    mcg_image_batch_entry = MCG_IMAGE_BATCH;
#endif
#if defined(MCG_IMAGE_STATE)
    mcg_image_stream = &mcg_image_state;
    mcg_image_init_entry = MCG_IMAGE_INIT;
#endif
    mcg_image_selftest_entry = MCG_IMAGE_SELFTEST;
    mcg_image_stop();
}
