"""The generated C as a shared library on the host, and its functions as calls on arrays.

The library is loaded in cffi's ABI mode, so no Python headers are needed. Linux and macOS.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import cffi
import numpy as np

from mcugen.core.ports import (
    ArenaPorts,
    Ports,
    batch_slices,
    element_type,
    empty_rows,
    flat_rows,
    join_rows,
    row_layout,
    split_rows,
)
from mcugen.core.stream import OK, PENDING
from mcugen.core.types import Array, DType
from mcugen.emit.parts import place_functions
from mcugen.errors import DiffersError, InputError, InternalError
from mcugen.target.arena import ALIGN
from mcugen.verify.compiler import BASE_FLAGS, HostCompiler, compile_c, find_host_compiler

__all__ = ["HostCompiler", "HostModel", "build_shared", "find_host_compiler"]

#: What memory holds that nobody has written: a state before NAME_init, and y before NAME_push.
_STALE, _UNTOUCHED = b"\x5a", b"\xa5"
#: What an arena holds before a call, in turn.
_POISONS = (0x00, 0xA5, 0xFF, 0x7F)
#: Rows of the largest of the batches of different sizes: more than any block of the generated code.
_PIECE = 40

SHARED_FLAGS = (*BASE_FLAGS, "-O2", "-fPIC", "-shared")


@contextmanager
def build_shared(
    files: Mapping[str, str | bytes],
    sources: Sequence[str],
    compiler: HostCompiler,
    extra_flags: Sequence[str] = (),
) -> Iterator[Path]:
    """The path of a shared library of ``sources``, in a temporary folder that goes when the context ends.

    ``files``: relative POSIX path -> content, of sources and headers. InternalError with the compiler's first
    complaint if it refuses our code.
    """
    with _temporary_folder() as folder:
        yield compile_c(folder, files, sources, compiler, (*SHARED_FLAGS, *extra_flags), "model.so")


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    """A folder that goes when the context ends; InputError if this machine has no place for one."""
    try:
        folder = tempfile.TemporaryDirectory(prefix="mcugen-")
    except OSError as e:
        raise InputError("temporary folder", f"cannot be made: {e.strerror or e}", "set TMPDIR") from None
    with folder as name:
        yield Path(name)


class HostModel:
    """The functions of one model in a shared library. A context manager: the library is closed at its end.

    Rows of inputs and outputs are those of ``core.ports``. ``leaf_type`` and ``trees`` are needed for ``leaves`` only,
    of a library that was built with -DMCG_TRACE. ``state_bytes``: of a model with state, which has ``push`` instead of
    ``run``.
    """

    def __init__(
        self,
        library: Path,
        name: str,
        inputs: Ports,
        outputs: Ports,
        *,
        leaf_type: DType = DType.U16,
        trees: int = 0,
        state_bytes: int = 0,
    ) -> None:
        self.name = name
        self._in, self._out = inputs, outputs
        self._leaf, self._trees = leaf_type, trees
        self._state_bytes = state_bytes
        self._ffi = cffi.FFI()
        x = ", ".join(f"const {p.dtype.ctype} *{p.name}" for p in inputs)
        y = ", ".join(f"{p.dtype.ctype} *{p.name}" for p in outputs)
        self._places = place_functions(name, inputs, outputs)
        places = "".join(f"void *{f}(void);" for side in self._places for f in side)
        self._ffi.cdef(
            f"int32_t {name}_run({x}, {y});"
            f"int32_t {name}_run_batch({x}, {y}, uint32_t n);"
            f"int32_t {name}_leaves({x}, {leaf_type.ctype} *leaf);"
            f"int32_t {name}_run_with(void *arena, {x}, {y});"
            f"{places}"
            f"void {name}_init(void *s);"
            f"int32_t {name}_push(void *s, {x}, {y});"
            f"int32_t {name}_selftest(void);"
            "void mcg_sections_init(void);"
        )
        try:
            self._lib: Any = self._ffi.dlopen(str(library.resolve()))
        except OSError as e:
            raise InternalError(f"host library of {name}", str(e)) from None

    def __enter__(self) -> HostModel:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Unloads the library; no call is possible after it. Closing twice is harmless."""
        if self._lib is not None:
            self._ffi.dlclose(self._lib)
            self._lib = None

    def run(self, x: Array) -> Array:
        """Outputs of the rows ``x``: (n, output_count), or rows of several ports.

        Through NAME_run_batch where it exists, else NAME_run row by row. DiffersError if a call does not return MCG_OK.
        """
        rows = self._rows(x)
        batch = self._optional(f"{self.name}_run_batch")
        if batch is None or len(rows) == 0:
            return self.run_each(rows)
        ins = [np.require(a, requirements=["C", "A"]) for a in split_rows(self._in, rows)]
        outs = [np.zeros((len(rows), p.count), p.dtype.np) for p in self._out]
        pointers = [self._pointer(a, p.dtype) for a, p in zip((*ins, *outs), (*self._in, *self._out), strict=True)]
        self._check(f"{self.name}_run_batch", int(batch(*pointers, len(rows))), None)
        return flat_rows(self._out, join_rows(self._out, outs))

    def run_pieces(self, x: Array) -> Array:
        """As ``run``, in calls of 1, 2, 3... rows: what takes blocks of rows meets all their ends."""
        rows = self._rows(x)
        pieces = [self.run(rows[part]) for part in batch_slices(len(rows), _PIECE)]
        return np.concatenate(pieces) if pieces else self.run(rows)

    def run_each(self, x: Array) -> Array:
        """As ``run``, always through NAME_run: the function that users call most."""
        rows = self._rows(x)
        y = empty_rows(self._out, len(rows))
        for i in range(len(rows)):
            self._run_row(f"{self.name}_run", (), rows, y, i, ())
        return flat_rows(self._out, y)

    def run_placed(self, x: Array) -> Array:
        """As ``run``, with every input and output at its place in the model's own arena."""
        places = tuple([self._function(f)() for f in side] for side in self._places)
        rows, y = self._rows(x), empty_rows(self._out, len(x))
        for i in range(len(rows)):
            self._run_row(f"{self.name}_run", (), rows, y, i, places)
        return flat_rows(self._out, y)

    def run_with(self, x: Array, arena: ArenaPorts, *, placed: bool) -> Array:
        """As ``run`` through NAME_run_with, in an arena that held something else, at the start of a block of twice its
        size; with inputs and outputs at their places there, or elsewhere. DiffersError if it writes behind its end."""
        block = np.zeros(2 * (arena.size + ALIGN), np.uint8)
        start = -block.ctypes.data % ALIGN
        base = self._ffi.cast("char *", self._ffi.from_buffer(block)) + start
        sides = (arena.inputs, arena.outputs) if placed else ()
        places = tuple([self._ffi.cast("void *", base + at) for at in side] for side in sides)
        rows, y = self._rows(x), empty_rows(self._out, len(x))
        for i in range(len(rows)):
            block[:] = poison = _POISONS[i % len(_POISONS)]
            self._run_row(f"{self.name}_run_with", (self._ffi.cast("void *", base),), rows, y, i, places)
            if (block[:start] != poison).any() or (block[start + arena.size :] != poison).any():
                raise DiffersError(self.name, f"{self.name}_run_with writes outside of its arena for vector {i}")
        return flat_rows(self._out, y)

    def _run_row(
        self, call: str, before: tuple[Any, ...], x: Array, y: Array, i: int, places: tuple[list[Any], ...]
    ) -> None:
        """Row ``i`` of ``x`` to that of ``y`` by one call, whose first arguments are ``before``. Inputs and outputs are
        copied to and from ``places``, if any; otherwise the call reads a row that it must leave as it is."""
        own = x[i : i + 1].copy()
        sources, targets = self._pointers(self._in, own, 0), self._pointers(self._out, y, i)
        ins, outs = places or (sources, targets)
        for p, to, source in zip(self._in, ins, sources, strict=True):
            self._ffi.memmove(to, source, p.size if places else 0)
        self._check(call, int(self._function(call)(*before, *ins, *outs)), i)
        for p, to, source in zip(self._out, targets, outs, strict=True):
            self._ffi.memmove(to, source, p.size if places else 0)
        if own.tobytes() != x[i : i + 1].tobytes():
            raise DiffersError(self.name, f"{call} changes the input of vector {i}")

    def _pointers(self, ports: Ports, rows: Array, i: int) -> list[Any]:
        """Pointers to the ports of row ``i``; the caller keeps ``rows`` alive."""
        offsets, size = row_layout(ports)
        base = self._ffi.cast("char *", self._ffi.from_buffer(rows)) + i * size
        return [self._ffi.cast(f"{p.dtype.ctype} *", base + at) for p, at in zip(ports, offsets, strict=True)]

    def push(self, x: Array) -> tuple[Array, Array]:
        """One run from a fresh state: the result of each sample of ``x`` (n, ...), (n, output_count), and the statuses
        (n,) int32; zeros where nothing is due.

        DiffersError if NAME_push returns an error, or touches y without a result.
        """
        return self.push_all([x])[0]

    def push_all(self, runs: Sequence[Array]) -> list[tuple[Array, Array]]:
        """As ``push`` for several streams at once, each with a state of its own: one sample of each in turn."""
        rows = [self._rows(x) for x in runs]
        states = [self._fresh_state() for _ in rows]
        found = [(empty_rows(self._out, len(r)), np.zeros(len(r), np.int32)) for r in rows]
        for i in range(max(map(len, rows), default=0)):
            for r, state, (y, status) in zip(rows, states, found, strict=True):
                if i < len(r):
                    status[i] = self._push_one(state, r, y, i)
        return [(flat_rows(self._out, y), status) for y, status in found]

    def _fresh_state(self) -> Any:
        """A state after NAME_init, in memory that held something else. Twice the size: pointers may be wider here."""
        if self._state_bytes == 0:
            raise InternalError(self.name, "push() needs the size of the state")
        words = self._state_bytes // 4 + 1
        state = self._ffi.new("uint64_t[]", words)
        self._ffi.buffer(state)[:] = _STALE * (8 * words)
        self._function(f"{self.name}_init")(state)
        return state

    def _push_one(self, state: Any, x: Array, y: Array, i: int) -> int:
        """Pushes row ``i``; that of ``y`` stays as it is where no result is due."""
        out = np.full(y[:1].nbytes, _UNTOUCHED[0], np.uint8).view(y.dtype)
        push = self._function(f"{self.name}_push")
        status = int(push(state, *self._pointers(self._in, x, i), *self._pointers(self._out, out, 0)))
        if status == PENDING and out.tobytes() != _UNTOUCHED * out.nbytes:
            raise DiffersError(self.name, f"{self.name}_push writes y for sample {i}, though no result is due")
        if status == OK:
            y[i] = out.reshape(y.shape[1:]) if y.ndim > 1 else out[0]
        elif status != PENDING:
            self._check(f"{self.name}_push", status, i)
        return status

    def leaves(self, x: Array) -> Array:
        """The leaf of each tree, (n, trees) of the leaf type, for samples ``x`` (n, ...)."""
        rows = self._rows(x)
        leaf = np.zeros((len(rows), self._trees), dtype=self._leaf.np)
        trace = self._function(f"{self.name}_leaves")
        if self._trees == 0:
            raise InternalError(self.name, "leaves() needs the count of trees")
        for i in range(len(rows)):
            at = self._pointer(leaf, self._leaf) + i * self._trees
            self._check(f"{self.name}_leaves", int(trace(*self._pointers(self._in, rows, i), at)), i)
        return leaf

    def selftest(self) -> int:
        """What NAME_selftest returns: 0, or 1 + the first vector that fails."""
        return int(self._function(f"{self.name}_selftest")())

    def init_sections(self) -> None:
        """Calls mcg_sections_init, after which tables are read from their copies."""
        self._function("mcg_sections_init")()

    def _rows(self, x: Array) -> Array:
        fits = x.dtype == element_type(self._in) and x.ndim >= 1
        if not fits or len(x) >= 2**32 or x.nbytes != len(x) * row_layout(self._in)[1]:
            want = ", ".join(f"{p.count} {p.dtype.label}" for p in self._in)
            raise InternalError(self.name, f"input {x.dtype} {x.shape} for a model of {want} a sample")
        return np.require(x, requirements=["C", "A"])

    def _pointer(self, data: Array, dtype: DType) -> Any:
        """A pointer to the first element; the caller keeps ``data`` alive."""
        return self._ffi.cast(f"{dtype.ctype} *", self._ffi.from_buffer(data))

    def _optional(self, symbol: str) -> Any:
        if self._lib is None:
            raise InternalError(self.name, "the library is closed")
        return getattr(self._lib, symbol, None)

    def _function(self, symbol: str) -> Any:
        function = self._optional(symbol)
        if function is None:
            raise InternalError(self.name, f"the library has no {symbol}")
        return function

    def _check(self, call: str, status: int, vector: int | None) -> None:
        if status != 0:
            place = "" if vector is None else f" for vector {vector}"
            raise DiffersError(self.name, f"{call} returned {status}{place}, expected 0")
