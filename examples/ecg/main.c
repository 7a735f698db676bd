/* An electrocardiogram, cleaned: each count of the converter goes into ecg_push, which takes the mains hum and the drift of
 * the base line away; a threshold finds the heartbeats in what is left. The same file builds on a PC, where it prints to
 * the terminal, and in the board's project (--project cmake or cubeide), where it prints through SWO.
 *
 * Your firmware has no recording: it calls ecg_push with each count, 360 times a second.
 * SPDX-License-Identifier: MIT-0
 */
#include "mcugen/mcg_sections.h"

#include "ecg.h"
#include "ecg_selftest.h"
#include "recording.h"

#if defined(__unix__) || defined(__APPLE__) || defined(_WIN32)
#include <stdio.h>
static void say(const char *text) { (void)fputs(text, stdout); }
static void say_number(int32_t number) { (void)printf("%d", (int)number); }
#else
#include "swo.h"
static void say(const char *text) { swo_text(text); }
static void say_number(int32_t number) { swo_number(number); }
#endif

#define RATE 360
#define SAMPLES (sizeof recording / sizeof recording[0])
/* A beat rises above 0.6 mV, and the next one comes 0.25 s later at the earliest. */
#define BEAT ((int32_t)(0.6 / ECG_OUTPUT_SCALE))
#define PAUSE (RATE / 4)

/* For a debugger: the recording without hum and drift; real = ECG_OUTPUT_SCALE * y mV. */
volatile int32_t filtered[SAMPLES];

static ecg_state_t state;

int main(void);

int main(void)
{
    int32_t last = -PAUSE;
    int32_t first = -1;
    int32_t beats = 0;

    mcg_sections_init(); /* fills fast RAM on the board */
    if (ecg_selftest() != 0) {
        say("self-test: failed\n");
        return 1;
    }
    say("self-test: every bit as in Python\n");
    ecg_init(&state);
    for (int32_t i = 0; i < (int32_t)SAMPLES; i++) {
        int32_t y;
        if (ecg_push(&state, &recording[i], &y) != MCG_OK) {
            return 1;
        }
        filtered[i] = y;
        if (y > BEAT && i - last >= PAUSE) {
            say("beat at ");
            say_number(i * 1000 / RATE);
            say(" ms\n");
            first = beats == 0 ? i : first;
            last = i;
            beats++;
        }
    }
    if (beats > 1) {
        say_number((beats - 1) * 60 * RATE / (last - first));
        say(" beats a minute\n");
    }
    return 0;
}
