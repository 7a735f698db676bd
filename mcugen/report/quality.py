"""The float model and the C on the user's own data: two models, and how far apart they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcugen.core.passes import evaluate
from mcugen.core.types import Array, Model
from mcugen.frontends.calibrate import Calibration
from mcugen.trees.ops import SumLeaves, SumLinear
from mcugen.trees.source import Average


@dataclass(frozen=True, slots=True)
class Quality:
    """Over ``rows`` of data: distances of the score, and labels that flip (None where there are no classes).

    The float model sees the data as it is, the C sees it in the declared input type: what quantizing the inputs
    costs is counted here, and not in the proven bound.
    """

    rows: int
    mean_error: float
    max_error: float
    span: float
    flips: int | None

    def text(self) -> str:
        """One line."""
        share = f" ({100 * self.max_error / self.span:.3g} % of the span)" if self.span > 0 else ""
        errors = f"mean error {self.mean_error:.3g}, largest {self.max_error:.3g}{share}"
        line = f"on {self.rows:,} rows of your data: {errors}"
        return line if self.flips is None else f"{line}, {self.flips} labels flip"


def quality_of(source: Model, machine: Model, calibration: Calibration) -> Quality | None:
    """None without data."""
    if calibration.x is None or calibration.real is None:
        return None
    real = evaluate(source, {"x": calibration.real})["raw"]
    env = evaluate(machine, {machine.inputs[0]: calibration.x})
    op = next(o for o in machine.ops if isinstance(o, SumLeaves | SumLinear))
    unit = op.leaves.unit if isinstance(op, SumLeaves) else 1.0
    # The mean of a forest is its score: errors are given in its unit.
    count = next((o.count for o in source.ops if isinstance(o, Average) and source.outputs[0] in o.outputs), 1)
    real, found = real / count, env[op.outputs[0]].astype(np.float64) * unit / count
    gap = np.abs(found - real)
    span = float(real.max() - real.min())
    flips = int(np.count_nonzero(_labels(found, source) != _labels(real, source))) if source.labels else None
    return Quality(len(real), float(gap.mean()), float(gap.max()), span, flips)


def _labels(score: Array, model: Model) -> Array:
    if score.shape[1] == 1:
        return np.asarray(score[:, 0] > model.class_above)
    return np.asarray(score.argmax(axis=1))
