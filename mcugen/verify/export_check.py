"""The proof that precedes every export: float model, integer reference and compiled C on the same vectors.

library == float model is a matter of the tests; here, for this very model:
float model ~ integer reference within the proven bound, same leaf in every tree; integer reference == host C,
every bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mcugen.core.passes import evaluate
from mcugen.core.types import Array, DType, Model
from mcugen.errors import DiffersError, InternalError
from mcugen.trees.lower import ensemble_of
from mcugen.trees.ops import SumLeaves, SumLinear
from mcugen.trees.signals import InputSpec
from mcugen.trees.walk import leaf_index
from mcugen.verify.compare import compare_bits
from mcugen.verify.compiler import HostCompiler
from mcugen.verify.hostbuild import HostModel, build_shared


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """What the integer reference and the float model say of inputs ``x`` (N, F).

    ``y``: outputs of the C (N, K). ``leaf``: (N, T) leaves by the integer reference. ``worst``: the largest distance
    between the score and the float model's, in the unit of the score.
    """

    x: Array
    y: Array
    leaf: Array
    worst: float
    low: float
    high: float


def reference(source: Model, machine: Model, spec: InputSpec, x: Array) -> Reference:
    """Both references on ``x``; InternalError where they break the proven bound or take another leaf."""
    env = evaluate(machine, {machine.inputs[0]: x})
    op = next(o for o in machine.ops if isinstance(o, SumLeaves | SumLinear))
    leaf = op.leaf_names(env[op.inputs[0]])
    values = spec.values(x)
    forest = ensemble_of(source).forest
    float_leaf = leaf_index(forest, values)
    wrong = np.argwhere(leaf != float_leaf)
    if wrong.size:
        row, tree = wrong[0].tolist()
        raise InternalError(f"{machine.name}: vector {row}, tree {tree}", "the integer reference takes another leaf")
    score = op.outputs[0]
    real = ensemble_of(source).scores(values, float_leaf)
    kind = machine.types[score]
    # The scale of a mean contains 1 / trees; the raw score is compared before that division.
    unit = op.leaves.unit if isinstance(op, SumLeaves) else 1.0
    with np.errstate(invalid="ignore"):
        gap = np.abs(env[score].astype(np.float64) * unit - real)
    gap = np.where((env[score] == real) | np.isnan(real) & np.isnan(env[score]), 0.0, gap)
    bound = op.leaves.bound.error if isinstance(op, SumLeaves) else 0.0
    worst = float(gap.max(initial=0.0))
    if not worst <= bound:
        raise InternalError(machine.name, f"a {kind.dtype.label} score is off by {worst}, above the bound {bound}")
    y = env[machine.outputs[0]]
    return Reference(x, y, leaf, worst, float(np.nanmin(real, initial=np.inf)), float(np.nanmax(real, initial=-np.inf)))


def sources_of(files: Mapping[str, str | bytes]) -> list[str]:
    """The C files of an export that make a library."""
    return sorted(path for path in files if path.endswith(".c"))


def check_host(
    files: Mapping[str, str | bytes], machine: Model, ref: Reference, compiler: HostCompiler
) -> dict[str, Any]:
    """Compile the generated C on this machine and compare every bit; DiffersError names the first that is wrong."""
    x_type, y_type = machine.types[machine.inputs[0]], machine.types[machine.outputs[0]]
    leaf_type = DType.U16 if ref.leaf.max(initial=0) <= 0xFFFF else DType.U32
    op = next(o for o in machine.ops if isinstance(o, SumLeaves | SumLinear))
    leaf_type = DType.U16 if op.tables.name_ctype == "uint16_t" else DType.U32
    with (
        build_shared(files, sources_of(files), compiler, ("-DMCG_TRACE",)) as library,
        HostModel(
            library,
            machine.name,
            x_type.dtype,
            x_type.count,
            y_type.dtype,
            y_type.count,
            leaf_type=leaf_type,
            trees=ref.leaf.shape[1],
        ) as host,
    ):
        _require_equal(ref.y, host.run(ref.x), f"{machine.name}_run")
        _require_equal(ref.leaf.astype(leaf_type.np), host.leaves(ref.x), f"{machine.name}_leaves")
        host.init_sections()
        _require_equal(ref.y, host.run(ref.x), f"{machine.name}_run after mcg_sections_init")
        failed = host.selftest()
        if failed:
            raise DiffersError(f"{machine.name}_selftest", f"vector {failed - 1} fails")
    return {"host": "equal", "vectors": len(ref.x), "leaves": "equal"}


def _require_equal(expected: Array, found: Array, what: str) -> None:
    difference = compare_bits(expected, found, what)
    if difference is not None:
        raise DiffersError("verification", str(difference))
