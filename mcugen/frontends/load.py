"""A source, whatever it is, to a Model of source ops: files by their content, objects by their class."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from mcugen.core.types import Model
from mcugen.errors import InputError, UnsupportedError
from mcugen.frontends.lightgbm import load_text
from mcugen.frontends.named_file import read_bytes
from mcugen.frontends.objects import load_object, refuse_iterations
from mcugen.frontends.pipeline.load import Pipeline, load_pipeline, pipeline_of

_NOT_MODELS = {".pkl", ".pickle", ".joblib", ".json", ".bin"}


def load_source(
    source: str | Path | Any,
    name: str,
    num_iteration: int | None = None,
    start_iteration: int = 0,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
) -> Model | Pipeline:
    """The model of a path, a Booster, an estimator or an ONNX object; a signal chain of its tables or a Filter.

    ``shapes``: of ONNX inputs with dynamic axes.
    """
    chosen = (num_iteration, start_iteration)
    if not isinstance(source, str | Path):
        tables = source if isinstance(source, Mapping) else getattr(source, "pipeline_tables", None)
        if isinstance(tables, Mapping):
            refuse_iterations(chosen)
            return pipeline_of(tables, name, partial(_load_model, shapes, (None, 0)))
        return load_object(source, name, shapes, chosen)
    if Path(source).suffix.lower() == ".onnx":
        refuse_iterations(chosen)
    path = Path(source)
    data = read_bytes(path)
    suffix = path.suffix.lower()
    if suffix == ".onnx":
        # onnx is slow to import, and only needed here.
        from mcugen.frontends.onnx import embedded, load_onnx  # noqa: PLC0415

        return load_onnx(embedded(data, path.parent, path.name), path.name, name, dict(shapes or {}))
    if suffix == ".toml":
        return load_pipeline(data, path, name, partial(_load_model, shapes, (num_iteration, start_iteration)))
    if suffix in _NOT_MODELS:
        hint = "save it with booster.save_model('model.txt'), or call mcugen.export(object) from Python"
        raise UnsupportedError(path.name, f"'{suffix}' is not a model format that can be read safely", hint)
    return load_text(data, path.name, name, num_iteration, start_iteration)


def _load_model(
    shapes: Mapping[str, tuple[int, ...]] | None, iterations: tuple[int | None, int], source: Any, name: str
) -> Model:
    """The model of a pipeline: a file or an object that is no pipeline itself."""
    where = Path(source).name if isinstance(source, str | Path) else type(source).__name__
    # Before it is read: a file may name itself.
    chain = where.lower().endswith(".toml")
    model = None if chain else load_source(source, name, *iterations, shapes)
    if not isinstance(model, Model):
        raise InputError(where, "is a signal chain, not a model", "give a model.txt or an .onnx")
    return model
