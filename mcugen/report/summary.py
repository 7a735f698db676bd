"""What an export prints: the model, what goes in and comes out, the proof, where everything stands."""

from __future__ import annotations

from dataclasses import dataclass

from mcugen.core.types import Bound, Model
from mcugen.target.plan import Plan


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """Facts for the summary. ``worst`` and ``span``: of the scores on the test vectors; ``data``: the user's rows."""

    title: str
    model: Model
    plan: Plan
    vectors: int
    coverage: str
    worst: float
    span: float
    verified: bool
    data: str | None
    notes: tuple[str, ...]


def summary_lines(report: Report) -> list[str]:
    """The summary, a line a fact; the table of memories is apart."""
    model = report.model
    x, y = model.types[model.inputs[0]], model.types[model.outputs[0]]
    scale = f", score = y * {y.q.scale!r}" if y.q is not None else ""
    lines = [
        f"model     {report.title}",
        f"call      {model.name}_run(const {x.dtype.ctype} x[{x.count}], {y.dtype.ctype} y[{y.count}]){scale}",
        f"bound     {bound_text(model.bounds['score'], report.worst, report.span)}",
        f"coverage  {report.coverage}",
        f"proof     {_proof(report)}",
    ]
    if report.data is not None:
        lines.append(f"data      {report.data}")
    return lines + [f"note      {note}" for note in report.notes]


def bound_text(bound: Bound, worst: float, span: float) -> str:
    """The proven bound, and what it is of the span seen on the test vectors."""
    if bound.error == 0.0:
        return "the score has the same bits as the library's double, for every input"
    share = f" ({100 * bound.error / span:.2g} % of the span {span:.4g} seen)" if span > 0 else ""
    return f"|score - library| <= {bound.error:.4g} for every input{share}; worst seen {worst:.2g}"


def distance_text(rows: int, mean: float, largest: float, span: float, flips: int | None) -> str:
    """The float model and the C on the user's rows, in one line."""
    share = f" ({100 * largest / span:.3g} % of the span)" if span > 0 else ""
    labels = "" if flips is None else f", {flips} labels flip"
    return f"on {rows:,} rows of your data: mean error {mean:.3g}, largest {largest:.3g}{share}{labels}"


def _proof(report: Report) -> str:
    if not report.verified:
        return f"NOT VERIFIED: the C was not compiled; the references agree on {report.vectors:,} vectors"
    return f"C == integer reference, every bit and every leaf, on {report.vectors:,} vectors"


def memory_lines(plan: Plan, explain: bool) -> list[str]:
    """Where every symbol stands, aligned; ``explain`` adds the linker section. Sizes of code are estimates."""
    head = ("symbol", "bytes", "region", *(("section",) if explain else ()), "reason")
    rows = [head]
    for a in plan.assignments:
        size = f"{'~' if a.item.role == 'code' else ''}{a.item.size:,}"
        rows.append((a.item.symbol, size, a.region, *((a.section,) if explain else ()), a.reason))
    widths = [max(len(r[i]) for r in rows) for i in range(len(head) - 1)]
    lines = []
    for row in rows:
        cells = [c.rjust(w) if i == 1 else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=False))]
        lines.append("  ".join([*cells, row[-1]]))
    return lines


def usage_lines(plan: Plan) -> list[str]:
    """Used bytes of each memory that is used."""
    return [f"{u.region:<6} {u.used:>9,} of {u.available:,} bytes available to models" for u in plan.usage if u.used]
