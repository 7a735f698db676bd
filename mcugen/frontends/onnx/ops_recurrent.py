"""Handlers of LSTM and GRU, in one or both directions, with constant weights and a constant first state."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcugen.core.types import Array
from mcugen.frontends.onnx.call import Call
from mcugen.frontends.onnx.scanner import Attribute
from mcugen.frontends.onnx.values import Activated, as_float32
from mcugen.nn.source import Concat, Gru, Lstm, Slice

_DEFAULTS = {"LSTM": ("sigmoid", "tanh", "tanh"), "GRU": ("sigmoid", "tanh")}


@dataclass(frozen=True, slots=True, eq=False)
class _Layer:
    """One direction: x as (T, I), w (gates H, I), r (gates H, H), bw and br (gates H,); whether it runs backward."""

    x: str
    w: Array
    r: Array
    bw: Array
    br: Array
    backward: bool


def _directions(c: Call) -> tuple[bool, ...]:
    """Whether each direction runs backward."""
    direction = c.get_str("direction", "forward")
    known = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
    if direction not in known:
        c.broken(f"direction is {direction}")
    return known[direction]


def _check_attributes(c: Call, count: int) -> None:
    functions: Attribute | None = c.attribute("activations")
    if isinstance(functions, tuple):
        wanted = _DEFAULTS[c.node.op] * count
        if tuple(str(f).lower() for f in functions) != wanted:
            c.refuse("uses other activations than the default", "train it with sigmoid and tanh")
    for name in ("clip", "activation_alpha", "activation_beta"):
        if c.attribute(name):
            c.refuse(f"uses the attribute {name}", "export it without")


def _steps(c: Call, x: Activated) -> int:
    """The length of the sequence; what has a batch is refused."""
    if len(x.shape) != 3:
        c.broken(f"an input of {len(x.shape)} axes, not 3")
    layout = c.get_int("layout", 0)
    steps, batch = (x.shape[0], x.shape[1]) if layout == 0 else (x.shape[1], x.shape[0])
    if batch != 1:
        c.refuse(f"works on a batch of {batch}", "export the model with batch 1 (axis 1 is the batch with layout 0)")
    if c.has(4):
        lengths = c.integers(4, "the lengths of the sequences")
        if lengths != (steps,):
            c.refuse("has sequences of another length than its input", "leave sequence_lens out")
    return steps


def _layers(c: Call, gates: int) -> tuple[Activated, tuple[_Layer, ...]]:
    """x, and each direction with its weights."""
    backward = _directions(c)
    count = len(backward)
    _check_attributes(c, count)
    x = c.x(0)
    steps = _steps(c, x)
    w, r = c.weights(1, "the weights"), c.weights(2, "the recurrent weights")
    if w.ndim != 3 or r.ndim != 3 or w.shape[0] != count or r.shape[0] != count:
        c.broken(f"weights that are not those of {count} directions")
    hidden = c.get_int("hidden_size", r.shape[2])
    if r.shape[1:] != (gates * hidden, hidden) or w.shape[1:] != (gates * hidden, x.shape[2]):
        c.broken(f"weights {list(w.shape)} and {list(r.shape)} for {x.shape[2]} inputs and {hidden} hidden values")
    b = c.weights(3, "the bias") if c.has(3) else np.zeros((count, 2 * gates * hidden), np.float32)
    if b.shape != (count, 2 * gates * hidden):
        c.broken(f"a bias of shape {list(b.shape)}")
    name = c.program.view(x, (steps, x.shape[2]), c.loc)
    half = gates * hidden
    return x, tuple(
        _Layer(_turned(c, name) if back else name, w[k], r[k], b[k, :half], b[k, half:], back)
        for k, back in enumerate(backward)
    )


def _turned(c: Call, name: str) -> str:
    """The rows of a value from last to first."""
    steps, width = c.program.types[name].shape
    return c.add(Slice, name, hint="turned", starts=(steps - 1, 0), steps=(-1, 1), shape=(steps, width))


def _states(c: Call, index: int, hidden: int, count: int) -> tuple[Array, ...]:
    """The state before the first step of each direction, (H,)."""
    if not c.has(index):
        return (as_float32(np.zeros(hidden), c.where),) * count
    if not c.is_constant(index):
        c.refuse("its first state is an input of the model", "only a constant first state is supported")
    state = c.weights(index, "the first state")
    if state.size != hidden * count:
        c.broken(f"a first state of shape {list(state.shape)}")
    return tuple(as_float32(row, c.where) for row in state.reshape(count, hidden))


def _give(c: Call, x: Activated, layers: tuple[_Layer, ...], results: list[tuple[str, ...]]) -> None:
    """``results`` of each direction: every step, then the last ones. Side by side where there are two."""
    layout, count = c.get_int("layout", 0), len(layers)
    hidden = c.program.types[results[0][1]].shape[-1]
    steps = x.shape[0] if layout == 0 else x.shape[1]
    shape = (steps, count, 1, hidden) if layout == 0 else (1, steps, count, hidden)
    used = {i for i, v in enumerate(c.node.outputs) if v}
    if 0 in used or count == 1:
        every = [
            _turned(c, names[0]) if layer.backward else names[0] for layer, names in zip(layers, results, strict=True)
        ]
        c.give_raw(every[0] if count == 1 else c.add(Concat, *every, hint="every", axis=1), shape, 0)
    for index in range(1, len(results[0])):
        if index in used or count == 1:
            last = [names[index] for names in results]
            joined = last[0] if count == 1 else c.add(Concat, *last, hint=f"last{index}", axis=0)
            c.give_raw(joined, (count, 1, hidden) if layout == 0 else (1, count, hidden), index)


def _names(c: Call, count: int, which: str) -> tuple[str, ...]:
    """A name for each result of one direction, whether the file uses it or not."""
    given = [c.node.outputs[i] if i < len(c.node.outputs) else "" for i in range(count)]
    base = next((n for n in given if n), c.node.name)
    return tuple(c.program.fresh((n or f"{base}:{'yhc'[i]}") + which) for i, n in enumerate(given))


def lstm(c: Call) -> None:
    if c.get_int("input_forget", 0) or c.has(7):
        c.refuse("couples gates, or has peepholes", "use a plain LSTM")
    x, layers = _layers(c, 4)
    hidden = layers[0].r.shape[1]
    starts = [_states(c, i, hidden, len(layers)) for i in (5, 6)]
    results = []
    for k, one in enumerate(layers):
        bias = as_float32(one.bw.astype(np.float64) + one.br.astype(np.float64), c.where)
        names = _names(c, 3, _which(layers, k))
        c.program.append(Lstm((one.x,), names, c.loc, one.w, one.r, bias, starts[0][k], starts[1][k]))
        results.append(names)
    _give(c, x, layers, results)


def gru(c: Call) -> None:
    x, layers = _layers(c, 3)
    starts = _states(c, 5, layers[0].r.shape[1], len(layers))
    linear = bool(c.get_int("linear_before_reset", 0))
    results = []
    for k, one in enumerate(layers):
        names = _names(c, 2, _which(layers, k))
        c.program.append(Gru((one.x,), names, c.loc, one.w, one.r, one.bw, one.br, starts[k], linear))
        results.append(names)
    _give(c, x, layers, results)


def _which(layers: tuple[_Layer, ...], k: int) -> str:
    """The end of the names of a direction; a single one that runs forward has the names of the file."""
    if len(layers) == 1 and not layers[0].backward:
        return ""
    return ":backward" if layers[k].backward else ":forward"
