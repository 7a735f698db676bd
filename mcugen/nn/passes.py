"""Float passes: source ops to fewer source ops that mean the same, to rounding. Quantization and layout come later."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from mcugen.core.op import Op
from mcugen.core.passes import Step
from mcugen.core.types import Array, Model, frozen_array
from mcugen.nn.passes_edit import Editor, joined, rewrite
from mcugen.nn.passes_fold import (
    fold_affine_after,
    fold_affine_before,
    fold_affine_before_flat,
    fold_affine_pair,
    fold_pad_conv,
    fold_pad_pool,
    fold_slice_conv,
    quantize_before_pad,
)
from mcugen.nn.passes_function import fuse_functions
from mcugen.nn.passes_normalize import fold_affine_after_normalize, join_normalize
from mcugen.nn.passes_softmax import join_softmax
from mcugen.nn.source import (
    Activation,
    Affine,
    Binary,
    Concat,
    DepthToSpace,
    FakeQuant,
    Pad,
    Repeat,
    Reshape,
    Slice,
    Transpose,
)


def remove_identities(model: Model, context: object = None) -> Model:
    """Without ops that give what they get, and without what nothing reads."""
    return rewrite(model, _drop_identity)


def cancel_moves(model: Model, context: object = None) -> Model:
    """Reshape and Transpose go down past ops on single elements, until they meet, join, and often vanish."""
    return rewrite(model, _drop_identity, _join_moves, _transpose_of_ones, _sink, _sink_pair)


def fold_constants_of_layers(model: Model, context: object = None) -> Model:
    """Affine (BatchNormalization, scaling by constants) and Pad into the layer before or after."""
    rules = (
        _drop_identity,
        fold_affine_pair,
        fold_affine_after,
        fold_affine_after_normalize,
        fold_affine_before,
        fold_affine_before_flat,
        quantize_before_pad,
        fold_pad_conv,
        fold_pad_pool,
        fold_slice_conv,
    )
    return rewrite(model, *rules)


def fuse_hard_swish(model: Model, context: object = None) -> Model:
    """``x * hard_sigmoid(x)`` and ``x * clip(x + 3, 0, 6) / 6`` as one activation."""
    return rewrite(model, _hard_swish, _hard_swish_of_six)


#: In this order: moves first, so that folds see their neighbours; activations before an Affine is folded away.
FLOAT_STEPS: tuple[Step[Any], ...] = (
    Step("remove_identities", remove_identities),
    Step("cancel_moves", cancel_moves),
    Step("fuse_hard_swish", fuse_hard_swish),
    Step("join_softmax", join_softmax),
    Step("join_normalize", join_normalize),
    Step("fold_constants_of_layers", fold_constants_of_layers),
    Step("cancel_moves_again", cancel_moves),
)


#: The same for nets that become integers.
INTEGER_STEPS: tuple[Step[Any], ...] = (*FLOAT_STEPS, Step("fuse_functions", fuse_functions))


def simplify(model: Model) -> Model:
    """All float passes, without checks in between."""
    for step in FLOAT_STEPS:
        model = step.run(model, None)
    return model


# Rules.

#: What an op on single elements may go before: it then finds the layer that it folds into, and fewer elements.
_MOVES = (Reshape, Transpose, Repeat, DepthToSpace)


def _drop_identity(e: Editor, place: int, op: Op) -> bool:
    return _is_identity(e, op) and e.bypass(place, op)


def _is_identity(e: Editor, op: Op) -> bool:
    shape = e.types[op.inputs[0]].shape
    match op:
        case Reshape():
            return op.shape == shape
        case Transpose():
            return op.perm == tuple(range(len(shape)))
        case Slice():
            return op.shape == shape and all(s > 0 or n == 1 for s, n in zip(op.steps, shape, strict=True))
        case Repeat():
            return max(op.factors, default=1) == 1
        case Pad():
            return not any(max(p) for p in op.pads)
        case Concat():
            return len(op.inputs) == 1
        case Affine():
            return bool((op.scale == 1).all() and (op.offset == 0).all())
        case FakeQuant():
            before = e.writer(op.inputs[0])
            # What is quantized already is not changed by the same quantization again.
            return before is not None and isinstance(before[1], FakeQuant) and _same_grid(before[1], op)
    return False


def _same_grid(a: FakeQuant, b: FakeQuant) -> bool:
    return (a.scale, a.zero_point, a.dtype) == (b.scale, b.zero_point, b.dtype)


def _join_moves(e: Editor, place: int, op: Op) -> bool:
    """Two Reshapes, two Transposes or two Repeats in a row are one."""
    before = e.writer(op.inputs[0])
    if before is None:
        return False
    first = before[1]
    if isinstance(op, Reshape) and isinstance(first, Reshape):
        e.put(place, replace(op, inputs=first.inputs))
        return True
    if isinstance(op, Repeat) and isinstance(first, Repeat):
        factors = tuple(a * b for a, b in zip(first.factors, op.factors, strict=True))
        e.put(place, replace(op, inputs=first.inputs, factors=factors))
        return True
    if isinstance(op, Transpose) and isinstance(first, Transpose):
        e.put(place, replace(op, inputs=first.inputs, perm=tuple(first.perm[p] for p in op.perm)))
        return True
    return False


def _transpose_of_ones(e: Editor, place: int, op: Op) -> bool:
    """A Transpose that changes the places of axes of size 1 only is a Reshape."""
    if not isinstance(op, Transpose):
        return False
    shape = e.types[op.inputs[0]].shape
    real = [p for p in op.perm if shape[p] != 1]
    if real != sorted(real):
        return False
    e.put(place, Reshape(op.inputs, op.outputs, op.loc, e.types[op.outputs[0]].shape))
    return True


def _sink(e: Editor, place: int, op: Op) -> bool:
    """op(move(x)) becomes move(op(x)) for an op on single elements, where nothing else reads move(x)."""
    if not isinstance(op, Activation | FakeQuant | Affine):
        return False
    before = e.writer(op.inputs[0])
    if before is None or not isinstance(before[1], _MOVES) or not e.read_once(op.inputs[0]):
        return False
    where, move = before
    shape = e.types[move.inputs[0]].shape
    if isinstance(op, Affine) and not op.per_tensor and isinstance(move, DepthToSpace):
        if op.axis != 0:
            return False
        along = prod(move.block)
        op = replace(op, scale=frozen_array(op.scale.repeat(along)), offset=frozen_array(op.offset.repeat(along)))
    elif isinstance(op, Affine) and not op.per_tensor:
        axis = _axis_before(move, op.axis, shape, e.types[move.outputs[0]].shape)
        if axis is None:
            return False
        op = replace(op, axis=axis)
    between = move.outputs[0]
    e.put(where, replace(op, inputs=move.inputs, outputs=(between,)))
    e.put(place, replace(move, inputs=(between,), outputs=op.outputs))
    e.retype(between, shape)
    return True


def _axis_before(move: Op, axis: int, source: tuple[int, ...], result: tuple[int, ...]) -> int | None:
    """The axis of the operand of ``move`` that is ``axis`` of its result, or None if there is none."""
    if isinstance(move, Transpose):
        return move.perm[axis]
    if isinstance(move, Repeat):
        return axis if move.factors[axis] == 1 else None
    ahead = int(np.prod(result[:axis], dtype=np.int64))
    for k, n in enumerate(source):
        if n == result[axis] and int(np.prod(source[:k], dtype=np.int64)) == ahead:
            return k
    return None


def _sink_pair(e: Editor, place: int, op: Op) -> bool:
    """A Binary of two values that were moved the same way: move its result instead."""
    if not isinstance(op, Binary) or op.inputs[0] == op.inputs[1]:
        return False
    found = [e.writer(v) for v in op.inputs]
    if any(f is None for f in found) or not all(e.read_once(v) for v in op.inputs):
        return False
    (where, a), (other, b) = (f for f in found if f is not None)
    shapes = [e.types[m.inputs[0]].shape for m in (a, b) if m.inputs]
    if len(shapes) < 2 or shapes[0] != shapes[1]:
        return False
    transposed = isinstance(a, Transpose) and isinstance(b, Transpose) and a.perm == b.perm
    reshaped = isinstance(a, Reshape) and isinstance(b, Reshape) and a.shape == b.shape
    if not transposed and not reshaped:
        return False
    last, gone = (other, where) if other > where else (where, other)
    between = op.inputs[0]
    e.remove(gone)
    e.put(last, replace(op, inputs=(a.inputs[0], b.inputs[0]), outputs=(between,)))
    e.put(place, replace(a, inputs=(between,), outputs=op.outputs))
    e.retype(between, shapes[0])
    return True


def _hard_swish(e: Editor, place: int, op: Op) -> bool:
    if not isinstance(op, Binary) or op.kind != "mul":
        return False
    for x, gate in (op.inputs, op.inputs[::-1]):
        found = e.writer(gate)
        if found is None or not isinstance(found[1], Activation) or found[1].inputs[0] != x:
            continue
        a = found[1]
        if a.kind == "hard_sigmoid" and abs(a.alpha * 6 - 1) < 1e-6 and a.beta == 0.5:
            e.put(place, Activation((x,), op.outputs, joined(a.loc, op.loc), "hard_swish"))
            return True
    return False


def _hard_swish_of_six(e: Editor, place: int, op: Op) -> bool:
    """Affine(1/6) of x * clip(x + 3, 0, 6)."""
    if not isinstance(op, Affine) or not op.per_tensor or not _near(op.scale, 1 / 6) or op.offset.any():
        return False
    product = e.writer(op.inputs[0])
    if product is None or not isinstance(product[1], Binary) or product[1].kind != "mul":
        return False
    for x, gate in (product[1].inputs, product[1].inputs[::-1]):
        clip = e.writer(gate)
        if clip is None or not isinstance(clip[1], Activation):
            continue
        six = clip[1]
        shift = e.writer(six.inputs[0])
        if (six.kind, six.low, six.high) != ("clip", 0.0, 6.0) or shift is None or not isinstance(shift[1], Affine):
            continue
        three = shift[1]
        if three.inputs[0] == x and three.per_tensor and _near(three.scale, 1.0) and _near(three.offset, 3.0):
            e.put(place, Activation((x,), op.outputs, joined(product[1].loc, op.loc), "hard_swish"))
            return True
    return False


def _near(a: Array, value: float) -> bool:
    return bool(abs(float(a[0]) - value) <= 1e-6 * abs(value))
