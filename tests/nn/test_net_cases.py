"""Faults that users of other net compilers met, as tests with known answers: rows N19, N20, N23, N24.

docs/testing.md lists the rows that stand beside the code which they are about.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import cffi
import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "frontends"))

from machine_nets import random_model
from onnx_nets import load, net, node

import mcugen
from mcugen import exported
from mcugen.core.dump import dump_text
from mcugen.core.passes import evaluate
from mcugen.core.types import Array, Source
from mcugen.emit.parts import machine_ops
from mcugen.emit.sources import sources_of
from mcugen.errors import UnsupportedError
from mcugen.exported import open_folder
from mcugen.nn.ops.qdepthwise import QDepthwise
from mcugen.nn.passes import simplify
from mcugen.nn.quantize.losses import losses
from mcugen.nn.quantize.quantize import quantize
from mcugen.nn.quantize.ranges import value_ranges
from mcugen.nn.vectors import net_vectors
from mcugen.target.arena import plan_arena
from mcugen.verify.compiler import find_host_compiler
from mcugen.verify.hostbuild import build_shared


def pair(x: str, y: str, scale: str, zero: str) -> list[onnx.NodeProto]:
    q = node("QuantizeLinear", f"{x} {scale} {zero}", f"{y}_q")
    return [q, node("DequantizeLinear", f"{y}_q {scale} {zero}", y)]


def dense_net(shape: tuple[int, ...], zero: np.generic) -> onnx.ModelProto:
    """[a, b] -> a + b, everything with the scale 1 and of the type of ``zero``; scales of this shape."""
    constants = {"s": np.ones(shape, np.float32), "z": np.full(shape, zero)}
    constants |= {"wq": np.ones((2, 1), np.int8), "ws": np.ones(shape, np.float32), "wz": np.zeros(shape, np.int8)}
    nodes = [*pair("x", "a", "s", "z"), node("DequantizeLinear", "wq ws wz", "w"), node("MatMul", "a w", "c")]
    return net([*nodes, *pair("c", "y", "s", "z")], (1, 2), constants)


@pytest.mark.parametrize("zero", [np.int8(3), np.uint8(0)])
def test_n19_scales_of_shape_one_are_scalars(zero: np.generic) -> None:
    """onnx2c 86: 0-D scales and those of shape [1] give the same net, to the bit."""
    machines = [quantize(simplify(load(dense_net(shape, zero))), None).machine for shape in ((), (1,))]
    first, second = (dump_text(replace(m, source=Source("n", "onnx", "")), "n") for m in machines)
    assert first == second
    x = net_vectors(machines[0].types["x"], None)
    assert np.array_equal(*(evaluate(m, {"x": x})[m.outputs[0]] for m in machines))


def test_n20_products_saturate(tmp_path: Path) -> None:
    """onnx2c: 200 + 200 in uint8 is 255, not 400 - 256 = 144. (As int8 with the zero point -128: 127.)"""
    onnx.save(dense_net((), np.uint8(0)), tmp_path / "net.onnx")
    mcugen.export(tmp_path / "net.onnx", tmp_path / "out", name="net", board=None)
    np.save(tmp_path / "x.npy", np.float32([[200, 200], [100, 44], [255, 255], [0, 0], [-7, 3]]))
    y, _ = exported.run(tmp_path / "out", tmp_path / "x.npy", tmp_path / "y.npy")
    kind = open_folder(tmp_path / "out").manifest["outputs"][0]
    assert ((y.reshape(-1).astype(int) - kind["zero_point"]) * kind["scale"]).tolist() == [255, 144, 255, 0, 3]


@pytest.mark.parametrize("op", ["QLinearMatMul", "QLinearConv"])
def test_n20_the_other_format_is_refused(op: str) -> None:
    """Better no answer than a wrong one, and a word on what to do."""
    names = "q s z w s z s z"
    constants = {"s": np.float32(1), "z": np.uint8(0), "w": np.ones((2, 2), np.uint8)}
    nodes = [node("QuantizeLinear", "x s z", "q"), node(op, names, "p"), node("DequantizeLinear", "p s z", "y")]
    with pytest.raises(UnsupportedError, match="QDQ"):
        load(net(nodes, (1, 2), constants))


# N23: plans that let live buffers overlap (tinyengine 91).


def weights(rng: np.random.Generator, *shape: int) -> Array:
    return rng.normal(0, 1 / np.sqrt(np.prod(shape[1:])), shape)


def residual() -> onnx.ModelProto:
    """A value that lives over three layers."""
    rng = np.random.default_rng(0)
    nodes = [
        node("Conv", "x w0", "a", pads=[1, 1, 1, 1]),
        node("Conv", "a w1", "b", pads=[1, 1, 1, 1], group=4),
        node("Conv", "b w2", "c"),
        node("Add", "c a", "d"),
        node("Add", "d b", "e"),
        node("Flatten", "e", "y"),
    ]
    constants = {"w0": weights(rng, 4, 2, 3, 3), "w1": weights(rng, 4, 1, 3, 3), "w2": weights(rng, 4, 4, 1, 1)}
    return net(nodes, [1, 2, 6, 5], constants)


def concat() -> onnx.ModelProto:
    """Parts of other sizes that wait for each other; one of them is read again behind the whole."""
    rng = np.random.default_rng(1)
    nodes = [
        node("Conv", "x w0", "a", pads=[1, 1, 1, 1]),
        node("Conv", "x w1", "b"),
        node("MaxPool", "a", "m", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Concat", "b m a", "c", axis=1),
        node("Conv", "c w2", "d"),
        node("Mul", "d b", "e"),
        node("Flatten", "e", "y"),
    ]
    constants = {"w0": weights(rng, 3, 2, 3, 3), "w1": weights(rng, 5, 2, 1, 1), "w2": weights(rng, 5, 11, 1, 1)}
    return net(nodes, [1, 2, 6, 5], constants)


@pytest.mark.parametrize("make", [residual, concat])
def test_n23_poisoned_and_larger_arenas(make: object, tmp_path: Path) -> None:
    """Whatever the arena held, and with room behind it: the same bits, and nothing written outside."""
    onnx.save(make(), tmp_path / "net.onnx")  # type: ignore[operator]
    np.savez(tmp_path / "c.npz", x=np.random.default_rng(2).normal(0, 1, (8, 2, 6, 5)).astype(np.float32))
    mcugen.export(tmp_path / "net.onnx", tmp_path / "out", name="net", calib=tmp_path / "c.npz", board=None)
    folder = open_folder(tmp_path / "out")
    golden = folder.golden()
    x, y = golden.of_role("input")[0].data, golden.of_role("output")[0].data
    size = int(folder.files["net.h"].decode().split("NET_ARENA_BYTES ")[1].split("u")[0])
    with build_shared(folder.files, sources_of(folder.files), find_host_compiler()) as library:
        ffi = cffi.FFI()
        ffi.cdef("int32_t net_run_with(void *arena, const int8_t *x, int8_t *y);")
        lib = ffi.dlopen(str(library))
        for poison in (0x00, 0xA5, 0xFF):
            block = np.full(2 * size + 64, poison, np.uint8)
            start = (-block.ctypes.data) % 8 + 8
            found = np.zeros_like(y[0])
            for row, expected in zip(x, y, strict=True):
                pointers = [block.ctypes.data + start, np.ascontiguousarray(row).ctypes.data, found.ctypes.data]
                types = ("void *", "int8_t *", "int8_t *")
                assert lib.net_run_with(*(ffi.cast(t, p) for t, p in zip(types, pointers, strict=True))) == 0
                assert (found == expected).all()
            assert (block[:start] == poison).all()
            assert (block[start + size :] == poison).all()
        ffi.dlclose(lib)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), ports=st.booleans())
def test_n23_plans_of_real_ops(seed: int, ports: bool) -> None:
    """Random machine nets, some with two outputs: what is alive together never shares a byte, in-place apart."""
    model = random_model(seed)
    ops = machine_ops(model)
    plan = plan_arena(model, ops, ports=ports)
    assert plan.lower_bound <= plan.size
    last = {v: i for i, op in enumerate(ops) for v in op.inputs}
    spans = {}
    if ports:
        last |= dict.fromkeys(model.outputs, len(ops))
        starts = {v: plan.offset(v) for v in model.inputs}
        spans = {v: (at, at + model.types[v].count, -1, last.get(v, -1)) for v, at in starts.items()}
    for i, op in enumerate(ops):
        for v in op.outputs:
            if ports or v not in model.outputs:
                spans[v] = (plan.offset(v), plan.offset(v) + model.types[v].count, i, last.get(v, i))
    assert {slot.value for slot in plan.slots} == set(spans)
    for i, op in enumerate(ops):
        place = plan.scratch[i]
        alive = {v: s for v, s in spans.items() if s[2] <= i <= s[3]}
        shares = op.in_place or op.lag is not None
        taken = {v for v in op.inputs if v in spans and spans[v][3] == i} if shares else set()
        marks: dict[int, str] = {}
        for v, (begin, end, made, _) in alive.items():
            for byte in range(begin, end):
                owner = marks.setdefault(byte, v)
                assert owner == v or (made == i and owner in taken) or (v in taken and owner in op.outputs), (owner, v)
        if op.lag is not None and not op.in_place and op.inputs[0] in taken and op.outputs[0] in spans:
            # An output that trails its input starts so far before it that it never overtakes the reads.
            first, second = plan.offset(op.outputs[0]), plan.offset(op.inputs[0])
            overlap = (
                first < second + model.types[op.inputs[0]].count and second < first + model.types[op.outputs[0]].count
            )
            assert not overlap or first + op.lag <= second
            if place is not None:
                assert end <= place or begin >= place + op.scratch_bytes


def test_n24_depthwise_weights_have_a_scale_a_channel() -> None:
    """nnom 68: channels of 1 : 1000. Every row of weights, and the layer, keep more than 30 dB."""
    rng = np.random.default_rng(3)
    spread = np.logspace(0, 3, 16)
    w = rng.normal(0, 1, (16, 1, 3, 3)) * spread[:, None, None, None]
    nodes = [node("Conv", "x w b", "y", group=16, pads=[1, 1, 1, 1])]
    source = simplify(load(net(nodes, [1, 16, 8, 8], {"w": w, "b": np.zeros(16)})))
    # Inputs whose spread undoes that of the weights, so that no channel hides behind another one at the output.
    x = (rng.normal(0, 1, (32, 16, 8, 8))).astype(np.float32)
    quantized = quantize(source, value_ranges(source, (x,), "minmax"))
    (op,) = quantized.machine.ops
    assert isinstance(op, QDepthwise)
    rows = op.weight.reshape(16, -1).astype(np.float64)
    real = w.reshape(16, -1)
    scale = np.abs(real).max(axis=1, keepdims=True) / 127
    noise = ((rows * scale - real) ** 2).sum(axis=1)
    assert (10 * np.log10((real**2).sum(axis=1) / noise) > 30).all()
    layers, _ = losses(source, quantized, (x,))
    assert all(v.sqnr > 30 for v in layers)
