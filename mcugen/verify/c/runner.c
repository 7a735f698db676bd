/* Runs a generated model on each vector of a golden file and compares every bit.
 *
 * SPDX-License-Identifier: MIT-0
 *
 * For sanitizer builds on the host. runner_config.h, which is written beside it, includes the model and says:
 *   RUNNER_RUN                               NAME_run, of a model without state
 *   RUNNER_STATE, RUNNER_INIT, RUNNER_PUSH   instead of it, of a stateful model: vectors are the steps of one run
 *   RUNNER_SECTIONS_INIT           optional: mcg_sections_init; all vectors run again after it
 *   RUNNER_SELFTEST                optional: NAME_selftest
 * Input and output of each call are blocks of exactly their size, so that a sanitizer sees one byte too many.
 * Exit: 0 all bits equal, 1 a difference, 2 the golden file cannot be used.
 */
#include "golden_reader.h"
#include "runner_config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const golden_tensor_t *in;
    const golden_tensor_t *out;
    const golden_tensor_t *status; /* NULL: every call returns MCG_OK */
    size_t in_bytes;
    size_t out_bytes;
} job_t;

/* An element as a number, NaNs as the canonical one. */
static uint64_t bits_of(const unsigned char *p, uint32_t dtype)
{
    uint64_t b = 0;
    memcpy(&b, p, golden_element_bytes(dtype));
    if (dtype == GOLDEN_F32 && (b & 0x7fffffffu) > 0x7f800000u) {
        b = 0x7fc00000u;
    }
    if (dtype == GOLDEN_F64 && (b & UINT64_C(0x7fffffffffffffff)) > UINT64_C(0x7ff0000000000000)) {
        b = UINT64_C(0x7ff8000000000000);
    }
    return b;
}

static void print_value(const unsigned char *p, uint32_t dtype)
{
    const uint64_t b = bits_of(p, dtype);
    if (dtype == GOLDEN_F32) {
        float f;
        memcpy(&f, p, sizeof f);
        printf("%.9g", (double)f);
    } else if (dtype == GOLDEN_F64) {
        double d;
        memcpy(&d, p, sizeof d);
        printf("%.17g", d);
    } else if (dtype == GOLDEN_I32) {
        printf("%" PRId32, (int32_t)(uint32_t)b);
    } else if (dtype == GOLDEN_I16) {
        printf("%d", (int)(int16_t)(uint16_t)b);
    } else if (dtype == GOLDEN_I8) {
        printf("%d", (int)(int8_t)(uint8_t)b);
    } else {
        printf("%" PRIu64, b);
    }
    printf(" (0x%0*" PRIx64 ")", (int)(2u * golden_element_bytes(dtype)), b);
}

static int same_row(const golden_t *g, const job_t *job, const unsigned char *y, uint32_t v)
{
    const unsigned char *want = golden_row(g, job->out, v);
    const uint32_t size = golden_element_bytes(job->out->dtype);
    const uint64_t n = golden_count(job->out);
    for (uint64_t i = 0; i < n; i++) {
        if (bits_of(want + i * size, job->out->dtype) != bits_of(y + i * size, job->out->dtype)) {
            printf("%s: vector %" PRIu32 " element %" PRIu64 ": expected ", job->out->name, v, i);
            print_value(want + i * size, job->out->dtype);
            printf(", found ");
            print_value(y + i * size, job->out->dtype);
            printf("\n");
            return 0;
        }
    }
    return 1;
}

static int status_is(int32_t found, int32_t expected, uint32_t v, const char *call)
{
    if (found != expected) {
        printf("%s, vector %" PRIu32 ": status %" PRId32 ", expected %" PRId32 "\n", call, v, found, expected);
    }
    return found == expected;
}

#if defined(RUNNER_PUSH)
static RUNNER_STATE state;
#define CALL(x, y) RUNNER_PUSH(&state, (x), (y))
#else
#define CALL(x, y) RUNNER_RUN((x), (y))
#endif

/* The promises about wrong pointers; x and y are the blocks of the right sizes. */
static int check_arguments(const job_t *job, unsigned char *x, unsigned char *y)
{
    void *none = NULL;
    int ok = status_is(CALL(none, (void *)y), MCG_ERR_ARG, 0, "x null");
    ok = status_is(CALL((void *)x, none), MCG_ERR_ARG, 0, "y null") && ok;
#if defined(RUNNER_PUSH)
    ok = status_is(RUNNER_PUSH(none, (void *)x, (void *)y), MCG_ERR_ARG, 0, "state null") && ok;
#endif
    if (golden_element_bytes(job->in->dtype) > 1u) {
        ok = status_is(CALL((void *)(x + 1), (void *)y), MCG_ERR_ARG, 0, "x misaligned") && ok;
    }
    if (golden_element_bytes(job->out->dtype) > 1u) {
        ok = status_is(CALL((void *)x, (void *)(y + 1)), MCG_ERR_ARG, 0, "y misaligned") && ok;
    }
    return ok;
}

static int run_vector(const golden_t *g, const job_t *job, uint32_t v)
{
    unsigned char *x = malloc(job->in_bytes);
    unsigned char *y = malloc(job->out_bytes);
    int32_t expected = MCG_OK;
    int ok = x != NULL && y != NULL;
    if (!ok) {
        printf("out of memory\n");
    } else {
        memcpy(x, golden_row(g, job->in, v), job->in_bytes);
        memset(y, 0xA5, job->out_bytes);
        if (job->status != NULL) {
            memcpy(&expected, golden_row(g, job->status, v), sizeof expected);
        }
        ok = v != 0u || check_arguments(job, x, y);
        ok = ok && status_is(CALL((void *)x, (void *)y), expected, v, "call");
        ok = ok && (expected != MCG_OK || same_row(g, job, y, v));
        if (ok && memcmp(x, golden_row(g, job->in, v), job->in_bytes) != 0) {
            printf("vector %" PRIu32 ": the input was changed\n", v);
            ok = 0;
        }
    }
    free(x);
    free(y);
    return ok;
}

static int run_all(const golden_t *g, const job_t *job)
{
#if defined(RUNNER_PUSH)
    memset(&state, 0x5A, sizeof state); /* init has to set all of it */
    RUNNER_INIT(&state);
#endif
    for (uint32_t v = 0; v < g->header.vectors; v++) {
        if (!run_vector(g, job, v)) {
            return 0;
        }
    }
    return 1;
}

static const char *plan(const golden_t *g, job_t *job)
{
    if (g->header.abi != MCG_ABI) {
        return "made for another ABI";
    }
    job->in = golden_find(g, GOLDEN_INPUT, 0);
    job->out = golden_find(g, GOLDEN_OUTPUT, 0);
    job->status = golden_find(g, GOLDEN_STATUS, 0);
    if (job->in == NULL || job->out == NULL || golden_find(g, GOLDEN_INPUT, 1) != NULL ||
        golden_find(g, GOLDEN_OUTPUT, 1) != NULL) {
        return "one input and one output are needed";
    }
    job->in_bytes = (size_t)(golden_count(job->in) * golden_element_bytes(job->in->dtype));
    job->out_bytes = (size_t)(golden_count(job->out) * golden_element_bytes(job->out->dtype));
    if (job->status != NULL && (job->status->dtype != GOLDEN_I32 || golden_count(job->status) != 1u)) {
        return "a status is one int32 a vector";
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static golden_t g;
    job_t job;
    if (argc != 2) {
        printf("usage: runner GOLDEN.bin\n");
        return 2;
    }
    const char *fault = golden_open(&g, argv[1]);
    if (fault == NULL) {
        fault = plan(&g, &job);
    }
    if (fault != NULL) {
        printf("golden file: %s\n", fault);
        golden_close(&g);
        return 2;
    }
    int ok = run_all(&g, &job);
#if defined(RUNNER_SECTIONS_INIT)
    if (ok) {
        RUNNER_SECTIONS_INIT();
        ok = run_all(&g, &job);
    }
#endif
#if defined(RUNNER_SELFTEST)
    if (ok) {
        const int32_t failed = RUNNER_SELFTEST();
        if (failed != 0) {
            printf("selftest: %" PRId32 "\n", failed);
            ok = 0;
        }
    }
#endif
    if (ok) {
        printf("%" PRIu32 " vectors equal\n", g.header.vectors);
    }
    golden_close(&g);
    return ok ? 0 : 1;
}
