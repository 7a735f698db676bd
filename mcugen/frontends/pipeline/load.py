"""A signal chain from its TOML, with the model that its features are for; names are checked against the model."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcugen.core.types import Model
from mcugen.errors import InputError
from mcugen.frontends.names import nearest
from mcugen.frontends.pipeline.chain import Chain, chain_of
from mcugen.frontends.pipeline.read import checked_tables, read_tables
from mcugen.frontends.pipeline.schema import PipelineTables

#: What LightGBM calls features that were trained without names.
_UNNAMED = re.compile(r"Column_\d+")


@dataclass(frozen=True, slots=True, eq=False)
class Pipeline:
    """Samples to results: a chain in float64, and a source model that reads its features, or None."""

    name: str
    chain: Chain
    model: Model | None


def load_pipeline(data: bytes, path: Path, name: str, load_model: Callable[[Path, str], Model]) -> Pipeline:
    """The pipeline of a TOML file; ``load_model`` reads the file that [model] names, relative to the TOML's folder."""
    return _pipeline(read_tables(data, path.name), path, name, hashlib.sha256(data).hexdigest(), load_model)


def pipeline_of(tables: Mapping[str, Any], name: str, load_model: Callable[[Path, str], Model]) -> Pipeline:
    """The pipeline of tables as a TOML would hold them: ``{"signal": {"rate": 100.0}, "channel": [...], ...}``."""
    checked = checked_tables(tables, "pipeline")
    digest = hashlib.sha256(checked.model_dump_json().encode()).hexdigest()
    return _pipeline(checked, Path("pipeline"), name, digest, load_model)


def _pipeline(
    tables: PipelineTables, path: Path, name: str, digest: str, load_model: Callable[[Path, str], Model]
) -> Pipeline:
    file = path.name
    chain = chain_of(tables, file, name, digest)
    if tables.model is None:
        return Pipeline(name, chain, None)
    if not tables.feature:
        raise InputError(f"{file}: [model]", "a model needs features to read", "write [window] and [[feature]]")
    model = load_model(path.parent / tables.model.file, name)
    _check_names(chain.names, model, f"{file}: [model] {tables.model.file}")
    return Pipeline(name, chain, model)


def _check_names(names: tuple[str, ...], model: Model, where: str) -> None:
    """InputError unless the features are those of the model, in its order. A model without names counts them."""
    known = [f.name for f in model.features]
    if len(names) != len(known):
        raise InputError(where, f"reads {len(known)} features, the pipeline computes {len(names)}")
    if all(_UNNAMED.fullmatch(k) for k in known):
        return
    # LightGBM stores blanks as underscores.
    own = [re.sub(r"\s", "_", n) for n in names]
    if own == [re.sub(r"\s", "_", k) for k in known]:
        return
    for n in own:
        if n not in known:
            raise InputError(where, f"does not know feature '{n}'", nearest(n, known))
    i = next(i for i, (a, b) in enumerate(zip(own, known, strict=True)) if a != b)
    what = f"feature {i + 1} is '{known[i]}' in the model and '{own[i]}' in the pipeline"
    raise InputError(where, what, "write the [[feature]] tables in the model's order")
