"""Runs machine ops on the host as emitted: many cases in one program, built with several compilers and flags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from bare_core import BOARD_PUT, HOST_PUT, RUNTIME, SANITIZE, Core, host_results, linked, objects, results_of

from mcugen.core.op import MachineOp, Names
from mcugen.core.types import DType, Loc, QParams, TensorType
from mcugen.ctext.arrays import array_rows

BUILDS = {
    "sanitized": ("gcc", *SANITIZE),
    "clang": ("clang", "-O2"),
    "plain": ("gcc", "-O2", "-std=gnu11", "-DMCG_PLAIN"),
}
LOC = Loc("net.onnx", "node")
_DTYPES = {t.np: t for t in DType}


@dataclass(frozen=True)
class Case:
    """One op and one input for each of its operands (without batch axis)."""

    op: MachineOp
    inputs: tuple[np.ndarray, ...]

    def expected(self) -> list[np.ndarray]:
        return [np.asarray(y[0]) for y in self.op.eval(*(x[None] for x in self.inputs))]


#: What the kernels of nets call besides.
OTHERS = ("mcg_scores.c", "mcg_features.c", "mcg_features_float.c")


@cache
def _objects(build: str) -> tuple[str, ...]:
    compiler, *flags = BUILDS[build]
    return objects(_sources(), compiler, flags)


def _sources() -> list[Path]:
    return [*sorted((RUNTIME / "src").glob("mcg_nn_*.c")), *(RUNTIME / "src" / f for f in OTHERS)]


def _literals(x: np.ndarray) -> str:
    flat = np.ascontiguousarray(x).reshape(-1)
    return array_rows(flat.view(f"<u{flat.itemsize}"), hexadecimal=True)


def _case_text(i: int, case: Case, includes: set[str], definitions: list[str], body: list[str]) -> None:
    prefix, op = f"net_{i}", case.op
    names = Names({t.symbol: t.symbol for t in op.items(prefix)}, {}, f"scratch_{i}")
    for t in op.items(prefix):
        assert t.symbol.startswith(prefix + "_")
        assert t.data is not None
        definitions.append(f"static const {t.ctype} {t.symbol}[{t.count}] = {{\n{array_rows(t.data)}}};")
    args, results, expected = [], [], case.expected()
    for k, x in enumerate(case.inputs):
        ctype = _DTYPES[x.dtype].ctype
        bits = f"uint{8 * x.dtype.itemsize}_t"
        definitions.append(f"static const {bits} bits_{i}_{k}[{x.size}] = {{\n{_literals(x)}}};")
        definitions.append(f"static {ctype} x_{i}_{k}[{x.size}];")
        body.append(f"memcpy(x_{i}_{k}, bits_{i}_{k}, sizeof x_{i}_{k});")
        args.append(f"x_{i}_{k}")
    for k, y in enumerate(expected):
        definitions.append(f"static {_DTYPES[y.dtype].ctype} y_{i}_{k}[{y.size}];")
        results.append(f"y_{i}_{k}")
    if op.scratch_bytes:
        definitions.append(f"static _Alignas(8) uint8_t scratch_{i}[{op.scratch_bytes}];")
    text = op.emit(prefix, tuple(args), tuple(results), names)
    includes.update(text.includes)
    definitions.append(text.definitions)
    writes = [f"put({r}, sizeof {r});" for r in results]
    body += [text.call, *writes]
    for k in op.in_place:
        shared = (*args[:k], results[0], *args[k + 1 :])
        call = op.emit(prefix, shared, tuple(results), names).call
        body += [f"memcpy({results[0]}, {args[k]}, sizeof {args[k]});", call, writes[0]]


def _program(cases: Sequence[Case], put: str) -> str:
    includes: set[str] = set()
    definitions: list[str] = []
    body: list[str] = []
    for i, case in enumerate(cases):
        _case_text(i, case, includes, definitions, body)
    head = [*(f'#include "{h}"' for h in sorted(includes)), put]
    return "\n".join([*head, *definitions, "int main(void)\n{", *body, "return 0;\n}\n"])


def check_c(cases: Sequence[Case], folder: Path, builds: Sequence[str] = tuple(BUILDS)) -> None:
    """Every build of the emitted C gives the bits of ``eval``, in place too where the op allows it."""
    chosen = {b: BUILDS[b] for b in builds}
    for build, output in host_results(_program(cases, HOST_PUT), folder, _objects, chosen, b""):
        _compare(cases, output, build)


def _compare(cases: Sequence[Case], output: bytes, build: str) -> None:
    at = 0
    for i, case in enumerate(cases):
        expected = case.expected()
        for y in (*expected, *(expected[0] for _ in case.op.in_place)):
            found = output[at : at + y.nbytes]
            at += y.nbytes
            _same_bits(found, y, f"{build}, case {i}: {type(case.op).__name__}")
    assert at == len(output)


def check_board(cases: Sequence[Case], folder: Path) -> None:
    """The emitted C, cross-compiled with the DSP instructions, on an emulated Cortex-M7 gives the bits of ``eval``."""
    elf = linked(_program(cases, BOARD_PUT), _sources(), folder, ("-O2",))
    _compare(cases, results_of(Core(elf)), "board")


def _same_bits(found: bytes, y: np.ndarray, where: str) -> None:
    flat = np.ascontiguousarray(y).reshape(-1)
    bits = np.frombuffer(found, f"<u{flat.itemsize}")
    got = np.frombuffer(found, flat.dtype)
    differs = bits != flat.view(bits.dtype)
    if flat.dtype.kind == "f":  # which NaN an operation makes is the machine's affair
        differs &= ~(np.isnan(got) & np.isnan(flat))
    wrong = np.flatnonzero(differs)
    assert wrong.size == 0, (
        f"{where}: {wrong.size} of {flat.size} differ, first {wrong[:3]}: {got[wrong[:3]]} {flat[wrong[:3]]}"
    )


def i8(shape: tuple[int, ...] | int, q: QParams | None = None) -> TensorType:
    """The type of an int8 tensor."""
    return TensorType(shape if isinstance(shape, tuple) else (shape,), DType.I8, q)


def every_pair() -> tuple[np.ndarray, np.ndarray]:
    """(65536,) each: all pairs of int8."""
    a, b = np.meshgrid(np.arange(-128, 128), np.arange(-128, 128))
    return a.reshape(-1).astype(np.int8), b.reshape(-1).astype(np.int8)


def ints(seed: int, count: int, low: int = -128, high: int = 127, dtype: type = np.int8) -> np.ndarray:
    """Random integers with the ends of the range among them."""
    rng = np.random.default_rng(seed)
    x = rng.integers(low, high + 1, count)
    ends = rng.random(count)
    x = np.where(ends < 0.1, low, np.where(ends > 0.9, high, x))
    return x.astype(dtype)
