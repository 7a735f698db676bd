"""A tree model in words and as JSON values, for people who ask what a file contains."""

from __future__ import annotations

from typing import Any

import numpy as np

from mcugen.core.types import Model
from mcugen.trees.forest import Missing
from mcugen.trees.lower import ensemble_of
from mcugen.trees.source import Link


def describe(source: Model) -> str:
    """One line on a source model."""
    forest = ensemble_of(source).forest
    kinds = [("categorical splits", bool(forest.categorical.any())), ("linear leaves", forest.linear is not None)]
    extra = "".join(f", {kind}" for kind, there in kinds if there)
    classes = f", {len(source.labels)} classes" if source.labels else ""
    return (
        f"{source.source.name}: {forest.n_trees:,} trees, {forest.n_nodes + forest.n_trees:,} leaves, "
        f"{forest.n_features:,} features{classes}{extra}"
    )


def facts(source: Model) -> dict[str, Any]:
    """Facts on a source model."""
    forest = ensemble_of(source).forest
    link = next((op for op in source.ops if isinstance(op, Link)), None)
    return {
        "source": source.source.name,
        "format": source.source.format,
        "sha256": source.source.sha256,
        "trees": forest.n_trees,
        "nodes": forest.n_nodes,
        "leaves": forest.n_nodes + forest.n_trees,
        "outputs": forest.outputs,
        "prediction": link.kind if link is not None else "identity",
        "classes": list(source.labels),
        "missing values": sorted({Missing(int(m)).name.lower() for m in np.unique(forest.missing)}),
        "categorical": bool(forest.categorical.any()),
        "linear leaves": forest.linear is not None,
        "features": [f.name for f in source.features],
    }
