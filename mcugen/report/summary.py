"""What an export prints: the model, what goes in and comes out, the proof, where everything stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mcugen.core.types import Bound, Model
from mcugen.report.quality import Quality
from mcugen.target.plan import Plan
from mcugen.trees.lower import ensemble_of
from mcugen.trees.vectors import Coverage
from mcugen.verify.export_check import Reference


class Exported(Protocol):
    """The parts of an export result that the summary reads."""

    @property
    def source(self) -> Model: ...
    @property
    def model(self) -> Model: ...
    @property
    def plan(self) -> Plan: ...
    @property
    def coverage(self) -> Coverage: ...
    @property
    def reference(self) -> Reference: ...
    @property
    def quality(self) -> Quality | None: ...
    @property
    def verified(self) -> bool: ...
    @property
    def notes(self) -> Sequence[str]: ...


def model_line(source: Model) -> str:
    """One line on a source model."""
    forest = ensemble_of(source).forest
    kinds = [
        k for k, there in (("categorical splits", forest.categorical.any()), ("linear leaves", forest.linear)) if there
    ]
    extra = f", {' and '.join(kinds)}" if kinds else ""
    classes = f", {len(source.labels)} classes" if source.labels else ""
    return (
        f"{source.source.name}: {forest.n_trees:,} trees, {forest.n_nodes + forest.n_trees:,} leaves, "
        f"{forest.n_features:,} features{classes}{extra}"
    )


def summary_lines(result: Exported) -> list[str]:
    """The summary, a line a fact; the table of memories is apart."""
    model, ref = result.model, result.reference
    x, y = model.types[model.inputs[0]], model.types[model.outputs[0]]
    scale = f", score = y * {y.q.scale!r}" if y.q is not None else ""
    lines = [
        f"model     {model_line(result.source)}",
        f"call      {model.name}_run(const {x.dtype.ctype} x[{x.count}], {y.dtype.ctype} y[{y.count}]){scale}",
        f"bound     {bound_text(model.bounds['score'], ref)}",
        f"coverage  {result.coverage.text()}",
        f"proof     {proof_text(result)}",
    ]
    if result.quality is not None:
        lines.append(f"data      {result.quality.text()}")
    lines += [f"note      {note}" for note in (*result.notes, *model.notes)]
    return lines


def bound_text(bound: Bound, ref: Reference) -> str:
    """The proven bound, and what it is of the span seen on the test vectors."""
    if bound.error == 0.0:
        return "the score has the same bits as the library's double, for every input"
    span = ref.high - ref.low
    share = f" ({100 * bound.error / span:.2g} % of the span {span:.4g} seen)" if span > 0 else ""
    return f"|score - library| <= {bound.error:.4g} for every input{share}; worst seen {ref.worst:.2g}"


def proof_text(result: Exported) -> str:
    """What was compared."""
    n = len(result.reference.x)
    if not result.verified:
        return (
            f"NOT VERIFIED: the C was not compiled; the integer reference agrees with the float model on {n:,} vectors"
        )
    return f"C == integer reference, every bit and every leaf, on {n:,} vectors"


def memory_rows(plan: Plan) -> list[tuple[str, str, str, str, str]]:
    """symbol, bytes, region, section, reason; code sizes are estimates and say so."""
    return [
        (
            a.item.symbol,
            f"{'~' if a.item.role == 'code' else ''}{a.item.size:,}",
            a.region,
            a.section,
            a.reason,
        )
        for a in plan.assignments
    ]


def usage_lines(plan: Plan) -> list[str]:
    """Used bytes of each memory that is used."""
    return [f"{u.region:<6} {u.used:>9,} of {u.available:,} bytes available to models" for u in plan.usage if u.used]
