"""What is known of the trees of a model before it is decided how they are ranked, walked and summed."""

from __future__ import annotations

from dataclasses import dataclass

from mcugen.core.types import Array, DType
from mcugen.trees.columns import Columns
from mcugen.trees.leaves import LeafSource
from mcugen.trees.signals import InputSpec
from mcugen.trees.tables import TreeTables


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """``count`` (L,): training rows of each leaf; ``leaf``: the type that the user wants leaves to have.

    ``mean``: how many trees the score is the mean of, 1 where it is their sum.
    """

    columns: Columns
    tables: TreeTables
    source: LeafSource
    count: Array
    spec: InputSpec
    leaf: DType
    where: str
    mean: int = 1

    def limit_of_sum(self, limit: float | None) -> float | None:
        """A bound of the score as a bound of the sum; never more than the division then gives back."""
        return limit if limit is None or self.mean == 1 else limit * self.mean * (1 - 2.0**-50)
