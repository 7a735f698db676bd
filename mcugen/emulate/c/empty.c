/* Stands for the model where only the rest of the image is to be measured.
 * SPDX-License-Identifier: MIT-0
 */
#include "mcg_image_config.h"
#include "mcugen/mcg_sections.h"

#if defined(MCG_IMAGE_STATE)
void MCG_IMAGE_INIT(MCG_IMAGE_STATE *s) { (void)s; }

mcg_status_t MCG_IMAGE_RUN(MCG_IMAGE_STATE *s, const MCG_IMAGE_X *x, MCG_IMAGE_Y *y)
{
    (void)s;
    (void)x;
    (void)y;
    return MCG_OK;
}
#else
mcg_status_t MCG_IMAGE_RUN(const MCG_IMAGE_X *x, MCG_IMAGE_Y *y)
{
    (void)x;
    (void)y;
    return MCG_OK;
}
#endif

void mcg_sections_init(void) {}
