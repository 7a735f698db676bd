"""What ops share that walk the trees: the tables that say which leaf is reached, and how leaves are called."""

from __future__ import annotations

from dataclasses import dataclass

from mcugen.core.types import Array
from mcugen.trees.support import TreeOp
from mcugen.trees.tables import TreeTables


@dataclass(frozen=True, slots=True, eq=False)
class Summing(TreeOp):
    """rank (columns,) -> score (K,). ``tables``: the trees, whatever form the C gives them."""

    tables: TreeTables

    @property
    def bound_error(self) -> float:
        """The proven limit of ``|score - library score|``, in the unit of the library's sum."""
        return 0.0

    @property
    def unit(self) -> float:
        """What one unit of the score is worth."""
        return 1.0

    def walk(self, rank: Array) -> Array:
        """(N, columns) ranks -> (N, T) leaves, counted over all trees: what the C walks."""
        return self.tables.walk(rank)

    def leaf_names(self, rank: Array) -> Array:
        """(N, columns) ranks -> (N, T): the leaf of each tree, as the model names it."""
        return self.tables.leaf_names[self.walk(rank)]
