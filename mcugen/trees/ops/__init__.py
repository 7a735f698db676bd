"""Machine ops of the tree family: one class a file, each with its check, reference, tables, C call and cost."""

from mcugen.trees.ops.above import Above
from mcugen.trees.ops.argmax import ArgMax
from mcugen.trees.ops.divide_scores import DivideScores
from mcugen.trees.ops.rank_coarse import RankCoarse
from mcugen.trees.ops.rank_inputs import RankInputs
from mcugen.trees.ops.rank_lookup import RankLookup
from mcugen.trees.ops.scale_scores import ScaleScores
from mcugen.trees.ops.softmax import Softmax
from mcugen.trees.ops.sum_branches import SumBranches
from mcugen.trees.ops.sum_leaves import SumLeaves
from mcugen.trees.ops.sum_linear import SumLinear
from mcugen.trees.ops.sum_mixed import SumMixed
from mcugen.trees.ops.sum_packed import SumPacked
from mcugen.trees.ops.transform import Transform

MACHINE_OPS = (
    RankInputs,
    RankCoarse,
    RankLookup,
    SumLeaves,
    SumBranches,
    SumPacked,
    SumMixed,
    SumLinear,
    ScaleScores,
    DivideScores,
    Transform,
    Softmax,
    ArgMax,
    Above,
)

__all__ = [
    "MACHINE_OPS",
    "Above",
    "ArgMax",
    "DivideScores",
    "RankCoarse",
    "RankInputs",
    "RankLookup",
    "ScaleScores",
    "Softmax",
    "SumBranches",
    "SumLeaves",
    "SumLinear",
    "SumMixed",
    "SumPacked",
    "Transform",
]
