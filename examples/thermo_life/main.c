/* A controller with a period of 10 ms: reads twelve thermocouples, tells how long the copper plate will last, and sets the
 * valve of the cooling water. It counts the core cycles that this takes of the 4.8 million that 10 ms have at 480 MHz. The
 * same file builds on a PC, where it prints to the terminal and counts nothing, and in the board's project (--project cmake
 * or cubeide), where it prints through SWO.
 *
 * Your firmware has no recording: a timer or the converter's interrupt wakes it every 10 ms, and it calls step().
 * SPDX-License-Identifier: MIT-0
 */
#include "mcugen/mcg_sections.h"

#include "recording.h"
#include "thermo_life.h"
#include "thermo_life_selftest.h"

#if defined(__unix__) || defined(__APPLE__) || defined(_WIN32)
#include <stdio.h>
static void say(const char *text) { (void)fputs(text, stdout); }
static void say_number(int32_t number) { (void)printf("%d", (int)number); }
static void cycles_start(void) {}
static uint32_t cycles_now(void) { return 0u; }
#else
#include "swo.h"
#include "system.h" /* cycles_now: DWT->CYCCNT */
static void say(const char *text) { swo_text(text); }
static void say_number(int32_t number) { swo_number(number); }
#endif

#define PERIOD_S 0.01f
#define PERIOD_CYCLES 4800000u
#define DEGREES_A_COUNT 0.25f
#define SAMPLES (sizeof recording / sizeof recording[0])

/* The plate is kept at this temperature; one that is nearly worn out is kept cooler. */
#define TARGET_DEGREES 225.0f
#define WORN_DEGREES 215.0f
#define WORN_HOURS 200.0f

/* PID: percent of valve a degree, a degree and second, a degree a second. */
#define GAIN 2.0f
#define GAIN_INTEGRAL 1.0f
#define GAIN_DERIVATIVE 0.05f

typedef struct {
    float integral; /* percent */
    float last;     /* degrees, of the sample before */
    float hours;    /* that the plate has left, by the newest window */
    int windows;    /* results of the model so far */
    float valve;    /* percent open */
    int ready;      /* there was a sample before */
} controller_t;

/* For a debugger. */
controller_t controller;
volatile uint32_t worst_pending; /* cycles of a step without a result of the model, at most */
volatile uint32_t worst_result;  /* with one */

static thermo_life_state_t state;

int main(void);

static float limited(float value, float low, float high) { return value < low ? low : value > high ? high : value; }

/* The valve for the temperature of the plate: the more the hotter. The integral stops where the valve ends. */
static float pid(controller_t *c, float degrees, float target)
{
    const float error = degrees - target;
    const float slope = c->ready ? (degrees - c->last) / PERIOD_S : 0.0f;

    c->integral = limited(c->integral + GAIN_INTEGRAL * error * PERIOD_S, 0.0f, 100.0f);
    c->last = degrees;
    c->ready = 1;
    return limited(c->integral + GAIN * error + GAIN_DERIVATIVE * slope, 0.0f, 100.0f);
}

/* One period. Returns 1 when the model has told the hours anew. */
static int step(controller_t *c, const int16_t sample[THERMO_LIFE_INPUTS])
{
    int32_t y;
    const int told = thermo_life_push(&state, sample, &y) == MCG_OK;

    if (told && c->windows++ > 0) { /* not the first: the filters start at 0 and settle in its window */
        c->hours = (float)y * (float)THERMO_LIFE_OUTPUT_SCALE;
    }
    const int32_t sum = sample[THERMO_LIFE_x_mid1] + sample[THERMO_LIFE_x_mid2] + sample[THERMO_LIFE_x_mid3] +
                        sample[THERMO_LIFE_x_mid4];
    const float target = c->hours < WORN_HOURS ? WORN_DEGREES : TARGET_DEGREES;
    c->valve = pid(c, (float)sum * (DEGREES_A_COUNT / 4.0f), target);
    return told;
}

static void report(const controller_t *c, uint32_t i)
{
    say_number((int32_t)(i + 1u) * 10);
    say(" ms: ");
    say_number((int32_t)(c->hours + 0.5f));
    say(" h left, valve ");
    say_number((int32_t)(c->valve + 0.5f));
    say(" %\n");
}

static void budget(const char *what, uint32_t cycles)
{
    say(what);
    say_number((int32_t)cycles);
    say(" of ");
    say_number((int32_t)PERIOD_CYCLES);
    say(" cycles\n");
}

int main(void)
{
    mcg_sections_init(); /* fills fast RAM on the board */
    cycles_start();
    if (thermo_life_selftest() != 0) {
        say("self-test: failed\n");
        return 1;
    }
    say("self-test: every bit as in Python\n");
    thermo_life_init(&state);
    controller.hours = WORN_HOURS; /* a new plate, until the model tells */
    for (uint32_t i = 0; i < SAMPLES; i++) {
        const uint32_t before = cycles_now();
        const int told = step(&controller, recording[i]);
        const uint32_t cycles = cycles_now() - before;
        if (told) {
            worst_result = cycles > worst_result ? cycles : worst_result;
            if (controller.windows > 1) {
                report(&controller, i);
            }
        } else {
            worst_pending = cycles > worst_pending ? cycles : worst_pending;
        }
    }
    if (worst_result > 0u) {
        budget("a step with a result of the model: ", worst_result);
        budget("a step without one: ", worst_pending);
    }
    return 0;
}
