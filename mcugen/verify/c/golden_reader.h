/* Reads a golden file of mcugen on a little-endian host. See docs/golden.md for the layout.
 *
 * SPDX-License-Identifier: MIT-0
 *
 * For test programs only: it uses malloc and stdio. Independent of the runtime and of any model.
 */
#ifndef GOLDEN_READER_H
#define GOLDEN_READER_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && defined(__ORDER_LITTLE_ENDIAN__)
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "golden files are read by little-endian hosts only"
#endif
#endif

#define GOLDEN_MAGIC "MCGG\r\n\x1a\n"
#define GOLDEN_FORMAT 1u
#define GOLDEN_NAME_BYTES 32
#define GOLDEN_MAX_RANK 7
#define GOLDEN_MAX_TENSORS 256u

enum { GOLDEN_INPUT = 1, GOLDEN_OUTPUT = 2, GOLDEN_STATUS = 3 };

enum {
    GOLDEN_F64 = 1,
    GOLDEN_F32 = 2,
    GOLDEN_I32 = 3,
    GOLDEN_U32 = 4,
    GOLDEN_I16 = 5,
    GOLDEN_U16 = 6,
    GOLDEN_I8 = 7,
    GOLDEN_U8 = 8
};

/* Both records have no gaps under the natural alignment, so they are the bytes of the file. */
typedef struct {
    char magic[8];
    uint32_t format;
    uint32_t abi;
    uint8_t model_sha256[32];
    uint32_t vectors;
    uint32_t tensors;
    uint64_t file_bytes;
} golden_header_t;

typedef struct {
    char name[GOLDEN_NAME_BYTES]; /* ends with a zero */
    uint32_t role;
    uint32_t dtype;
    uint32_t rank;                 /* without the axis of the vectors */
    uint32_t dim[GOLDEN_MAX_RANK]; /* 1 beyond the rank */
    uint64_t offset;               /* of the data, from the start of the file */
} golden_tensor_t;

_Static_assert(sizeof(golden_header_t) == 64, "golden header");
_Static_assert(sizeof(golden_tensor_t) == 80, "golden tensor record");

typedef struct {
    unsigned char *bytes;
    uint64_t size;
    golden_header_t header;
    golden_tensor_t tensor[GOLDEN_MAX_TENSORS];
} golden_t;

/* Bytes of an element; 0 for an unknown code. */
static inline uint32_t golden_element_bytes(uint32_t dtype)
{
    static const uint8_t size[9] = {0, 8, 4, 4, 4, 2, 2, 1, 1};
    return dtype < 9u ? size[dtype] : 0u;
}

/* Elements of one vector; only after golden_open has accepted the file. */
static inline uint64_t golden_count(const golden_tensor_t *t)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < GOLDEN_MAX_RANK; i++) {
        n *= t->dim[i];
    }
    return n;
}

/* The bytes of vector v. */
static inline const unsigned char *golden_row(const golden_t *g, const golden_tensor_t *t, uint32_t v)
{
    return g->bytes + t->offset + (uint64_t)v * golden_count(t) * golden_element_bytes(t->dtype);
}

/* The i-th tensor of a role, or NULL. */
static inline const golden_tensor_t *golden_find(const golden_t *g, uint32_t role, uint32_t i)
{
    for (uint32_t k = 0; k < g->header.tensors; k++) {
        if (g->tensor[k].role == role && i-- == 0u) {
            return &g->tensor[k];
        }
    }
    return NULL;
}

/* Whether the data of a tensor lie inside the file; no product overflows on the way. */
static inline int golden_tensor_fits(const golden_t *g, const golden_tensor_t *t)
{
    uint64_t n = golden_element_bytes(t->dtype);
    int empty = g->header.vectors == 0u;
    if (n == 0u || t->rank > GOLDEN_MAX_RANK || t->offset > g->size || t->name[GOLDEN_NAME_BYTES - 1] != 0) {
        return 0;
    }
    for (uint32_t i = 0; i < GOLDEN_MAX_RANK; i++) {
        if (t->dim[i] == 0u) {
            empty = 1;
        }
    }
    if (empty) {
        return 1;
    }
    for (uint32_t i = 0; i < GOLDEN_MAX_RANK; i++) {
        if (n > g->size / t->dim[i]) {
            return 0;
        }
        n *= t->dim[i];
    }
    return g->header.vectors <= (g->size - t->offset) / n;
}

static inline const char *golden_check(golden_t *g)
{
    const uint64_t head = sizeof g->header;
    if (g->size < head) {
        return "shorter than its header";
    }
    memcpy(&g->header, g->bytes, sizeof g->header);
    if (memcmp(g->header.magic, GOLDEN_MAGIC, sizeof g->header.magic) != 0) {
        return "not a golden file";
    }
    if (g->header.format != GOLDEN_FORMAT) {
        return "another format version";
    }
    if (g->header.file_bytes != g->size) {
        return "another length than its header says";
    }
    if (g->header.tensors > GOLDEN_MAX_TENSORS || g->size - head < g->header.tensors * sizeof g->tensor[0]) {
        return "too many tensors";
    }
    memcpy(g->tensor, g->bytes + head, g->header.tensors * sizeof g->tensor[0]);
    for (uint32_t k = 0; k < g->header.tensors; k++) {
        if (!golden_tensor_fits(g, &g->tensor[k])) {
            return "a tensor outside the file";
        }
    }
    return NULL;
}

/* Frees what golden_open took. */
static inline void golden_close(golden_t *g)
{
    free(g->bytes);
    g->bytes = NULL;
}

/* Reads a file: NULL, or what is wrong with it. golden_close in either case. */
static inline const char *golden_open(golden_t *g, const char *path)
{
    memset(g, 0, sizeof *g);
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        return "cannot be opened";
    }
    const char *fault = "cannot be read";
    long end = -1;
    if (fseek(f, 0, SEEK_END) == 0) {
        end = ftell(f);
    }
    if (end >= 0 && fseek(f, 0, SEEK_SET) == 0) {
        g->size = (uint64_t)end;
        g->bytes = malloc(end > 0 ? (size_t)end : 1u);
        if (g->bytes != NULL && fread(g->bytes, 1u, (size_t)end, f) == (size_t)end) {
            fault = golden_check(g);
        }
    }
    (void)fclose(f);
    return fault;
}

#endif
