"""Classes of signal chains that a reference file may hold."""

from mcugen.dsp.feature_plan import IntFeature
from mcugen.dsp.ops import MACHINE_OPS
from mcugen.dsp.source import FILTER_OPS, Features, FeatureSpec, Frames

_ALL: tuple[type, ...] = (*MACHINE_OPS, *FILTER_OPS, Features, FeatureSpec, Frames, IntFeature)
#: By name: nothing else of this family is ever made from a file.
CLASSES: dict[str, type] = {c.__name__: c for c in _ALL}
