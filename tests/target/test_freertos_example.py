"""The FreeRTOS example: built for the board, run on the host with stand-ins for the calls that it makes."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import target_image as ti

import mcugen
from mcugen.emit.sources import sources_of
from mcugen.report.profile import profile_json
from mcugen.target.board import load_board

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "freertos"
QUICKSTART = ROOT / "examples" / "quickstart"

#: The calls of FreeRTOS that the example makes, with its names and argument orders; a queue of three lines behind them.
FREERTOS_H = """
#include <stddef.h>
#include <stdint.h>
typedef long BaseType_t; typedef unsigned long UBaseType_t; typedef uint32_t StackType_t; typedef uint32_t TickType_t;
typedef struct { int unused; } StaticTask_t; typedef struct { int unused; } StaticQueue_t;
#define pdTRUE 1
#define pdFALSE 0
#define portMAX_DELAY 0xFFFFFFFFu
#define portYIELD_FROM_ISR(x) ((void)(x))
#define taskDISABLE_INTERRUPTS() ((void)0)
#define tskIDLE_PRIORITY 0u
"""
TASK_H = """
typedef void *TaskHandle_t;
typedef void (*TaskFunction_t)(void *);
TaskHandle_t xTaskCreateStatic(TaskFunction_t code, const char *name, uint32_t depth, void *parameters,
                               UBaseType_t priority, StackType_t *stack, StaticTask_t *task);
UBaseType_t uxTaskGetStackHighWaterMark(TaskHandle_t task);
void vApplicationStackOverflowHook(TaskHandle_t task, char *name);
"""
QUEUE_H = """
typedef void *QueueHandle_t;
QueueHandle_t xQueueCreateStatic(UBaseType_t length, UBaseType_t size, uint8_t *storage, StaticQueue_t *queue);
BaseType_t xQueueReceive(QueueHandle_t queue, void *item, TickType_t ticks);
BaseType_t xQueueSendFromISR(QueueHandle_t queue, const void *item, BaseType_t *woken);
"""
HOST_MAIN = """
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include "FreeRTOS.h"
#include "task.h"
#include "queue.h"
#include "model_task.h"
#include "mcugen/mcg_sections.h"

static uint8_t *items; static UBaseType_t size_, length_, count; static TaskFunction_t task_code; static jmp_buf idle;
uint32_t test_depth; uint32_t test_cycles;

QueueHandle_t xQueueCreateStatic(UBaseType_t length, UBaseType_t size, uint8_t *storage, StaticQueue_t *queue)
{ items = storage; size_ = size; length_ = length; return queue; }
BaseType_t xQueueReceive(QueueHandle_t queue, void *item, TickType_t ticks)
{
    (void)queue; (void)ticks;
    if (count == 0) { longjmp(idle, 1); }
    memcpy(item, items, size_); count--; memmove(items, items + size_, count * size_);
    return pdTRUE;
}
BaseType_t xQueueSendFromISR(QueueHandle_t queue, const void *item, BaseType_t *woken)
{
    (void)queue; *woken = pdTRUE;
    if (count == length_) { return pdFALSE; }
    memcpy(items + count++ * size_, item, size_);
    return pdTRUE;
}
TaskHandle_t xTaskCreateStatic(TaskFunction_t code, const char *name, uint32_t depth, void *parameters,
                               UBaseType_t priority, StackType_t *stack, StaticTask_t *task)
{ (void)name; (void)parameters; (void)priority; (void)stack; task_code = code; test_depth = depth; return task; }
UBaseType_t uxTaskGetStackHighWaterMark(TaskHandle_t task) { (void)task; return 17; }
void model_result(int32_t y) { printf("y %d\\n", (int)y); }

static void schedule(void) { if (setjmp(idle) == 0) { task_code(NULL); } }

int main(void)
{
    mcg_sections_init();
    model_task_start();
    int16_t x[FURNACE_INPUTS] = {0};
    for (int i = 0; i < 6; i++) { x[0] = (int16_t)(500 * i); model_sample_from_isr(x); }
    schedule();
    int32_t y = 0;
    x[0] = 0; (void)furnace_run(x, &y); printf("direct %d\\n", (int)y);
    printf("selftest %d runs %u lost %u over %u worst %u free %u words %u\\n", (int)model_health.selftest,
        (unsigned)model_health.runs, (unsigned)model_health.lost, (unsigned)model_health.overruns,
        (unsigned)model_health.worst, (unsigned)model_health.stack_free, (unsigned)test_depth);
    return 0;
}
"""


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("rtos") / "furnace"
    mcugen.export(QUICKSTART / "furnace.txt", out, spec=QUICKSTART / "spec.toml", verify=False)
    return out


def stubs(folder: Path) -> Path:
    for name, text in (("FreeRTOS.h", FREERTOS_H), ("task.h", TASK_H), ("queue.h", QUEUE_H)):
        (folder / name).write_text("#pragma once\n" + text)
    return folder


@pytest.mark.skipif(not ti.have_cross_compiler(), reason="no arm-none-eabi-gcc")
def test_it_builds_for_the_board(export: Path, tmp_path: Path) -> None:
    board = load_board("stm32h743")
    words = [ti.GCC, *board.flags, "-O2", "-std=gnu11", *ti.WARNINGS, f"-I{stubs(tmp_path)}", f"-I{export}"]
    done = subprocess.run(
        [*words, "-c", str(EXAMPLE / "model_task.c"), "-o", "task.o"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_it_runs_and_counts(export: Path, tmp_path: Path) -> None:
    compiler = shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no host compiler")
    stubs(tmp_path)
    (tmp_path / "main.c").write_text(HOST_MAIN)
    # A counter that adds 30,000 at each look: every prediction takes so long.
    (tmp_path / "cycles.h").write_text("#include <stdint.h>\nextern uint32_t test_cycles;\n")
    words = [
        compiler,
        "-std=gnu11",
        "-O1",
        "-g",
        "-fsanitize=address,undefined",
        "-include",
        str(tmp_path / "cycles.h"),
    ]
    words += ["-DMODEL_CYCLES()=(test_cycles += 30000u)", "-DMODEL_BUDGET_CYCLES=29999u"]
    words += [f"-I{tmp_path}", f"-I{EXAMPLE}", f"-I{export}", "main.c", str(EXAMPLE / "model_task.c")]
    files = {str(p.relative_to(export)): p.read_bytes() for p in export.rglob("*.c")}
    words += [str(export / p) for p in sources_of(files)]
    done = subprocess.run([*words, "-lm", "-o", "run"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    done = subprocess.run([str(tmp_path / "run")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    results = [line for line in lines if line.startswith("y ")]
    assert len(results) == 4  # the length of the queue; two samples found it full
    assert results[0].split()[1] == lines[4].split()[1]
    assert re.fullmatch(r"selftest 0 runs 4 lost 2 over 4 worst 30000 free 17 words \d+", lines[5])


@pytest.mark.skipif(not ti.have_cross_compiler(), reason="no arm-none-eabi-gcc")
def test_its_stack_is_that_of_the_profile(export: Path) -> None:
    text = (EXAMPLE / "model_task.c").read_text()
    (model,) = re.findall(r"#define MODEL_STACK_BYTES \((\d+)u \+ \d+u\)", text)
    used = profile_json(mcugen.profile(export, opt="-O2"))
    assert 0 < used["stack_bytes"] <= int(model)


def test_the_page_names_what_exists() -> None:
    text = (ROOT / "docs" / "rtos_safety.md").read_text()
    net = (ROOT / "mcugen" / "emit" / "templates" / "net.h.j2").read_text()
    assert "NAME_HOOK(index)" in text
    assert "_HOOK(index)" in net
    for word in ("mcg_dma.h", "check-elf", "NAME_selftest", "NAME_run_with", "stack_bytes"):
        assert word in text
