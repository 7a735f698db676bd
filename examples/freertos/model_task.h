/* The furnace model in a FreeRTOS task of its own: samples in through a queue, results out through a callback.
 *
 * SPDX-License-Identifier: MIT-0
 */
#ifndef MODEL_TASK_H
#define MODEL_TASK_H

#include <stdint.h>

#include "furnace.h"

/* Core cycles that one prediction may take; what takes longer is counted. 100 us at 400 MHz. */
#ifndef MODEL_BUDGET_CYCLES
#define MODEL_BUDGET_CYCLES 40000u
#endif

/* What the task has seen: read it from anywhere, each member is one word. */
typedef struct {
    volatile int32_t selftest;    /* 0, or 1 + the first vector that fails: no prediction is made then */
    volatile uint32_t runs;       /* predictions */
    volatile uint32_t lost;       /* samples that found the queue full */
    volatile uint32_t overruns;   /* predictions over the budget */
    volatile uint32_t worst;      /* core cycles of the longest one */
    volatile uint32_t stack_free; /* words of the task's stack that were never used */
} model_health_t;

extern model_health_t model_health;

/* Creates queue and task. Call once, before vTaskStartScheduler; mcg_sections_init has been called before. */
void model_task_start(void);

/* From the interrupt that has a whole sample, such as the end of a DMA transfer. The sample is copied. */
void model_sample_from_isr(const int16_t counts[FURNACE_INPUTS]);

/* Yours: called by the task for each result. */
void model_result(int32_t y);

#endif
