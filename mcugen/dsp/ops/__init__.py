"""Machine ops of signals: one call of one C kernel each, on samples that arrive one by one."""

from mcugen.core.op import MachineOp
from mcugen.dsp.ops.biquad_f32 import BiquadF32
from mcugen.dsp.ops.biquad_f64 import BiquadF64
from mcugen.dsp.ops.biquad_q15 import BiquadQ15
from mcugen.dsp.ops.biquad_q31 import BiquadQ31
from mcugen.dsp.ops.biquad_q63 import BiquadQ63
from mcugen.dsp.ops.convert_units import ConvertUnits
from mcugen.dsp.ops.dc_remove import DcRemove
from mcugen.dsp.ops.exp_smooth import ExpSmooth
from mcugen.dsp.ops.f_window_features import FWindowFeatures
from mcugen.dsp.ops.fir_f32 import FirF32
from mcugen.dsp.ops.fir_q15 import FirQ15
from mcugen.dsp.ops.fir_q31 import FirQ31
from mcugen.dsp.ops.frame_samples import FrameSamples
from mcugen.dsp.ops.keep_every import KeepEvery
from mcugen.dsp.ops.quantize_reals import QuantizeReals
from mcugen.dsp.ops.real_samples import RealSamples
from mcugen.dsp.ops.running_extreme import RunningExtreme
from mcugen.dsp.ops.running_mean import RunningMean
from mcugen.dsp.ops.running_median import RunningMedian
from mcugen.dsp.ops.scale_samples import ScaleSamples
from mcugen.dsp.ops.shift_samples import ShiftSamples
from mcugen.dsp.ops.window_features import WindowFeatures

#: Every machine op of filters, windows and features.
MACHINE_OPS: tuple[type[MachineOp], ...] = (
    FirQ15,
    FirQ31,
    FirF32,
    BiquadQ15,
    BiquadQ31,
    BiquadQ63,
    BiquadF32,
    BiquadF64,
    RunningMean,
    RunningMedian,
    RunningExtreme,
    ExpSmooth,
    DcRemove,
    KeepEvery,
    ShiftSamples,
    ScaleSamples,
    WindowFeatures,
    FWindowFeatures,
    FrameSamples,
    ConvertUnits,
    RealSamples,
    QuantizeReals,
)

__all__ = [
    "MACHINE_OPS",
    "BiquadF32",
    "BiquadF64",
    "BiquadQ15",
    "BiquadQ31",
    "BiquadQ63",
    "ConvertUnits",
    "DcRemove",
    "ExpSmooth",
    "FWindowFeatures",
    "FirF32",
    "FirQ15",
    "FirQ31",
    "FrameSamples",
    "KeepEvery",
    "QuantizeReals",
    "RealSamples",
    "RunningExtreme",
    "RunningMean",
    "RunningMedian",
    "ScaleSamples",
    "ShiftSamples",
    "WindowFeatures",
]
