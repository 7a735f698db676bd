"""RowChain: rows of several layers at a time give the bits of the layers one after the other, in planned memory."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bare_core import RUNTIME, SANITIZE, WARNINGS
from hypothesis import given, settings
from hypothesis import strategies as st
from machine_nets import Image as Value
from machine_nets import Maker
from plain_rig import Case, _objects, check_board, check_c

from mcugen.core.op import Names
from mcugen.core.passes import check_model, evaluate
from mcugen.core.store import unpack
from mcugen.core.types import DType, TensorType
from mcugen.ctext.arrays import array_rows
from mcugen.emit.parts import machine_ops
from mcugen.errors import InternalError
from mcugen.nn.fuse import chain_of, fused, images_of
from mcugen.nn.ops.qconv import QConv
from mcugen.nn.ops.qdepthwise import QDepthwise
from mcugen.nn.ops.row_chain import MOST_LAYERS, RowChain
from mcugen.nn.ops.strip_schedule import StripLayer, schedule_of
from mcugen.nn.stored import REGISTRY, net_reference_bytes
from mcugen.target.arena import plan_arena

KINDS = ("conv", "point", "deep", "table", "max", "avg", "residual", "shortcut")


def lying(m: Maker, planar: bool, clamps: bool = True) -> None:
    """The last op writes this layout. Kernels clamp planes as a whole, so that a chain takes none that need it."""
    op = m.ops[-1]
    assert isinstance(op, QConv | QDepthwise)
    m.ops[-1] = op = replace(op, out_planar=planar)
    if planar or not clamps:
        m.ops[-1] = replace(op, requant=replace(op.requant, low=-128, high=127))
    value = m.types[op.outputs[0]]
    m.types[op.outputs[0]] = TensorType(op.out_physical, DType.I8, value.q)


def grow(m: Maker, rng: np.random.Generator, kind: str, x: Value) -> Value:
    """One layer more, or several that meet again in a sum."""
    planar = bool(rng.random() < 0.4)
    if x.planar and x.shape[0] > 1 and kind in ("table", "residual"):
        kind = "conv"
    if kind in ("conv", "point", "deep"):
        kernel = (1, 1) if kind == "point" else tuple(int(k) for k in rng.choice([1, 2, 3, 3, 5], 2))
        if kind == "deep":
            m.depthwise(x, int(rng.integers(1, 3)), kernel)
        else:
            m.conv(x, int(rng.integers(1, 9)), kernel)
        lying(m, planar)
        op = m.ops[-1]
        return Value(op.outputs[0], op.out_shape, planar, m.types[op.outputs[0]].q)  # type: ignore[union-attr]
    if kind == "table":
        return m.table(x)
    if kind in ("max", "avg"):
        return m.pool(x, kind, (int(rng.integers(1, 4)), int(rng.integers(1, 4))))
    return branches(m, rng, x, 1 if kind == "residual" else 2)


def branches(m: Maker, rng: np.random.Generator, x: Value, stride: int) -> Value:
    """Two 3 x 3 layers and what they are added to: x, or a pointwise layer of it with the same stride."""
    a = same(m, x, x.shape[0] if stride == 1 else 5, 3, stride)
    a = same(m, a, a.shape[0], 3, 1)
    b = x if stride == 1 else same(m, x, 5, 1, stride)
    return m.add(a, b, int(rng.choice([-1, 1])))


def same(m: Maker, x: Value, out: int, kernel: int, stride: int) -> Value:
    """A convolution with padding to the same size, interleaved."""
    y = m.conv(x, out, (kernel, kernel), 0.0)
    op = m.ops[-1]
    assert isinstance(op, QConv)
    size = tuple(-(-n // stride) for n in x.shape[1:])
    pads = [max((s - 1) * stride + kernel - n, 0) for s, n in zip(size, x.shape[1:], strict=True)]
    before = [p // 2 for p in pads]
    geometry = {"stride": (stride, stride), "dilation": (1, 1), "out_shape": (out, *size)}
    geometry["pads"] = (*before, pads[0] - before[0], pads[1] - before[1])
    m.ops[-1] = replace(op, **geometry, out_planar=False)  # type: ignore[arg-type]
    m.types[y.name] = TensorType((*size, out), DType.I8, y.q)
    return Value(y.name, (out, *size), False, y.q)  # type: ignore[arg-type]


def chain(seed: int, layers: int = 4, size: int = 12) -> tuple[Maker, RowChain]:
    """A random chain; the first layer is a convolution, which reads planes or not."""
    rng = np.random.default_rng(seed)
    shape = (int(rng.integers(1, 7)), int(rng.integers(1, size)), int(rng.integers(1, size)))
    m = Maker(rng, shape, bool(rng.random() < 0.4))
    x = grow(m, rng, "conv", m.x)
    while len(m.ops) < layers:
        x = grow(m, rng, str(rng.choice(KINDS)), x)
    model = m.model(x)
    check_model(model, "test")
    ops = machine_ops(model)
    found = chain_of(model, ops, images_of(ops), (0, len(ops)), int(rng.choice([1, 1, 7, 24, 1000])))
    assert found is not None
    return m, found


def inputs_of(m: Maker, op: RowChain, seed: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    return tuple(rng.integers(-128, 128, m.types[v].shape).astype(np.int8) for v in op.inputs)


def case(seed: int, layers: int = 4) -> tuple[Maker, Case]:
    m, op = chain(seed, layers)
    op.check(m.types)
    return m, Case(op, inputs_of(m, op, seed))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), layers=st.integers(1, 8))
def test_reference_and_schedule(seed: int, layers: int) -> None:
    """eval is that of the layers; each row is computed once, from rows that are there, in windows that suffice."""
    m, op = chain(seed, layers)
    model = m.model(Value(op.outputs[0], (1, 1, 1), False, m.x.q))
    (x,) = inputs_of(m, op, seed)
    np.testing.assert_array_equal(op.eval(x[None])[0], evaluate(model, {"x": x[None]})[op.outputs[0]])
    check_model(fused(model, {(0, len(op.layers)): op}), "fusing")
    check_schedule(op)


def check_schedule(op: RowChain) -> None:
    """Replays the calls with a set of rows for each value."""
    layers, schedule, n = op.strip_layers, op.schedule, len(op.inputs)
    held = [set(range(op.images[v].shape[1])) for v in op.inputs] + [set() for _ in layers]
    first = [0] * len(held)
    for call in schedule.calls:
        s, v = layers[call.layer], n + call.layer
        first[v] += call.moved
        held[v] = {r for r in held[v] if r >= first[v]} | set(range(call.first, call.end))
        assert call.first == len([r for r in range(call.first) if r < first[v] or r in held[v]])
        assert call.end - first[v] <= schedule.rows[call.layer]
        assert call.end - call.first >= s.least
        for x in s.reads:
            height = op.images[op.values[x]].shape[1]
            wanted = {
                r
                for o in range(call.first, call.end)
                for r in range(o * s.stride - s.pad_top, o * s.stride - s.pad_top + s.reach)
                if 0 <= r < height
            }
            assert wanted <= held[x]
    for k, s in enumerate(layers):
        assert [c.first for c in schedule.calls if c.layer == k][1:] == [
            c.end for c in schedule.calls if c.layer == k and c.end < s.height
        ]


def test_c_of_random_chains(tmp_path: Path) -> None:
    """Sanitized, with clang and without intrinsics: the bits of eval, in scratch memory of the planned size."""
    check_c([case(seed, 1 + seed % 8)[1] for seed in range(48)], tmp_path)


def test_c_on_the_board(tmp_path: Path) -> None:
    check_board([case(seed, 2 + seed % 7)[1] for seed in range(200, 220)], tmp_path)


@pytest.mark.slow
def test_c_of_many_chains(tmp_path: Path) -> None:
    for start in range(1000, 4000, 300):
        check_c([case(seed, 1 + seed % 9)[1] for seed in range(start, start + 300)], tmp_path)
    check_board([case(seed, 1 + seed % 9)[1] for seed in range(5000, 5200)], tmp_path)


def lagging(seeds: range) -> list[tuple[RowChain, tuple[np.ndarray, ...]]]:
    """Chains whose output may start in front of their input."""
    found = []
    for seed in seeds:
        m, op = chain(seed, 1 + seed % 7)
        if op.lag is not None:
            found.append((op, inputs_of(m, op, seed)))
    return found


def test_the_output_over_the_input(tmp_path: Path) -> None:
    """As the arena places them: the output starts lag bytes before the input, and takes over its memory; poisoned."""
    chains = lagging(range(300, 360))
    assert len(chains) > 20
    assert sum(op.lag == 0 for op, _ in chains) > 3
    definitions, body, includes, expected = [], [], set(), []
    for i, (op, xs) in enumerate(chains):
        lag, x, y = op.lag, xs[0], op.eval(*(v[None] for v in xs))[0][0]
        names = Names({t.symbol: t.symbol for t in op.items(f"n_{i}")}, {}, f"scratch_{i}")
        text = op.emit(f"n_{i}", (f"(block_{i} + {lag})",), (f"block_{i}",), names)
        includes |= set(text.includes)
        for t in op.items(f"n_{i}"):
            assert t.data is not None
            definitions.append(f"static const {t.ctype} {t.symbol}[{t.count}] = {{\n{array_rows(t.data)}}};")
        definitions += [f"static const int8_t x_{i}[] = {{\n{array_rows(x.reshape(-1))}}};", text.definitions]
        definitions.append(f"static int8_t block_{i}[{max(lag + x.size, y.size)}];")
        definitions.append(f"static _Alignas(8) uint8_t scratch_{i}[{op.scratch_bytes} + 1];")
        body += [f"memset(block_{i}, 0x5A, sizeof block_{i}); memset(scratch_{i}, 0xA5, sizeof scratch_{i});"]
        body += [f"memcpy(block_{i} + {lag}, x_{i}, sizeof x_{i}); {text.call}"]
        body.append(f"fwrite(block_{i}, 1, {y.size}, stdout);")
        expected.append(y.reshape(-1))
    head = ["#include <stdio.h>", "#include <string.h>", *(f'#include "{h}"' for h in sorted(includes))]
    source, program = tmp_path / "lag.c", tmp_path / "lag"
    source.write_text("\n".join([*head, *definitions, "int main(void)\n{", *body, "return 0;\n}\n"]), encoding="utf-8")
    flags = [*SANITIZE, "-O0", *WARNINGS, f"-I{RUNTIME / 'include'}"]
    subprocess.run(["gcc", *flags, str(source), *_objects("sanitized"), "-o", str(program)], check=True)
    done = subprocess.run([str(program)], capture_output=True, check=True)
    np.testing.assert_array_equal(np.frombuffer(done.stdout, np.int8), np.concatenate(expected))


def residual_net(height: int = 9, width: int = 8, channels: int = 4) -> tuple[Maker, Value]:
    m = Maker(np.random.default_rng(1), (channels, height, width), False)
    x = same(m, m.x, channels, 3, 1)
    return m, branches(m, np.random.default_rng(2), x, 1)


def test_a_residual_block_in_the_memory_of_its_input() -> None:
    """Two tensors in the unfused plan; here one, and three rows, one row and one row."""
    m, y = residual_net()
    end = same(m, y, 4, 1, 1)
    model = m.model(end)
    ops = machine_ops(model)
    op = chain_of(model, ops, images_of(ops), (1, 4), 1)
    assert op is not None
    assert op.lag == 0
    assert op.schedule.rows[:2] == (3, 1)
    plan = plan_arena(fused(model, {(1, 4): op}), [ops[0], op, ops[4]])
    row = 4 * 8
    assert plan.size < 9 * row + 5 * row + 800
    assert plan_arena(model, ops).size > 2 * 9 * row


def test_a_value_that_leaves_is_not_inside() -> None:
    m, y = residual_net()
    end = same(m, m.add(y, Value(m.ops[1].outputs[0], y.shape, False, m.types[m.ops[1].outputs[0]].q)), 4, 1, 1)
    model = m.model(end)
    ops = machine_ops(model)
    images = images_of(ops)
    assert chain_of(model, ops, images, (1, 4), 1) is None  # the first of them is read behind
    assert chain_of(model, ops, images, (1, 5), 1) is not None
    assert chain_of(model, ops, images, (2, 4), 1) is not None


def test_clamps_in_planes_stay_outside() -> None:
    """A kernel clamps what it wrote as a whole, which is not what a window in planes holds."""
    m = Maker(np.random.default_rng(1), (3, 6, 6), False)
    x = m.conv(m.x, 4, (3, 3))
    lying(m, True)
    y = m.depthwise(Value(x.name, x.shape, True, x.q), 1, (3, 3))
    lying(m, False)
    model = m.model(y)
    ops = machine_ops(model)
    images = images_of(ops)
    assert chain_of(model, ops, images, (0, 2), 1) is not None
    narrow = (replace(ops[0], requant=replace(ops[0].requant, low=-5)), ops[1])  # type: ignore[type-var]
    assert chain_of(replace(model, ops=narrow), narrow, images, (0, 2), 1) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pixels": 0}, "0 pixels"),
        ({"inner": {}}, "no type"),
        ({"outputs": ("x",)}, "outputs|no type"),
        ({"layers": ()}, "0 layers"),
    ],
)
def test_broken_fields_are_our_bug(change: dict[str, object], message: str) -> None:
    m, op = chain(5)
    op.check(m.types)
    with pytest.raises((InternalError, IndexError), match=message):
        replace(op, **change).check(m.types)


def test_stored_and_read_again() -> None:
    """The reference beside an export holds the chain, its layers and what lies between them."""
    m, op = chain(11, 5)
    model = m.model(Value(op.outputs[0], (1, 1, 1), False, m.x.q))
    packed = net_reference_bytes(model, fused(model, {(0, len(op.layers)): op}))
    again = unpack(packed, {"NetReferences": REGISTRY}, "test").machine
    check_model(again, "reading")
    (x,) = inputs_of(m, op, 3)
    np.testing.assert_array_equal(again.ops[0].eval(x[None])[0], op.eval(x[None])[0])
    assert again.ops[0].scratch_bytes == op.scratch_bytes


def test_costs_are_those_of_the_layers() -> None:
    _, op = chain(7)
    assert op.cost().macs == sum(layer.cost().macs for layer in op.layers)
    assert len(op.layers) <= MOST_LAYERS


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    height=st.integers(1, 40),
    shapes=st.lists(
        st.tuples(st.integers(1, 7), st.integers(1, 3), st.integers(0, 4), st.integers(1, 5), st.booleans()),
        min_size=1,
        max_size=6,
    ),
)
def test_windows_are_as_small_as_calls_allow(height: int, shapes: list[tuple[int, int, int, int, bool]]) -> None:
    """A row of pads and strides of any kind: no window holds more than its reader's reach and two calls."""
    layers, rows = [], height
    for reach, stride, pad, at_once, twos in shapes:
        if rows + 2 * pad < reach:
            break
        out = (rows + 2 * pad - reach) // stride + 1
        multiple = 2 if twos else 1
        call = min(-(-at_once // multiple) * multiple, out)
        layers.append(StripLayer((len(layers),), out, reach, stride, pad, call, min(multiple, out)))
        rows = out
    if not layers:
        return
    schedule = schedule_of((height,), tuple(layers))
    for k, reader in enumerate(layers[1:]):
        reads = (reader.rows + reader.least - 2) * reader.stride + reader.reach
        assert schedule.rows[k] <= max(reads, reader.stride) + layers[k].rows + layers[k].least
    assert schedule.rows[-1] == layers[-1].height
