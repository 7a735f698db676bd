/* Text through SWO: ITM port 0, as the SWV console of the IDE and openocd show it. Without a debugger nothing happens.
 *
 * SPDX-License-Identifier: MIT-0
 */
#ifndef SWO_H
#define SWO_H

#include <stdint.h>

void swo_text(const char *text);
void swo_number(int32_t number);

#endif
