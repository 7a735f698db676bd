"""Which ops rank the inputs and walk the trees: one explicit step between the passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mcugen.core.types import Array, DType
from mcugen.trees.columns import Columns
from mcugen.trees.leaves import LeafSource, PackedLeaves, pack_leaves
from mcugen.trees.signals import InputSpec
from mcugen.trees.tables import TreeTables


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """What is known of the trees of a model before an op is chosen. ``count`` (L,): training rows of each leaf."""

    columns: Columns
    tables: TreeTables
    source: LeafSource
    count: Array
    spec: InputSpec
    leaf: DType
    where: str


@dataclass(frozen=True, slots=True, eq=False)
class Choices:
    """``ranking``: search or coarse. ``summing``: tables or branches. ``leaves``: as they are stored."""

    ranking: str
    summing: str
    leaves: PackedLeaves


Chooser = Callable[[Parts], Choices]


def plain_choice(parts: Parts) -> Choices:
    """The tables that any model can have."""
    return Choices("search", "tables", pack_leaves(parts.source, parts.leaf, parts.where))
