/* What a compiler may call without being asked, so that every tool chain links the same bytes.
 * SPDX-License-Identifier: MIT-0
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The volatile access keeps the compiler from making a call of itself of the loop. */
void *memcpy(void *restrict to, const void *restrict from, size_t bytes)
{
    volatile uint8_t *target = to;
    const uint8_t *source = from;
    while (bytes-- > 0u) {
        *target++ = *source++;
    }
    return to;
}

void *memset(void *to, int value, size_t bytes)
{
    volatile uint8_t *target = to;
    while (bytes-- > 0u) {
        *target++ = (uint8_t)value;
    }
    return to;
}

void *memmove(void *to, const void *from, size_t bytes)
{
    volatile uint8_t *target = to;
    const uint8_t *source = from;
    if ((uintptr_t)target <= (uintptr_t)source) {
        while (bytes-- > 0u) {
            *target++ = *source++;
        }
    } else {
        while (bytes-- > 0u) {
            target[bytes] = source[bytes];
        }
    }
    return to;
}
