/* A model in a FreeRTOS task: static memory only, a stack of known size, a budget of time, and what to do when either breaks.
 *
 * SPDX-License-Identifier: MIT-0
 */
#include "model_task.h"

#include <string.h>

#include "FreeRTOS.h"
#include "queue.h"
#include "task.h"

#include "furnace_selftest.h"

/* Stack, in bytes. The model: "stack" of `mcugen profile`, for the compiler and level of your build (136 with GCC 12 -O2; the
 * self-test, which runs in this task too, takes less than 200 more). The port: a frame of an interrupt with floating point
 * (104) and the registers of a task switch (100). And what model_result needs, which you know. */
#define MODEL_STACK_BYTES (160u + 200u)
#define PORT_STACK_BYTES 256u
#define RESULT_STACK_BYTES 256u
#define STACK_WORDS ((MODEL_STACK_BYTES + PORT_STACK_BYTES + RESULT_STACK_BYTES + 3u) / 4u)

#define QUEUE_LENGTH 4u
#define PRIORITY (tskIDLE_PRIORITY + 2u)

/* The cycle counter of the Cortex-M7; it is switched on where main sets up the clock. */
#ifndef MODEL_CYCLES
#define MODEL_CYCLES() (*(volatile uint32_t *)0xE0001004u)
#endif

typedef struct {
    int16_t counts[FURNACE_INPUTS];
} sample_t;

model_health_t model_health = {.selftest = -1};

static StackType_t stack[STACK_WORDS];
static StaticTask_t task_memory;
static StaticQueue_t queue_memory;
static uint8_t queue_items[QUEUE_LENGTH * sizeof(sample_t)];
static QueueHandle_t queue;

static void account(uint32_t cycles)
{
    model_health.runs++;
    if (cycles > model_health.worst) {
        model_health.worst = cycles;
    }
    if (cycles > MODEL_BUDGET_CYCLES) {
        model_health.overruns++; /* your policy: report, degrade, or stop feeding the watchdog */
    }
    model_health.stack_free = (uint32_t)uxTaskGetStackHighWaterMark(NULL);
}

static void model_task(void *unused)
{
    (void)unused;
    model_health.selftest = furnace_selftest();
    for (;;) {
        sample_t sample;
        int32_t y[FURNACE_OUTPUTS];
        if (xQueueReceive(queue, &sample, portMAX_DELAY) != pdTRUE || model_health.selftest != 0) {
            continue;
        }
        const uint32_t before = MODEL_CYCLES();
        const mcg_status_t status = furnace_run(sample.counts, y);
        account(MODEL_CYCLES() - before);
        if (status == MCG_OK) {
            model_result(y[0]);
        }
    }
}

void model_task_start(void)
{
    queue = xQueueCreateStatic(QUEUE_LENGTH, sizeof(sample_t), queue_items, &queue_memory);
    (void)xTaskCreateStatic(model_task, "model", STACK_WORDS, NULL, PRIORITY, stack, &task_memory);
}

void model_sample_from_isr(const int16_t counts[FURNACE_INPUTS])
{
    sample_t sample;
    BaseType_t woken = pdFALSE;
    memcpy(sample.counts, counts, sizeof sample.counts);
    if (xQueueSendFromISR(queue, &sample, &woken) != pdTRUE) {
        model_health.lost++;
    }
    portYIELD_FROM_ISR(woken);
}

/* FreeRTOS calls this with configCHECK_FOR_STACK_OVERFLOW 2 when the pattern at the end of a stack is gone. The memory
 * behind that stack is not to be trusted: stop here, and let the watchdog start the system again. */
void vApplicationStackOverflowHook(TaskHandle_t task, char *name)
{
    (void)task;
    (void)name;
    taskDISABLE_INTERRUPTS();
    for (;;) {
    }
}
