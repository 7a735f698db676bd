"""Signal chains that are wrong: each ends with one line that says where, what, and what to write."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pytest
from chains import booster, tables, write_toml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mcugen
from mcugen.errors import InputError, McugenError, UnsupportedError
from mcugen.frontends.pipeline.read import read_tables

_STANDS_FOR = {
    "@signal": "[signal]\nrate = 100.0",
    "@channel": '[[channel]]\nname = "a"',
    "@window": "[window]\nlength = 10",
}


def cases() -> Iterator[Any]:
    text = (Path(__file__).parent / "faults.txt").read_text(encoding="utf-8")
    for block in text.split("--- ")[1:]:
        head, _, body = block.partition("\n")
        code, _, message = head.partition(" ")
        for word, table in _STANDS_FOR.items():
            body = body.replace(word, table)
        yield pytest.param(body, int(code), message, id=message[:60])


@pytest.mark.parametrize(("text", "code", "message"), list(cases()))
def test_one_line(text: str, code: int, message: str, tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(McugenError) as e:
        mcugen.export(path, tmp_path / "out", verify=False)
    found = str(e.value).replace(f"{tmp_path}/", "")
    assert e.value.exit_code == code
    if message.endswith("..."):
        assert found.startswith(message[:-3])
    else:
        assert found == message
    assert "\n" not in found
    assert not (tmp_path / "out").exists()


def test_names_against_the_model(tmp_path: Path) -> None:
    """A model that was trained on other names, on another order, on fewer: nothing is guessed."""
    names = ("ax_mean", "ax_std", "ay_mean")
    rng = np.random.default_rng(0)
    model = booster(rng.normal(size=(200, 3)), names)
    model.save_model(tmp_path / "m.txt")

    def fault(*features: dict[str, Any]) -> str:
        given = tables(feature=list(features), model={"file": "m.txt"})
        with pytest.raises(InputError) as e:
            mcugen.load(write_toml(tmp_path / "p.toml", given))
        return str(e.value)

    mean, std, other = ({"kind": k, "channel": c} for k, c in (("mean", "ax"), ("std", "ax"), ("mean", "ay")))
    assert fault(mean, std) == "p.toml: [model] m.txt: reads 3 features, the pipeline computes 2"
    assert fault(mean, other, std) == (
        "p.toml: [model] m.txt: feature 2 is 'ax_std' in the model and 'ay_mean' in the pipeline "
        "(write the [[feature]] tables in the model's order)"
    )
    assert fault(mean, std, other | {"kind": "max"}) == (
        "p.toml: [model] m.txt: does not know feature 'ay_max' (did you mean ay_mean?)"
    )


def test_a_model_without_names_counts(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    fixed = {"verbose": -1, "num_leaves": 4, "num_threads": 1}
    model = lightgbm.train(fixed, lightgbm.Dataset(rng.normal(size=(99, 7)), rng.normal(size=99)), 2)
    assert mcugen.load(tables(model=model)).model is not None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"spec": Path("s.toml")}, "--spec: the [[channel]] tables say what samples mean (remove it)"),
        ({"input_dtype": "int16"}, "--input-dtype: dtype in [signal] says what the C gets (remove it)"),
        ({"stream": True}, "--stream: a signal chain takes one sample a call anyway (remove it)"),
        ({"float32": True}, "--float32: is for nets (set arithmetic in [signal])"),
        ({"int16": ("a",)}, "--int16: is for nets (set arithmetic in [signal])"),
        ({"max_error": 0.1}, "--max-error: is for trees (set max_error in [signal])"),
        ({"output": "class"}, "--output: class without a model (remove it)"),
    ],
)
def test_options_that_mean_nothing(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError) as e:
        mcugen.export(tables(), tmp_path / "out", **options)
    assert str(e.value) == message


def test_a_chain_is_no_model(tmp_path: Path) -> None:
    write_toml(tmp_path / "inner.toml", tables())
    for name in ("inner.toml", "outer.toml"):  # the second names itself
        path = write_toml(tmp_path / "outer.toml", tables(model={"file": name}))
        with pytest.raises(InputError, match="is a signal chain, not a model"):
            mcugen.load(path)


def test_error_that_no_type_reaches(tmp_path: Path) -> None:
    given = tables(signal={"rate": 100.0, "max_error": 1e-300})
    with pytest.raises(InputError, match=r"no type stays within an error of 1e-300; the best has"):
        mcugen.export(given, tmp_path / "out")


_LEAVES = st.sampled_from(
    [None, True, -1, 0, 1, 2, 7, 2**70, 0.5, 1e-9, 1e300, math.nan, math.inf, "", "a", "ä\n", "mean"]
)
_KEYS = st.sampled_from(["kind", "channels", "order", "cutoff", "taps", "length", "name", "rate", "step", "band", "x"])
_TABLE = st.dictionaries(_KEYS, st.one_of(_LEAVES, st.lists(_LEAVES, max_size=3)), max_size=4)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.data())
def test_whatever_is_written_ends_well(data: st.DataObject) -> None:
    """Any tables give a chain, or an error of one line."""
    kinds = st.sampled_from(["butter", "taps", "median", "smooth", "notch", "decimate", "mean", "std", "lag"])
    given: dict[str, Any] = {
        "signal": data.draw(st.one_of(st.just({"rate": 50.0}), _TABLE)),
        "channel": data.draw(st.one_of(st.just([{"name": "a"}]), st.lists(_TABLE, max_size=2))),
    }
    for key in ("filter", "feature"):
        if data.draw(st.booleans()):
            given[key] = [t | {"kind": data.draw(kinds)} for t in data.draw(st.lists(_TABLE, max_size=2))]
    if data.draw(st.booleans()):
        given["window"] = data.draw(st.one_of(st.just({"length": 8}), _TABLE))
    fault = ""
    try:
        mcugen.features.load(given)
    except McugenError as e:
        fault = str(e)
    assert len(fault.splitlines()) <= 1
    assert "fault in mcugen" not in fault


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_end_well(data: bytes) -> None:
    with pytest.raises(InputError) as e:
        read_tables(data, "p.toml")
    assert len(str(e.value).splitlines()) == 1
