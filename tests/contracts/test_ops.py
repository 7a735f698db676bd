"""When a machine op is done: one class in one file that holds together, with a kernel, a page, a golden and tests."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from pathlib import Path

import pytest

from mcugen.core.op import MachineOp
from mcugen.resources import resource_dir
from mcugen.trees.ops import MACHINE_OPS

TESTS = Path(__file__).parent.parent
ROOT = TESTS.parent
PARTS = ("check", "eval", "items", "emit", "cost")

sys.path.insert(0, str(TESTS / "goldens"))
from test_goldens import GOLDENS, export_golden  # noqa: E402

ops = pytest.mark.parametrize("op", MACHINE_OPS, ids=lambda op: op.__name__)


def _snake(name: str) -> str:
    return {"ArgMax": "argmax"}.get(name) or re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


@ops
def test_one_room(op: type[MachineOp]) -> None:
    """The file has the name of the class, and no other op in it."""
    path = Path(inspect.getfile(op))
    assert path.stem == _snake(op.__name__)
    classes = [n.name for n in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(n, ast.ClassDef)]
    assert classes == [op.__name__]
    assert len(path.read_text(encoding="utf-8").splitlines()) < 400


@ops
def test_all_parts_are_its_own(op: type[MachineOp]) -> None:
    """Each part stands in the class itself: nothing is inherited, nothing abstract is left."""
    assert not inspect.isabstract(op)
    for part in PARTS:
        assert part in vars(op), part
    assert op.__doc__
    assert op.level == "machine"


@ops
def test_kernel_exists(op: type[MachineOp]) -> None:
    """The runtime has the function, or the template takes the macro; its comment stands before it or in its header."""
    symbol, file = op.kernel
    path = resource_dir("runtime_c") / file
    text = path.read_text(encoding="utf-8")
    assert re.search(rf"\b{symbol}\b\s*\(", text), f"{file} does not define {symbol}"
    header = (
        text if path.suffix == ".h" else (path.parents[1] / "include" / f"{path.stem}.h").read_text(encoding="utf-8")
    )
    assert re.search(rf"\b{symbol}\b", header)


@ops
def test_has_a_page(op: type[MachineOp]) -> None:
    """docs/numerics.md says what the op computes, to the bit."""
    text = (ROOT / "docs" / "numerics.md").read_text(encoding="utf-8")
    sections = re.split(r"^## ", text, flags=re.MULTILINE)
    section = [s for s in sections if s.split("\n", 1)[0].strip() == op.__name__]
    assert len(section) == 1
    assert len(section[0].split()) > 20


@ops
def test_has_a_property_test(op: type[MachineOp]) -> None:
    """tests/<family>/test_<op>.py uses hypothesis on the op."""
    family = op.__module__.split(".")[1]
    path = TESTS / family / f"test_{_snake(op.__name__)}.py"
    assert path.is_file(), f"no {path.relative_to(ROOT)}"
    text = path.read_text(encoding="utf-8")
    assert "@given" in text
    assert re.search(rf"\b{op.__name__}\b|leaf_names", text)


def test_every_op_is_in_a_golden(tmp_path: Path) -> None:
    """A golden of generated C shows each op."""
    shown = {type(op) for name in GOLDENS for op in export_golden(name, tmp_path / name, verify=False).model.ops}
    assert set(MACHINE_OPS) - shown == set()


def test_no_op_is_left_out() -> None:
    """Every concrete machine op of the family is in MACHINE_OPS."""

    def below(cls: type) -> set[type]:
        return {c for sub in cls.__subclasses__() for c in {sub, *below(sub)}}

    # By name: a dataclass with slots replaces the class that was written.
    concrete = {c.__name__ for c in below(MachineOp) if not inspect.isabstract(c) and ".trees.ops." in c.__module__}
    assert concrete == {c.__name__ for c in MACHINE_OPS}
    assert len(concrete) == len(MACHINE_OPS)
