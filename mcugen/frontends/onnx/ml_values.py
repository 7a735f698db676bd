"""What a name of the file stands for in a graph with a tree ensemble."""

from __future__ import annotations

from dataclasses import dataclass

from mcugen.frontends.onnx.ml_columns import Column
from mcugen.frontends.onnx.ml_ensembles import Parts
from mcugen.frontends.onnx.values import Constant, Unknown

ML = "ai.onnx.ml"


@dataclass(frozen=True, slots=True)
class Table:
    """A value (N, columns) in front of the ensemble."""

    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """What the ensemble gives, transforms done."""

    parts: Parts


@dataclass(frozen=True, slots=True)
class Label:
    """The class that the ensemble chose."""


Value = Table | Scores | Label | Constant | Unknown
