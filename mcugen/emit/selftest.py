"""NAME_selftest.c: a few golden vectors as bit patterns, and the function that compares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcugen.core.ports import split_rows
from mcugen.core.stream import OK, state_layout
from mcugen.core.types import Array, Model
from mcugen.ctext.arrays import array_rows
from mcugen.emit import contract
from mcugen.emit.parts import PortText, machine_ops, place_functions, port_texts, ports_of
from mcugen.emit.render import render

_BYTES = 4096
_VECTORS = 16
#: A run of pushes is as long as this if it takes that to see two results.
_MOST_STREAM_BYTES = 32 * 1024
_MOST_PUSHES = 60_000
_MOST_ON_STACK = 2048
#: A result that is due, but has no single bit pattern (NaN).
_FREE = 0xFFFF


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """Golden vectors: inputs (N, F) and the outputs of the integer reference (N, K).

    ``status``: (N,) int32 for a model with state, whose vectors are the pushes of one run from a fresh state; outputs
    of pushes without a result are zeros.
    """

    x: Array
    y: Array
    status: Array | None = None


def selftest_text(model: Model, golden: Vectors, placed: bool = False) -> tuple[str, int]:
    """The file, and how many vectors it holds. ``placed``: inputs and outputs go to their places in the model's arena,
    so that the test needs no buffers."""
    return _calls(model, golden, placed) if golden.status is None else _stream(model, golden, golden.status)


def _calls(model: Model, golden: Vectors, placed: bool) -> tuple[str, int]:
    few = _few(model, golden)
    ins, outs = ports_of(model)
    texts = port_texts(model)
    size = sum(p.size for p in (*ins, *outs))
    names = place_functions(model.name, ins, outs) if placed else (("",) * len(ins), ("",) * len(outs))
    rows = (*split_rows(ins, few.x), *split_rows(outs, few.y))
    tables = [_Table(t, a, place) for t, a, place in zip(texts, rows, (*names[0], *names[1]), strict=True)]
    text = render(
        "selftest.c.j2",
        name=model.name,
        count=len(few.x),
        placed=placed,
        keep="static " if size > _MOST_ON_STACK else "",  # large tensors would not fit a firmware's stack
        inputs=[t for t in tables if t.text.is_input],
        outputs=[t for t in tables if not t.text.is_input],
        arguments=", ".join(p.name for p in (*ins, *outs)),
    )
    return text, len(few.x)


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """Golden values of a port: ``values`` (N, ...), in C as numbers or, for floats and results, as bit patterns.

    ``place``: the function that tells where the port lies in the model's arena; empty: it gets an array.
    """

    text: PortText
    values: Array
    place: str

    @property
    def copies(self) -> bool:
        """Whether an input is copied from its bits."""
        return self.text.port.dtype.is_float

    @property
    def ctype(self) -> str:
        """The element type of the table."""
        dtype = self.text.port.dtype
        return dtype.ctype if self.text.is_input and not self.copies else contract.bits_ctype(dtype)

    @property
    def symbol(self) -> str:
        """The name of the table."""
        kind = "inputs" if self.text.is_input else "expected"
        return kind if self.text.only else f"{kind}_{self.text.port.name}"

    @property
    def rows(self) -> str:
        """The table's values in C."""
        if self.text.is_input and not self.copies:
            return array_rows(self.values.reshape(-1))
        return array_rows(_bits(self.values), hexadecimal=True)


def _few(model: Model, golden: Vectors) -> Vectors:
    """Few vectors, spread over the golden ones; NaN outputs have no single bit pattern and stay out."""
    row = golden.x[:1].nbytes + golden.y[:1].nbytes
    count = max(1, min(_VECTORS, _BYTES // max(row, 1)))
    nan = np.zeros(len(golden.y), np.bool_)
    for y in split_rows(ports_of(model)[1], golden.y):
        nan |= _has_nan(y)
    usable = np.flatnonzero(~nan)
    pick = usable[np.unique(np.linspace(0, len(usable) - 1, count).astype(int))] if len(usable) else usable
    return Vectors(golden.x[pick], golden.y[pick])


def _stream(model: Model, golden: Vectors, status: Array) -> tuple[str, int]:
    """The first pushes of the golden run: as many as are small, or as it takes to see two results."""
    due = np.flatnonzero(status == OK)
    step = max(golden.x[:1].nbytes, 1)
    wanted = max(_BYTES // step, int(due[:2][-1]) + 1 if len(due) else 0)
    count = min(wanted, max(_MOST_STREAM_BYTES // step, 1), len(golden.x), _MOST_PUSHES)
    shown = due[due < count][: max(_BYTES // max(golden.y[:1].nbytes, 1), 2)]
    count = int(shown[-1]) + 1 if len(shown) else count
    rows = np.zeros(count, np.uint16)
    rows[shown] = np.where(_has_nan(golden.y[shown]), _FREE, 1 + np.arange(len(shown)))
    kept = golden.y[shown] if len(shown) else golden.y[:1]
    layout = state_layout(machine_ops(model))
    text = render(
        "selftest_stream.c.j2",
        **_common(model, 0 if layout is None else layout.size),
        count=count,
        due=len(kept),
        free=_FREE,
        rows=array_rows(rows),
        inputs=_inputs(model, golden.x[:count]),
        outputs=array_rows(_bits(kept), hexadecimal=True),
    )
    return text, count


def _common(model: Model, state_bytes: int) -> dict[str, object]:
    x, y = model.types[model.inputs[0]], model.types[model.outputs[0]]
    size = x.count * x.dtype.size + y.count * y.dtype.size + state_bytes
    return {
        "name": model.name,
        "upper": model.name.upper(),
        "in_table": contract.bits_ctype(x.dtype) if x.dtype.is_float else x.dtype.ctype,
        "copies": x.dtype.is_float,
        # Large tensors would not fit a firmware's stack.
        "keep": "static " if size > _MOST_ON_STACK else "",
        "out_bits": contract.bits_ctype(y.dtype),
        "in_type": x.dtype.ctype,
        "out_type": y.dtype.ctype,
    }


def _inputs(model: Model, x: Array) -> str:
    is_float = model.types[model.inputs[0]].dtype.is_float
    return array_rows(_bits(x), hexadecimal=True) if is_float else array_rows(x.reshape(-1))


def _has_nan(y: Array) -> Array:
    """Which rows of (N, ...) hold a NaN."""
    return np.asarray(np.isnan(y).any(axis=tuple(range(1, y.ndim))))


def _bits(values: Array) -> Array:
    flat = np.ascontiguousarray(values).reshape(-1)
    return flat.view(f"<u{flat.dtype.itemsize}")
