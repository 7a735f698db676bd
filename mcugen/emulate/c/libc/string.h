/* For compilers that bring no C library; searched after theirs.
 * SPDX-License-Identifier: MIT-0
 */
#ifndef IMAGE_STRING_H
#define IMAGE_STRING_H

#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
void *memset(void *to, int value, size_t bytes);

#endif
