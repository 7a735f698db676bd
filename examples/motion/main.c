/* Classes of recorded motion: each sample of the sensors goes into motion_push, and once a second a class comes out. The
 * same file builds on a PC, where it prints to the terminal, and in the board's project (--project cmake or cubeide), where
 * it prints through SWO.
 *
 * Your firmware has no recordings: it calls motion_push with each sample that the sensors deliver, every 100 ms.
 * SPDX-License-Identifier: MIT-0
 */
#include "mcugen/mcg_sections.h"

#include "motion.h"
#include "motion_selftest.h"
#include "recordings.h"

#if defined(__unix__) || defined(__APPLE__) || defined(_WIN32)
#include <stdio.h>
static void say(const char *text) { (void)fputs(text, stdout); }
static void say_number(int32_t number) { (void)printf("%d", (int)number); }
#else
#include "swo.h"
static void say(const char *text) { swo_text(text); }
static void say_number(int32_t number) { swo_number(number); }
#endif

#define CLASSES 4
static const char *const names[CLASSES] = {"Badminton", "Running", "Standing", "Walking"};
static const char *const letters[CLASSES] = {"B", "R", "S", "W"};

/* For a debugger: windows by the recording's class and the class that was found. */
volatile int32_t seen[CLASSES][CLASSES];

static motion_state_t state;

int main(void);

/* Pushes one recording and says the class of each window. */
static void classify(const int16_t (*samples)[MOTION_INPUTS], uint32_t count, uint32_t truth)
{
    int32_t found;

    say(names[truth]);
    say(":");
    motion_init(&state);
    for (uint32_t i = 0; i < count; i++) {
        if (motion_push(&state, samples[i], &found) == MCG_OK) { /* MCG_PENDING: no window is complete */
            seen[truth][found]++;
            say(" ");
            say(letters[found]);
        }
    }
    say("\n");
}

int main(void)
{
    int32_t right = 0;
    int32_t all = 0;

    mcg_sections_init(); /* fills fast RAM on the board */
    if (motion_selftest() != 0) {
        say("self-test: failed\n");
        return 1;
    }
    say("self-test: every bit as in Python\n");
    for (uint32_t r = 0; r < sizeof recordings / sizeof recordings[0]; r++) {
        classify(recordings[r], SAMPLES, truths[r]);
    }
    for (uint32_t i = 0; i < CLASSES; i++) {
        for (uint32_t j = 0; j < CLASSES; j++) {
            right += i == j ? seen[i][j] : 0;
            all += seen[i][j];
        }
    }
    say_number(right);
    say(" of ");
    say_number(all);
    say(" windows right\n");
    return 0;
}
