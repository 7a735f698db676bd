"""Source ops of nets: what the user's model means, in float32, without layout, integers or board."""

from mcugen.nn.source.base import NetOp, Shape, ShapeError
from mcugen.nn.source.elementwise import ACTIVATIONS, Activation, Affine, Binary, FakeQuant, Select
from mcugen.nn.source.function import Function
from mcugen.nn.source.linear import Conv, Dense, no_bias
from mcugen.nn.source.move import Concat, Pad, Reshape, Slice, Transpose
from mcugen.nn.source.normalize import Normalize
from mcugen.nn.source.pool import ArgMax, GlobalPool, LogSoftmax, Pool, Reduce, Softmax
from mcugen.nn.source.recurrent import Gru, Lstm
from mcugen.nn.source.spread import DepthToSpace, Repeat

#: Every class of this level; a lowering must know each.
SOURCE_OPS: tuple[type[NetOp], ...] = (
    Conv,
    Dense,
    Affine,
    Binary,
    Select,
    Activation,
    FakeQuant,
    Function,
    Softmax,
    LogSoftmax,
    Normalize,
    ArgMax,
    Pool,
    GlobalPool,
    Reduce,
    Reshape,
    Transpose,
    Concat,
    Slice,
    Pad,
    Repeat,
    DepthToSpace,
    Lstm,
    Gru,
)

__all__ = [
    "ACTIVATIONS",
    "SOURCE_OPS",
    "Activation",
    "Affine",
    "ArgMax",
    "Binary",
    "Concat",
    "Conv",
    "Dense",
    "DepthToSpace",
    "FakeQuant",
    "Function",
    "GlobalPool",
    "Gru",
    "LogSoftmax",
    "Lstm",
    "NetOp",
    "Normalize",
    "Pad",
    "Pool",
    "Reduce",
    "Repeat",
    "Reshape",
    "Select",
    "Shape",
    "ShapeError",
    "Slice",
    "Softmax",
    "Transpose",
    "no_bias",
]
