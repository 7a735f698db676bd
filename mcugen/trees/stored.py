"""NAME.reference.bin: the float model and the integer reference of an export, to verify it on new data."""

from __future__ import annotations

from dataclasses import dataclass

from mcugen.core import types as core_types
from mcugen.core.store import pack
from mcugen.core.types import Model
from mcugen.trees import coarse, columns, forest, leaves, lookup, packed, signals, source, tables
from mcugen.trees.ops import MACHINE_OPS
from mcugen.trees.signals import InputSpec

_CORE = ("Bound", "Const", "DType", "Feature", "Loc", "Model", "QParams", "Source", "State", "TensorType")
_SOURCE_OPS = (source.TreeEnsemble, source.Average, source.Link, source.Decide)
_VALUES = (
    coarse.Coarse,
    columns.Columns,
    forest.Forest,
    forest.LinearLeaves,
    leaves.PackedLeaves,
    lookup.Lookup,
    packed.WordBits,
    packed.Words,
    signals.InputSpec,
    signals.Signal,
    tables.TreeTables,
)


@dataclass(frozen=True, slots=True, eq=False)
class References:
    """``source``: the float model; ``machine``: the integer reference; ``spec``: what inputs mean."""

    source: Model
    machine: Model
    spec: InputSpec


#: Every class that a file may hold, by name: nothing else is ever made from one.
REGISTRY: dict[str, type] = {name: getattr(core_types, name) for name in _CORE}
REGISTRY |= {c.__name__: c for c in (*MACHINE_OPS, *_SOURCE_OPS, *_VALUES, References)}


def reference_bytes(source_model: Model, machine: Model, spec: InputSpec) -> bytes:
    """The file. The same models give the same bytes."""
    return pack(References(source_model, machine, spec))
