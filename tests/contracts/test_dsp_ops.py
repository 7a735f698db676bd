"""When a machine op of signals is done: all parts, a kernel in the named file, a page, property tests of its own."""

from __future__ import annotations

import ast
import inspect
import re
from collections import Counter
from pathlib import Path

import pytest

from mcugen.core.op import MachineOp
from mcugen.dsp.ops import MACHINE_OPS
from mcugen.emit.sources import _DEFINED
from mcugen.resources import resource_dir

TESTS = Path(__file__).parent.parent
ROOT = TESTS.parent
PARTS = ("check", "eval", "items", "emit", "cost")

ops = pytest.mark.parametrize("op", MACHINE_OPS, ids=lambda op: op.__name__)


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


@ops
def test_all_parts_are_there(op: type[MachineOp]) -> None:
    assert not inspect.isabstract(op)
    for part in PARTS:
        assert getattr(op, part) is not getattr(MachineOp, part), part
    assert op.__doc__
    assert not op.on_stack


@ops
def test_one_room(op: type[MachineOp]) -> None:
    """The file has the name of the class, and no other op in it."""
    path = Path(inspect.getfile(op))
    assert path.stem == _snake(op.__name__)
    classes = [n.name for n in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(n, ast.ClassDef)]
    assert op.__name__ in classes
    assert not set(classes) & {o.__name__ for o in MACHINE_OPS if o is not op}


@ops
def test_kernel_exists(op: type[MachineOp]) -> None:
    """The named file defines the function, and a header declares it."""
    symbol, file = op.kernel
    runtime = resource_dir("runtime_c")
    assert re.search(rf"\b{symbol}\s*\(", (runtime / file).read_text(encoding="utf-8")), f"{file} lacks {symbol}"
    headers = "".join(p.read_text(encoding="utf-8") for p in (runtime / "include").glob("*.h"))
    assert re.search(rf"\b{symbol}\s*\(", headers), f"no header declares {symbol}"


@ops
def test_has_a_page(op: type[MachineOp]) -> None:
    """A page of docs/numerics_dsp*.md says what the op computes."""
    text = "".join(p.read_text(encoding="utf-8") for p in sorted((ROOT / "docs").glob("numerics_dsp*.md")))
    sections = [s for s in re.split(r"^## ", text, flags=re.MULTILINE) if s.split("\n", 1)[0].strip() == op.__name__]
    assert len(sections) == 1
    assert len(sections[0].split()) > 20


@ops
def test_has_a_property_test(op: type[MachineOp]) -> None:
    """A test of the family uses hypothesis on the op."""
    texts = [p.read_text(encoding="utf-8") for p in (TESTS / "dsp").glob("test_*.py")]
    assert any("@given" in t and re.search(rf"\b{op.__name__}\b", t) for t in texts)


def test_no_op_is_left_out() -> None:
    """Every class of the family that names a kernel is in MACHINE_OPS."""
    found = set()
    for path in (ROOT / "mcugen" / "dsp" / "ops").glob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and any(
                isinstance(s, ast.AnnAssign) and getattr(s.target, "id", "") == "kernel" for s in node.body
            ):
                found.add(node.name)
    assert found == {op.__name__ for op in MACHINE_OPS}


def test_names_of_the_runtime_are_unique() -> None:
    """No two files of the runtime define the same function: a firmware may link both."""
    sources = resource_dir("runtime_c").glob("src/*.c")
    names = Counter(n for p in sources for n in set(_DEFINED.findall(p.read_text(encoding="utf-8"))))
    assert [n for n, times in names.items() if times > 1] == []
