"""Models with state, from ops written by hand to verified C: host, sanitizers, emulated boards, the folder's verbs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stream_ops import before, prepared, samples, summed_trees, sums

from mcugen.build import finish
from mcugen.core.passes import evaluate
from mcugen.core.stream import respond, rhythm, statuses
from mcugen.core.types import Array, Model
from mcugen.emit.parts import machine_ops, ports_of
from mcugen.emit.sources import sources_of
from mcugen.emulate.run import run_on_board
from mcugen.emulate.toolchain import find_cross_compiler
from mcugen.errors import DiffersError
from mcugen.exported import compare, open_folder, profile, run, verify
from mcugen.recipes.prepared import ExportOptions
from mcugen.report.summary import summary_lines
from mcugen.target.board import load_board
from mcugen.verify.compare import compare_bits
from mcugen.verify.compiler import find_host_compiler
from mcugen.verify.hostbuild import HostModel, build_shared
from mcugen.verify.sanitize import build_runner, run_golden

KINDS: dict[str, tuple[Callable[[], Model], bool]] = {
    "alone": (lambda: sums("alone", (1,)), False),
    "seven": (lambda: sums("seven", (7,), 5), False),
    "cascade": (lambda: sums("cascade", (2, 1, 3), 1, scratch=24), False),
    "inarena": (lambda: sums("inarena", (2, 1, 3), 2, scratch=24), True),
    "before": (lambda: before("before"), False),
    "trees": (lambda: summed_trees("trees"), False),
    "classes": (lambda: summed_trees("classes"), True),
}
kinds = pytest.mark.parametrize("kind", KINDS)


@dataclass(frozen=True)
class Reference:
    """Stands for the references that a family stores."""

    machine: Model

    def read(self, path: Path) -> tuple[Array, tuple[str, ...]]:
        return np.load(path), ()

    def answer(self, x: Array) -> tuple[Array, str]:
        (y,), _ = respond(self.machine, {self.machine.inputs[0]: x})
        return y, "no float model"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Every kind, exported for the H743."""
    found = {}
    for kind, (make, arena) in KINDS.items():
        model, out = make(), tmp_path_factory.mktemp(kind) / "out"
        board, compiler = load_board("stm32h743"), find_host_compiler()
        result = finish(model, prepared(model, 50, arena), out, ExportOptions(), board, compiler)
        assert any("_push(" in line for line in summary_lines(result.report))
        found[kind] = out
    return found


@pytest.fixture(autouse=True)
def _references(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ops of the tests are in no family's registry."""
    models = {make().name: make() for make, _ in KINDS.values()}
    monkeypatch.setattr("mcugen.exported.read_references", lambda data, where: Reference(models[_name(where)]))


def _name(where: str) -> str:
    return Path(where).name.split(".")[0]


# Reference


def test_rows_that_are_not_due_leave_every_value() -> None:
    model = sums("m", (2, 3), 1)
    x = np.arange(13, dtype=np.int16)[:, None]
    values = evaluate(model, {"v0": x})
    assert [int(v) for v in values["v0"][:, 0]] == [5, 11]
    assert [int(v) for v in values["v1"][:, 0]] == [15, 66]  # sums of 0..5 and 0..11
    assert [int(v) for v in values["v2"][:, 0]] == [1 + 6 + 15, 1 + 6 + 15 + 28 + 45 + 66]
    (y,), status = respond(model, {"v0": x})
    assert status.tolist() == [1] * 5 + [0] + [1] * 5 + [0, 1]
    assert y[:, 0].tolist() == [0] * 5 + [22] + [0] * 5 + [161, 0]


def test_rhythm() -> None:
    texts = [rhythm(machine_ops(sums("m", every))).text() for every in ((1,), (4,), (50, 200))]
    assert texts == [
        "a result at every push",
        "a result every 4 pushes, the first at push 4",
        "a result every 10,000 pushes, the first at push 10,000",
    ]
    assert statuses(machine_ops(sums("m", (3,))), 0).shape == (0,)


# C on the host


def _host(folder: Path) -> Any:
    return open_folder(folder).host()


@kinds
def test_pushes_equal_the_reference(kind: str, folders: dict[str, Path]) -> None:
    """Two streams at once, each with its own state, and a third of one sample."""
    model = KINDS[kind][0]()
    runs = [samples(model, n, seed) for seed, n in ((1, 40), (2, 33), (3, 1))]
    with _host(folders[kind]) as host:
        for x, (y, status) in zip(runs, host.push_all(runs), strict=True):
            (want,), due = respond(model, {model.inputs[0]: x})
            assert status.tolist() == due.tolist()
            assert compare_bits(want.reshape(y.shape), y, kind) is None
        assert host.selftest() == 0


@kinds
def test_sanitizers_find_nothing(kind: str, folders: dict[str, Path]) -> None:
    export = open_folder(folders[kind])
    with build_runner(
        export.files, sources_of(export.files), export.name, find_host_compiler("gcc"), stateful=True
    ) as program:
        found = run_golden(program, export.files[export.golden_path])
    assert found.returncode == 0, found.output


def test_a_fault_in_init_is_found(folders: dict[str, Path]) -> None:
    """What is not set again shows in the run after the reset."""
    model = sums("alone", (1,))
    ready = prepared(model)
    export = open_folder(folders["alone"])
    text = export.files["alone.c"].decode()
    assert text.count("s->op0_seen = 0u;") == 1
    files = {**export.files, "alone.c": text.replace("s->op0_total[i] = 0;", "(void)s;").encode()}
    sources = ["alone.c", "alone_selftest.c"]
    with (
        build_shared(files, sources, find_host_compiler()) as library,
        HostModel(library, "alone", *ports_of(model), state_bytes=export.state_bytes) as host,
    ):
        assert compare_bits(ready.y, host.push(ready.x)[0], "y") is not None
        assert host.selftest() == 1


def test_y_that_is_touched_too_early_is_found(folders: dict[str, Path]) -> None:
    model = sums("seven", (7,), 5)
    export = open_folder(folders["seven"])
    text = export.files["seven.c"].decode()
    files = {**export.files, "seven.c": text.replace("{ return MCG_PENDING; }", "{ y[0] = 0; return MCG_PENDING; }")}
    with (
        build_shared(files, ["seven.c"], find_host_compiler()) as library,
        HostModel(library, "seven", *ports_of(model), state_bytes=export.state_bytes) as host,
        pytest.raises(DiffersError, match="writes y for sample 0"),
    ):
        host.push(samples(model, 3))


# Boards


@kinds
@pytest.mark.parametrize("target", ["stm32h743", "mps2_an500"])
def test_boards_equal_the_reference(kind: str, target: str, folders: dict[str, Path]) -> None:
    lines = verify(folders[kind], target=target)
    assert lines[0].startswith(f"{target}: 50 golden pushes equal")


def test_the_layout_is_asserted_on_the_board(folders: dict[str, Path]) -> None:
    """Offsets and size are checked where __arm__ is defined; another size does not compile."""
    export = open_folder(folders["seven"])
    text = export.files["seven.h"].decode()
    assert "SEVEN_STATE_BYTES 24u" in text
    model = export.board_model()
    changed = {**model.files, "seven.h": text.replace("STATE_BYTES 24u", "STATE_BYTES 28u").encode()}
    broken = type(model)(*(changed if f == "files" else getattr(model, f) for f in model.__slots__))
    with pytest.raises(Exception, match="the state has another size here"):
        run_on_board(broken, samples(sums("seven", (7,), 5), 1), load_board("stm32h743"), find_cross_compiler())


# Verbs


@kinds
def test_verbs(kind: str, folders: dict[str, Path], tmp_path: Path) -> None:
    """run writes a row for each push that is due; verify takes more data; compare skips what is not due."""
    model = KINDS[kind][0]()
    x = samples(model, 20, 5)
    np.save(tmp_path / "x.npy", x)
    (want,), status = respond(model, {model.inputs[0]: x})
    for target in ("host", "stm32h743"):
        y, _ = run(folders[kind], tmp_path / "x.npy", tmp_path / "y.npy", target)
        assert compare_bits(want[status == 0].reshape(y.shape), y, kind) is None
        assert np.load(tmp_path / "y.npy").shape == y.shape
    lines = verify(folders[kind], tmp_path / "x.npy")
    assert lines[1].endswith("x.npy: 20 rows equal, every bit")
    export = open_folder(folders[kind])
    device = export.golden().of_role("output")[0].data.copy()
    pending = export.golden().of_role("status")[0].data == 1
    device[pending] = 1
    (tmp_path / "device.bin").write_bytes(device.tobytes())
    assert compare(folders[kind] / export.golden_path, tmp_path / "device.bin") == "50 vectors equal, every bit"


def test_manifest(folders: dict[str, Path]) -> None:
    found = json.loads((folders["cascade"] / "manifest.json").read_text())["state"]
    assert (found["first"], found["every"], found["bytes"], found["align"]) == (6, 6, 24, 4)
    assert [m["name"] for m in found["members"]][:2] == ["op0_seen", "op0_total"]
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((Path(__file__).resolve().parents[2] / "docs" / "manifest.schema.json").read_text("utf-8"))
    jsonschema.validate(found, {**schema["properties"]["state"], "$defs": schema["$defs"]})


@pytest.mark.parametrize("kind", ["trees", "inarena"])
def test_profile(kind: str, folders: dict[str, Path]) -> None:
    """A push that is due costs more; each op has its share, whatever its kind."""
    p = profile(folders[kind])
    assert (p.rows, p.due, p.state) == (50, 50 // (3 if kind == "trees" else 6), open_folder(folders[kind]).state_bytes)
    assert p.largest > p.mean
    assert all(o.instructions > 0 for o in p.ops)
    assert sum(o.instructions for o in p.ops) == pytest.approx(p.mean, rel=0.5)
    assert p.ops[-1].name == f"{kind}_push"
