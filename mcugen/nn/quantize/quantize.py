"""The steps of quantization: fuse, choose scales, lower. And the table of rules, one row a source op."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mcugen.core.types import Model
from mcugen.errors import InputError, UnsupportedError
from mcugen.nn.quantize import rules_binary, rules_linear, rules_other, rules_pool, rules_recurrent, rules_spread
from mcugen.nn.quantize.layout import planar_values
from mcugen.nn.quantize.lower import Lowering, Rule
from mcugen.nn.quantize.params import activation_params_16
from mcugen.nn.quantize.ranges import Range
from mcugen.nn.quantize.rules_wide import choose_wide, lower_wide
from mcugen.nn.quantize.scheme import choose_params, fuse
from mcugen.nn.quantize.stored import Stored
from mcugen.nn.source import (
    Activation,
    Affine,
    ArgMax,
    Binary,
    Concat,
    Conv,
    Dense,
    DepthToSpace,
    FakeQuant,
    Function,
    GlobalPool,
    Gru,
    LogSoftmax,
    Lstm,
    Normalize,
    Pad,
    Pool,
    Reduce,
    Repeat,
    Reshape,
    Select,
    Slice,
    Softmax,
    Transpose,
)

RULES: dict[type, Rule] = {
    Conv: rules_linear.lower_conv,
    Dense: rules_linear.lower_dense,
    Activation: rules_other.lower_activation,
    Function: rules_other.lower_activation,
    Affine: rules_other.lower_affine,
    Binary: rules_binary.lower_binary,
    Select: rules_other.lower_select,
    Pool: rules_pool.lower_pool,
    GlobalPool: rules_pool.lower_global_pool,
    Reduce: rules_pool.lower_reduce,
    Softmax: rules_other.lower_softmax,
    LogSoftmax: rules_other.lower_log_softmax,
    Normalize: rules_other.lower_normalize,
    ArgMax: rules_other.lower_argmax,
    Concat: rules_other.lower_concat,
    Slice: rules_other.lower_slice,
    Pad: rules_other.lower_pad,
    Repeat: rules_spread.lower_repeat,
    DepthToSpace: rules_spread.lower_depth_to_space,
    Reshape: rules_other.lower_reshape,
    Transpose: rules_other.lower_transpose,
    FakeQuant: rules_other.lower_fake_quant,
    Lstm: rules_recurrent.lower_lstm,
    Gru: rules_recurrent.lower_gru,
}


@dataclass(frozen=True, slots=True, eq=False)
class Quantized:
    """``machine``: the integer net. ``stored``: where each value of the float net is in it."""

    machine: Model
    stored: Mapping[str, Stored]


def quantize(
    model: Model, ranges: Mapping[str, Range] | None, int16: tuple[str, ...] = (), interleaved: bool = False
) -> Quantized:
    """A float net to int8 machine ops. ``ranges`` (of every value) where the file brings no scales of its own.

    ``int16``: names of layers that work on int16 activations. ``interleaved``: no layer asks for planes.
    """
    steps = fuse(model)
    missing = [s for s in steps if type(s.op) not in RULES]
    if missing:
        names = "; ".join(f"{s.op.loc} {type(s.op).__name__}" for s in missing)
        raise UnsupportedError(model.source.name, f"no integer form for: {names}")
    planar = frozenset(model.outputs) if interleaved else planar_values(model, steps)
    to = Lowering(model, choose_params(model, steps, ranges), planar, interleaved)
    wide = choose_wide(steps, int16)
    if wide and ranges is None:
        raise InputError("--int16", "needs the ranges of values", "give typical inputs with --calib FILE.npz")
    for step in steps:
        if step.result in wide and ranges is not None:
            lower_wide(to, step, activation_params_16(ranges[step.result]))
        else:
            RULES[type(step.op)](to, step)
    machine = to.finish()
    written = {*machine.inputs, *(v for op in machine.ops for v in op.outputs)}
    return Quantized(machine, {v: s for v, s in {**to.stored, **to.wide}.items() if s.name in written})
