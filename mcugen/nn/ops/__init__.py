"""Machine ops of small nets: one class a file, each with its check, reference, tables, C call and cost."""

from mcugen.core.op import MachineOp
from mcugen.nn.ops.factivation import FActivation
from mcugen.nn.ops.fbinary import FBinary
from mcugen.nn.ops.fconv import FConv
from mcugen.nn.ops.fdense import FDense
from mcugen.nn.ops.flogsoftmax import FLogSoftmax
from mcugen.nn.ops.fnormalize import FNormalize
from mcugen.nn.ops.fpool import FPool
from mcugen.nn.ops.frecurrent import FGru, FLstm
from mcugen.nn.ops.frecurrent_step import FGruStep, FLstmStep
from mcugen.nn.ops.fscale import FScale
from mcugen.nn.ops.fsoftmax import FSoftmax
from mcugen.nn.ops.move import Move
from mcugen.nn.ops.qadd import QAdd
from mcugen.nn.ops.qadd16 import QAdd16
from mcugen.nn.ops.qargmax import QArgMax
from mcugen.nn.ops.qconcat import QConcat
from mcugen.nn.ops.qconv import QConv
from mcugen.nn.ops.qconv16 import QConv16
from mcugen.nn.ops.qdense import QDense
from mcugen.nn.ops.qdense16 import QDense16
from mcugen.nn.ops.qdepthwise import QDepthwise
from mcugen.nn.ops.qgate import QGate
from mcugen.nn.ops.qgru import QGru
from mcugen.nn.ops.qgru_step import QGruStep
from mcugen.nn.ops.qlogsoftmax import QLogSoftmax
from mcugen.nn.ops.qlstm import QLstm
from mcugen.nn.ops.qlstm_step import QLstmStep
from mcugen.nn.ops.qmul import QMul
from mcugen.nn.ops.qnormalize import QNormalize
from mcugen.nn.ops.qpool import QPool
from mcugen.nn.ops.qrescale import QRescale
from mcugen.nn.ops.qscale import QScale
from mcugen.nn.ops.qsoftmax import QSoftmax
from mcugen.nn.ops.qtable import QTable
from mcugen.nn.ops.qwinograd import QWinograd
from mcugen.nn.ops.row_chain import RowChain

MACHINE_OPS: tuple[type[MachineOp], ...] = (
    QConv,
    QWinograd,
    QDepthwise,
    QDense,
    QAdd,
    QMul,
    QGate,
    QTable,
    QScale,
    QPool,
    QSoftmax,
    QLogSoftmax,
    QNormalize,
    QArgMax,
    Move,
    QConcat,
    QLstm,
    QGru,
    QLstmStep,
    QGruStep,
    QConv16,
    QDense16,
    QAdd16,
    QRescale,
    RowChain,
    FConv,
    FDense,
    FBinary,
    FScale,
    FActivation,
    FPool,
    FSoftmax,
    FLogSoftmax,
    FNormalize,
    FLstm,
    FGru,
    FLstmStep,
    FGruStep,
)
