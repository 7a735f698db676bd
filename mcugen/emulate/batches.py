"""NAME_run_batch on the emulated board: many rows in one call, from an image that has room for them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mcugen.core.ports import batch_slices, element_type, flat_rows, row_layout, rows_from
from mcugen.core.stream import OK
from mcugen.core.types import Array
from mcugen.emulate.image import BoardModel, Image
from mcugen.emulate.machine import POISON, EmulatedBoard
from mcugen.emulate.recorder import Execution, Recorder
from mcugen.errors import DiffersError, InternalError
from mcugen.target.board import Board

#: Rows that a batch for proofs has at most: more than any block of the generated code. Their bytes bound them, too.
_ROWS, _BYTES = 40, 16384


def proof_rows(model: BoardModel) -> int:
    """Rows that the image of a model with batches has room for; 1 for other models."""
    if not model.batches:
        return 1
    size = row_layout(model.inputs)[1] + row_layout(model.outputs)[1]
    return max(1, min(_ROWS, _BYTES // max(size, 1)))


class BatchBoard(EmulatedBoard):
    """A board with the program of an image that has NAME_run_batch. Errors as for ``EmulatedBoard``."""

    def __init__(self, image: Image, board: Board) -> None:
        if image.batch is None:
            raise InternalError(board.name, "an image without NAME_run_batch")
        super().__init__(replace(image, elf=image.batch), board)

    def batch(self, model: BoardModel, x: Array) -> Array:
        """Outputs of the rows ``x`` (N, inputs), N at most ``image.rows``, by one call."""
        return flat_rows(model.outputs, rows_from(model.outputs, self._call(model, x)))

    def batches(self, model: BoardModel, x: Array) -> Array:
        """Outputs of the rows ``x``, by calls of 1, 2, 3... rows, as many as there is room for."""
        found = [self.batch(model, x[part]) for part in batch_slices(len(x), self.image.rows)]
        return np.concatenate(found) if found else self.batch(model, x)

    def record_batch(self, model: BoardModel, x: Array) -> Execution | None:
        """What ``batch`` executes and accesses; None if the recording itself disturbs it."""
        blocks: list[tuple[int, int]] = []
        hook = self._hook(blocks)
        plain = self._call(model, x)
        self._unhook(hook)
        recorder = Recorder(self.engine)
        y = self._call(model, x)
        execution = recorder.take()
        recorder.close()
        return execution if (y, execution.blocks) == (plain, tuple(blocks)) else None

    def _call(self, model: BoardModel, x: Array) -> bytes:
        elf, size = self.image.elf, len(x) * row_layout(model.outputs)[1]
        if len(x) > self.image.rows:
            raise InternalError(self._where, f"{len(x)} rows in an image with room for {self.image.rows}")
        at, to = elf.address("mcg_image_x"), elf.address("mcg_image_y")
        self.engine.mem_write(at, np.ascontiguousarray(x, element_type(model.inputs)).tobytes())
        self.engine.mem_write(to, bytes([POISON]) * (self.image.rows * row_layout(model.outputs)[1]))
        status = self.call(elf.address(f"{model.name}_run_batch"), at, to, len(x))
        if status != OK:
            raise DiffersError(self._where, f"{model.name}_run_batch returns {status} for {len(x)} rows")
        behind = bytes(self.engine.mem_read(to + size, (self.image.rows - len(x)) * row_layout(model.outputs)[1]))
        if behind.strip(bytes([POISON])):
            raise DiffersError(self._where, f"{model.name}_run_batch writes behind the last of {len(x)} rows")
        return bytes(self.engine.mem_read(to, size))
