"""The spec file: what it says, and each way to get it wrong."""

from __future__ import annotations

import numpy as np
import pytest

from mcugen.core.types import DType, Feature
from mcugen.errors import InputError
from mcugen.frontends.spec import load_spec, mapped_features, resolve_spec
from mcugen.recipes.prepared import ExportOptions
from mcugen.trees.signals import Signal

FEATURES = (Feature("temp"), Feature("hum_rel"), Feature("Column_2"), Feature("4"))


@pytest.fixture
def spec(tmp_path):
    def write(text: str | bytes):
        path = tmp_path / "s.toml"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return load_spec(path)

    return write


def entry(**keys) -> str:
    def value(v):
        return f'"{v}"' if isinstance(v, str) else repr(v)

    return "[[input]]\n" + "".join(f"{k} = {value(v)}\n" for k, v in keys.items())


def test_all_keys(spec):
    text = entry(name="temp", dtype="int16", scale=0.01, offset=-40, missing=-32768, arithmetic="float32")
    text += entry(name="Column_2", offset=5.0) + entry(name="4", missing=7)
    got = resolve_spec(FEATURES, spec(text), None)
    assert got.dtype is DType.I16
    one, two = Signal(0.01, -40.0, -32768, True), Signal(1.0, 5.0)
    assert got.signals == (one, Signal(), two, Signal(missing=7))
    assert mapped_features(FEATURES, spec(text)) == {0, 2}


def test_a_scale_of_one_is_no_map_but_confirms(spec):
    s = spec(entry(name="temp", scale=1.0, dtype="uint8"))
    assert resolve_spec(FEATURES, s, None).signals[0] == Signal()
    assert mapped_features(FEATURES, s) == {0}
    # Above 2**24 float32 arithmetic rounds, so there it does change something.
    s = spec(entry(name="temp", scale=1, arithmetic="float32", dtype="int32"))
    assert resolve_spec(FEATURES, s, None).signals[0] == Signal(1.0, 0.0, None, True)


def test_type_is_float32_unless_named(spec):
    assert resolve_spec(FEATURES, None, None).dtype is DType.F32
    assert resolve_spec(FEATURES, None, DType.U8).dtype is DType.U8
    s = spec(entry(name="temp", scale=1.0))
    assert resolve_spec(FEATURES, s, None).dtype is DType.F32
    assert resolve_spec(FEATURES, spec(entry(name="temp", dtype="int8")), DType.I8).dtype is DType.I8
    assert mapped_features(FEATURES, None) == frozenset()


def test_types_are_those_of_the_command_line(spec):
    with pytest.raises(InputError) as e:
        ExportOptions(input_dtype="complex").validate()
    for label in e.value.hint.removeprefix("known: auto, ").split(", "):
        assert spec(entry(name="temp", dtype=label)).inputs[0].dtype == label
    with pytest.raises(InputError) as e:
        spec(entry(name="temp", dtype="complex"))
    listed = e.value.what.partition("not one of ")[2].split(", ")
    assert listed == ["float64", "float32", "int32", "int16", "uint16", "int8", "uint8"]


def test_windows_text_and_blanks_in_names(spec):
    s = spec(b"\xef\xbb\xbf[[input]]\r\nname = 'hum rel'\r\nscale = 2\r\n")
    assert resolve_spec(FEATURES, s, DType.I8).signals[1].scale == 2.0


FILE_FAULTS = {
    "unknown key": (entry(name="temp", scal=1.0), ["1 'temp'", "scal", "did you mean scale?"]),
    "unknown table": ("[[inputs]]\nname='a'", ["inputs", "[[input]]"]),
    "single table": ("[input]\nname='a'", ["[[input]]"]),
    "no table": ("", ["[[input]]"]),
    "empty list": ("input = []", ["no [[input]]"]),
    "list of numbers": ("input = [1]", ["1"]),
    "input is a number": ("input = 1", ["input"]),
    "no name": (entry(name="a") + entry(scale=1.0), ["[[input]] 2", "name"]),
    "empty name": (entry(name=""), ["name"]),
    "name is a number": (entry(name=3), ["name"]),
    "dtype": (entry(name="temp", dtype="int61"), ["dtype", "'int61'", "int"]),
    "dtype of no input": (entry(name="temp", dtype="uint32"), ["dtype", "'uint32'", "int32"]),
    "dtype is a number": (entry(name="temp", dtype=16), ["dtype", "16"]),
    "scale zero": (entry(name="temp", scale=0.0), ["scale", "0"]),
    "scale minus zero": ("[[input]]\nname='temp'\nscale=-0.0", ["scale"]),
    "scale inf": ("[[input]]\nname='temp'\nscale=inf", ["scale", "inf"]),
    "scale nan": ("[[input]]\nname='temp'\nscale=nan", ["scale", "nan"]),
    "offset inf": ("[[input]]\nname='temp'\noffset=-inf", ["offset", "inf"]),
    "scale text": (entry(name="temp", scale="0.1"), ["scale", "'0.1'"]),
    "scale bool": ("[[input]]\nname='temp'\nscale=true", ["scale"]),
    "scale beyond float": (f"[[input]]\nname='temp'\nscale={10**400}", ["scale"]),
    "number beyond Python": (f"[[input]]\nname='temp'\nscale={'1' * 5000}", ["number"]),
    "missing fraction": (entry(name="temp", missing=-1.5), ["missing", "-1.5"]),
    "missing whole float": (entry(name="temp", missing=-1.0), ["missing"]),
    "missing bool": ("[[input]]\nname='temp'\nmissing=true", ["missing"]),
    "missing beyond": (entry(name="temp", dtype="int8", missing=-129), ["missing", "-129", "-128 to 127"]),
    "missing of a float": (entry(name="temp", dtype="float32", missing=-1), ["missing", "NaN"]),
    "scale of a float": (entry(name="temp", dtype="float64", scale=0.1), ["scale", "float64"]),
    "arithmetic": (entry(name="temp", scale=0.1, arithmetic="float16"), ["arithmetic", "float16"]),
    "arithmetic alone": (entry(name="temp", arithmetic="float32"), ["arithmetic"]),
    "twice": (entry(name="temp") + entry(name="a") + entry(name="temp"), ["[[input]] 3", "entry 1"]),
    "not TOML": ("[[input]\n", ["not TOML"]),
    "not UTF-8": (b"# \xff\xfe\x00", ["UTF-8"]),
    "float32 underflow": (entry(name="a", dtype="int8", scale=1e-60, arithmetic="float32"), ["scale", "same float32"]),
    "float32 overflow": (entry(name="a", dtype="int8", scale=1e60, arithmetic="float32"), ["scale", "overflow"]),
    "overflow": (entry(name="a", dtype="int16", scale=1e308), ["scale", "overflow"]),
    "drowned scale": (entry(name="a", dtype="int16", scale=1e-9, offset=1e12), ["scale", "same float64"]),
}


@pytest.mark.parametrize(("text", "words"), FILE_FAULTS.values(), ids=FILE_FAULTS)
def test_file_faults(spec, text, words):
    with pytest.raises(InputError) as e:
        spec(text)
    message = str(e.value)
    assert "s.toml" in message
    assert "\n" not in message
    for w in words:
        assert w in message


def test_unreadable_files(tmp_path):
    for path, what in ((tmp_path / "no.toml", "there is no such file"), (tmp_path, "this is a folder")):
        with pytest.raises(InputError, match=what):
            load_spec(path)


MODEL_FAULTS = {
    "near name": (entry(name="tmep"), None, ["1 'tmep'", "did you mean temp?"]),
    "capitals": (entry(name="TEMP"), None, ["did you mean temp?"]),
    "position": (entry(name="Column_1"), None, ["'hum_rel'"]),
    "far name": (entry(name="zzz"), None, ["temp, hum_rel, Column_2"]),
    "same feature": (entry(name="hum_rel") + entry(name="hum rel"), None, ["entry 1"]),
    "types differ": (
        entry(name="temp", dtype="int16") + entry(name="4", dtype="int8"),
        None,
        ["2 '4'", "int8", "int16", "entry 1"],
    ),
    "option differs": (entry(name="temp", dtype="int16"), DType.U8, ["int16", "--input-dtype", "uint8"]),
    "scale, no type": (entry(name="temp", scale=0.1), None, ["scale", "float32", "--input-dtype"]),
    "offset, no type": (entry(name="temp", offset=1.0), None, ["offset", "float32"]),
    "missing, no type": (entry(name="temp", missing=-1), None, ["missing", "NaN"]),
    "missing beyond": (entry(name="temp", missing=-1), DType.U16, ["missing", "0 to 65535"]),
    "missing beyond the type of another": (
        entry(name="temp", missing=300) + entry(name="4", dtype="uint8"),
        None,
        ["1 'temp': missing", "uint8"],
    ),
}


@pytest.mark.parametrize(("text", "dtype", "words"), MODEL_FAULTS.values(), ids=MODEL_FAULTS)
def test_model_faults(spec, text, dtype, words):
    with pytest.raises(InputError) as e:
        resolve_spec(FEATURES, spec(text), dtype)
    for w in ("s.toml", *words):
        assert w in str(e.value)


def test_ends_of_the_type_are_codes(spec):
    for t in DType:
        if not t.is_float and t is not DType.U32:
            for code in (t.min, t.max):
                s = resolve_spec(FEATURES, spec(entry(name="temp", missing=code, dtype=t.label)), None)
                assert np.isnan(s.values(np.full((1, 4), code, t.np))[0, 0])
