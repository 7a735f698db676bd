"""Data files as users write them, and samples as the C input type."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcugen.core.types import DType, Feature
from mcugen.errors import InputError
from mcugen.frontends.data import as_input, load_table, nearest_count
from mcugen.trees.signals import InputSpec, Signal

FEATURES = tuple(Feature(n) for n in ("a", "b_c", "d"))
X = np.array([[1.5, -2.0, 3e-5], [0.1, np.nan, -np.inf], [1e300, 4.0, -0.0]])


def saved(tmp_path, value, name="x.npy", **arrays):
    path = tmp_path / name
    if arrays:
        np.savez(path, **arrays)
    elif isinstance(value, np.ndarray):
        np.save(path, value)
    else:
        path.write_bytes(value.encode() if isinstance(value, str) else value)
    return path


def table(tmp_path, value, name="x.csv", features=FEATURES):
    return load_table(saved(tmp_path, value, name), features)


# ---- numpy files


@pytest.mark.parametrize("kind", ["f8", ">f8", "f4", "f2", "i8", ">i2", "u1", "u8"])
def test_npy_keeps_its_type(tmp_path, kind):
    x = np.arange(6).reshape(2, 3).astype(kind)
    got = load_table(saved(tmp_path, x), FEATURES)
    assert got.dtype == x.dtype.newbyteorder("=")
    assert (got.x == x).all()
    assert got.y is None


def test_npy_of_other_forms(tmp_path):
    assert load_table(saved(tmp_path, np.arange(3.0)), FEATURES).x.shape == (1, 3)
    assert load_table(saved(tmp_path, np.arange(7.0)), FEATURES[:1]).x.shape == (7, 1)
    assert load_table(saved(tmp_path, np.ones((2, 3), bool)), FEATURES).dtype == np.uint8
    assert load_table(saved(tmp_path, np.ones((2, 3), np.longdouble)), FEATURES).dtype == np.float64
    assert load_table(saved(tmp_path, np.asfortranarray(X)), FEATURES).x.flags.c_contiguous


def test_npz(tmp_path):
    y = np.arange(3)
    for key in ("x", "X", "data", "whatever"):
        got = load_table(saved(tmp_path, None, "x.npz", **{key: X, "Label": y.reshape(-1, 1)}), FEATURES)
        assert np.array_equal(got.x, X, equal_nan=True)
        assert (got.y == y).all()
    assert load_table(saved(tmp_path, None, "x.npz", x=X, junk=y), FEATURES).y is None
    assert list(load_table(saved(tmp_path, None, "x.npz", x=X, y=np.array(["p", "q", "r"])), FEATURES).y) == [*"pqr"]


BAD_ARRAYS = {
    "wide": (np.ones((2, 4)), "4 columns"),
    "narrow": (np.ones((2, 2)), "2 columns"),
    "one row, wrong": (np.ones(4), "needs (N, 3)"),
    "deep": (np.ones((2, 3, 1)), "needs (N, 3)"),
    "number": (np.array(1.0), "single number"),
    "empty": (np.ones((0, 3)), "no samples"),
    "no columns": (np.ones((3, 0)), "0 columns"),
    "complex": (np.ones((2, 3), complex), "complex"),
    "text": (np.array([["a", "b", "c"]]), "text"),
    "bytes": (np.array([[b"1", b"b", b"c"]]), "text"),
    "records": (np.zeros(3, [("a", "f8")]), "records"),
    "dates": (np.zeros((1, 3), "M8[s]"), "dates"),
    "objects": (np.array([[1, 2, None]], object), "Python objects"),
}


@pytest.mark.parametrize(("x", "words"), BAD_ARRAYS.values(), ids=BAD_ARRAYS)
def test_bad_arrays(tmp_path, x, words):
    for path in (saved(tmp_path, x), saved(tmp_path, None, "x.npz", x=x)):
        with pytest.raises(InputError) as e:
            load_table(path, FEATURES)
        assert words in str(e.value)
        assert path.name in str(e.value)


class Evil:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was run",))


def test_bad_files(tmp_path):
    whole = saved(tmp_path, X).read_bytes()
    packed = saved(tmp_path, None, "y.npz", x=X).read_bytes()
    for n in (1, 5, 9, 64, len(whole) - 1):
        with pytest.raises(InputError):
            load_table(saved(tmp_path, whole[:n], "cut.npy"), FEATURES)
    for n in (3, 40, len(packed) - 30):
        with pytest.raises(InputError):
            load_table(saved(tmp_path, packed[:n], "cut.npz"), FEATURES)
    broken = bytearray(packed)
    broken[150] ^= 255
    for name, content in (
        ("a.npy", pickle.dumps(Evil())),
        ("b.npz", bytes(broken)),
        ("c.npy", b"hello"),
        ("d.npy", b""),
        ("e.csv", b""),
        ("f.npz", b""),
        ("g.parquet", b"PAR1"),
        ("h", b"1,2,3"),
    ):
        with pytest.raises(InputError) as e:
            load_table(saved(tmp_path, content, name), FEATURES)
        assert name in str(e.value)
        assert "\n" not in str(e.value)
    for path in (tmp_path / "none.npy", tmp_path / "none.csv", tmp_path):
        with pytest.raises(InputError):
            load_table(path, FEATURES)
    (tmp_path / "folder.npy").mkdir()
    with pytest.raises(InputError, match="folder"):
        load_table(tmp_path / "folder.npy", FEATURES)
    for arrays in ({"p": X, "q": X}, {"y": X}, {"x": X, "y": np.arange(2)}, {"x": X, "y": X}):
        with pytest.raises(InputError):
            load_table(saved(tmp_path, None, "k.npz", **arrays), FEATURES)


# ---- text


@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.TXT"])
@pytest.mark.parametrize("sep", [",", ";", "\t"])
@pytest.mark.parametrize("header", ["", "a|b_c|d\n", "d|a|b c\r\n", '"a"|"b_c"|d\n', "a|y|b_c|d\n", "\ufeffa|b_c|d\n"])
def test_text(tmp_path, name, sep, header):
    frame = pd.DataFrame(X, columns=["a", "b_c", "d"])
    names = [n.strip('"\ufeff').replace(" ", "_") for n in header.strip().split("|") if n]
    frame["y"] = [7, 8, 9]
    body = frame[names or ["a", "b_c", "d"]].to_csv(None, sep=sep, header=False, index=False)
    got = table(tmp_path, header.replace("|", sep) + body, name)
    assert np.array_equal(got.x, X, equal_nan=True)
    assert (got.y is None) == ("y" not in names)
    assert got.y is None or list(got.y) == [7, 8, 9]
    assert np.signbit(got.x[2, 2])


def test_text_details(tmp_path):
    missing = "1,,3\nNA, nan ,N/A\n\n  \n?,null,1e5\n"
    assert np.isnan(table(tmp_path, missing).x).sum() == 6
    got = table(tmp_path, "1,2,-3\n+4,05,6")
    assert got.dtype == np.int64
    assert got.x.tolist() == [[1, 2, -3], [4, 5, 6]]
    assert table(tmp_path, "1,2,3.0").dtype == np.float64
    assert table(tmp_path, f"1,2,{2**63}").x[0, 2] == 2.0**63
    assert table(tmp_path, f"1,2,{2**53 + 1}").x[0, 2] == 2**53 + 1
    assert table(tmp_path, "inf,-Infinity,.5e-3").x.tolist() == [[np.inf, -np.inf, 5e-4]]
    assert list(table(tmp_path, "target;d;b_c;a\nyes;1;2;3\nno;4;5;6").y) == ["yes", "no"]
    one = table(tmp_path, '1\n""\n\n3\n', features=FEATURES[:1])
    assert one.x.shape == (3, 1)
    assert np.isnan(one.x[1, 0])


def test_text_with_numbers_for_names(tmp_path):
    features = tuple(Feature(str(i)) for i in range(3))
    x = pd.DataFrame(X)
    assert np.array_equal(table(tmp_path, x.to_csv(index=False), features=features).x, X, equal_nan=True)
    assert table(tmp_path, "5,6,7\n0,1,2", features=features).x.tolist() == [[5, 6, 7], [0, 1, 2]]


def test_a_feature_called_y_is_no_target(tmp_path):
    got = table(tmp_path, "label,y\n1,2\n", features=(Feature("y"),))
    assert got.x.tolist() == [[2]]
    assert got.y.tolist() == [1.0]


def test_long_text_mixes_chunks(tmp_path):
    got = table(tmp_path, "1,2,3\n" * 70000 + "1,2,3.5\n")
    assert got.x.shape == (70001, 3)
    assert got.dtype == np.float64
    with pytest.raises(InputError, match=r"line 70001, column 2: 'x'"):
        table(tmp_path, "1,2,3\n" * 70000 + "1,x,3.5\n")


BAD_TEXT = {
    "wide": ("1,2,3,4\n", "4 columns"),
    "narrow": ("1,2\n", "2 columns"),
    "ragged": ("1,2,3\n1,2\n", "line 2"),
    "word": ("1,2,3\n1,two,3\n", "line 2, column 2: 'two'"),
    "only a header": ("a,b_c,d\n", "no samples"),
    "blank": ("\n\n", "empty"),
    "lacking": ("a,b_c\n1,2\n", "feature 'd'"),
    "misnamed": ("a,b_c,dd\n1,2,3\n", "'dd': did you mean d?"),
    "other names": ("p,q,r\n1,2,3\n", "feature 'a' and 2 more"),
    "stray": ("a,b_c,d,e\n1,2,3,4\n", "'e'"),
    "pandas index": (",a,b_c,d\n0,1,2,3\n", "column 1 ''"),
    "twice": ("a,b_c,d,a\n1,2,3,4\n", "twice"),
    "two targets": ("a,b_c,d,y,label\n1,2,3,4,5\n", "'y' and 'label'"),
    "decimal comma": ("1,5;2,5;3,5\n1,5;2,5;3,5\n", "decimal point"),
    "underscore": ("1_000,2,3\n1_000,2,3\n", ""),
    "hexadecimal": ("1,2,3\n0x10,2,3\n", "'0x10'"),
    "nul": ("1,2,3\n1,\0,3\n", "line 2"),
    "latin-1": (b"a,b_c,d\n1,2,\xb0\n", "UTF-8"),
    "utf-16": ("a,b_c,d\n1,2,3\n".encode("utf-16"), "UTF-8"),
    "open quote": ('a,b_c,d\n1,2,"3\n', ""),
}


@pytest.mark.parametrize(("text", "words"), BAD_TEXT.values(), ids=BAD_TEXT)
def test_bad_text(tmp_path, text, words):
    with pytest.raises(InputError) as e:
        table(tmp_path, text)
    assert "x.csv" in str(e.value)
    assert words in str(e.value)
    assert "\n" not in str(e.value)


# ---- as_input


def converted(x, dtype, *signals, warned=""):
    spec = InputSpec(dtype, signals or (Signal(),) * np.shape(x)[1])
    out, warnings = as_input(np.asarray(x), spec, "in.npy", FEATURES)
    assert out.dtype == dtype.np
    assert out.flags.c_contiguous
    assert len(warnings) == bool(warned)
    assert warned in "".join(warnings)
    return out


def refused(x, dtype, *signals):
    with pytest.raises(InputError) as e:
        converted(x, dtype, *signals)
    return str(e.value)


def test_own_type_passes_even_the_code_for_missing():
    x = np.array([[-7, 32767]], np.int16)
    assert (converted(x, DType.I16, Signal(0.1, 1.0, -7), Signal()) == x).all()
    f = np.array([[np.nan, -0.0]], np.float32)
    assert np.array_equal(converted(f, DType.F32), f, equal_nan=True)


def test_floats_to_floats():
    assert converted([[0.1, 1e300]], DType.F32, warned="2 of 2 values were rounded to float32, 1 of them to inf")[0, 1]
    assert np.isnan(converted([[np.nan, 0.5]], DType.F32)[0, 0])
    assert converted(np.array([[0.1]], np.float32), DType.F64)[0, 0] == float(np.float32(0.1))
    assert converted(np.array([[0.1]], np.float16), DType.F32)[0, 0] == np.float32(np.float16(0.1))


def test_integers_to_floats():
    assert converted([[2**24, -1]], DType.F32).tolist() == [[2.0**24, -1.0]]
    converted([[2**24 + 1, 0]], DType.F32, warned="1 of 2")
    converted([[2**53 + 1, 2**63 - 1]], DType.F64, warned="2 of 2")
    converted(np.array([[2**64 - 1, 2**63]], np.uint64), DType.F64, warned="1 of 2")


def test_integers_to_integers():
    assert converted([[-128, 127]], DType.I8).tolist() == [[-128, 127]]
    assert "feature 'b_c', row 1: 128" in refused([[1, 2], [3, 128]], DType.I8)
    assert "-1 is outside of uint32" in refused(np.array([[-1]], np.int8), DType.U32)
    assert "(and 1 more)" in refused([[300], [301]], DType.U8)
    refused(np.array([[2**64 - 1]], np.uint64), DType.I32)
    converted([[1]], DType.I8, Signal(0.5), warned="counts")


def test_floats_to_integers():
    x = [[0.5], [1.5], [2.5], [-0.5], [32767.4], [-32768.5]]
    assert converted(x, DType.I16, warned="6 of 6").ravel().tolist() == [0, 2, 2, 0, 32767, -32768]
    assert converted([[-40.0], [287.67]], DType.I16, Signal(0.01, -40.0)).ravel().tolist() == [0, 32767]
    assert converted([[-3.0], [2.0]], DType.I8, Signal(-0.5)).ravel().tolist() == [6, -4]
    assert converted([[np.nan], [1.0]], DType.U8, Signal(missing=255)).ravel().tolist() == [255, 1]
    for v in (32767.5, -32769.0, np.inf, -np.inf, 1e300):
        assert "feature 'a', row 0" in refused([[v]], DType.I16)
        assert "feature 'a', row 0" in refused([[v]], DType.I16, Signal(1.0, 0.0, None, True))
    assert "nan has no int16" in refused([[np.nan]], DType.I16)
    assert "the code for a missing value" in refused([[-0.1]], DType.I16, Signal(0.1, 0.0, -1))


INTEGER_TYPES = [t for t in DType if not t.is_float]
SCALES = st.floats(1e-9, 1e9) | st.sampled_from([0.1, 0.01, 1 / 3, 2**-12, 3.3 / 4096, 1.0])
OFFSETS = st.floats(-1e9, 1e9) | st.sampled_from([0.0, -40.0, 273.15])


@settings(max_examples=150, deadline=None)
@given(SCALES, st.booleans(), OFFSETS, st.booleans(), st.sampled_from(INTEGER_TYPES), st.integers(0, 2**32))
def test_every_count_comes_back(scale, falling, offset, single, dtype, seed):
    """as_input inverts InputSpec.values: the same value, and the same count where no other has that value."""
    signal = Signal(-scale if falling else scale, offset, None, single)
    if dtype.size <= 2:
        x = np.arange(dtype.min, dtype.max + 1)
    else:
        x = np.random.default_rng(seed).integers(dtype.min, dtype.max + 1, 2000)
        x = np.concatenate([x, [dtype.min, dtype.max, dtype.min + 1, dtype.max - 1]])
    value = signal.value(x)
    back = nearest_count(value, dtype, signal)
    inside = np.clip(back, dtype.min, dtype.max)
    # At the very end, a count outside of the type may have the value of the last one inside.
    assert (signal.value(back) == value).all()
    neighbours = (signal.value(x - 1) == value) | (signal.value(x + 1) == value)
    assert (back == x)[~neighbours].all()
    if (inside == back).all():
        spec = InputSpec(dtype, (signal,))
        out, _ = as_input(spec.values(x.astype(dtype.np)[:, None]), spec, "x")
        assert (spec.values(out)[:, 0] == value).all()


@settings(max_examples=100, deadline=None)
@given(SCALES, OFFSETS, st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50))
def test_no_count_is_nearer(scale, offset, values):
    signal, v = Signal(scale, offset), np.array(values)
    got = nearest_count(v, DType.I16, signal)
    counts = np.arange(-32769, 32769)
    best = np.abs(signal.value(counts)[None, :] - v[:, None]).min(axis=1)
    assert (np.abs(signal.value(got) - v) == best).all()
