"""A model written by hand with the C API of a generated one, and variants of it with one fault each."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mcugen.core.types import Array
from mcugen.emit.parts import ABI
from mcugen.resources import resource_dir
from mcugen.verify.golden import Golden, GoldenTensor

FEATURES, OUTPUTS, TREES = 3, 2, 2
SHA = bytes(range(32))

HEADER = """\
#ifndef FAKE_H
#define FAKE_H
#include "mcugen/mcg.h"
MCG_BEGIN_DECLS
mcg_status_t fake_run(const float *x, float *y);
mcg_status_t fake_run_batch(const float *x, float *y, uint32_t n);
#ifdef MCG_TRACE
mcg_status_t fake_leaves(const float *x, uint16_t *leaf);
#endif
typedef struct { int32_t seen; float sum; } fake_state_t;
void fake_init(fake_state_t *s);
mcg_status_t fake_push(fake_state_t *s, const float *sample, float *y);
MCG_END_DECLS
#endif
"""

SOURCE = """\
#include "fake.h"
static float scale_of = 2.0f;
void mcg_sections_init(void);
static int bad(const void *x, const void *y) {
    return x == NULL || y == NULL || !MCG_ALIGNED(x, 4) || !MCG_ALIGNED(y, 4);
}
mcg_status_t fake_run(const float *x, float *y) {
    if (bad(x, y)) { return MCG_ERR_ARG; }
    y[0] = x[0] * scale_of + x[1];
    y[1] = x[2] - x[0];
    return MCG_OK;
}
mcg_status_t fake_run_batch(const float *x, float *y, uint32_t n) {
    mcg_status_t status = bad(x, y) ? MCG_ERR_ARG : MCG_OK;
    for (uint32_t i = 0; i < n && status == MCG_OK; i++) { status = fake_run(x + 3u * i, y + 2u * i); }
    return status;
}
#ifdef MCG_TRACE
mcg_status_t fake_leaves(const float *x, uint16_t *leaf) {
    if (x == NULL || leaf == NULL) { return MCG_ERR_ARG; }
    leaf[0] = x[0] > 0.0f ? 65535u : 1u;
    leaf[1] = x[2] > 0.0f ? 7u : 3u;
    return MCG_OK;
}
#endif
void fake_init(fake_state_t *s) { s->seen = 0; s->sum = 0.0f; }
mcg_status_t fake_push(fake_state_t *s, const float *sample, float *y) {
    if (s == NULL || bad(sample, y)) { return MCG_ERR_ARG; }
    s->sum += sample[0];
    s->seen++;
    if (s->seen % 2 != 0) { return MCG_PENDING; }
    y[0] = s->sum;
    y[1] = sample[1];
    return MCG_OK;
}
"""

SELFTEST_H = "#include <stdint.h>\nint32_t fake_selftest(void);\n"
SELFTEST_C = """\
#include "fake_selftest.h"
#include "fake.h"
int32_t fake_selftest(void) {
    const float x[3] = {1.0f, 2.0f, 3.0f};
    float y[2];
    return fake_run(x, y) != MCG_OK ? 1 : y[0] != 4.0f ? 2 : 0;
}
"""
SECTIONS_H = '#include "mcg.h"\nvoid mcg_sections_init(void);\n'
SOURCES = ("fake.c", "fake_selftest.c", "mcugen/mcg_sections.c")


def fake_files(replace: Mapping[str, str] | None = None, sections: str = "") -> dict[str, str | bytes]:
    """The files of the fake export; ``replace`` puts a fault into fake.c, ``sections`` into mcg_sections_init."""
    source = SOURCE
    for old, new in (replace or {}).items():
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    return {
        "fake.h": HEADER,
        "fake.c": source,
        "fake_selftest.h": SELFTEST_H,
        "fake_selftest.c": SELFTEST_C,
        "mcugen/mcg.h": (resource_dir("runtime_c") / "include" / "mcg.h").read_bytes(),
        "mcugen/mcg_placement.h": (resource_dir("runtime_c") / "include" / "mcg_placement.h").read_bytes(),
        "mcugen/mcg_sections.h": SECTIONS_H,
        "mcugen/mcg_sections.c": f'#include "mcg_sections.h"\nvoid mcg_sections_init(void) {{ {sections} }}\n',
    }


def fake_inputs() -> Array:
    """Samples (n, FEATURES) with the values where floats hide faults."""
    special = [0.0, -0.0, 1.5, -2.25, 1e-45, 3.4e38, np.inf, -np.inf, np.nan]
    rows = [(a, b, c) for a in special for b in special for c in (special[2], special[8], special[1])]
    return np.array(rows, dtype=np.float32)


def fake_reference(x: Array) -> Array:
    """What fake_run computes."""
    with np.errstate(all="ignore"):
        two = np.float32(2.0)
        return np.stack([x[:, 0] * two + x[:, 1], x[:, 2] - x[:, 0]], axis=1)


def fake_golden() -> Golden:
    """A golden file of fake_run."""
    x = fake_inputs()
    tensors = (GoldenTensor("x", "input", x), GoldenTensor("y", "output", fake_reference(x)))
    return Golden(ABI, SHA, tensors, len(x))


def stateful_golden() -> Golden:
    """A golden file of fake_push: each second step answers."""
    x = np.arange(15, dtype=np.float32).reshape(5, 3) + np.float32(0.5)
    status = np.array([1, 0, 1, 0, 1], dtype=np.int32)
    y = np.stack([np.cumsum(x[:, 0], dtype=np.float32), x[:, 1]], axis=1)
    y[status != 0] = 0
    tensors = (
        GoldenTensor("x", "input", x),
        GoldenTensor("y", "output", y),
        GoldenTensor("status", "status", status),
    )
    return Golden(ABI, SHA, tensors, len(x))
