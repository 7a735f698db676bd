"""The golden file: round trips, and refusal of everything that is not one."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import numpy as np
import pytest
from fake_model import fake_golden, stateful_golden
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mcugen.core.types import DType
from mcugen.errors import InputError, InternalError
from mcugen.verify import golden as gm
from mcugen.verify.golden import HEADER, TENSOR, Golden, GoldenTensor, golden_bytes, read_golden

ROOT = Path(__file__).resolve().parents[2]
SHA = bytes(range(32))


@st.composite
def goldens(draw: st.DrawFn) -> Golden:
    vectors = draw(st.integers(0, 4))
    names = draw(st.lists(st.text(st.sampled_from("abz_09 ~!"), min_size=1, max_size=31), max_size=4, unique=True))
    names = [n for n in names if n.strip()]
    roles = sorted(draw(st.sampled_from(["input", "output"])) for _ in names)
    tensors = []
    for name, role in zip(names, roles, strict=True):
        dtype = draw(st.sampled_from(list(DType)))
        shape = draw(st.lists(st.integers(0, 3), max_size=7))
        tensors.append(GoldenTensor(name.replace(" ", "_"), role, draw(hnp.arrays(dtype.np, (vectors, *shape)))))
    if draw(st.booleans()):
        tensors.append(GoldenTensor("st$", "status", draw(hnp.arrays(np.int32, (vectors,)))))
    if len({t.name for t in tensors}) != len(tensors):
        tensors = tensors[:1]
    return Golden(draw(st.integers(0, 2**32 - 1)), draw(st.binary(min_size=32, max_size=32)), tuple(tensors), vectors)


@settings(max_examples=150, deadline=None)
@given(goldens())
def test_round_trip(g: Golden) -> None:
    data = golden_bytes(g)
    assert len(data) % 8 == 0
    back = read_golden(data, "g.bin")
    assert (back.abi, back.model_sha256, back.vectors) == (g.abi, g.model_sha256, g.vectors)
    assert [(t.name, t.role, t.dtype, t.data.shape) for t in back.tensors] == [
        (t.name, t.role, t.dtype, t.data.shape) for t in g.tensors
    ]
    for a, b in zip(g.tensors, back.tensors, strict=True):
        want = gm.canonical_nan(a.data) if a.role == "output" else a.data
        assert want.tobytes() == b.data.tobytes()
        assert b.data.flags.aligned
        assert not b.data.flags.writeable
    assert golden_bytes(back) == data


@settings(max_examples=25, deadline=None)
@given(goldens())
def test_each_truncation_and_extension_is_refused(g: Golden) -> None:
    data = golden_bytes(g)
    for end in range(len(data)):
        with pytest.raises(InputError, match=r"^g\.bin: offset \d+"):
            read_golden(data[:end], "g.bin")
    with pytest.raises(InputError, match="file_bytes"):
        read_golden(data + b"\0" * 8, "g.bin")


@settings(max_examples=300, deadline=None)
@given(goldens(), st.data())
def test_what_is_accepted_has_one_form(g: Golden, data: st.DataObject) -> None:
    """Any byte may flip: either InputError, or a value that writes these very bytes (output NaNs apart)."""
    raw = bytearray(golden_bytes(g))
    table = HEADER.size + TENSOR.size * len(g.tensors)
    at = data.draw(st.integers(0, table - 1))
    raw[at] ^= data.draw(st.integers(1, 255))
    try:
        back = read_golden(bytes(raw), "g.bin")
    except InputError:
        return
    assert golden_bytes(back)[:table] == bytes(raw)[:table]


@pytest.mark.parametrize("dtype", list(DType), ids=lambda t: t.label)
def test_extremes_of_each_type(dtype: DType) -> None:
    if dtype.is_float:
        info = np.finfo(dtype.np)
        values = np.array([0.0, -0.0, info.min, info.max, info.smallest_subnormal, np.inf, -np.inf, np.nan], dtype.np)
    else:
        values = np.array([dtype.min, dtype.max, 0, 1], dtype.np)
    g = Golden(1, SHA, (GoldenTensor("y", "output", values),), len(values))
    assert read_golden(golden_bytes(g), "g").tensors[0].data.tobytes() == values.tobytes()


def test_nan_payloads_stay_in_inputs_and_become_canonical_in_outputs() -> None:
    odd = np.array([0xFFC00001, 0x7F800001, 0x3F800000], np.uint32).view(np.float32)
    wide = np.array([0xFFF8000000000001, 0x7FF0000000000001, 0], np.uint64).view(np.float64)
    tensors = (GoldenTensor("x", "input", odd), GoldenTensor("y", "output", odd), GoldenTensor("z", "output", wide))
    x, y, z = read_golden(golden_bytes(Golden(1, SHA, tensors, 3)), "g").tensors
    assert x.data.tobytes() == odd.tobytes()
    assert y.data.view(np.uint32).tolist() == [0x7FC00000, 0x7FC00000, 0x3F800000]
    assert z.data.view(np.uint64).tolist() == [0x7FF8000000000000, 0x7FF8000000000000, 0]


def test_foreign_layouts_are_normalized() -> None:
    data = np.arange(24, dtype=np.int16).reshape(4, 6)
    views = (data.astype(">i2"), np.asfortranarray(data), np.repeat(data, 2, axis=1)[:, ::2])
    want = golden_bytes(Golden(1, SHA, (GoldenTensor("x", "input", data),), 4))
    for v in views:
        assert golden_bytes(Golden(1, SHA, (GoldenTensor("x", "input", v),), 4)) == want


def _patched(record: gm.Record, base: int, field: str, code: str, value: object) -> bytes:
    raw = bytearray(golden_bytes(stateful_golden()))
    struct.pack_into("<" + code, raw, base + record.offset(field), value)
    return bytes(raw)


X, Y, S = (HEADER.size + TENSOR.size * i for i in range(3))


@pytest.mark.parametrize(
    ("record", "base", "field", "code", "value", "told"),
    [
        (HEADER, 0, "magic", "8s", b"MCGG\n\x1a\n\0", "offset 0, field magic"),
        (HEADER, 0, "format", "I", 2, "offset 8, field format: 2"),
        (HEADER, 0, "vectors", "I", 6, "offset 216, field offset: 368, expected 376"),
        (HEADER, 0, "vectors", "I", 2**32 - 1, "the data of x need"),
        (HEADER, 0, "tensors", "I", 2**32 - 1, "field tensors"),
        (HEADER, 0, "tensors", "I", 2, "field offset"),
        (HEADER, 0, "file_bytes", "Q", 2**63, "field file_bytes"),
        (TENSOR, X, "name", "32s", b"", "field name"),
        (TENSOR, X, "name", "32s", b"a\0b", "field name"),
        (TENSOR, X, "name", "32s", b"x" * 32, "field name"),
        (TENSOR, X, "name", "32s", b"\xc3\xa4", "field name"),
        (TENSOR, Y, "name", "32s", b"x", "'x' stands there twice"),
        (TENSOR, X, "role", "I", 0, "field role"),
        (TENSOR, X, "dtype", "I", 9, "field dtype"),
        (TENSOR, X, "rank", "I", 8, "field rank"),
        (TENSOR, X, "rank", "I", 0, "field dim0: 3"),
        (TENSOR, X, "dim0", "I", 2**32 - 1, "the data of x need"),
        (TENSOR, X, "dim6", "I", 0, "field dim6"),
        (TENSOR, Y, "offset", "Q", 0, "field offset"),
        (TENSOR, S, "dtype", "I", 2, "status"),
        (TENSOR, Y, "role", "I", 3, "status"),
    ],
)
def test_a_wrong_field_is_named(record: gm.Record, base: int, field: str, code: str, value: object, told: str) -> None:
    raw = _patched(record, base, field, code, value)
    with pytest.raises(InputError, match=told) as e:
        read_golden(raw, "g.bin")
    assert str(e.value).startswith("g.bin: ")
    assert "\n" not in str(e.value)


def test_order_and_padding() -> None:
    raw = bytearray(golden_bytes(stateful_golden()))
    padding = bytearray(raw)
    padding[367] = 1
    with pytest.raises(InputError, match="offset 364: the padding after x"):
        read_golden(bytes(padding), "g.bin")
    struct.pack_into("<I", raw, X + TENSOR.offset("role"), 2)
    assert len(read_golden(bytes(raw), "g.bin").of_role("output")) == 2  # well formed
    struct.pack_into("<I", raw, Y + TENSOR.offset("role"), 1)
    with pytest.raises(InputError, match="the order of the tensors"):
        read_golden(bytes(raw), "g.bin")


def test_shape_without_elements_but_too_large() -> None:
    g = Golden(1, SHA, (GoldenTensor("x", "input", np.zeros((1, 0, 1, 1, 1), np.float64)),), 1)
    raw = bytearray(golden_bytes(g))
    for i in range(1, 4):
        struct.pack_into("<I", raw, HEADER.size + TENSOR.offset(f"dim{i}"), 2**32 - 1)
    with pytest.raises(InputError, match="too large"):
        read_golden(bytes(raw), "g.bin")


@pytest.mark.parametrize(
    ("tensors", "vectors"),
    [
        ((GoldenTensor("x" * 32, "input", np.zeros(1, np.int8)),), 1),
        ((GoldenTensor("ü", "input", np.zeros(1, np.int8)),), 1),
        ((GoldenTensor("x", "input", np.zeros(2, np.int8)),), 1),
        ((GoldenTensor("x", "input", np.zeros((), np.int8)),), 1),
        ((GoldenTensor("x", "input", np.zeros(1, np.int64)),), 1),
        ((GoldenTensor("x", "input", np.zeros(1, np.bool_)),), 1),
        ((GoldenTensor("x", "weight", np.zeros(1, np.int8)),), 1),
        ((GoldenTensor("x", "input", np.zeros(1, np.int8)),) * 2, 1),
        ((GoldenTensor("y", "output", np.zeros(1, np.int8)), GoldenTensor("x", "input", np.zeros(1, np.int8))), 1),
        ((GoldenTensor("s", "status", np.zeros((1, 1), np.int32)),), 1),
        ((GoldenTensor("s", "status", np.zeros(1, np.int8)),), 1),
        ((GoldenTensor("x", "input", np.zeros((1,) * 9, np.int8)),), 1),
        ((GoldenTensor("x", "input", np.zeros((0, 2**32), np.int8)),), 0),
    ],
)
def test_own_mistakes_are_internal(tensors: tuple[GoldenTensor, ...], vectors: int) -> None:
    with pytest.raises(InternalError):
        golden_bytes(Golden(1, SHA, tensors, vectors))


def test_sha_length() -> None:
    with pytest.raises(InternalError):
        golden_bytes(Golden(1, b"short", (), 0))


def test_document_follows_the_records() -> None:
    text = (ROOT / "docs" / "golden.md").read_text(encoding="utf-8")
    types = {"8s": "8 bytes", "32s": "32 bytes", "I": "u32", "Q": "u64"}
    for record, title in ((HEADER, "Header"), (TENSOR, "Tensor record")):
        part = re.search(rf"## {title}, {record.size} bytes\n(.*?)\n## ", text, re.S)
        assert part is not None
        rows = re.findall(r"^\| (\d+) \| (\w+(?: bytes)?) \| `(\w+)` \|", part[1], re.M)
        assert rows == [(str(record.offset(f.name)), types[f.code], f.name) for f in record.fields]
    codes = ", ".join(f"{c} {t.label}" for t, c in gm.DTYPE_CODES.items())
    assert codes in text
    assert ", ".join(f"{c} {r}" for r, c in gm.ROLE_CODES.items()) in text


def test_c_header_follows_the_records() -> None:
    text = (ROOT / "mcugen" / "verify" / "c" / "golden_reader.h").read_text(encoding="utf-8")
    enum = {k: int(v) for k, v in re.findall(r"\bGOLDEN_(\w+) = (\d+)", text)}
    names = {t: t.name for t in DType}
    assert enum == {names[t]: c for t, c in gm.DTYPE_CODES.items()} | {r.upper(): c for r, c in gm.ROLE_CODES.items()}
    defines = dict(re.findall(r"#define GOLDEN_(\w+) (\d+)", text))
    assert {k: int(v) for k, v in defines.items()} == {
        "FORMAT": gm.FORMAT_VERSION,
        "NAME_BYTES": gm.NAME_BYTES,
        "MAX_RANK": gm.MAX_RANK,
        "MAX_TENSORS": gm.MAX_TENSORS,
    }
    sizes = re.search(r"size\[9\] = \{0, ([\d, ]+)\}", text)
    assert sizes is not None
    assert [int(s) for s in sizes[1].split(",")] == [t.size for t in sorted(gm.DTYPE_CODES, key=gm.DTYPE_CODES.get)]


def test_the_fakes_are_readable() -> None:
    for g in (fake_golden(), stateful_golden()):
        assert read_golden(golden_bytes(g), "g").vectors == g.vectors
