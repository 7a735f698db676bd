"""What the TOML of a signal chain may hold: channels, filters, a window, features, a model. Fields only, no meaning.

The same classes are the Python interface: ``mcugen.Pipeline(signal=..., channel=[...], filter=[...])``.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
#: Coefficients may be written as whole numbers; NaN and infinity are refused where they are used, with the place.
Numbers = Annotated[tuple[Annotated[float, Field(strict=True)], ...], Field(min_length=1)]
Count = Annotated[int, Field(strict=True, ge=1)]
Name = Annotated[str, Field(strict=True, min_length=1)]
Names = Annotated[tuple[Name, ...], Field(min_length=1)]
Band = Literal["lowpass", "highpass", "bandpass", "bandstop"]


class Table(BaseModel):
    """One table of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SignalTable(Table):
    """``rate`` in samples a second. ``max_error``: what the filters' arithmetic may add, in the channels' unit.

    ``dma_samples``: samples that the buffer holds which DMA fills, where the channels have ``dma = true``.
    """

    name: Name | None = None
    rate: Annotated[Number, Field(gt=0)]
    dtype: Literal["int16", "int32", "float32"] = "int16"
    arithmetic: Literal["auto", "q15", "q31", "q31x64", "float32", "float64"] = "auto"
    max_error: Annotated[Number, Field(gt=0)] | None = None
    dma_samples: Annotated[int, Field(strict=True, ge=1, le=65536)] = 2


class Channel(Table):
    """``real = scale * x + offset``. ``low`` and ``high``: the range of real values that the sensor can give."""

    name: Name
    scale: Number = 1.0
    offset: Number = 0.0
    unit: str = ""
    low: Number | None = None
    high: Number | None = None
    dma: Annotated[bool, Field(strict=True)] = False


class FilterTable(Table):
    """What all filters have: the channels they treat, all where nothing is said."""

    channels: Names | None = None


class _Designed(FilterTable):
    """A design by SciPy. ``cutoff`` in Hz; two of them for bandpass and bandstop."""

    order: Annotated[int, Field(strict=True, ge=1, le=20)]
    type: Band = "lowpass"
    cutoff: Number | tuple[Number, ...]


class Butter(_Designed):
    """scipy.signal.butter."""

    kind: Literal["butter"]


class Bessel(_Designed):
    """scipy.signal.bessel with norm 'phase'."""

    kind: Literal["bessel"]


class Cheby1(_Designed):
    """scipy.signal.cheby1; ``ripple`` in dB."""

    kind: Literal["cheby1"]
    ripple: Annotated[Number, Field(gt=0)]


class Cheby2(_Designed):
    """scipy.signal.cheby2; ``attenuation`` in dB."""

    kind: Literal["cheby2"]
    attenuation: Annotated[Number, Field(gt=0)]


class Ellip(_Designed):
    """scipy.signal.ellip; ``ripple`` and ``attenuation`` in dB."""

    kind: Literal["ellip"]
    ripple: Annotated[Number, Field(gt=0)]
    attenuation: Annotated[Number, Field(gt=0)]


class Notch(FilterTable):
    """scipy.signal.iirnotch; ``frequency`` in Hz."""

    kind: Literal["notch"]
    frequency: Annotated[Number, Field(gt=0)]
    quality: Annotated[Number, Field(gt=0)] = 30.0


class Peak(FilterTable):
    """scipy.signal.iirpeak; ``frequency`` in Hz."""

    kind: Literal["peak"]
    frequency: Annotated[Number, Field(gt=0)]
    quality: Annotated[Number, Field(gt=0)] = 30.0


class Sos(FilterTable):
    """Second-order sections as SciPy writes them, six numbers each."""

    kind: Literal["sos"]
    sos: Annotated[tuple[Numbers, ...], Field(min_length=1)]


class Ba(FilterTable):
    """A transfer function ``b / a``; it is cut into second-order sections."""

    kind: Literal["ba"]
    b: Numbers
    a: Numbers


class FirWin(FilterTable):
    """scipy.signal.firwin of ``length`` taps; ``cutoff`` in Hz. ``window``: a name, or name and parameters."""

    kind: Literal["firwin"]
    length: Annotated[int, Field(strict=True, ge=1, le=4096)]
    type: Band = "lowpass"
    cutoff: Number | tuple[Number, ...]
    window: Name | tuple[Name | Number, ...] = "hamming"


class Taps(FilterTable):
    """A finite impulse response, in time order."""

    kind: Literal["taps"]
    taps: tuple[Annotated[float, Field(strict=True)], ...]


class MovingAverageTable(FilterTable):
    """The mean of the last ``length`` samples."""

    kind: Literal["moving_average"]
    length: Count


class WeightedAverageTable(FilterTable):
    """The mean of the last samples with ``weights``, the newest first."""

    kind: Literal["weighted_average"]
    weights: Numbers


class MedianTable(FilterTable):
    """The median of the last ``length`` samples, an odd number."""

    kind: Literal["median"]
    length: Count


class ExtremeTable(FilterTable):
    """The smallest or the largest of the last ``length`` samples."""

    kind: Literal["min", "max"]
    length: Count


class SmoothTable(FilterTable):
    """Exponential smoothing by ``alpha``, or by a ``time_constant`` in seconds."""

    kind: Literal["smooth"]
    alpha: Annotated[Number, Field(gt=0, le=1)] | None = None
    time_constant: Annotated[Number, Field(gt=0)] | None = None


class DcBlockTable(FilterTable):
    """Removes what is constant: a ``pole`` below 1, or a ``cutoff`` in Hz."""

    kind: Literal["dc_block"]
    pole: Annotated[Number, Field(gt=0, lt=1)] | None = None
    cutoff: Annotated[Number, Field(gt=0)] | None = None


class DecimateTable(FilterTable):
    """Keeps every ``factor``-th sample of all channels. Put a low-pass before it."""

    kind: Literal["decimate"]
    factor: Annotated[int, Field(strict=True, ge=2)]


_ITERATIVE = Butter | Bessel | Cheby1 | Cheby2 | Ellip | Notch | Peak | Sos | Ba
_SIMPLE = FirWin | Taps | MovingAverageTable | WeightedAverageTable | MedianTable | ExtremeTable
AnyFilter = Annotated[_ITERATIVE | _SIMPLE | SmoothTable | DcBlockTable | DecimateTable, Field(discriminator="kind")]


class Window(Table):
    """Features are computed over the last ``length`` samples, again after each ``step``.

    ``layout``: without features, how a net takes the samples: (length, channels) or (channels, length).
    """

    length: Count
    step: Count = 1
    layout: Literal["auto", "time_channel", "channel_time"] = "auto"


class FeatureTable(Table):
    """One kind or several, of one channel or several; each pair is a feature called channel_kind, or ``name``.

    ``band``: two frequencies in Hz, of band_power. ``lag``: samples back. ``level``: of zero_crossings.
    """

    kind: Name | Names
    channel: Name | None = None
    channels: Names | None = None
    name: Name | None = None
    band: tuple[Number, Number] | None = None
    lag: Annotated[int, Field(strict=True, ge=0)] | None = None
    level: Number | None = None


class ModelTable(Table):
    """The model that reads the features or the window: a file beside the TOML."""

    file: Name
    output: Literal["raw", "class", "proba"] | None = None


class PipelineTables(Table):
    """A whole file."""

    signal: SignalTable
    channel: Annotated[tuple[Channel, ...], Field(min_length=1)]
    filter: tuple[AnyFilter, ...] = ()
    window: Window | None = None
    feature: tuple[FeatureTable, ...] = ()
    model: ModelTable | None = None
