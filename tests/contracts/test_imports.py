"""The rules of the house that a machine can check: who imports whom, who writes files, how long things are."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import mcugen.errors

PACKAGE = Path(mcugen.errors.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

BASE = {"errors", "resources", "version"}
FAMILIES = {"trees", "nn", "dsp"}
MIDDLE = BASE | {"programs", "core", "ctext", "target"}
#: What each part may import, besides itself. A new part is added here on purpose, or the test fails.
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "version": set(),
    "resources": {"errors"},
    "programs": {"errors"},
    "core": {"errors"},
    "ctext": {"errors"},
    **{family: BASE | {"core", "ctext"} for family in FAMILIES},
    "features": {"errors", "core", "dsp", "pipelines"},
    "pipelines": {"errors", "core", "dsp", "frontends"},
    "frontends": BASE | FAMILIES | {"core", "ctext"},
    "target": BASE | {"core", "ctext"},
    "emit": MIDDLE,
    "emulate": MIDDLE | {"emit"},
    "verify": MIDDLE | {"emit", "emulate"},
    "doctor": MIDDLE | {"emit", "emulate"},
    "report": MIDDLE | {"emit", "emulate", "verify"},
    "recipes": MIDDLE | FAMILIES | {"frontends", "emit", "emulate", "verify", "report"},
    "exported": MIDDLE | {"frontends", "emit", "emulate", "verify", "report", "recipes"},
    "build": MIDDLE
    | FAMILIES
    | {"frontends", "emit", "emulate", "verify", "report", "recipes", "exported"}
    | {"doctor"},
    "terminal": {"errors"},
    "cli_options": {"errors", "recipes"},
    "cli_checks": {"doctor", "build", "terminal"},
    "cli": MIDDLE | {"terminal", "cli_options", "cli_checks", "report", "build"},
    "__init__": {"version", "build", "pipelines"},
    "__main__": {"cli"},
}

#: emit.files is the only writer of results. The others build and run C in a temporary folder of their own.
WRITERS = {"emit/files.py", "verify/compiler.py", "verify/hostbuild.py", "verify/sanitize.py"}
WRITER_FOLDERS = {"emulate"}
#: Methods and functions that change the file system, whatever they are called on.
WRITING_NAMES = {"write_text", "write_bytes", "tofile", "savetxt", "savez", "savez_compressed", "touch", "symlink_to"}
WRITING_NAMES |= {"mkdir", "makedirs", "unlink", "rmdir", "rmtree", "copyfile", "copytree", "copy2", "removedirs"}
#: The same, where only the module's own function is meant: str.replace and list.remove are harmless.
WRITING_OF = {("os", n) for n in ("replace", "rename", "remove", "link", "symlink", "truncate", "open", "fdopen")}
WRITING_OF |= {("shutil", n) for n in ("copy", "move")} | {("np", "save"), ("numpy", "save")}
WRITING_OF |= {
    ("tempfile", n) for n in ("mkdtemp", "mkstemp", "TemporaryDirectory", "NamedTemporaryFile", "TemporaryFile")
}

MAX_MODULE = 450
MAX_FUNCTION = 70


def part_of(path: Path) -> str:
    """errors, core, trees, ...: the first step of the module's name below mcugen."""
    relative = path.relative_to(PACKAGE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def module_name(path: Path) -> str:
    parts = ["mcugen", *path.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(node: ast.AST, path: Path) -> Iterator[tuple[int, str]]:
    """(line, module) of every import from mcugen below ``node``; ``from a import b`` as ``a.b``."""
    package = module_name(path).split(".")
    if path.name != "__init__.py":
        package = package[:-1]
    for n in ast.walk(node):
        if isinstance(n, ast.Import):
            yield from ((n.lineno, a.name) for a in n.names if a.name.split(".")[0] == "mcugen")
        elif isinstance(n, ast.ImportFrom):
            base = ".".join([*package[: len(package) - n.level + 1], n.module or ""] if n.level else [n.module or ""])
            base = base.rstrip(".")
            if base.split(".")[0] == "mcugen":
                yield from ((n.lineno, f"{base}.{a.name}") for a in n.names)


def import_faults(source: str, path: Path) -> list[str]:
    part = part_of(path)
    if part not in ALLOWED:
        return [f"{path}: part {part} has no row in ALLOWED"]
    faults = []
    for line, name in imports(ast.parse(source), path):
        steps = name.split(".")
        # "import mcugen" alone, or "from mcugen import load": the façade, which imports everything.
        target = steps[1] if len(steps) > 1 and steps[1] in ALLOWED else "__init__"
        if target not in ALLOWED[part] | {part}:
            faults.append(f"{path}:{line}: {part} imports {target}")
    return faults


def write_faults(source: str, path: Path) -> list[str]:
    relative = path.relative_to(PACKAGE)
    if relative.as_posix() in WRITERS or relative.parts[0] in WRITER_FOLDERS:
        return []
    calls = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Call)]
    return [f"{path}:{n.lineno}: writes files" for n in calls if writes(n)]


def writes(call: ast.Call) -> bool:
    f = call.func
    if isinstance(f, ast.Name):
        return f.id in WRITING_NAMES or (f.id == "open" and opens_for_writing(call, 1))
    if not isinstance(f, ast.Attribute):
        return False
    owner = f.value.id if isinstance(f.value, ast.Name) else ""
    if (owner, f.attr) in WRITING_OF or f.attr in WRITING_NAMES:
        return True
    return f.attr == "open" and opens_for_writing(call, 1 if owner in ("io", "gzip") else 0)


def opens_for_writing(call: ast.Call, position: int) -> bool:
    """Whether the mode is not known to be one for reading."""
    modes = [k.value for k in call.keywords if k.arg == "mode"] or call.args[position : position + 1]
    if not modes:
        return False
    mode = modes[0]
    return not (isinstance(mode, ast.Constant) and isinstance(mode.value, str) and set(mode.value) <= set("rbt"))


def code_lines(node: ast.Module | ast.FunctionDef | ast.AsyncFunctionDef, last: int) -> int:
    """Lines from the first, decorators apart, to ``last``, without the docstring."""
    first = 1 if isinstance(node, ast.Module) else node.lineno
    lines = last - first + 1
    if ast.get_docstring(node) is not None:
        doc = node.body[0]
        lines -= (doc.end_lineno or doc.lineno) - doc.lineno + 1
    return lines


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_imports_go_one_way(path: Path) -> None:
    assert import_faults(path.read_text(encoding="utf-8"), path) == []


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_only_the_writer_writes(path: Path) -> None:
    assert write_faults(path.read_text(encoding="utf-8"), path) == []


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_sizes(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    module = ast.parse(source)
    length = code_lines(module, source.count("\n"))
    assert length <= MAX_MODULE, f"{path}: {length} lines"
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = code_lines(node, node.end_lineno or node.lineno)
            assert length <= MAX_FUNCTION, f"{path}:{node.lineno}: {node.name} has {length} lines"


def top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run when the module is imported; not what is for type checkers only."""
    for node in body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        if isinstance(node, ast.If | ast.Try):
            yield from top_level(node.body)
            yield from top_level(node.orelse)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node


def test_no_import_cycles() -> None:
    known = {module_name(p): p for p in MODULES}
    edges: dict[str, set[str]] = {}
    for name, path in known.items():
        body = top_level(ast.parse(path.read_text(encoding="utf-8")).body)
        targets = {t for node in body for _, t in imports(node, path)}
        edges[name] = {t if t in known else t.rpartition(".")[0] for t in targets} & known.keys()
    while True:  # take away what imports nothing that is left
        leaves = {n for n, targets in edges.items() if not targets & edges.keys() - {n}}
        if not leaves:
            break
        edges = {n: t for n, t in edges.items() if n not in leaves}
    assert edges == {}


# The rules themselves: a rule that finds nothing anywhere would pass as well.


@pytest.mark.parametrize(
    ("place", "source"),
    [
        ("core/x.py", "from mcugen.ctext import literals"),
        ("core/x.py", "import mcugen.trees.forest"),
        ("core/x.py", "from mcugen import resources"),
        ("core/x.py", "from ..emit import files"),
        ("core/x.py", "from .. import emit"),
        ("core/x.py", "import mcugen"),
        ("core/__init__.py", "from ..trees import forest"),
        ("trees/x.py", "from mcugen.nn import conv"),
        ("trees/x.py", "def f():\n    from mcugen.target import board"),
        ("ctext/x.py", "from mcugen.core.types import Array"),
        ("emit/x.py", "from mcugen.verify import host"),
        ("errors.py", "from mcugen.core import types"),
        ("novel/x.py", ""),
    ],
)
def test_import_rule_finds(place: str, source: str) -> None:
    assert len(import_faults(source, PACKAGE / place)) == 1


@pytest.mark.parametrize(
    ("place", "source"),
    [
        ("core/x.py", "from mcugen.errors import InputError\nfrom mcugen.core.types import Array\nimport numpy"),
        ("core/x.py", "from .types import Array\nfrom . import op\nfrom ..errors import InputError"),
        ("emit/x.py", "from mcugen.target import plan\nfrom mcugen import errors"),
    ],
)
def test_import_rule_allows(place: str, source: str) -> None:
    assert import_faults(source, PACKAGE / place) == []


@pytest.mark.parametrize(
    "source",
    [
        "open(p, 'w')",
        "open(p, mode='ab')",
        "open(p, m)",
        "p.open('x')",
        "p.write_text('')",
        "Path(p).write_bytes(b'')",
        "os.replace(a, b)",
        "shutil.rmtree(a)",
        "np.save(p, a)",
        "a.tofile(p)",
        "tempfile.mkdtemp()",
        "io.open(p, 'r+')",
    ],
)
def test_write_rule_finds(source: str) -> None:
    assert len(write_faults(source, PACKAGE / "core/x.py")) == 1
    assert write_faults(source, PACKAGE / "emit/files.py") == []


@pytest.mark.parametrize(
    "source",
    [
        "open(p)",
        "open(p, 'rb')",
        "p.open()",
        "p.open('r')",
        "s.replace('a', 'b')",
        "p.read_text()",
        "open(p, encoding='u')",
    ],
)
def test_write_rule_allows(source: str) -> None:
    assert write_faults(source, PACKAGE / "core/x.py") == []
