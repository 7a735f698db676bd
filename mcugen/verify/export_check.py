"""The last proof before an export: the generated C, compiled on this machine, gives the reference's bits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcugen.core.op import MachineOp
from mcugen.core.ports import ArenaPorts
from mcugen.core.stream import state_layout
from mcugen.core.types import Array, DType, Model
from mcugen.emit.parts import ports_of
from mcugen.emit.sources import sources_of
from mcugen.errors import DiffersError
from mcugen.verify.compare import compare_bits
from mcugen.verify.compiler import HostCompiler
from mcugen.verify.hostbuild import HostModel, build_shared


def check_host(
    files: Mapping[str, str | bytes],
    machine: Model,
    x: Array,
    y: Array,
    trace: Array | None,
    compiler: HostCompiler,
    status: Array | None = None,
    arena: ArenaPorts | None = None,
) -> dict[str, Any]:
    """Compile the C and compare outputs ``y`` and, if given, ``trace`` (N, T) for inputs ``x``, before and after the
    tables have moved to their copies. ``status`` (N,): the rows are the pushes of one run of a model with state, which
    runs again from a fresh state too. ``arena``: of a net, which runs in all the ways that its arena allows.
    DiffersError names the first value that is wrong. Returns what was compared."""
    name = machine.name
    ins, outs = ports_of(machine)
    leaf_type, trees = DType.U16, 0
    if trace is not None:
        leaf_type, trees = DType.of(str(trace.dtype)), trace.shape[1]
    layout = state_layout([op for op in machine.ops if isinstance(op, MachineOp)])
    more: dict[str, Any] = {"leaf_type": leaf_type, "trees": trees, "state_bytes": 0 if layout is None else layout.size}
    # A model with state has no NAME_leaves: tables for it would be unused, which is a warning.
    flags = ("-DMCG_TRACE",) if layout is None else ()
    with (
        build_shared(files, sources_of(files), compiler, flags) as library,
        HostModel(library, name, ins, outs, **more) as host,
    ):
        for when in ("", " after mcg_sections_init"):
            if status is None:
                require_equal(y, host.run(x), f"{name}_run{when}")
                if arena is not None and not when:
                    require_all_ways(y, host, x, arena)
                if trace is not None:  # trees: a batch may be more than a loop
                    require_equal(y, host.run_each(x), f"{name}_run, one by one{when}")
                    require_equal(y, host.run_pieces(x), f"{name}_run_batch{when}")
            else:
                require_same_run(y, status, host.push(x), f"{name}_push{when}")
            if trace is not None and not when:
                require_equal(trace, host.leaves(x), f"{name}_leaves")
            host.init_sections()
        require_selftest(host)
    return {"host": "equal", "vectors": len(x)} | ({"leaves": "equal"} if trace is not None else {})


def require_all_ways(y: Array, host: HostModel, x: Array, arena: ArenaPorts, what: str = "") -> None:
    """DiffersError unless a net gives the bits ``y`` for ``x`` with ports in its own arena, and in arenas of the
    caller's whatever they held, and leaves alone what is not its own. ``what``: said behind the function's name."""
    own, inside = f"{host.name}_run{what}", f"{host.name}_run_with{what}"
    if arena.placed:
        require_equal(y, host.run_placed(x), f"{own}, input and output in the arena")
        require_equal(y, host.run_with(x, arena, placed=True), f"{inside}, input and output in the arena")
    require_equal(y, host.run_with(x, arena, placed=False), inside)


def require_same_run(y: Array, status: Array, found: tuple[Array, Array], what: str) -> None:
    """DiffersError unless the run ``found`` (results, statuses) has the statuses, and every bit of the results."""
    require_equal(status, found[1], f"status of {what}")
    require_equal(y, found[0], what)


def require_equal(expected: Array, found: Array, what: str) -> None:
    """DiffersError unless every bit is the same. ``found`` (N, K) as the C gives it has no axes inside a sample."""
    if expected.dtype.names is not None and found.dtype == expected.dtype:
        for port in expected.dtype.names:
            require_equal(expected[port], found[port], f"{what}, {port}")
        return
    if found.size == expected.size and found.shape[:1] == expected.shape[:1]:
        found = found.reshape(expected.shape)
    difference = compare_bits(expected, found, what)
    if difference is not None:
        raise DiffersError("verification", str(difference))


def require_selftest(host: HostModel) -> None:
    """DiffersError unless NAME_selftest passes."""
    failed = host.selftest()
    if failed:
        raise DiffersError(f"{host.name}_selftest", f"vector {failed - 1} fails")
