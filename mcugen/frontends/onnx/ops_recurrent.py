"""Handlers of LSTM and GRU: forward, with constant weights and a constant first state."""

from __future__ import annotations

import numpy as np

from mcugen.core.types import Array
from mcugen.frontends.onnx.call import Call
from mcugen.frontends.onnx.scanner import Attribute
from mcugen.frontends.onnx.values import Activated, as_float32
from mcugen.nn.source import Gru, Lstm

_DEFAULTS = {"LSTM": ("sigmoid", "tanh", "tanh"), "GRU": ("sigmoid", "tanh")}


def _sequence(c: Call, gates: int) -> tuple[Activated, str, Array, Array, Array, Array]:
    """x, its name as (T, I), w (gates H, I), r (gates H, H), bw and br (gates H,)."""
    if c.get_str("direction", "forward") != "forward":
        c.refuse(f"runs {c.get_str('direction', 'forward')}", "only direction 'forward' is supported")
    functions: Attribute | None = c.attribute("activations")
    if isinstance(functions, tuple) and tuple(str(f).lower() for f in functions) != _DEFAULTS[c.node.op]:
        c.refuse("uses other activations than the default", "train it with sigmoid and tanh")
    for name in ("clip", "activation_alpha", "activation_beta"):
        if c.attribute(name):
            c.refuse(f"uses the attribute {name}", "export it without")
    x = c.x(0)
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
    w, r = c.weights(1, "the weights"), c.weights(2, "the recurrent weights")
    if w.ndim != 3 or r.ndim != 3 or w.shape[0] != 1 or r.shape[0] != 1:
        c.broken("weights that are not those of one direction")
    hidden = c.get_int("hidden_size", r.shape[2])
    if r.shape[1:] != (gates * hidden, hidden) or w.shape[1:] != (gates * hidden, x.shape[2]):
        c.broken(f"weights {list(w.shape)} and {list(r.shape)} for {x.shape[2]} inputs and {hidden} hidden values")
    b = c.weights(3, "the bias") if c.has(3) else np.zeros((1, 2 * gates * hidden), np.float32)
    if b.shape != (1, 2 * gates * hidden):
        c.broken(f"a bias of shape {list(b.shape)}")
    name = c.program.view(x, (steps, x.shape[2]), c.loc)
    return x, name, w[0], r[0], b[0, : gates * hidden], b[0, gates * hidden :]


def _state(c: Call, index: int, hidden: int) -> Array:
    """The state before the first step, (H,)."""
    if not c.has(index):
        return as_float32(np.zeros(hidden), c.where)
    if not c.is_constant(index):
        c.refuse("its first state is an input of the model", "only a constant first state is supported")
    state = c.weights(index, "the first state")
    if state.size != hidden:
        c.broken(f"a first state of shape {list(state.shape)}")
    return as_float32(state.reshape(-1), c.where)


def _give(c: Call, x: Activated, names: tuple[str, ...], hidden: int) -> None:
    layout = c.get_int("layout", 0)
    steps = x.shape[0] if layout == 0 else x.shape[1]
    c.give_raw(names[0], (steps, 1, 1, hidden) if layout == 0 else (1, steps, 1, hidden), 0)
    for index, name in enumerate(names[1:], 1):
        c.give_raw(name, (1, 1, hidden), index)


def _names(c: Call, count: int) -> tuple[str, ...]:
    """A name for each result, whether the file uses it or not."""
    given = [c.node.outputs[i] if i < len(c.node.outputs) else "" for i in range(count)]
    base = next((n for n in given if n), c.node.name)
    return tuple(c.program.fresh(n or f"{base}:{'yhc'[i]}") for i, n in enumerate(given))


def lstm(c: Call) -> None:
    if c.get_int("input_forget", 0) or c.has(7):
        c.refuse("couples gates, or has peepholes", "use a plain LSTM")
    x, name, w, r, bw, br = _sequence(c, 4)
    hidden = r.shape[1]
    bias = as_float32(bw.astype(np.float64) + br.astype(np.float64), c.where)
    names = _names(c, 3)
    c.program.append(Lstm((name,), names, c.loc, w, r, bias, _state(c, 5, hidden), _state(c, 6, hidden)))
    _give(c, x, names, hidden)


def gru(c: Call) -> None:
    x, name, w, r, bw, br = _sequence(c, 3)
    hidden = r.shape[1]
    names = _names(c, 2)
    linear = bool(c.get_int("linear_before_reset", 0))
    c.program.append(Gru((name,), names, c.loc, w, r, bw, br, _state(c, 5, hidden), linear))
    _give(c, x, names, hidden)
