/* Text through SWO. The debugger sets up pin and speed, and enables the port.
 *
 * SPDX-License-Identifier: MIT-0
 */
#include "swo.h"

#define ITM_PORT0 (*(volatile uint32_t *)0xE0000000u)
#define ITM_PORT0_BYTE (*(volatile uint8_t *)0xE0000000u)
#define ITM_TER (*(volatile uint32_t *)0xE0000E00u)
#define ITM_TCR (*(volatile uint32_t *)0xE0000E80u)

static void put(char c)
{
    if ((ITM_TCR & 1u) == 0u || (ITM_TER & 1u) == 0u) {
        return; /* nobody listens */
    }
    while (ITM_PORT0 == 0u) {
        /* the port is full */
    }
    ITM_PORT0_BYTE = (uint8_t)c;
}

void swo_text(const char *text)
{
    while (*text != '\0') {
        put(*text++);
    }
}

void swo_number(int32_t number)
{
    char digits[10];
    uint32_t rest = number < 0 ? 0u - (uint32_t)number : (uint32_t)number;
    uint32_t count = 0u;
    do {
        digits[count++] = (char)('0' + (char)(rest % 10u));
        rest /= 10u;
    } while (rest != 0u);
    if (number < 0) {
        put('-');
    }
    while (count != 0u) {
        put(digits[--count]);
    }
}
