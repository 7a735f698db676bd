/* Stands for the model where only the rest of the image is to be measured.
 * SPDX-License-Identifier: MIT-0
 */
#include "mcg_image_config.h"
#include "mcugen/mcg_sections.h"

#if defined(MCG_IMAGE_STATE)
void MCG_IMAGE_INIT(MCG_IMAGE_STATE *s) { (void)s; }
#endif

mcg_status_t MCG_IMAGE_RUN(MCG_IMAGE_PARAMETERS)
{
    MCG_IMAGE_IGNORE
    return MCG_OK;
}

#if defined(MCG_IMAGE_PLACES)
MCG_IMAGE_PLACE_STUBS
#endif

void mcg_sections_init(void) {}
