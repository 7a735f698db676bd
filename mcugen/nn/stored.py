"""NAME.reference.bin of a net: the float net and the integer reference, to verify an export on new data."""

from __future__ import annotations

from dataclasses import dataclass

from mcugen.core import types as core_types
from mcugen.core.store import pack
from mcugen.core.types import Model
from mcugen.nn.ops import MACHINE_OPS
from mcugen.nn.ops.recurrent_math import Gates
from mcugen.nn.ops.strip_layers import Image
from mcugen.nn.requant import Requant
from mcugen.nn.source import SOURCE_OPS

_CORE = ("Bound", "Const", "DType", "Feature", "Loc", "Model", "QParams", "Source", "State", "TensorType")


@dataclass(frozen=True, slots=True, eq=False)
class NetReferences:
    """``source``: the float net; ``machine``: the integer reference."""

    source: Model
    machine: Model


#: Every class that such a file may hold, by name.
REGISTRY: dict[str, type] = {name: getattr(core_types, name) for name in _CORE}
REGISTRY |= {c.__name__: c for c in (*MACHINE_OPS, *SOURCE_OPS, Gates, Image, Requant, NetReferences)}


def net_reference_bytes(source: Model, machine: Model) -> bytes:
    """The file. The same models give the same bytes."""
    return pack(NetReferences(source, machine))
