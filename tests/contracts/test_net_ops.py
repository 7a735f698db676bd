"""When a machine op of nets is done: all parts, a kernel in the named file, a page, tests of its own."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

from mcugen.core.op import MachineOp
from mcugen.nn.ops import MACHINE_OPS
from mcugen.nn.quantize.quantize import RULES
from mcugen.nn.source import SOURCE_OPS
from mcugen.resources import resource_dir

TESTS = Path(__file__).parent.parent
ROOT = TESTS.parent
PARTS = ("check", "eval", "items", "emit", "cost")

ops = pytest.mark.parametrize("op", MACHINE_OPS, ids=lambda op: op.__name__)


@ops
def test_all_parts_are_there(op: type[MachineOp]) -> None:
    assert not inspect.isabstract(op)
    for part in PARTS:
        assert getattr(op, part) is not getattr(MachineOp, part), part
    assert op.__doc__
    assert not op.on_stack


@ops
def test_kernel_exists(op: type[MachineOp]) -> None:
    """The named file defines the function, and a header that it includes declares it."""
    symbol, file = op.kernel
    path = resource_dir("runtime_c") / file
    text = path.read_text(encoding="utf-8")
    assert re.search(rf"\b{symbol}\s*\(", text), f"{file} does not define {symbol}"
    headers = re.findall(r'#include "(mcg_nn_\w+\.h)"', text)
    declared = "".join((path.parents[1] / "include" / h).read_text(encoding="utf-8") for h in headers)
    nested = re.findall(r'#include "(mcg_nn_\w+\.h)"', declared)
    declared += "".join((path.parents[1] / "include" / h).read_text(encoding="utf-8") for h in nested)
    assert re.search(rf"\b{symbol}\s*\(", declared), f"no header declares {symbol}"


@ops
def test_has_a_page(op: type[MachineOp]) -> None:
    """docs/numerics_nn.md says what the op computes."""
    text = (ROOT / "docs" / "numerics_nn.md").read_text(encoding="utf-8")
    sections = [s for s in re.split(r"^## ", text, flags=re.MULTILINE) if s.split("\n", 1)[0].strip() == op.__name__]
    assert len(sections) == 1
    assert len(sections[0].split()) > 15


@ops
def test_has_tests_of_its_own(op: type[MachineOp]) -> None:
    """A test of the family, or a rig that its tests use, makes the op."""
    files = [*(TESTS / "nn").glob("*.py"), *TESTS.glob("kernel_*.py")]
    assert any(re.search(rf"\b{op.__name__}\b", path.read_text(encoding="utf-8")) for path in files)


def test_no_op_is_left_out() -> None:
    """Every machine op of the family is in MACHINE_OPS, but for three that nothing lowers to yet."""
    found = set()
    for path in (ROOT / "mcugen" / "nn" / "ops").glob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and any(
                isinstance(s, ast.AnnAssign) and getattr(s.target, "id", "") == "kernel" for s in node.body
            ):
                found.add(node.name)
    waiting = {"QMul16", "QTable16", "QSoftmax16"}
    assert found - waiting == {op.__name__ for op in MACHINE_OPS}


def test_every_source_op_has_a_rule() -> None:
    assert set(RULES) == set(SOURCE_OPS)
