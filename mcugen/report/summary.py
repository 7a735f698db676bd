"""What an export prints: the model, what goes in and comes out, the proof, where everything stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mcugen.core.op import MachineOp
from mcugen.core.stream import has_state, rhythm, state_layout
from mcugen.core.types import Bound, Model, QParams
from mcugen.emit.parts import port_texts
from mcugen.target.plan import Plan

#: Facts that stand below the proof.
_LAST = ("data", "worst", "note")


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """Facts for the summary. ``facts``: of the family, as (label, text); ``traced``: leaves were compared."""

    title: str
    model: Model
    plan: Plan
    vectors: int
    facts: tuple[tuple[str, str], ...]
    traced: bool
    verified: bool
    details: tuple[str, ...] = ()
    against: str = "integer reference"


def summary_lines(report: Report) -> list[str]:
    """The summary, a line a fact; the table of memories is apart."""
    model = report.model
    ports = port_texts(model)
    kinds = [model.types[p.value] for p in ports]
    word = "score" if model.bounds else "real"  # trees have bounds
    scales = [(p.port.name, t.q) for p, t in zip(ports, kinds, strict=True) if not p.is_input and t.q is not None]
    scale = "".join(f", {word if ports[-1].only else name} = {_real(q, name)}" for name, q in scales)
    ops = tuple(op for op in model.ops if isinstance(op, MachineOp))
    layout = state_layout(ops)
    function = f"{model.name}_run(" if layout is None else f"{model.name}_push({model.name}_state_t *s, "
    operands = [f"{'const ' if p.is_input else ''}{p.port.dtype.ctype} {p.port.name}[{p.port.count}]" for p in ports]
    call = f"{function}{', '.join(operands)}){scale}"
    first = [f"{'model':<9} {report.title}", f"{'call':<9} {call}"]
    first += [] if layout is None else [f"{'state':<9} {layout.size:,} bytes of the caller's; {rhythm(ops).text()}"]
    facts = [f"{label:<9} {text}" for label, text in report.facts if label not in _LAST]
    last = [f"{label:<9} {text}" for label, text in report.facts if label in _LAST]
    return [*first, *facts, f"{'proof':<9} {_proof(report)}", *last]


def _real(q: QParams, y: str = "y") -> str:
    """``y`` as a real number, in C."""
    zero = "" if q.zero_point == 0 else f" {'-' if q.zero_point > 0 else '+'} {abs(q.zero_point)}"
    return f"{f'({y}{zero})' if zero else y} * {q.scale!r}"


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
    plural = "" if rows == 1 else "s"
    return f"on {rows:,} row{plural} of your data: mean error {mean:.3g}, largest {largest:.3g}{share}{labels}"


def _proof(report: Report) -> str:
    if not report.verified:
        return f"NOT VERIFIED: the C was not compiled; the references agree on {report.vectors:,} vectors"
    what = "every bit and every leaf" if report.traced else "every bit"
    pushes = has_state([op for op in report.model.ops if isinstance(op, MachineOp)])
    rows = "pushes of one run, and again after a reset" if pushes else "vectors"
    return f"C == {report.against}, {what}, on {report.vectors:,} {rows}"


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


def usage_lines(plans: Sequence[Plan], explain: bool) -> list[str]:
    """Used bytes of each memory that is used, over all plans, which were made together; what more of a fast memory
    would buy, where it would buy something, or with ``explain`` in any case."""
    first = plans[0]
    lines = []
    for i, u in enumerate(first.usage):
        used = sum(p.usage[i].used for p in plans)
        if used:
            lines.append(f"{u.region:<6} {used:>9,} of {u.available:,} bytes available to models")
    for region, saved in first.next_kib:
        if saved >= 0.5:
            lines.append(f"{region:<6} the next KiB would save about {saved:.0f} stall cycles a run (estimate)")
        elif explain:
            lines.append(f"{region:<6} the next KiB would save nothing: all that gains there is there already")
    return lines
