"""A signal chain from its TOML, with the model that its features are for; names are checked against the model."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mcugen.core.types import Model
from mcugen.ctext.idents import check_prefix
from mcugen.errors import InputError, UnsupportedError
from mcugen.frontends.names import nearest
from mcugen.frontends.pipeline.chain import Chain, chain_of
from mcugen.frontends.pipeline.read import checked_tables, read_tables
from mcugen.frontends.pipeline.schema import PipelineTables
from mcugen.nn.source import NetOp

#: What LightGBM and the other front ends call the features of models that know none by name, with their position.
_UNNAMED = ("Column_", "x", "f")
#: What messages call tables that came from Python.
FROM_PYTHON = "pipeline"


@dataclass(frozen=True, slots=True, eq=False)
class Pipeline:
    """Samples to results: a chain in float64, and a source model that reads its features, or None.

    ``wanted``: the name that the file asks for, or None; ``output``: of the model, where the file says.
    """

    name: str
    chain: Chain
    model: Model | None
    wanted: str | None = None
    output: str | None = None

    def called(self, name: str) -> Pipeline:
        """The same under another name."""
        chain = replace(self.chain, model=replace(self.chain.model, name=name))
        model = None if self.model is None else replace(self.model, name=name)
        return replace(self, name=name, chain=chain, model=model)


def load_pipeline(data: bytes, path: Path, name: str, load_model: Callable[[Path, str], Model]) -> Pipeline:
    """The pipeline of a TOML file; ``load_model`` reads the file that [model] names, relative to the TOML's folder."""
    tables, digest = read_tables(data, path.name), hashlib.sha256(data).hexdigest()

    def model() -> Model | None:
        return None if tables.model is None else load_model(path.parent / tables.model.file, name)

    return _pipeline(tables, path.name, name, digest, model)


def pipeline_of(given: Mapping[str, Any], name: str, load_model: Callable[[Any, str], Model]) -> Pipeline:
    """The pipeline of tables as a TOML would hold them: ``{"signal": {"rate": 100.0}, "channel": [...], ...}``.

    Arrays may be numpy's, and ``model`` may be a path, or a model itself instead of a table.
    """
    tables, found = tables_of(given)

    def model() -> Model | None:
        if found is not None:
            return load_model(found, name)
        return None if tables.model is None else load_model(Path(tables.model.file), name)

    digest = hashlib.sha256(tables.model_dump_json().encode()).hexdigest()
    return _pipeline(tables, FROM_PYTHON, name, digest, model)


def chain_only(source: bytes | Mapping[str, Any], file: str, name: str) -> tuple[Chain, PipelineTables]:
    """The chain without its model, which need not exist yet: what one trains on."""
    tables = read_tables(source, file) if isinstance(source, bytes) else tables_of(source)[0]
    planar = tables.window is not None and tables.window.layout == "channel_time"
    return chain_of(tables, file, name, "0" * 64, planar), tables


def tables_of(given: Mapping[str, Any]) -> tuple[PipelineTables, Any]:
    """Checked tables of what Python gave, and the model where it is an object or a path, else None."""
    plain = {key: value if key == "model" else _plain(value) for key, value in given.items()}
    model = plain.get("model")
    is_table = model is None or isinstance(model, Mapping)
    if not is_table:
        del plain["model"]
    elif model is None:
        plain.pop("model", None)
    return checked_tables(plain, FROM_PYTHON), None if is_table else model


def _plain(value: Any) -> Any:
    """Lists and numbers for numpy's, as TOML would give them."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, list | tuple) else value


def _pipeline(
    tables: PipelineTables, file: str, name: str, digest: str, load_model: Callable[[], Model | None]
) -> Pipeline:
    wanted = tables.signal.name
    if wanted is not None:
        check_prefix(wanted, f"{file}: [signal]: name")
    chain = chain_of(tables, file, name, digest)
    if tables.window is None and tables.model is not None:
        raise InputError(f"{file}: [model]", "a model needs features to read", "write [window] and [[feature]]")
    model = load_model()
    if model is None:
        if tables.window is not None and not tables.feature:
            raise InputError(f"{file}: [window]", "without features is for a net", "write [[feature]], or [model]")
        return Pipeline(name, chain, None, wanted)
    output = None if tables.model is None else tables.model.output
    where = f"{file}: [model] {model.source.name}"
    if tables.window is None:
        raise InputError(f"{file}: [model]", "a model needs features to read", "write [window] and [[feature]]")
    planar = False
    if isinstance(model.ops[0], NetOp):
        planar = _check_net(tables, chain, model, where)
    elif not tables.feature:
        raise InputError(where, "trees need features to read", "write [[feature]]")
    else:
        _check_names(chain.names, model, where)
    return Pipeline(name, chain_of(tables, file, name, digest, planar), model, wanted, output)


def _check_net(tables: PipelineTables, chain: Chain, model: Model, where: str) -> bool:
    """Whether the net takes its window as (channels, length); InputError where its input is of another shape."""
    if len(model.inputs) != 1 or len(model.outputs) != 1:
        what = f"has {len(model.inputs)} inputs and {len(model.outputs)} outputs"
        raise UnsupportedError(where, what, "a signal chain ends with one input and one output")
    shape = tuple(n for n in model.types[model.inputs[0]].shape if n != 1) or (1,)
    text = " x ".join(map(str, model.types[model.inputs[0]].shape))
    if tables.feature:
        if shape != (len(chain.names),):
            raise InputError(where, f"takes {text} numbers, the pipeline computes {len(chain.names)} features")
        return False
    assert tables.window is not None
    length, channels = tables.window.length, len(chain.names)
    by_time, by_channel = (tuple(n for n in s if n != 1) or (1,) for s in ((length, channels), (channels, length)))
    fits = {"time_channel": shape in (by_time, (length * channels,)), "channel_time": shape == by_channel}
    # Flattened, the order is a matter of training: that of (length, channels) unless the file says otherwise.
    fits["channel_time"] = fits["channel_time"] or (tables.window.layout != "auto" and shape == (length * channels,))
    wanted = tables.window.layout
    if wanted != "auto" and fits[wanted]:
        return wanted == "channel_time"
    if wanted == "auto" and all(fits.values()) and by_time == by_channel and 1 not in (length, channels):
        hint = 'write layout = "time_channel" or "channel_time" in [window]'
        raise InputError(where, f"takes {text}: that may be samples by channels or channels by samples", hint)
    if wanted == "auto" and any(fits.values()):
        return not fits["time_channel"]
    raise InputError(where, f"takes {text} numbers, a window holds {length} samples of {channels} channels")


def _check_names(names: tuple[str, ...], model: Model, where: str) -> None:
    """InputError unless the features are those of the model, in its order. A model without names counts them."""
    known = [f.name for f in model.features]
    if len(names) != len(known):
        raise InputError(where, f"reads {len(known)} features, the pipeline computes {len(names)}")
    if any(known == [f"{word}{i}" for i in range(len(known))] for word in _UNNAMED):
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
