"""What the numbers of a signal mean: names, scales and ranges by channel. Not here: what is done with them."""

from __future__ import annotations

from dataclasses import dataclass

from mcugen.core.types import DType, TensorType
from mcugen.errors import InternalError


@dataclass(frozen=True, slots=True)
class Signal:
    """C channels that are sampled at the same instants.

    ``real = scale * q + offset``, by channel, where q is the number of type ``dtype`` that the code sees. ``peaks``:
    the largest ``|q|`` that a channel can have, as far as is known or proven. ``rate``: samples a second, or None.
    """

    names: tuple[str, ...]
    dtype: DType
    scales: tuple[float, ...]
    offsets: tuple[float, ...]
    peaks: tuple[float, ...]
    rate: float | None = None

    def __post_init__(self) -> None:
        if not self.names or {len(self.scales), len(self.offsets), len(self.peaks)} != {len(self.names)}:
            raise InternalError("signal", "names, scales, offsets and peaks of different lengths")

    @classmethod
    def of(
        cls,
        names: tuple[str, ...],
        dtype: DType,
        scales: tuple[float, ...] | None = None,
        offsets: tuple[float, ...] | None = None,
        rate: float | None = None,
        peaks: tuple[float, ...] | None = None,
    ) -> Signal:
        """Scales of 1, offsets of 0 and the whole range of the type where nothing else is said (float32: 1.0)."""
        n = len(names)
        peak = 1.0 if dtype.is_float else float(-dtype.min)
        return cls(names, dtype, scales or (1.0,) * n, offsets or (0.0,) * n, peaks or (peak,) * n, rate)

    @property
    def type(self) -> TensorType:
        """The type of one sample: (C,)."""
        return TensorType((len(self.names),), self.dtype)
