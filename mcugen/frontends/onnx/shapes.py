"""Shapes: those of the graph's inputs, with dynamic axes fixed; and the arithmetic of axes, padding and slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from mcugen.errors import InputError, UnsupportedError
from mcugen.frontends.onnx.scanner import Graph, GraphInput, short

Shape = tuple[int, ...]
_EXAMPLE = "96"


def input_shapes(graph: Graph, shapes: Mapping[str, Shape], file: str) -> dict[str, Shape]:
    """The full shape (with batch axis) of each input of the graph: a dynamic first axis is 1, ``shapes`` override.

    InputError that names every other dynamic axis and the option that fixes it.
    """
    names = [i.name for i in graph.inputs]
    for name in shapes:
        if name not in names:
            near = get_close_matches(name, names, 1)
            hint = f"did you mean {near[0]}?" if near else f"inputs: {', '.join(names)}"
            raise InputError("--shape", f"the model has no input {short(name)}", hint)
    missing = [i for i in graph.inputs if i.name not in shapes and not _is_fixed(i)]
    if missing:
        what = "; ".join(_dynamic(i) for i in missing)
        options = " ".join(f"--shape {i.name}={_option(i)}" for i in missing)
        raise InputError(file, what, f"give the shape, such as {options}")
    return {i.name: _fixed(i, shapes.get(i.name), file) for i in graph.inputs}


def _is_fixed(i: GraphInput) -> bool:
    return i.dims is not None and all(isinstance(d, int) for d in i.dims[1:])


def _dynamic(i: GraphInput) -> str:
    if i.dims is None:
        return f"input {short(i.name)} has no shape"
    axes = [f"axis {k}" + (f" ({d})" if d else "") for k, d in enumerate(i.dims) if k and not isinstance(d, int)]
    return f"{', '.join(axes)} of input {short(i.name)} {'is' if len(axes) == 1 else 'are'} dynamic"


def _option(i: GraphInput) -> str:
    if i.dims is None:
        return "1,3,96,96"
    first, *rest = i.dims
    batch = str(first) if isinstance(first, int) else "1"
    return ",".join([batch, *(str(d) if isinstance(d, int) else _EXAMPLE for d in rest)])


def _fixed(i: GraphInput, given: Shape | None, file: str) -> Shape:
    if given is not None:
        fits = i.dims is None or (
            len(given) == len(i.dims)
            and all(not isinstance(d, int) or d == g for d, g in zip(i.dims, given, strict=True))
        )
        if not fits or min(given, default=1) < 1:
            has = ",".join("?" if d is None else str(d) for d in i.dims or ())
            raise InputError("--shape", f"{i.name}={','.join(map(str, given))} does not fit the model's {has}")
    shape = given or tuple(d if isinstance(d, int) else 1 for d in i.dims or ())
    if min(shape, default=1) < 1:
        raise InputError(f"{file}: input {short(i.name)}", f"an axis of size below 1: {list(shape)}")
    dynamic_batch = i.dims is not None and bool(i.dims) and not isinstance(i.dims[0], int)
    if (dynamic_batch and given is not None and shape[0] != 1) or (len(shape) > 3 and shape[0] != 1):
        hint = "export the model with batch 1 or a dynamic batch axis; one run of the C is one sample"
        raise UnsupportedError(f"{file}: input {short(i.name)}", f"a batch of {shape[0]}", hint)
    return shape


def sample_shape(shape: Shape) -> Shape:
    """A full shape without its batch axis: the first axis goes if its size is 1 and others are left."""
    if not shape:
        return (1,)
    return shape[1:] if len(shape) > 1 and shape[0] == 1 else shape


def squeezed(shape: Shape) -> Shape:
    """Without the axes of size 1."""
    return tuple(n for n in shape if n != 1)


def broadcast(a: Shape, b: Shape) -> Shape | None:
    """The common shape by the rules of numpy, or None."""
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    if any(m != n and 1 not in (m, n) for m, n in zip(a, b, strict=True)):
        return None
    return tuple(n if m == 1 else m for m, n in zip(a, b, strict=True))


def reshaped(shape: Shape, target: Sequence[int], allow_zero: bool) -> Shape | None:
    """What Reshape makes of ``shape``: 0 copies an axis (unless ``allow_zero``), one -1 takes what is left; or None."""
    total = 1
    for n in shape:
        total *= n
    out = list(target)
    for k, n in enumerate(out):
        if n == 0 and not allow_zero:
            if k >= len(shape):
                return None
            out[k] = shape[k]
    known = 1
    for n in out:
        known *= n if n != -1 else 1
    if out.count(-1) > 1 or min(out, default=1) < -1 or known < 1:
        return None
    if -1 in out:
        out[out.index(-1)] = total // known
    count = 1
    for n in out:
        count *= n
    return tuple(out) if count == total else None


def same_pads(size: int, kernel: int, stride: int, dilation: int, upper: bool) -> tuple[int, int]:
    """(before, after) of auto_pad SAME: ceil(size / stride) outputs; an odd element goes after if ``upper``."""
    outputs = -(-size // stride)
    total = max((outputs - 1) * stride + dilation * (kernel - 1) + 1 - size, 0)
    return (total // 2, total - total // 2) if upper else (total - total // 2, total // 2)
