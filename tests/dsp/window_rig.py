"""Runs ops with state as emitted, sample by sample: on the host with several compilers, on an emulated Cortex-M7."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from bare_core import BOARD_PUT, HOST_PUT, RUNTIME, SANITIZE, WARNINGS, Core, host_results, linked, objects, results_of

from mcugen.core.op import MachineOp, Names
from mcugen.core.types import DType
from mcugen.ctext.arrays import array_rows

SOURCES = [RUNTIME / "src" / f"mcg_{n}.c" for n in ("window", "features", "features_float")]
BUILDS = {
    "sanitized": ("gcc", *SANITIZE),
    "clang": ("clang", "-O2"),
    "plain": ("gcc", "-O3", "-std=gnu11", "-march=native", "-DMCG_PLAIN"),
}
BOARDS = {"dsp": ("-O2",), "plain": ("-Os", "-DMCG_PLAIN")}
_CTYPES = {t.np: t.ctype for t in DType}


@dataclass(frozen=True)
class Case:
    """An op and the samples (T, C) that are pushed into it."""

    op: MachineOp
    x: np.ndarray


def _case_text(i: int, case: Case, includes: set[str]) -> tuple[str, str]:
    """Definitions of a case, and the statement that runs it twice, to see that init starts anew."""
    prefix, op = f"m_{i}", case.op
    members = {m.name: f"s->{prefix}_{m.name}" for m in op.state}
    names = Names({t.symbol: t.symbol for t in op.items(prefix)}, {}, state=members)
    text = op.emit(prefix, ("x",), ("y",), names)
    includes |= set(text.includes)
    lines = []
    for t in op.items(prefix):
        assert t.symbol.startswith(f"{prefix}_")
        assert t.data is not None
        assert t.data.nbytes == t.size
        lines.append(f"static const {t.ctype} {t.symbol}[{t.count}] = {{\n{array_rows(t.data)}}};")
        lines.append(f'_Static_assert(sizeof {t.symbol} == {t.size}u && _Alignof({t.ctype}) <= {t.align}u, "");')
    fields = [f"{m.ctype} {prefix}_{m.name}{f'[{m.count}]' if m.count else ''};" for m in op.state]
    lines.append(f"typedef struct {{\n{chr(10).join(fields)}\n}} state_{i};")
    for m in op.state:
        member = f"((state_{i} *)0)->{prefix}_{m.name}"
        lines.append(f'_Static_assert(sizeof({member}) == {m.size}u, "");')
        lines.append(f'#if defined(__arm__)\n_Static_assert(_Alignof({m.ctype}) == {m.align}u, "");\n#endif')
    y, ctype = np.asarray(op.eval(case.x)[0]), _CTYPES[case.x.dtype]
    out = _CTYPES[y.dtype]
    lines.append(text.definitions)
    lines.append(f"static void init_{i}(state_{i} *s)\n{{\n{text.init}\n}}")
    lines.append(f"static int push_{i}(state_{i} *s, const {ctype} *x, {out} *y)\n{{\n{text.call}\nreturn MCG_OK;\n}}")
    bits = np.ascontiguousarray(case.x).reshape(-1).view(f"<u{case.x.dtype.itemsize}")
    lines.append(f"static const uint{8 * bits.itemsize}_t bits_{i}[{bits.size}] = {{\n{array_rows(bits)}}};")
    t, c = case.x.shape
    lines.append(
        f"static void run_{i}(void)\n{{\nstatic state_{i} s; static {ctype} x[{t * c}]; {out} y[{y.shape[1]}];\n"
        f"memcpy(x, bits_{i}, sizeof x);\nmemset(&s, 0xA5, sizeof s);\n"
        f"for (int pass = 0; pass < 2; ++pass) {{\ninit_{i}(&s);\nfor (uint32_t t = 0; t < {t}u; ++t) {{\n"
        f"const uint8_t due = push_{i}(&s, x + t * {c}u, y) == MCG_OK;\n"
        "put(&due, 1);\nif (due) { put(y, sizeof y); }\n}\n}\n}"
    )
    return "\n".join(lines), f"run_{i}();"


def _program(cases: Sequence[Case], put: str) -> str:
    includes: set[str] = set()
    texts = [_case_text(i, c, includes) for i, c in enumerate(cases)]
    head = "\n".join(f'#include "{h}"' for h in sorted(includes))
    body = "\n".join(call for _, call in texts)
    return "\n".join([head, put, *(t for t, _ in texts), f"int main(void)\n{{\n{body}\nreturn 0;\n}}\n"])


def _expected(case: Case) -> list[bytes]:
    y = np.asarray(case.op.eval(case.x)[0])
    rows = iter(y)
    return [b"\1" + next(rows).tobytes() if due else b"\0" for due in case.op.due(len(case.x))]


def _compare(cases: Sequence[Case], output: bytes, build: str) -> None:
    at = 0
    for i, case in enumerate(cases):
        y = np.asarray(case.op.eval(case.x)[0])
        assert len(y) == case.op.due(len(case.x)).sum()
        for t, answer in enumerate(_expected(case) * 2):
            found = output[at : at + len(answer)]
            at += len(answer)
            same = found == answer
            if not same and found[:1] == b"\1" and len(found) == len(answer) and y.dtype.kind == "f":
                a, b = (np.frombuffer(v[1:], y.dtype) for v in (found, answer))
                same = bool(np.all((a.view("<u4") == b.view("<u4")) | (np.isnan(a) & np.isnan(b))))
            if not same:
                a, b = (np.frombuffer(v[1:], y.dtype) for v in (found, answer))
                raise AssertionError(f"{build}, case {i}, push {t}: {found[:1]!r} {a} instead of {b}\n{case.op}")
    assert at == len(output)


@cache
def _objects(build: str) -> tuple[str, ...]:
    """The kernels by one build, once a session."""
    compiler, *flags = BUILDS[build]
    return objects(SOURCES, compiler, flags)


def check_host(cases: Sequence[Case], folder: Path, builds: Sequence[str] = tuple(BUILDS)) -> None:
    """Every build of the emitted C gives the bits of ``eval``."""
    chosen = {b: BUILDS[b] for b in builds}
    for build, output in host_results(_program(cases, HOST_PUT), folder, _objects, chosen, b""):
        _compare(cases, output, build)


def run_text(text: str, data: bytes, folder: Path, build: str = "sanitized") -> bytes:
    """What a program of one's own writes, linked with the kernels."""
    source, program = folder / "own.c", folder / "own"
    source.write_text(text, encoding="utf-8")
    compiler, *flags = BUILDS[build]
    command = [compiler, *WARNINGS, *flags, f"-I{RUNTIME / 'include'}", str(source), *_objects(build)]
    subprocess.run([*command, "-o", str(program)], check=True)
    return subprocess.run([str(program)], input=data, capture_output=True, check=True).stdout


def check_board(cases: Sequence[Case], folder: Path, builds: Sequence[str] = tuple(BOARDS)) -> None:
    """The emitted C, with DSP instructions and without, gives the bits of ``eval`` on an emulated Cortex-M7."""
    for build in builds:
        output, _ = run_board(cases, folder, *BOARDS[build])
        _compare(cases, output, f"board {build}")


def run_board(cases: Sequence[Case], folder: Path, *flags: str, count: bool = False) -> tuple[bytes, dict[str, int]]:
    """What the emulated board writes, and (with ``count``) the instructions by function."""
    core = Core(linked(_program(cases, BOARD_PUT), SOURCES, folder, flags))
    seen: dict[int, int] = {}
    if count:
        unicorn = pytest.importorskip("unicorn")
        core.uc.hook_add(unicorn.UC_HOOK_CODE, lambda _u, a, _n, _d: seen.update({a: seen.get(a, 0) + 1}))
    output = results_of(core)
    functions = sorted((core.address[name], name) for name in core.size)
    starts = np.array([a for a, _ in functions])
    instructions: dict[str, int] = {}
    for a, times in seen.items():
        if a != core.STOP:
            name = functions[int(np.searchsorted(starts, a, side="right")) - 1][1]
            instructions[name] = instructions.get(name, 0) + times
    return output, instructions
