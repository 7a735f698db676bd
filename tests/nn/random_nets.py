"""Random small ONNX nets of the supported ops: branches, groups, dilation, pools, odd sizes, dead channels."""

from __future__ import annotations

from math import prod

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx_nets import net, node

from mcugen.core.types import Array

Shape3 = tuple[int, int, int]


class _Grower:
    """A net as it grows. ``values``: names and shapes (C, H, W) of all that was computed."""

    def __init__(self, draw: st.DrawFn, shape: Shape3) -> None:
        self.draw = draw
        self.rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, Array] = {}
        self.values: list[tuple[str, Shape3]] = [("x", shape)]

    def pick(self, *choices: object) -> object:
        return self.draw(st.sampled_from(choices))

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def constant(self, data: Array) -> str:
        name = f"k{len(self.constants)}"
        self.constants[name] = np.asarray(data)
        return name

    def give(self, op: str, inputs: str, shape: Shape3, **attributes: object) -> tuple[str, Shape3]:
        name = f"v{len(self.values)}"
        self.nodes.append(node(op, inputs, name, **attributes))
        self.values.append((name, shape))
        return self.values[-1]

    def window(self, shape: Shape3, deepest: int) -> tuple[dict[str, list[int]], tuple[int, int]]:
        """Kernel, strides, dilations and pads that fit, and the size of the result."""
        kernel = [self.number(1, deepest), self.number(1, deepest)]
        dilations = [self.number(1, 2), self.number(1, 2)]
        spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
        strides = [self.number(1, 2), self.number(1, 2)]
        begin = [self.number(0, k - 1) for k in kernel]
        end = [self.number(0, k - 1) for k in kernel]
        for a in (0, 1):
            end[a] += max(0, spans[a] - shape[1 + a] - begin[a] - end[a])
        room = [shape[1 + a] + begin[a] + end[a] - spans[a] for a in (0, 1)]
        fields = {"kernel_shape": kernel, "strides": strides, "dilations": dilations, "pads": [*begin, *end]}
        return fields, (room[0] // strides[0] + 1, room[1] // strides[1] + 1)

    def weights(self, *shape: int) -> Array:
        """Some rows are zeros or dust, as training leaves them."""
        w = self.rng.normal(0, 1 / np.sqrt(prod(shape[1:])), shape)
        kind = self.rng.random(shape[0])
        w[kind < 0.1] = 0.0
        w[(kind >= 0.1) & (kind < 0.2)] *= 1e-30
        return w

    def conv(self, x: tuple[str, Shape3], groups: int, out: int) -> tuple[str, Shape3]:
        value, shape = x
        fields, size = self.window(shape, 3)
        w = self.constant(self.weights(out, shape[0] // groups, *fields["kernel_shape"]))
        b = self.constant(self.rng.normal(0, 0.2, out))
        return self.give("Conv", f"{value} {w} {b}", (out, *size), group=groups, **fields)

    def pool(self, x: tuple[str, Shape3], op: str) -> tuple[str, Shape3]:
        value, shape = x
        kernel = [self.number(1, min(3, n)) for n in shape[1:]]
        strides = [self.number(1, 2), self.number(1, 2)]
        pads = [self.number(0, (k - 1) // 2) for k in kernel]
        fields: dict[str, object] = {"kernel_shape": kernel, "strides": strides, "pads": [*pads, *pads]}
        if op == "AveragePool":
            fields["count_include_pad"] = self.number(0, 1)
        room = [shape[1 + a] + 2 * pads[a] - kernel[a] for a in (0, 1)]
        return self.give(op, value, (shape[0], room[0] // strides[0] + 1, room[1] // strides[1] + 1), **fields)

    def peer(self, x: tuple[str, Shape3], channels: bool) -> tuple[str, Shape3]:
        """A value of the same shape, or of the same height and width; x itself where there is no other."""
        same = [v for v in self.values if v[1][1:] == x[1][1:] and (channels or v[1] == x[1])]
        return self.draw(st.sampled_from(same))

    def step(self) -> None:  # noqa: PLR0912
        """One more op, on one of the last values."""
        x = self.draw(st.sampled_from(self.values[-3:]))
        value, shape = x
        c = shape[0]
        kinds = ["conv", "conv", "groups", "depthwise", "activation", "relu", "pool", "sum", "product", "concat"]
        match self.pick(*kinds, "affine", "norm", "slice", "pad", "swap"):
            case "conv":
                self.conv(x, 1, self.number(1, 6))
            case "groups":
                groups = self.draw(st.sampled_from([g for g in range(1, c + 1) if c % g == 0]))
                self.conv(x, groups, groups * self.number(1, 2))
            case "depthwise":
                self.conv(x, c, c * self.number(1, 2))
            case "activation":
                op = self.pick("Sigmoid", "Tanh", "LeakyRelu", "HardSigmoid", "HardSwish")
                self.give(str(op), value, shape)
            case "relu":
                low, high = (self.constant(np.float32(v)) for v in (-0.5, 1.0))
                self.give("Relu", value, shape) if self.number(0, 1) else self.give(
                    "Clip", f"{value} {low} {high}", shape
                )
            case "pool":
                self.pool(x, str(self.pick("MaxPool", "AveragePool")))
            case "sum":
                self.give(str(self.pick("Add", "Sub")), f"{value} {self.peer(x, False)[0]}", shape)
            case "product":
                gate = self.give("Sigmoid", self.peer(x, False)[0], shape)
                self.give("Mul", f"{value} {gate[0]}", shape)
            case "concat":
                other = self.peer(x, True)
                if c + other[1][0] <= 12:
                    self.give("Concat", f"{value} {other[0]}", (c + other[1][0], *shape[1:]), axis=1)
            case "affine":
                self.give("Mul", f"{value} {self.constant(self.rng.normal(1, 0.3, (1, c, 1, 1)))}", shape)
            case "norm":
                parts = [self.rng.normal(1, 0.2, c), self.rng.normal(0, 0.2, c), self.rng.normal(0, 0.2, c)]
                names = [self.constant(v) for v in (*parts, self.rng.uniform(0.5, 1.5, c))]
                self.give("BatchNormalization", " ".join([value, *names]), shape)
            case "slice":
                start = self.number(0, c - 1)
                names = [self.constant(np.array([v], np.int64)) for v in (start, 1000, 1, self.number(1, 2))]
                step = int(self.constants[names[3]][0])
                self.give("Slice", " ".join([value, *names]), ((c - start + step - 1) // step, *shape[1:]))
            case "pad":
                pads = self.constant(np.array([0, 0, 1, 0, 0, 0, 0, 2], np.int64))
                self.give("Pad", f"{value} {pads}", (c, shape[1] + 1, shape[2] + 2))
            case _:
                self.give("Transpose", value, (c, shape[2], shape[1]), perm=[0, 1, 3, 2])


@st.composite
def random_nets(draw: st.DrawFn, steps: int = 7) -> onnx.ModelProto:
    """Up to ``steps`` ops on a small image, a dense layer over all of it or over means, now and then softmax."""
    shape = (draw(st.integers(1, 5)), draw(st.integers(1, 9)), draw(st.integers(1, 9)))
    g = _Grower(draw, shape)
    for _ in range(draw(st.integers(1, steps))):
        g.step()
    value, last = g.values[-1]
    if draw(st.booleans()):
        value, last = g.give("GlobalAveragePool", value, (last[0], 1, 1))
    g.nodes.append(node("Flatten", value, "flat"))
    w, b = g.constant(g.rng.normal(0, 1 / np.sqrt(prod(last)), (4, prod(last)))), g.constant(g.rng.normal(0, 0.2, 4))
    soft = draw(st.sampled_from(["", "Softmax", "LogSoftmax"]))
    g.nodes.append(node("Gemm", f"flat {w} {b}", "z" if soft else "y", transB=1))
    if soft:
        g.nodes.append(node(soft, "z", "y"))
    return net(g.nodes, [1, *shape], g.constants)
