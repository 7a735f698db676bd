/* Runs a generated model on each vector of a golden file and compares every bit.
 *
 * SPDX-License-Identifier: MIT-0
 *
 * For sanitizer builds on the host. runner_config.h, which is written beside it, includes the model and says:
 *   RUNNER_INPUTS, RUNNER_OUTPUTS  how many of them the functions have
 *   RUNNER_CALL(x, y)              NAME_run of the pointers x[0], x[1] ... and y[0] ...; of a stateful model NAME_push of
 *                                  the runner's state: vectors are the steps of one run
 *   RUNNER_STATE, RUNNER_INIT, RUNNER_NO_STATE(x, y)   of a stateful model: its type, NAME_init, NAME_push of a null state
 *   RUNNER_PLACES(x, y)            optional: sets the pointers to the places in the model's arena; a row runs there too
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
    const golden_tensor_t *in[RUNNER_INPUTS];
    const golden_tensor_t *out[RUNNER_OUTPUTS];
    const golden_tensor_t *status; /* NULL: every call returns MCG_OK */
} job_t;

static size_t bytes_of(const golden_tensor_t *t) { return (size_t)(golden_count(t) * golden_element_bytes(t->dtype)); }

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

static int same_row(const golden_t *g, const golden_tensor_t *t, const unsigned char *y, uint32_t v)
{
    const unsigned char *want = golden_row(g, t, v);
    const uint32_t size = golden_element_bytes(t->dtype);
    const uint64_t n = golden_count(t);
    for (uint64_t i = 0; i < n; i++) {
        if (bits_of(want + i * size, t->dtype) != bits_of(y + i * size, t->dtype)) {
            printf("%s: vector %" PRIu32 " element %" PRIu64 ": expected ", t->name, v, i);
            print_value(want + i * size, t->dtype);
            printf(", found ");
            print_value(y + i * size, t->dtype);
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

#if defined(RUNNER_STATE)
static RUNNER_STATE state;
#endif

/* The promises about wrong pointers; x and y are blocks of the right sizes. */
static int check_arguments(const job_t *job, void **x, void **y)
{
    int ok = 1;
    for (uint32_t i = 0; i < RUNNER_INPUTS + RUNNER_OUTPUTS; i++) {
        void **const place = i < RUNNER_INPUTS ? &x[i] : &y[i - RUNNER_INPUTS];
        const golden_tensor_t *t = i < RUNNER_INPUTS ? job->in[i] : job->out[i - RUNNER_INPUTS];
        void *const right = *place;
        *place = NULL;
        ok = status_is(RUNNER_CALL(x, y), MCG_ERR_ARG, 0, "a null pointer") && ok;
        if (golden_element_bytes(t->dtype) > 1u) {
            *place = (unsigned char *)right + 1;
            ok = status_is(RUNNER_CALL(x, y), MCG_ERR_ARG, 0, "a misaligned pointer") && ok;
        }
        *place = right;
    }
#if defined(RUNNER_STATE)
    ok = status_is(RUNNER_NO_STATE(x, y), MCG_ERR_ARG, 0, "state null") && ok;
#endif
    return ok;
}

/* Blocks for the tensors of one side: inputs with the values of vector v, outputs (NULL) with a pattern. */
static int take_blocks(const golden_t *g, const golden_tensor_t *const *t, uint32_t n, int filled, uint32_t v, void **p)
{
    int ok = 1;
    for (uint32_t i = 0; i < n; i++) {
        p[i] = malloc(bytes_of(t[i]));
        ok = ok && p[i] != NULL;
        if (p[i] != NULL && filled) {
            memcpy(p[i], golden_row(g, t[i], v), bytes_of(t[i]));
        } else if (p[i] != NULL) {
            memset(p[i], 0xA5, bytes_of(t[i]));
        }
    }
    return ok;
}

#if defined(RUNNER_PLACES)
/* The vector with inputs and outputs at their places in the arena. */
static int run_placed(const golden_t *g, const job_t *job, uint32_t v)
{
    void *x[RUNNER_INPUTS];
    void *y[RUNNER_OUTPUTS];
    RUNNER_PLACES(x, y);
    for (uint32_t i = 0; i < RUNNER_OUTPUTS; i++) {
        memset(y[i], 0xA5, bytes_of(job->out[i]));
    }
    for (uint32_t i = 0; i < RUNNER_INPUTS; i++) { /* last: an input may lie where an output will */
        memcpy(x[i], golden_row(g, job->in[i], v), bytes_of(job->in[i]));
    }
    int ok = status_is(RUNNER_CALL(x, y), MCG_OK, v, "call in the arena");
    for (uint32_t i = 0; ok && i < RUNNER_OUTPUTS; i++) {
        ok = same_row(g, job->out[i], y[i], v);
    }
    for (uint32_t i = 0; i < RUNNER_INPUTS + RUNNER_OUTPUTS; i++) { /* neither its place nor outside */
        void **const place = i < RUNNER_INPUTS ? &x[i] : &y[i - RUNNER_INPUTS];
        const uint32_t step =
            golden_element_bytes((i < RUNNER_INPUTS ? job->in[i] : job->out[i - RUNNER_INPUTS])->dtype);
        *place = (unsigned char *)*place + step;
        ok = status_is(RUNNER_CALL(x, y), MCG_ERR_ARG, v, "another place in the arena") && ok;
        *place = (unsigned char *)*place - step;
    }
    return ok;
}
#endif

static int run_vector(const golden_t *g, const job_t *job, uint32_t v)
{
    void *x[RUNNER_INPUTS] = {NULL};
    void *y[RUNNER_OUTPUTS] = {NULL};
    int32_t expected = MCG_OK;
    int ok = take_blocks(g, job->in, RUNNER_INPUTS, 1, v, x);
    ok = take_blocks(g, job->out, RUNNER_OUTPUTS, 0, v, y) && ok;
    if (!ok) {
        printf("out of memory\n");
    } else {
        if (job->status != NULL) {
            memcpy(&expected, golden_row(g, job->status, v), sizeof expected);
        }
        ok = v != 0u || check_arguments(job, x, y);
        ok = ok && status_is(RUNNER_CALL(x, y), expected, v, "call");
        for (uint32_t i = 0; ok && expected == MCG_OK && i < RUNNER_OUTPUTS; i++) {
            ok = same_row(g, job->out[i], y[i], v);
        }
        for (uint32_t i = 0; ok && i < RUNNER_INPUTS; i++) {
            if (memcmp(x[i], golden_row(g, job->in[i], v), bytes_of(job->in[i])) != 0) {
                printf("vector %" PRIu32 ": the input was changed\n", v);
                ok = 0;
            }
        }
    }
#if defined(RUNNER_PLACES)
    ok = ok && run_placed(g, job, v);
#endif
    for (uint32_t i = 0; i < RUNNER_INPUTS; i++) {
        free(x[i]);
    }
    for (uint32_t i = 0; i < RUNNER_OUTPUTS; i++) {
        free(y[i]);
    }
    return ok;
}

static int run_all(const golden_t *g, const job_t *job)
{
#if defined(RUNNER_STATE)
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
    for (uint32_t i = 0; i < RUNNER_INPUTS; i++) {
        job->in[i] = golden_find(g, GOLDEN_INPUT, i);
    }
    for (uint32_t i = 0; i < RUNNER_OUTPUTS; i++) {
        job->out[i] = golden_find(g, GOLDEN_OUTPUT, i);
    }
    job->status = golden_find(g, GOLDEN_STATUS, 0);
    if (job->in[RUNNER_INPUTS - 1] == NULL || job->out[RUNNER_OUTPUTS - 1] == NULL ||
        golden_find(g, GOLDEN_INPUT, RUNNER_INPUTS) != NULL || golden_find(g, GOLDEN_OUTPUT, RUNNER_OUTPUTS) != NULL) {
        return "another count of inputs or outputs than the model has";
    }
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
