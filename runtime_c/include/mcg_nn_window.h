/* mcugen runtime: the part of a window that lies inside its input. Internal; no interface.
 *
 * SPDX-License-Identifier: MIT-0
 */
#ifndef MCG_NN_WINDOW_H
#define MCG_NN_WINDOW_H

#include "mcg.h"

/* Taps first..last-1 of a window that lie in [low, high). */
typedef struct {
    int32_t first, last;
} mcg_taps_t;

/* A window of `kernel` taps, `dilation` apart, the first at `start`. */
MCG_INLINE mcg_taps_t mcg_taps(int32_t start, int32_t kernel, int32_t dilation, int32_t low, int32_t high)
{
    const int32_t before = low - start, room = high - start;
    mcg_taps_t t = {0, 0};
    if (before > 0) {
        t.first = (before + dilation - 1) / dilation;
    }
    if (room > 0) {
        t.last = (room + dilation - 1) / dilation;
    }
    t.last = t.last > kernel ? kernel : t.last;
    t.first = t.first > t.last ? t.last : t.first;
    return t;
}

#endif
