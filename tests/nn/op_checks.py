"""What the tests of the three multiplying ops share: types of operands, a slow second reference, emitted C."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
from bare_core import RUNTIME, WARNINGS
from kernel_rigs import HostOp, in_shape, out_shape

from mcugen.core.op import Names
from mcugen.core.types import DType, QParams, TensorType
from mcugen.ctext.arrays import array_rows


def types_of(op: HostOp) -> dict[str, TensorType]:
    return {
        "x": TensorType(in_shape(op), DType.I8, QParams(0.1, op.in_zp)),
        "y": TensorType(out_shape(op), DType.I8, QParams(0.1, op.requant.zero_point)),
    }


def scaled(acc: int, op: HostOp, channel: int) -> int:
    """Requantization on Python's integers."""
    m, s = (int(a[channel if a.size > 1 else 0]) for a in (op.requant.multiplier, op.requant.shift))
    y = ((acc * m + (1 << (s - 1))) >> s) + op.requant.zero_point
    return min(max(y, op.requant.low), op.requant.high)


def run_emitted(op: HostOp, x: np.ndarray, folder: Path) -> np.ndarray:
    """Compiles what ``items`` and ``emit`` give, as a model file would hold it, and runs it."""
    prefix = "net_3"
    items = op.items(prefix)
    assert all(i.symbol.startswith(prefix + "_") for i in items)
    names = Names({i.symbol: i.symbol for i in items}, {}, "scratch")
    text = op.emit(prefix, ("x", "y")[:1], ("y",), names)
    n = int(np.prod(out_shape(op)))
    lines = ["#include <stdio.h>", *(f'#include "{i.removeprefix("mcugen/")}"' for i in text.includes)]
    lines += [f"static const {i.ctype} {i.symbol}[{i.count}] = {{\n{array_rows(i.data)}}};" for i in items]
    lines += [text.definitions, f"static const int8_t x[{x.size}] = {{\n{array_rows(x.reshape(-1))}}};"]
    lines += [f"static int8_t y[{n}];", f"static _Alignas(8) uint8_t scratch[{op.scratch_bytes}];"]
    lines += [f"int main(void) {{ {text.call} return fwrite(y, 1, {n}, stdout) != {n}; }}"]
    source, program = folder / "net.c", folder / "net"
    source.write_text("\n".join(lines), encoding="utf-8")
    kernel = RUNTIME / op.kernel[1]
    assert op.kernel[0] in kernel.read_text(encoding="utf-8")
    include = f"-I{RUNTIME / 'include'}"
    clamp = RUNTIME / "src" / "mcg_nn_elementwise.c"
    command = ["cc", "-O0", *WARNINGS, include, str(source), str(kernel), str(clamp)]
    subprocess.run([*command, "-o", str(program)], check=True)
    done = subprocess.run([str(program)], check=True, capture_output=True)
    return np.frombuffer(done.stdout, np.int8).reshape(out_shape(op))
