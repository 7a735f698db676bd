"""Nets by step (--stream): pushing T samples gives the bits that the whole net gives for the sequence of them."""

from __future__ import annotations

import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "frontends"))

from onnx_nets import load, net, node
from plain_rig import LOC, i8, ints
from test_export_nets import sequence_net, weights
from test_qrecurrent import Q_C, Q_H, Q_X, X, Y, float_gru, float_lstm, of_gru, of_lstm

import mcugen
from mcugen import exported
from mcugen.cli import main
from mcugen.core.passes import evaluate
from mcugen.core.types import Array
from mcugen.emit.sources import sources_of
from mcugen.errors import InternalError, UnsupportedError
from mcugen.exported import open_folder
from mcugen.nn.ops.frecurrent import FGru, FLstm
from mcugen.nn.ops.frecurrent_step import FGruStep, FLstmStep
from mcugen.nn.ops.qgru_step import QGruStep
from mcugen.nn.ops.qlstm_step import QLstmStep
from mcugen.nn.passes import simplify
from mcugen.nn.stepping import evaluate_steps, one_step
from mcugen.verify.compare import compare_bits
from mcugen.verify.compiler import find_host_compiler
from mcugen.verify.sanitize import build_runner, run_golden

STEPS = 9


def as_step(op: Any, kind: type) -> Any:
    return kind(*(1 if f.name == "steps" else getattr(op, f.name) for f in fields(op)))


# Ops


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 6), st.integers(0, 7), st.booleans(), st.booleans())
def test_steps_are_the_sequence(seed: int, inputs: int, hidden: int, steps: int, start: bool, after: bool) -> None:
    """Every prefix: all three results after t steps are those of the sequence that ends there."""
    lstm = float_lstm(seed, inputs, hidden, start=start, size=2.0)
    gru = float_gru(seed, inputs, hidden, after, start=start, size=2.0)
    first = np.concatenate([lstm.h0, lstm.c0])
    x = ints(seed, steps * inputs).reshape(steps, 1, inputs)
    pairs: list[tuple[Any, type, Array]] = [
        (of_lstm(lstm, max(steps, 1)), QLstmStep, x),
        (of_gru(gru, max(steps, 1)), QGruStep, x),
        (FLstm(X, Y, LOC, max(steps, 1), lstm.w, lstm.r, lstm.b, first), FLstmStep, x / np.float32(40)),
        (FGru(X, Y[:2], LOC, max(steps, 1), gru.w, gru.r, gru.bw, gru.br, gru.h0, after), FGruStep, x / np.float32(40)),
    ]
    for op, kind, rows in pairs:
        found = as_step(op, kind).eval(rows)
        assert all(len(v) == steps for v in found)
        for t in range(1, steps + 1):
            every, *last = replace(op, steps=t).eval(rows[:t].reshape(1, t, inputs))
            assert compare_bits(every[0, -1], found[0][t - 1], "every") is None
            for whole, one in zip(last, found[1:], strict=True):
                assert compare_bits(whole[0], one[t - 1], "last") is None


def test_more_than_one_step_is_our_bug() -> None:
    op = as_step(of_lstm(float_lstm(5, 2, 3), 1), QLstmStep)
    types = {"x": i8((1, 2), Q_X), "y": i8((1, 3), Q_H), "h": i8(3, Q_H), "c": i8(3, Q_C)}
    op.check(types)
    with pytest.raises(InternalError, match="QLstmStep: 2 steps"):
        replace(op, steps=2).check(types)


# Nets

RNG = np.random.default_rng(2)
CONSTANTS = {
    "w": weights(RNG, 1, 16, 3), "r": weights(RNG, 1, 16, 4), "b": RNG.normal(0, 0.3, (1, 32)),
    "h0": RNG.normal(0, 0.5, (1, 1, 4)), "c0": RNG.normal(0, 0.5, (1, 1, 4)),
    "gw": weights(RNG, 1, 12, 3), "gr": weights(RNG, 1, 12, 4), "gb": RNG.normal(0, 0.3, (1, 24)),
    "pw": weights(RNG, 2, 3), "pb": RNG.normal(0, 0.2, 3), "dw": 2 * weights(RNG, 5, 4), "db": RNG.normal(0, 0.2, 5),
    "k": np.array([0.5, 2.0, 1.5]), "axis0": np.array([0], np.int64), "axis1": np.array([1], np.int64),
    "last": np.array(STEPS - 1), "shape": np.array([STEPS, 4], np.int64), "wt": weights(RNG, 4, 5),
}  # fmt: skip
TURN = node("Transpose", "x", "t", perm=[1, 0, 2])
NETS: dict[str, tuple[list[onnx.NodeProto], list[int]]] = {
    "lstm, both last states": (
        [TURN, node("LSTM", "t w r b - h0 c0", "- h c", hidden_size=4), node("Add", "h c", "s"),
         node("Squeeze", "s axis0", "f"), node("Gemm", "f dw db", "y", transB=1)],
        [1, STEPS, 3],
    ),
    "gru, each step": (
        [TURN, node("GRU", "t gw gr gb", "e -", hidden_size=4), node("Squeeze", "e axis1", "s"),
         node("Transpose", "s", "u", perm=[1, 0, 2]), node("MatMul", "u wt", "m"), node("Tanh", "m", "y")],
        [1, STEPS, 3],
    ),
    "layers before": (
        [node("MatMul", "x pw", "p"), node("Add", "p pb", "a"), node("LeakyRelu", "a", "l", alpha=0.1),
         node("Mul", "l k", "q"),
         node("Transpose", "q", "t", perm=[1, 0, 2]), node("LSTM", "t w r b", "e - -", hidden_size=4),
         node("Reshape", "e shape", "s"), node("Gather", "s last", "g", axis=0), node("Sigmoid", "g", "y")],
        [1, STEPS, 2],
    ),
    "two layers": (
        [TURN, node("GRU", "t gw gr gb", "e -", hidden_size=4, linear_before_reset=1), node("Squeeze", "e axis1", "s"),
         node("LSTM", "s w2 r b", "- h -", hidden_size=4), node("Squeeze", "h axis0", "y")],
        [1, STEPS, 3],
    ),
}  # fmt: skip
CONSTANTS["w2"] = weights(RNG, 1, 16, 4)


def model_of(kind: str) -> onnx.ModelProto:
    nodes, shape = NETS[kind]
    read = {v for n in nodes for v in n.input}
    constants = {k: v for k, v in CONSTANTS.items() if k in read}
    if "last" in constants:
        constants["last"] = np.asarray(constants["last"], np.int64)
    return net(nodes, shape, constants)


def samples_of(kind: str, count: int, seed: int = 1) -> Array:
    return np.random.default_rng(seed).normal(0, 1, (count, *NETS[kind][1][1:])).astype(np.float32)


@pytest.mark.parametrize("kind", NETS)
def test_float_reference_by_step(kind: str) -> None:
    """The float oracle of a run is the whole net on its prefix."""
    source = simplify(load(model_of(kind)))
    stepped = one_step(source)
    x = samples_of(kind, 1)
    want = evaluate(source, {source.inputs[0]: x})[source.outputs[0]][0]
    found = evaluate_steps(stepped.model, np.moveaxis(x[0], stepped.came, 0)[:, None].reshape(STEPS, 1, -1))
    want = np.moveaxis(want, stepped.gone, 0) if stepped.gone is not None else want
    found = found if stepped.gone is not None else found[-1]
    np.testing.assert_allclose(found.reshape(want.shape), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("float32", [False, True], ids=["int8", "float32"])
@pytest.mark.parametrize("kind", NETS)
def test_pushes_give_the_bits_of_the_whole_net(kind: str, float32: bool, tmp_path: Path) -> None:
    """Two exports of one file: C that takes the sequence, and C that takes one step a push."""
    onnx.save(model_of(kind), tmp_path / "net.onnx")
    np.savez(tmp_path / "calib.npz", x=samples_of(kind, 30))
    options: dict[str, Any] = {"calib": tmp_path / "calib.npz", "float32": float32}
    mcugen.export(tmp_path / "net.onnx", tmp_path / "whole", **options)
    mcugen.export(tmp_path / "net.onnx", tmp_path / "step", stream=True, **options)
    whole, step = open_folder(tmp_path / "whole"), open_folder(tmp_path / "step")
    np.save(tmp_path / "x.npy", samples_of(kind, 6, 5))
    x, _ = whole.references().read(tmp_path / "x.npy")
    with whole.host() as host:
        expected = host.run(x)
    with step.host() as host:
        runs = host.push_all(list(x.reshape(len(x), STEPS, -1)))
    for want, (y, status) in zip(expected, runs, strict=True):
        assert not status.any()
        got = y.reshape(-1) if want.size == y.size else y[-1]
        assert compare_bits(want, got, kind) is None
    if kind in ("layers before", "two layers"):
        lines = exported.verify(tmp_path / "step", target="stm32h743")
        assert "pushes equal, every bit" in lines[0]


def command(*words: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    assert ended.value.code == 0


def test_stream_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Export, run a recording of its own length, verify with data, sanitizers."""
    onnx.save(sequence_net(), tmp_path / "net.onnx")
    x = np.random.default_rng(3).normal(0, 1, (20, 9, 3)).astype(np.float32)
    np.savez(tmp_path / "calib.npz", x=x)
    out = tmp_path / "out"
    words = ["export", str(tmp_path / "net.onnx"), "-o", str(out), "--name", "seq", "--stream"]
    command(*words, "--calib", str(tmp_path / "calib.npz"))
    text = capsys.readouterr().out
    assert "seq_push(seq_state_t *s, const int8_t x[3]" in text
    assert "40 bytes of the caller's; a result at every push" in text
    np.save(tmp_path / "run.npy", x.reshape(-1, 3)[:50])
    arguments = ["--input", str(tmp_path / "run.npy"), "--output", str(tmp_path / "y.npy")]
    command("run", str(out), *arguments)
    assert np.load(tmp_path / "y.npy").shape == (50, 4)
    command("verify", str(out), "--data", str(tmp_path / "run.npy"))
    assert "run.npy: 50 rows equal, every bit" in capsys.readouterr().out
    export = open_folder(out)
    with build_runner(
        export.files, sources_of(export.files), "seq", find_host_compiler("gcc"), stateful=True
    ) as program:
        assert run_golden(program, export.files[export.golden_path]).returncode == 0


# Refusals


def refusal(nodes: list[onnx.NodeProto], shape: list[int], constants: dict[str, Any]) -> str:
    with pytest.raises(UnsupportedError) as caught:
        one_step(simplify(load(net(nodes, shape, constants))))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_has_no_step_is_refused() -> None:
    lstm = node("LSTM", "t w r b", "e h -", hidden_size=4)
    some = {k: CONSTANTS[k] for k in ("w", "r", "b")}
    assert "has no LSTM or GRU layer" in refusal([node("Relu", "x", "y")], [1, 3], {})
    mean = [TURN, lstm, node("ReduceMean", "e", "y", axes=[0], keepdims=0)]
    assert "(Reduce) works on several time steps" in refusal(mean, [1, STEPS, 3], some)
    first = [TURN, lstm, node("Gather", "e first", "y", axis=0)]
    assert "(Slice) works on" in refusal(first, [1, STEPS, 3], some | {"first": np.array(0, np.int64)})
    flat = [TURN, lstm, node("Flatten", "e", "y", axis=0)]
    assert "(Reshape) works on several time steps" in refusal(flat, [1, STEPS, 3], some)
    conv = [
        node("Conv", "x k", "c", pads=[1, 1]),
        node("Transpose", "c", "t", perm=[2, 0, 1]),
        lstm,
        node("Relu", "h", "y"),
    ]
    text = refusal(conv, [1, 3, STEPS], some | {"k": weights(RNG, 3, 3, 3)})
    assert "works on several time steps" in text
    both = [TURN, lstm, node("Add", "e h", "y")]
    assert "works on several time steps" in refusal(both, [1, STEPS, 3], some)


def test_trees_have_no_stream(tmp_path: Path) -> None:
    example = Path(__file__).resolve().parents[2] / "examples" / "quickstart" / "furnace.txt"
    with pytest.raises(UnsupportedError, match="trees remember nothing"):
        mcugen.export(example, tmp_path / "out", stream=True)
