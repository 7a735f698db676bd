"""manifest.json as a value: everything a machine may want to know of an export. Schema: docs/manifest.schema.json.

No host compiler, no path, no time: two exports of one model are the same bytes.
"""

from __future__ import annotations

import math
from typing import Any

from mcugen.core.ports import ArenaPorts
from mcugen.core.stream import StateLayout, rhythm, state_layout
from mcugen.core.types import Feature, Model
from mcugen.emit.parts import ABI, PortText, machine_ops, port_texts
from mcugen.target.plan import Assignment, Plan


def manifest_of(
    model: Model,
    plan: Plan,
    options: dict[str, Any],
    verification: dict[str, Any],
    version: str,
    arena: ArenaPorts | None = None,
) -> dict[str, Any]:
    """The manifest without the list of files, which the writer adds. ``arena``: that of a model which has one."""
    ports = port_texts(model)
    layout = state_layout(machine_ops(model))
    state = {} if layout is None else {"state": _state(model, layout)}
    offsets = {} if arena is None else _offsets(model, arena)
    return state | {
        "name": model.name,
        "tool": {"name": "mcugen", "version": version, "abi": ABI},
        "source": {"name": model.source.name, "format": model.source.format, "sha256": model.source.sha256},
        "options": options,
        "board": plan.board.name if plan.board is not None else None,
        "inputs": [
            _tensor(p, model) | offsets.get(p.port.name, {}) | {"features": [_feature(f) for f in model.features]}
            for p in ports
            if p.is_input
        ],
        "outputs": [
            _tensor(p, model) | offsets.get(p.port.name, {}) | {"labels": list(model.labels)}
            for p in ports
            if not p.is_input
        ],
        "bounds": {
            name: {"error": b.error, "low": _finite(b.range_low), "high": _finite(b.range_high)}
            for name, b in model.bounds.items()
        },
        "symbols": [_symbol(a) for a in plan.assignments],
        "memory": [
            {"region": u.region, "used": u.used, "available": u.available, "usable": u.usable} for u in plan.usage
        ],
        "notes": list(model.notes),
        "verification": verification,
    }


def _offsets(model: Model, arena: ArenaPorts) -> dict[str, dict[str, int]]:
    """Where each port lies in the arena, in bytes; empty if none does."""
    if not arena.placed:
        return {}
    places = zip(port_texts(model), (*arena.inputs, *arena.outputs), strict=True)
    return {p.port.name: {"arena_offset": at} for p, at in places}


def _state(model: Model, layout: StateLayout) -> dict[str, Any]:
    """NAME_state_t, and when a push gives a result."""
    when = rhythm(machine_ops(model))
    members = [{"name": f.symbol, "type": f.member.ctype, "size": f.member.size} for f in layout.fields]
    return {"bytes": layout.size, "align": layout.align, "members": members, "first": when.first, "every": when.every}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _tensor(p: PortText, model: Model) -> dict[str, Any]:
    t = model.types[p.value]
    entry: dict[str, Any] = {"name": p.port.name, "dtype": t.dtype.label, "shape": list(t.shape)}
    if not p.only:
        entry["value"] = p.value
    if t.q is not None:
        entry |= {"scale": t.q.scale, "zero_point": t.q.zero_point}
    return entry


def _feature(f: Feature) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": f.name}
    if f.scale is not None:
        entry |= {"scale": f.scale, "offset": f.offset}
    if f.missing is not None:
        entry["missing"] = f.missing
    if f.categories is not None:
        entry["categories"] = list(f.categories)
    return entry


def _symbol(a: Assignment) -> dict[str, Any]:
    return {
        "symbol": a.item.symbol,
        "role": a.item.role,
        "type": a.item.ctype,
        "size": a.item.size,
        "estimated": a.item.role == "code",
        "align": a.item.align,
        "section": a.section,
        "region": a.region,
        "copied": a.copied,
        "reason": a.reason,
    }
