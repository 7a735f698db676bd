/* The port to an emulator with Arm semihosting: x.bin in, y.bin, status.bin (one word a row) and report.bin out, in the
 * emulator's folder.
 *
 * report.bin: little-endian words: failed row + 1 (0: none) and its status, result of the self-test, stack bytes.
 * A fault is one line on the debug console.
 * SPDX-License-Identifier: MIT-0
 */
#include "mcg_image.h"
#include "mcg_image_config.h"

#define SYS_OPEN 0x01u
#define SYS_CLOSE 0x02u
#define SYS_WRITE0 0x04u
#define SYS_WRITE 0x05u
#define SYS_READ 0x06u
#define SYS_EXIT 0x18u
#define MODE_READ 1u  /* "rb" */
#define MODE_WRITE 5u /* "wb" */
#define EXIT_NORMAL 0x20026u
#define EXIT_ERROR 0x20023u
#define PATTERN 0xA5A5A5A5u
#define UNTOUCHED 0xA5u /* what y holds before a call */
#define CHANGED (-1001) /* as a status: the model has changed its input */
#define OTHER (-1002)   /* as a status: another result with inputs and outputs in the arena */

/* A row of inputs and one of outputs, laid out as a struct of them. */
static _Alignas(MCG_IMAGE_X_ALIGN) uint8_t mcg_image_x[MCG_IMAGE_X_BYTES];
static _Alignas(MCG_IMAGE_Y_ALIGN) uint8_t mcg_image_y[MCG_IMAGE_Y_BYTES];
#if defined(MCG_IMAGE_STATE)
static MCG_IMAGE_STATE mcg_image_state;
#define PENDING_IS_RIGHT 1
#else
#define PENDING_IS_RIGHT 0
#endif

static uint32_t semihost(uint32_t operation, uintptr_t parameter)
{
    register uint32_t r0 __asm("r0") = operation;
    register uintptr_t r1 __asm("r1") = parameter;
    __asm volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

__attribute__((noreturn)) static void leave(uint32_t reason)
{
    for (;;) {
        (void)semihost(SYS_EXIT, reason);
    }
}

static uint32_t open_file(const char *name, uint32_t length, uint32_t mode)
{
    const uintptr_t block[3] = {(uintptr_t)name, mode, length};
    return semihost(SYS_OPEN, (uintptr_t)block);
}

/* Bytes that were not transferred. */
static uint32_t transfer(uint32_t operation, uint32_t file, const void *data, uint32_t bytes)
{
    const uintptr_t block[3] = {file, (uintptr_t)data, bytes};
    return semihost(operation, (uintptr_t)block);
}

static void close_file(uint32_t file)
{
    const uintptr_t block[1] = {file};
    (void)semihost(SYS_CLOSE, (uintptr_t)block);
}

static void MCG_NOINLINE fill_stack(void)
{
    /* Down to the limit from below this frame; volatile, so that it stays a loop without a frame of its own. */
    volatile uint32_t *word = (volatile uint32_t *)(uintptr_t)((uintptr_t)__builtin_frame_address(0) - 128u);
    while ((uintptr_t)word > (uintptr_t)mcg_image_stack_limit) {
        *--word = PATTERN;
    }
}

static uint32_t stack_used(const void *top)
{
    const volatile uint32_t *word = mcg_image_stack_limit;
    while ((uintptr_t)word < (uintptr_t)top && *word == PATTERN) {
        word++;
    }
    return (uint32_t)((uintptr_t)top - (uintptr_t)word);
}

#if defined(MCG_IMAGE_PLACES)
static void copy(void *to, const uint8_t *from, uint32_t bytes)
{
    for (uint32_t i = 0u; i < bytes; i++) {
        ((volatile uint8_t *)to)[i] = from[i];
    }
}

static int same(const void *a, const uint8_t *b, uint32_t bytes)
{
    for (uint32_t i = 0u; i < bytes; i++) {
        if (((const uint8_t *)a)[i] != b[i]) {
            return 0;
        }
    }
    return 1;
}

/* Changes with every byte of the row of inputs. */
static uint32_t sum_of_x(void)
{
    uint32_t sum = 2166136261u;
    for (uint32_t i = 0u; i < sizeof mcg_image_x; i++) {
        sum = (sum ^ mcg_image_x[i]) * 16777619u;
    }
    return sum;
}
#endif

/* The row; where the arena has places for inputs and outputs there too, with the same result. The row of inputs stays. */
static mcg_status_t run_row(void)
{
#if defined(MCG_IMAGE_PLACES)
    const uint32_t before = sum_of_x();
    const mcg_status_t status = MCG_IMAGE_RUN(MCG_IMAGE_ARGUMENTS);
    if (status != MCG_OK || sum_of_x() != before) {
        return status != MCG_OK ? status : CHANGED;
    }
    MCG_IMAGE_FILL_PLACES
    const mcg_status_t again = MCG_IMAGE_RUN(MCG_IMAGE_PLACED_ARGUMENTS);
    return again != MCG_OK || MCG_IMAGE_SAME_PLACES ? again : OTHER;
#else
    return MCG_IMAGE_RUN(MCG_IMAGE_ARGUMENTS);
#endif
}

/* The rows, one by one; the stack that this takes is that of the model and of this frame. */
static void MCG_NOINLINE run_rows(uint32_t *failed)
{
    const uint32_t in = open_file("x.bin", 5u, MODE_READ);
    const uint32_t out = open_file("y.bin", 5u, MODE_WRITE);
    const uint32_t answers = open_file("status.bin", 10u, MODE_WRITE);
#if defined(MCG_IMAGE_STATE)
    MCG_IMAGE_INIT(&mcg_image_state);
#endif
    for (uint32_t row = 0u; transfer(SYS_READ, in, mcg_image_x, (uint32_t)sizeof mcg_image_x) == 0u; row++) {
        for (uint32_t i = 0u; i < sizeof mcg_image_y; i++) {
            ((volatile uint8_t *)mcg_image_y)[i] = UNTOUCHED;
        }
        const mcg_status_t status = run_row();
        if (status != MCG_OK && !(status == MCG_PENDING && PENDING_IS_RIGHT) && failed[0] == 0u) {
            failed[0] = row + 1u;
            failed[1] = (uint32_t)status;
        }
        (void)transfer(SYS_WRITE, out, mcg_image_y, (uint32_t)sizeof mcg_image_y);
        (void)transfer(SYS_WRITE, answers, &status, (uint32_t)sizeof status);
    }
    close_file(in);
    close_file(out);
    close_file(answers);
}

void mcg_image_main(void)
{
    uint32_t report[4] = {0u, 0u, 0u, 0u};
    fill_stack();
    run_rows(report);
    report[3] = stack_used(__builtin_frame_address(0));
    if (MCG_IMAGE_SELFTEST != 0) {
        report[2] = (uint32_t)MCG_IMAGE_SELFTEST();
    }
    const uint32_t file = open_file("report.bin", 10u, MODE_WRITE);
    (void)transfer(SYS_WRITE, file, report, (uint32_t)sizeof report);
    close_file(file);
    leave(EXIT_NORMAL);
}

static char *hexadecimal(char *to, uint32_t value)
{
    for (int32_t shift = 28; shift >= 0; shift -= 4) {
        *to++ = "0123456789abcdef"[(value >> (uint32_t)shift) & 15u];
    }
    *to++ = ' ';
    return to;
}

void mcg_image_fault(const uint32_t *frame)
{
    static char line[64];
    const uintptr_t at = (uintptr_t)frame;
    const int inside = at >= (uintptr_t)mcg_image_stack_limit && at + 32u <= (uintptr_t)mcg_image_stack_top;
    char *end = line;
    const char *head = "FAULT ";
    while (*head != '\0') {
        *end++ = *head++;
    }
    end = hexadecimal(end, *(volatile uint32_t *)0xE000ED28u); /* CFSR: what happened */
    end = hexadecimal(end, *(volatile uint32_t *)0xE000ED38u); /* BFAR: the address, where CFSR says that it is valid */
    end = hexadecimal(end, inside ? frame[6] : 0u);            /* the program counter */
    end = hexadecimal(end, (uint32_t)at);                      /* the stack pointer */
    *end++ = '\n';
    *end = '\0';
    (void)semihost(SYS_WRITE0, (uintptr_t)line);
    leave(EXIT_ERROR);
}
