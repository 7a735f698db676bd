"""The last proof before an export: the generated C, compiled on this machine, gives the reference's bits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcugen.core.types import Array, DType, Model
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
) -> dict[str, Any]:
    """Compile the C and compare outputs ``y`` and, if given, ``trace`` (N, T) for inputs ``x``, before and after the
    tables have moved to their copies. DiffersError names the first value that is wrong. Returns what was compared."""
    name = machine.name
    x_type, y_type = machine.types[machine.inputs[0]], machine.types[machine.outputs[0]]
    leaf_type, trees = DType.U16, 0
    if trace is not None:
        leaf_type, trees = DType.of(str(trace.dtype)), trace.shape[1]
    signature = (x_type.dtype, x_type.count, y_type.dtype, y_type.count)
    with (
        build_shared(files, sources_of(files), compiler, ("-DMCG_TRACE",)) as library,
        HostModel(library, name, *signature, leaf_type=leaf_type, trees=trees) as host,
    ):
        require_equal(y, host.run(x), f"{name}_run")
        if trace is not None:
            require_equal(trace, host.leaves(x), f"{name}_leaves")
        host.init_sections()
        require_equal(y, host.run(x), f"{name}_run after mcg_sections_init")
        require_selftest(host)
    return {"host": "equal", "vectors": len(x)} | ({"leaves": "equal"} if trace is not None else {})


def require_equal(expected: Array, found: Array, what: str) -> None:
    """DiffersError unless every bit is the same. ``found`` (N, K) as the C gives it has no axes inside a sample."""
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


__all__ = ["check_host", "require_equal", "require_selftest", "sources_of"]
