"""Handlers of what moves elements: Reshape and its kin, Transpose, Concat, Split, Slice, Gather, Pad."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mcugen.frontends.onnx.call import Call
from mcugen.frontends.onnx.shapes import Shape, broadcast, reshaped
from mcugen.frontends.onnx.values import Activated, activated
from mcugen.nn.source import Concat, Pad, Repeat, Slice, Transpose

Cut = tuple[int, int, int]  # start, step, number of elements
#: A Concat of more parts would cost more than what reads it.
_MOST_PARTS = 64


def reshape(c: Call) -> None:
    x = c.activation(0)
    shape = reshaped(x.shape, c.integers(1, "the shape"), bool(c.get_int("allowzero", 0)))
    if shape is None:
        c.broken(f"{list(x.shape)} as {list(c.integers(1, 'the shape'))}")
    c.give_as(x, shape)


def flatten(c: Call) -> None:
    x = c.activation(0)
    axis, rank = c.get_int("axis", 1), len(x.shape)
    if not -rank <= axis <= rank:
        c.broken(f"axis {axis} of {rank} axes")
    axis += rank if axis < 0 else 0
    first = 1
    for n in x.shape[:axis]:
        first *= n
    rest = 1
    for n in x.shape[axis:]:
        rest *= n
    c.give_as(x, (first, rest))


def _axes_operand(c: Call) -> tuple[int, ...] | None:
    """Axes as an attribute up to opset 12, as an operand after."""
    if c.opset < 13:
        return c.get_ints("axes")
    return c.integers(1, "the axes") if c.has(1) else None


def squeeze(c: Call) -> None:
    x = c.activation(0)
    given = _axes_operand(c)
    axes = c.axes(given, len(x.shape)) if given is not None else tuple(a for a, n in enumerate(x.shape) if n == 1)
    if any(x.shape[a] != 1 for a in axes):
        c.broken(f"squeezes axes {list(axes)} of {list(x.shape)}")
    c.give_as(x, tuple(n for a, n in enumerate(x.shape) if a not in axes))


def unsqueeze(c: Call) -> None:
    x = c.activation(0)
    given = _axes_operand(c)
    if given is None:
        c.broken("the axes are missing")
    axes = c.axes(given, len(x.shape) + len(given))
    rest = iter(x.shape)
    c.give_as(x, tuple(1 if a in axes else next(rest) for a in range(len(x.shape) + len(axes))))


def expand(c: Call) -> None:
    x = c.activation(0)
    shape = broadcast(x.shape, c.integers(1, "the shape"))
    if shape is None:
        c.broken("a shape that does not fit")
    wide = Activated(x.name, x.raw, (1,) * (len(shape) - len(x.shape)) + x.shape)
    for axis, (n, have) in enumerate(zip(shape, wide.shape, strict=True)):
        if n != have:
            wide = _repeated(c, wide, axis, n)
    c.give_as(wide, shape)


def transpose(c: Call) -> None:
    x = c.x(0)
    rank = len(x.shape)
    perm = c.get_ints("perm", tuple(reversed(range(rank)))) or ()
    if sorted(perm) != list(range(rank)):
        c.broken(f"permutation {list(perm)} of {rank} axes")
    shape = tuple(x.shape[p] for p in perm)
    real = [a for a in range(rank) if x.shape[a] != 1]
    moved = [real.index(p) for p in perm if x.shape[p] != 1]
    if moved == sorted(moved):  # only axes of size 1 change their places
        c.give_as(x, shape)
        return
    places = [k for k, n in enumerate(x.raw) if n != 1]
    full = list(range(len(x.raw)))
    for place, source in zip(places, moved, strict=True):
        full[place] = places[source]
    c.give_raw(c.add(Transpose, x.name, perm=tuple(full)), shape)


def concat(c: Call) -> None:
    xs = [c.x(i) for i in range(len(c.node.inputs))]
    rank = len(xs[0].shape)
    axis = c.axis(c.get_int("axis", 1), rank)
    rests = {(*x.shape[:axis], *x.shape[axis + 1 :]) for x in xs}
    if len(rests) != 1:
        c.broken("operands that differ in more than the axis")
    c.give(xs[0] if len(xs) == 1 else joined(c, xs, axis))


def joined(c: Call, xs: Sequence[Activated], axis: int) -> Activated:
    """All of ``xs`` one after the other along ``axis``."""
    shape = (*xs[0].shape[:axis], sum(x.shape[axis] for x in xs), *xs[0].shape[axis + 1 :])
    forms = [c.program.located(x, (axis,), c.loc) for x in xs] if all(x.shape[axis] != 1 for x in xs) else []
    places = {(raw[: at[0]], raw[at[0] + 1 :]) for _, raw, at in forms}
    if len(places) == 1:
        out = c.add(Concat, *(name for name, _, _ in forms), axis=forms[0][2][0])
        return activated(c.program, out, shape, c.loc)
    gone = 1 if axis and len(shape) > 1 and xs[0].shape[0] == 1 else 0
    names = [c.program.view(x, x.shape[gone:], c.loc) for x in xs]
    return activated(c.program, c.add(Concat, *names, axis=axis - gone), shape, c.loc)


def _cut(c: Call, x: Activated, cuts: dict[int, Cut], index: int = 0) -> Activated:
    """The part of ``x`` that ``cuts`` (axis to Cut) leave, as the output with this index; axes stay."""
    shape = tuple(cuts[a][2] if a in cuts else n for a, n in enumerate(x.shape))
    if min(shape) < 1:
        c.refuse("gives a tensor without elements", "leave it out of the model")
    real = {a: cut for a, cut in cuts.items() if cut != (0, 1, x.shape[a]) and x.shape[a] != 1}
    if not real:
        return Activated(x.name, x.raw, shape, x.dtype)
    name, raw, places = c.program.located(x, tuple(real), c.loc)
    starts, steps, sizes = [0] * len(raw), [1] * len(raw), list(raw)
    for place, (start, step, n) in zip(places, real.values(), strict=True):
        starts[place], steps[place], sizes[place] = start, step if n > 1 else 1, n
    output = c.node.outputs[index] or c.node.name
    out = c.program.fresh(output)
    c.program.append(Slice((name,), (out,), c.loc, tuple(starts), tuple(steps), tuple(sizes)))
    return Activated(out, tuple(sizes), shape)


def slice_(c: Call) -> None:
    x = c.x(0)
    rank = len(x.shape)
    if c.opset < 10:
        starts, ends, axes, steps = c.get_ints("starts"), c.get_ints("ends"), c.get_ints("axes"), None
    else:
        starts, ends = c.integers(1, "the starts"), c.integers(2, "the ends")
        axes = c.integers(3, "the axes") if c.has(3) else None
        steps = c.integers(4, "the steps") if c.has(4) else None
    if starts is None or ends is None:
        c.broken("starts or ends are missing")
    axes = c.axes(axes if axes is not None else tuple(range(len(starts))), rank)
    steps = steps if steps is not None else (1,) * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        c.broken("starts, ends, axes and steps do not fit")
    cuts = {}
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        found = range(*slice(start, end, step).indices(x.shape[axis]))
        cuts[axis] = (found.start, found.step, len(found))
    c.give(_cut(c, x, cuts))


def split(c: Call) -> None:
    x = c.x(0)
    axis = c.axis(c.get_int("axis", 0), len(x.shape))
    size, parts = x.shape[axis], len(c.node.outputs)
    sizes = c.get_ints("split") if c.opset < 13 else c.integers(1, "the sizes") if c.has(1) else None
    if sizes is None:
        parts = c.get_int("num_outputs", parts)
        each = -(-size // parts)
        sizes = tuple(min(each, size - each * k) for k in range(parts))
    if len(sizes) != len(c.node.outputs) or sum(sizes) != size or min(sizes) < 0:
        c.broken(f"splits {size} elements into {list(sizes)}")
    start = 0
    for k, n in enumerate(sizes):
        if c.node.outputs[k]:
            c.give(_cut(c, x, {axis: (start, 1, n)}, k), k)
        start += n


def _runs(indices: list[int]) -> list[Cut]:
    """``indices`` as runs, each as long as it goes: evenly spaced, or (step 0) one that comes again and again."""
    runs: list[Cut] = []
    at = 0
    while at < len(indices):
        n = 1
        step = indices[at + 1] - indices[at] if at + 1 < len(indices) else 1
        while at + n < len(indices) and indices[at + n] - indices[at + n - 1] == step:
            n += 1
        if n == 2 and step not in (-1, 0, 1):
            n, step = 1, 1  # two that happen to be apart: the second may begin a longer run
        runs.append((indices[at], step, n))
        at += n
    return runs


def picked(c: Call, x: Activated, axis: int, indices: list[int]) -> Activated:
    """The elements of ``x`` with these ``indices`` along ``axis``, as the first output of the node."""
    size = x.shape[axis]
    factor = len(indices) // size
    if factor > 1 and indices == [k for k in range(size) for _ in range(factor)]:
        return _repeated(c, x, axis, factor)
    runs = _runs(indices)
    if len(runs) > _MOST_PARTS:
        c.refuse(f"picks {len(indices)} indices in {len(runs)} runs", "order the weights before it instead")
    parts = []
    for start, step, n in runs:
        part = _cut(c, x, {axis: (start, step or 1, n if step else 1)})
        parts.append(part if step or n == 1 else _repeated(c, part, axis, n))
    return parts[0] if len(parts) == 1 else joined(c, parts, axis)


def _repeated(c: Call, x: Activated, axis: int, factor: int) -> Activated:
    """Each element ``factor`` times in a row along ``axis``."""
    shape = tuple(n * factor if a == axis else n for a, n in enumerate(x.shape))
    name, raw, places = c.program.located(x, (axis,), c.loc)
    factors = tuple(factor if a == places[0] else 1 for a in range(len(raw)))
    out = c.add(Repeat, name, factors=factors)
    return Activated(out, c.program.types[out].shape, shape)


def tile(c: Call) -> None:
    """The whole tensor again and again, axis by axis."""
    x = c.x(0)
    repeats = c.integers(1, "the repeats")
    if len(repeats) != len(x.shape) or min(repeats, default=1) < 1:
        c.broken(f"{list(repeats)} repeats of {list(x.shape)}")
    for axis, n in enumerate(repeats):
        if n > 1:
            x = _repeated(c, x, axis, n) if x.shape[axis] == 1 else joined(c, [x] * n, axis)
    c.give(x)


def gather(c: Call) -> None:
    """Constant indices."""
    x = c.x(0)
    axis = c.axis(c.get_int("axis", 0), len(x.shape))
    size = x.shape[axis]
    data = c.constant(1, "the index").data
    if data.dtype.kind not in "iu":
        c.broken("an index that is no integer")
    if data.ndim > 1 or not data.size:
        c.refuse(f"indices of shape {list(data.shape)}", "only one index or a row of indices is supported")
    found = [int(v) for v in data.reshape(-1)]
    if not all(-size <= v < size for v in found):
        c.broken(f"an index outside of {size} elements")
    part = picked(c, x, axis, [v % size for v in found])
    if data.ndim == 0:
        c.give_as(part, tuple(n for a, n in enumerate(part.shape) if a != axis))
    else:
        c.give(part)


def pad(c: Call) -> None:
    x = c.x(0)
    rank = len(x.shape)
    mode = c.get_str("mode", "constant")
    if mode not in ("constant", "edge", "reflect", "wrap"):
        c.broken(f"pads in mode {mode}")
    value, given, axes = 0.0, None, tuple(range(rank))
    if c.opset < 11:
        given, value = c.get_ints("pads"), c.get_float("value", 0.0)
    else:
        given = c.integers(1, "the pads")
        if c.has(2):
            value = float(c.weights(2, "the value").reshape(-1)[0])
        if c.has(3):
            axes = c.axes(c.integers(3, "the axes"), rank)
    if given is None or len(given) != 2 * len(axes):
        c.broken("pads that do not fit the axes")
    if min(given, default=0) < 0:
        c.refuse("negative pads", "cut with Slice instead")
    pairs = {a: (given[k], given[k + len(axes)]) for k, a in enumerate(axes) if given[k] or given[k + len(axes)]}
    if not pairs:
        c.give(x)
        return
    if mode != "constant":
        for axis, (before, after) in pairs.items():
            x = picked(c, x, axis, _mirrored(c, mode, x.shape[axis], before, after))
        c.give(x)
        return
    shape: Shape = tuple(n + sum(pairs.get(a, (0, 0))) for a, n in enumerate(x.shape))
    name, raw, places = c.program.located(x, tuple(pairs), c.loc)
    pads = [(0, 0)] * len(raw)
    for place, pair in zip(places, pairs.values(), strict=True):
        pads[place] = pair
    c.give_raw(c.add(Pad, name, pads=tuple(pads), value=value), shape)


def _mirrored(c: Call, mode: str, size: int, before: int, after: int) -> list[int]:
    """The index of x for each index of the padded axis."""
    if mode == "reflect" and max(before, after) >= size:
        c.broken(f"reflects {max(before, after)} of {size} elements")
    at = np.arange(-before, size + after)
    if mode == "edge":
        at = np.clip(at, 0, size - 1)
    elif mode == "wrap":
        at = at % size
    else:
        at = size - 1 - np.abs(size - 1 - np.abs(at))
    return [int(v) for v in at]
