"""Samples of nets, one array for each input: from a file, in the C type, and as vectors for the proof."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mcugen.core.ports import Ports
from mcugen.core.types import Array, Model
from mcugen.emit.parts import ports_of
from mcugen.errors import InputError
from mcugen.frontends.tensors import as_net_input, load_samples, load_samples_of
from mcugen.nn.vectors import net_vectors

#: One array (N, *shape) for each input.
Samples = tuple[Array, ...]


def load_net_samples(path: Path, model: Model) -> Samples:
    """What the file holds for the inputs of ``model``, of either level, in the file's own types.

    A net with several inputs takes an npz with a key for each: its name in the model file, or in C.
    """
    shapes = [model.types[v].shape for v in model.inputs]
    if len(shapes) == 1:
        return (load_samples(path, shapes[0]),)
    keys = [(v, p.name) for v, p in zip(model.inputs, inputs_of(model), strict=True)]
    return load_samples_of(path, keys, shapes)


def inputs_of(model: Model) -> Ports:
    """The ports of the inputs."""
    return ports_of(model)[0]


def as_net_inputs(samples: Samples, machine: Model, where: str) -> Samples:
    """Samples in the C types of the machine model."""
    kinds = [machine.types[v] for v in machine.inputs]
    return tuple(as_net_input(x, kind, where) for x, kind in zip(samples, kinds, strict=True))


def vectors_of(machine: Model, own: Samples | None) -> Samples:
    """Inputs on which the C must repeat its reference: the user's first; the rest apart for each input."""
    parts = []
    for i, value in enumerate(machine.inputs):
        parts.append(net_vectors(machine.types[value], None if own is None else own[i], seed=i))
    count = max(map(len, parts))
    return tuple(np.resize(x, (count, *x.shape[1:])) if len(x) < count else x for x in parts)


def real_samples(samples: Sequence[Array] | None) -> Samples | None:
    """The samples as float32, if they are real numbers."""
    if samples is None or any(x.dtype.kind != "f" for x in samples):
        return None
    return tuple(x.astype(np.float32) for x in samples)


def require_real(samples: Samples, where: str) -> None:
    """InputError unless all are real numbers."""
    for x in samples:
        if x.dtype.kind != "f":
            hint = "calibrate with the real values that the net was trained on"
            raise InputError(where, f"holds {x.dtype}", hint)
