"""Handlers of what moves elements: Reshape and its kin, Transpose, Concat, Split, Slice, Gather, Pad."""

from __future__ import annotations

from itertools import pairwise

from mcugen.frontends.onnx.call import Call
from mcugen.frontends.onnx.shapes import Shape, broadcast, reshaped
from mcugen.frontends.onnx.values import Activated
from mcugen.nn.source import Concat, Pad, Slice, Transpose

Cut = tuple[int, int, int]  # start, step, number of elements


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
    if sum(n != 1 for n in shape) != sum(n != 1 for n in x.shape):
        c.refuse("repeats an activation", "let the next op broadcast it")
    c.give_as(x, shape)


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
    shape = (*xs[0].shape[:axis], sum(x.shape[axis] for x in xs), *xs[0].shape[axis + 1 :])
    if len(xs) == 1:
        c.give(xs[0])
        return
    forms = [c.program.located(x, (axis,), c.loc) for x in xs] if all(x.shape[axis] != 1 for x in xs) else []
    places = {(raw[: at[0]], raw[at[0] + 1 :]) for _, raw, at in forms}
    if len(places) == 1:
        c.give_raw(c.add(Concat, *(name for name, _, _ in forms), axis=forms[0][2][0]), shape)
        return
    gone = 1 if axis and rank > 1 and xs[0].shape[0] == 1 else 0
    names = [c.program.view(x, x.shape[gone:], c.loc) for x in xs]
    c.give_raw(c.add(Concat, *names, axis=axis - gone), shape)


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


def gather(c: Call) -> None:
    """A constant index, or constant indices that are evenly spaced."""
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
    found = [v % size for v in found]
    step = found[1] - found[0] if len(found) > 1 else 1
    if step == 0 or any(b - a != step for a, b in pairwise(found)):
        c.refuse("picks indices that are not evenly spaced", "use slices, or order the weights before it")
    part = _cut(c, x, {axis: (found[0], step, len(found))})
    if data.ndim == 0:
        c.give_as(part, tuple(n for a, n in enumerate(part.shape) if a != axis))
    else:
        c.give(part)


def pad(c: Call) -> None:
    x = c.x(0)
    rank = len(x.shape)
    mode = c.get_str("mode", "constant")
    if mode != "constant":
        c.refuse(f"pads in mode {mode}", "use mode constant")
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
    shape: Shape = tuple(n + sum(pairs.get(a, (0, 0))) for a, n in enumerate(x.shape))
    name, raw, places = c.program.located(x, tuple(pairs), c.loc)
    pads = [(0, 0)] * len(raw)
    for place, pair in zip(places, pairs.values(), strict=True):
        pads[place] = pair
    c.give_raw(c.add(Pad, name, pads=tuple(pads), value=value), shape)
