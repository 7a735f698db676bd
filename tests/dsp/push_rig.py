"""Runs machine ops of signals as emitted, sample by sample: on the host with several compilers, on an emulated M7."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from bare_core import BOARD_PUT, HOST_PUT, RUNTIME, SANITIZE, Core, host_results, linked, objects, results_of

from mcugen.core.op import MachineOp, Names
from mcugen.core.types import DType, Loc
from mcugen.ctext.arrays import array_rows

SOURCES = sorted(p for name in ("filter*", "chain", "quantize") for p in (RUNTIME / "src").glob(f"mcg_{name}.c"))
BUILDS = {
    "sanitized": ("gcc", *SANITIZE),
    "clang": ("clang", "-O2"),
    "plain": ("gcc", "-O3", "-std=gnu11", "-DMCG_PLAIN"),
}
LOC = Loc("filter.toml", "filter[0]")
_CTYPES = {t.np: t.ctype for t in DType}


@dataclass(frozen=True)
class Case:
    """One op and samples (T, width) for it, from a fresh state."""

    op: MachineOp
    x: np.ndarray

    def expected(self) -> np.ndarray:
        return np.ascontiguousarray(self.op.eval(self.x)[0])


def _case_text(i: int, case: Case) -> tuple[tuple[str, ...], str]:
    op, prefix, y = case.op, f"f_{i}", case.expected()
    members = "".join(f"    {m.ctype} {m.name}{f'[{m.count}]' if m.count else ''};\n" for m in op.state)
    tables = op.items(prefix)
    lines = []
    for t in tables:
        assert t.symbol.startswith(prefix + "_")
        align = f"_Alignas({t.align}) "
        lines.append(f"static const {align}{t.ctype} {t.symbol}[{t.count}] = {{\n{array_rows(t.data)}}};")
    names = Names({t.symbol: t.symbol for t in tables}, {}, state={m.name: f"s->{m.name}" for m in op.state})
    text = op.emit(prefix, ("x",), ("y",), names)
    x_type, y_type, width = _CTYPES[case.x.dtype], _CTYPES[y.dtype], case.x.shape[1]
    lines.append(text.definitions)
    lines.append(f"typedef struct {{\n{members}    uint32_t unused;\n}} state_{i};")
    for m in op.state:
        size = f"sizeof(((state_{i} *)0)->{m.name})"
        lines.append(f'_Static_assert({size} == {m.size}u, "{m.name}");')
    function = f"static mcg_status_t push_{i}(state_{i} *s, const {x_type} *x, {y_type} *y)"
    lines.append(f"{function}\n{{\n(void)s;\n{text.call}\nreturn MCG_OK;\n}}")
    once = f"if (push_{i}(s, x, y) == MCG_OK) {{ put(y, sizeof y); }}"
    in_place = f"memcpy(y, x, sizeof x); if (push_{i}(s, y, y) == MCG_OK) {{ put(y, sizeof y); }}"
    loops = ""
    for body in (once, in_place) if op.in_place else (once,):
        loops += f"""
    memset(s, 0xA5, sizeof *s);
    init_{i}(s);
    rewind_input({case.x.nbytes}u);
    for (int t = 0; t < {len(case.x)}; ++t) {{
        {x_type} x[{width}]; {y_type} y[{y.shape[1]}];
        get(x, sizeof x);
        {body}
    }}"""
    lines.append(f"static void init_{i}(state_{i} *s)\n{{\n(void)s;\n{text.init}\n}}")
    state = f"static state_{i} memory; state_{i} *const s = &memory;"
    lines.append(f"static void run_{i}(void)\n{{\n{state}\nskip({case.x.nbytes}u);{loops}\n}}")
    return text.includes, "\n".join(lines)


_HEAD = """#include "mcg.h"
#include <string.h>
extern uint8_t input[1 << 20];
extern uint32_t input_at;
static void skip(uint32_t n) { input_at += n; }
static void rewind_input(uint32_t n) { input_at -= n; }
static void get(void *p, size_t n) { memcpy(p, input + input_at, n); input_at += (uint32_t)n; }
uint8_t input[1 << 20];
uint32_t input_at;
"""
_HOST_MAIN = "if (fread(input, 1, sizeof input, stdin) == 0) { return 3; }"


def _program(cases: Sequence[Case], put: str, main: str = "") -> str:
    parts = [_case_text(i, c) for i, c in enumerate(cases)]
    headers = sorted({h for includes, _ in parts for h in includes})
    head = [*(f'#include "{h}"' for h in headers), _HEAD, put]
    calls = [f"run_{i}();" for i in range(len(cases))]
    return "\n".join([*head, *(t for _, t in parts), "int main(void)\n{", main, *calls, "return 0;\n}\n"])


@cache
def _objects(build: str) -> tuple[str, ...]:
    compiler, *flags = BUILDS[build]
    return objects(SOURCES, compiler, flags)


def _input(cases: Sequence[Case]) -> bytes:
    return b"".join(np.ascontiguousarray(c.x).tobytes() for c in cases)


def check_c(cases: Sequence[Case], folder: Path, builds: Sequence[str] = tuple(BUILDS)) -> None:
    """Every build of the emitted C gives the bits of ``eval``, in place too where the op allows it."""
    chosen = {b: BUILDS[b] for b in builds}
    for build, output in host_results(_program(cases, HOST_PUT, _HOST_MAIN), folder, _objects, chosen, _input(cases)):
        _compare(cases, output, build)


def check_board(cases: Sequence[Case], folder: Path, flags: Sequence[str] = ("-O2",)) -> None:
    """The emitted C, cross-compiled with the DSP instructions, on an emulated Cortex-M7 gives the bits of ``eval``."""
    core = Core(linked(_program(cases, BOARD_PUT), SOURCES, folder, flags))
    core.write(core.address["input"], _input(cases))
    _compare(cases, results_of(core), "board")


def _compare(cases: Sequence[Case], output: bytes, build: str) -> None:
    at = 0
    for i, case in enumerate(cases):
        y = case.expected()
        for _ in range(1 + bool(case.op.in_place)):
            found = output[at : at + y.nbytes]
            at += y.nbytes
            same_bits(np.frombuffer(found, y.dtype), y, f"{build}, case {i}: {type(case.op).__name__}")
    assert at == len(output)


def same_bits(found: np.ndarray, y: np.ndarray, where: str = "") -> None:
    """Equal bits; any NaN equals any other."""
    a, b = (np.ascontiguousarray(v).reshape(-1) for v in (found, y))
    assert a.shape == b.shape, where
    assert a.dtype == b.dtype, where
    differs = a.view(f"<u{a.itemsize}") != b.view(f"<u{b.itemsize}")
    if a.dtype.kind == "f":  # which NaN an operation makes is the machine's affair
        differs &= ~(np.isnan(a) & np.isnan(b))
    wrong = np.flatnonzero(differs)
    assert wrong.size == 0, (
        f"{where}: {wrong.size} of {a.size} differ, first {wrong[:3]}: {a[wrong[:3]]} {b[wrong[:3]]}"
    )
