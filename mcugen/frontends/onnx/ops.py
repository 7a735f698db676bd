"""The table of ops: (domain, op type) to how a node is read. The next op is one row here and one handler.

A row lists every attribute that the op may have: another one means an op that mcugen does not know.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mcugen.frontends.onnx import ops_compare as conditions
from mcugen.frontends.onnx import ops_elementwise as elementwise
from mcugen.frontends.onnx import ops_functions as functions
from mcugen.frontends.onnx import ops_linear as linear
from mcugen.frontends.onnx import ops_ml as classic
from mcugen.frontends.onnx import ops_move as move
from mcugen.frontends.onnx import ops_normalize as normalize
from mcugen.frontends.onnx import ops_pool as pool
from mcugen.frontends.onnx import ops_recurrent as recurrent
from mcugen.frontends.onnx import ops_resize as resize
from mcugen.frontends.onnx.call import Call
from mcugen.frontends.onnx.ml_values import ML
from mcugen.nn.source import LogSoftmax, Softmax

Handler = Callable[[Call], None]


@dataclass(frozen=True, slots=True)
class Row:
    """How nodes of one op are read. ``operands``: least and greatest number of them."""

    handler: Handler
    operands: tuple[int, int]
    attributes: frozenset[str]


def _row(handler: Handler, least: int, most: int, attributes: str = "") -> Row:
    return Row(handler, (least, most), frozenset(attributes.split()))


def _later(what: str, workaround: str) -> Row:
    """An op that is known and not supported; any operands and attributes."""
    return Row(lambda c: c.refuse(what, workaround), (0, 1 << 30), ANY)


ANY = frozenset({"*"})
_WINDOW = "kernel_shape strides pads dilations auto_pad"
_RESIZE = (
    "mode nearest_mode coordinate_transformation_mode axes antialias cubic_coeff_a exclude_outside "
    "extrapolation_value keep_aspect_ratio_policy"
)
_REDUCE = "axes keepdims noop_with_empty_axes"
_RNN = "direction hidden_size layout activations activation_alpha activation_beta clip"
_QDQ = "quantize with quant_format=QuantFormat.QDQ"
_LINEAR = "coefficients intercepts post_transform"

OPS: dict[tuple[str, str], Row] = {
    ("", "Conv"): _row(linear.conv, 2, 3, f"{_WINDOW} group"),
    ("", "Gemm"): _row(linear.gemm, 2, 3, "alpha beta transA transB"),
    ("", "MatMul"): _row(linear.matmul, 2, 2),
    ("", "BatchNormalization"): _row(linear.batch_normalization, 5, 5, "epsilon momentum spatial training_mode"),
    ("", "LayerNormalization"): _row(normalize.layer_normalization, 2, 3, "axis epsilon stash_type"),
    ("", "InstanceNormalization"): _row(normalize.instance_normalization, 3, 3, "epsilon"),
    ("", "GroupNormalization"): _row(normalize.group_normalization, 3, 3, "epsilon num_groups stash_type"),
    ("", "Add"): _row(elementwise.arithmetic("add"), 2, 2),
    ("", "Sub"): _row(elementwise.arithmetic("sub"), 2, 2),
    ("", "Mul"): _row(elementwise.arithmetic("mul"), 2, 2),
    ("", "Div"): _row(elementwise.arithmetic("div"), 2, 2),
    ("", "Relu"): _row(elementwise.activation("relu"), 1, 1),
    ("", "LeakyRelu"): _row(elementwise.activation("leaky_relu", alpha=0.01), 1, 1, "alpha"),
    ("", "PRelu"): _row(functions.prelu, 2, 2),
    ("", "Clip"): _row(elementwise.clip, 1, 3, "min max"),
    ("", "Sigmoid"): _row(elementwise.activation("sigmoid"), 1, 1),
    ("", "HardSigmoid"): _row(elementwise.activation("hard_sigmoid", alpha=0.2, beta=0.5), 1, 1, "alpha beta"),
    ("", "Tanh"): _row(elementwise.activation("tanh"), 1, 1),
    ("", "HardSwish"): _row(elementwise.activation("hard_swish"), 1, 1),
    ("", "Elu"): _row(elementwise.activation("elu", alpha=1.0), 1, 1, "alpha"),
    ("", "Selu"): _row(functions.selu, 1, 1, "alpha gamma"),
    ("", "Celu"): _row(functions.celu, 1, 1, "alpha"),
    ("", "ThresholdedRelu"): _row(elementwise.activation("thresholded_relu", alpha=1.0), 1, 1, "alpha"),
    ("", "Softplus"): _row(elementwise.activation("softplus"), 1, 1),
    ("", "Softsign"): _row(elementwise.activation("softsign"), 1, 1),
    ("", "Erf"): _row(elementwise.activation("erf"), 1, 1),
    ("", "Abs"): _row(elementwise.activation("abs"), 1, 1),
    ("", "Exp"): _row(elementwise.activation("exp"), 1, 1),
    ("", "Log"): _row(elementwise.activation("log"), 1, 1),
    ("", "Sqrt"): _row(elementwise.activation("sqrt"), 1, 1),
    ("", "Pow"): _row(functions.power, 2, 2),
    ("", "Neg"): _row(functions.negated, 1, 1),
    ("", "Reciprocal"): _row(functions.reciprocal, 1, 1),
    ("", "Gelu"): _row(functions.gelu, 1, 1, "approximate"),
    ("", "Mish"): _row(functions.mish, 1, 1),
    ("", "Swish"): _row(functions.swish, 1, 1, "alpha"),
    ("", "Max"): _row(functions.limit("max"), 1, 1 << 16),
    ("", "Min"): _row(functions.limit("min"), 1, 1 << 16),
    ("", "Sum"): _row(functions.total("sum"), 1, 1 << 16),
    ("", "Mean"): _row(functions.total("mean"), 1, 1 << 16),
    ("", "Greater"): _row(conditions.compare("Greater"), 2, 2),
    ("", "GreaterOrEqual"): _row(conditions.compare("GreaterOrEqual"), 2, 2),
    ("", "Less"): _row(conditions.compare("Less"), 2, 2),
    ("", "LessOrEqual"): _row(conditions.compare("LessOrEqual"), 2, 2),
    ("", "Not"): _row(conditions.negated, 1, 1),
    ("", "Where"): _row(conditions.where, 3, 3),
    ("", "Identity"): _row(elementwise.identity, 1, 1),
    ("", "Dropout"): _row(elementwise.dropout, 1, 3, "ratio seed"),
    ("", "Cast"): _row(elementwise.cast, 1, 1, "to saturate round_mode"),
    ("", "QuantizeLinear"): _row(elementwise.quantize, 2, 3, "axis block_size output_dtype precision saturate"),
    ("", "DequantizeLinear"): _row(elementwise.dequantize, 2, 3, "axis block_size output_dtype"),
    ("", "MaxPool"): _row(pool.pool("max"), 1, 1, f"{_WINDOW} ceil_mode storage_order"),
    ("", "AveragePool"): _row(pool.pool("avg"), 1, 1, f"{_WINDOW} ceil_mode count_include_pad"),
    ("", "GlobalAveragePool"): _row(pool.global_pool("avg"), 1, 1),
    ("", "GlobalMaxPool"): _row(pool.global_pool("max"), 1, 1),
    ("", "ReduceMean"): _row(pool.reduce("mean"), 1, 2, _REDUCE),
    ("", "ReduceSum"): _row(pool.reduce("sum"), 1, 2, _REDUCE),
    ("", "ReduceMax"): _row(pool.reduce("max"), 1, 2, _REDUCE),
    ("", "ReduceMin"): _row(pool.reduce("min"), 1, 2, _REDUCE),
    ("", "ReduceL1"): _row(pool.reduce("l1"), 1, 2, _REDUCE),
    ("", "ReduceL2"): _row(pool.reduce("l2"), 1, 2, _REDUCE),
    ("", "ReduceSumSquare"): _row(pool.reduce("sum_square"), 1, 2, _REDUCE),
    ("", "Softmax"): _row(pool.softmax(Softmax), 1, 1, "axis"),
    ("", "LogSoftmax"): _row(pool.softmax(LogSoftmax), 1, 1, "axis"),
    ("", "ArgMax"): _row(pool.argmax, 1, 1, "axis keepdims select_last_index"),
    ("", "Shape"): _row(pool.shape_of, 1, 1, "start end"),
    ("", "Size"): _row(pool.size_of, 1, 1),
    ("", "Reshape"): _row(move.reshape, 2, 2, "allowzero"),
    ("", "Flatten"): _row(move.flatten, 1, 1, "axis"),
    ("", "Squeeze"): _row(move.squeeze, 1, 2, "axes"),
    ("", "Unsqueeze"): _row(move.unsqueeze, 1, 2, "axes"),
    ("", "Expand"): _row(move.expand, 2, 2),
    ("", "Transpose"): _row(move.transpose, 1, 1, "perm"),
    ("", "Concat"): _row(move.concat, 1, 1 << 16, "axis"),
    ("", "Slice"): _row(move.slice_, 1, 5, "starts ends axes"),
    ("", "Split"): _row(move.split, 1, 2, "axis split num_outputs"),
    ("", "Gather"): _row(move.gather, 2, 2, "axis"),
    ("", "Tile"): _row(move.tile, 2, 2),
    ("", "DepthToSpace"): _row(resize.depth_to_space, 1, 1, "blocksize mode"),
    ("", "SpaceToDepth"): _row(resize.space_to_depth, 1, 1, "blocksize"),
    ("", "Resize"): _row(resize.resize, 2, 4, _RESIZE),
    ("", "Upsample"): _row(resize.resize, 1, 2, "mode scales"),
    ("", "ConvTranspose"): _row(resize.conv_transpose, 2, 3, f"{_WINDOW} group output_padding output_shape"),
    ("", "Pad"): _row(move.pad, 1, 4, "mode pads value"),
    ("", "LSTM"): _row(recurrent.lstm, 3, 8, f"{_RNN} input_forget"),
    ("", "GRU"): _row(recurrent.gru, 3, 6, f"{_RNN} linear_before_reset"),
    # What is well known, and why it is not here.
    ("", "RNN"): _later("plain RNN is not supported", "use LSTM or GRU"),
    ("", "If"): _later("subgraphs are not supported", "export with torch.onnx.export(..., do_constant_folding=True)"),
    ("", "Loop"): _later("subgraphs are not supported", "unroll the loop before the export"),
    ("", "Scan"): _later("subgraphs are not supported", "unroll the loop before the export"),
    ("", "QLinearConv"): _later("the operator format of quantization is not supported", _QDQ),
    ("", "QLinearMatMul"): _later("the operator format of quantization is not supported", _QDQ),
    ("", "ConvInteger"): _later("the operator format of quantization is not supported", _QDQ),
    ("", "MatMulInteger"): _later("dynamic quantization is not supported", "quantize statically, in the QDQ format"),
    ("", "DynamicQuantizeLinear"): _later(
        "dynamic quantization is not supported", "quantize statically, in QDQ format"
    ),
    # Classic models; graphs with tree ensembles are read elsewhere (ml_graph.py).
    (ML, "Scaler"): _row(classic.scaler, 1, 1, "offset scale"),
    (ML, "LinearRegressor"): _row(classic.linear_regressor, 1, 1, f"{_LINEAR} targets"),
    (ML, "LinearClassifier"): _row(
        classic.linear_classifier, 1, 1, f"{_LINEAR} classlabels_ints classlabels_strings multi_class"
    ),
    (ML, "Normalizer"): _row(classic.normalizer, 1, 1, "norm"),
    (ML, "ZipMap"): _row(classic.zip_map, 1, 1, "classlabels_int64s classlabels_strings"),
    (ML, "ArrayFeatureExtractor"): _row(classic.array_feature_extractor, 2, 2),
}
#: onnxruntime's own forms for element types that ai.onnx got later only.
OPS |= {("com.microsoft", op): OPS["", op] for op in ("QuantizeLinear", "DequantizeLinear")}

#: Ops that are computed at once where every operand is known. None makes its result much larger than its operands,
#: but for those in GROWS, where the operand with this index holds the shape.
FOLDABLE = frozenset(
    "Abs Add And BatchNormalization Cast CastLike Ceil Clip Concat Constant Cos Div Equal Erf Exp Flatten Floor Gather "
    "GatherElements GatherND Gemm Greater GreaterOrEqual Identity Less LessOrEqual Log MatMul Max Mean Min Mod Mul Neg "
    "Not Or Pow Range Reciprocal ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum Relu Reshape Round Shape Sigmoid "
    "Sign Sin Size Slice Softmax Split Sqrt Squeeze Sub Sum Tanh Transpose Unsqueeze Where Xor Expand ConstantOfShape "
    "Dropout LogSoftmax".split()
)
GROWS = {"Expand": 1, "ConstantOfShape": 0}
