"""Inputs and outputs of nets at their places in the arena, or elsewhere: the same bits, and nothing else is touched."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import cffi
import numpy as np
import onnx
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "frontends"))

from onnx_nets import net, node
from test_export_nets import NETS as NETS_OF_ONE
from test_export_nets import weights
from test_net_ports import NETS as NETS_OF_MANY

import mcugen
from mcugen import exported
from mcugen.cli import main
from mcugen.core.ports import join_rows
from mcugen.core.types import Array
from mcugen.emit.parts import machine_ops, place_functions
from mcugen.emit.sources import sources_of
from mcugen.errors import DiffersError, DoesNotFitError, InputError, UnsupportedError
from mcugen.exported import ExportedFolder, open_folder
from mcugen.report.profile import profile_json, profile_lines
from mcugen.target.arena import plan_arena
from mcugen.verify.compiler import find_host_compiler
from mcugen.verify.export_check import require_all_ways
from mcugen.verify.hostbuild import HostModel, build_shared
from mcugen.verify.sanitize import build_runner, run_golden

RNG = np.random.default_rng(8)


def single(op: str, **attributes: Any) -> onnx.ModelProto:
    return net([node(op, "x", "y", **attributes)], [1, 2, 3, 4], {})


def shrinking() -> onnx.ModelProto:
    """A first layer that is computed a few pixels behind what it reads."""
    nodes = [node("Conv", "x w", "a"), node("Relu", "a", "r"), node("MaxPool", "r", "y", kernel_shape=[2, 2])]
    return net(nodes, [1, 3, 6, 7], {"w": weights(RNG, 2, 3, 3, 3)})


def depthwise() -> onnx.ModelProto:
    """A first layer that is computed in place."""
    nodes = [node("Conv", "x w", "y", group=4, pads=[1, 1, 1, 1])]
    return net(nodes, [1, 4, 6, 6], {"w": weights(RNG, 4, 1, 3, 3)})


def late_reader() -> onnx.ModelProto:
    """x is read by the first layer and by the last."""
    nodes = [node("Sigmoid", "x", "a"), node("Softmax", "a", "b"), node("Add", "b x", "y")]
    return net(nodes, [1, 5], {})


def handed_on() -> onnx.ModelProto:
    """An output that is read on, a second that is the same value, and an input that goes out as it came."""
    nodes = [node("Sigmoid", "x", "a"), node("Identity", "a", "b"), node("Tanh", "a", "c"), node("Identity", "x", "d")]
    return net(nodes, {"x": [1, 6]}, {}, outputs="a b c d")


NETS = {**NETS_OF_ONE, **NETS_OF_MANY}
NETS |= {"shrinking": shrinking, "depthwise": depthwise, "late": late_reader, "handed_on": handed_on}
NETS |= {"relu": lambda: single("Relu"), "identity": lambda: single("Identity"), "flatten": lambda: single("Flatten")}


def calibration(model: onnx.ModelProto) -> dict[str, Array]:
    rng = np.random.default_rng(1)
    shapes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim][1:] for i in model.graph.input}
    return {k: rng.normal(0, 1, (16, *s)).astype(np.float32) for k, s in shapes.items()}


def exported_to(folder: Path, model: onnx.ModelProto, **options: Any) -> ExportedFolder:
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / "net.onnx")
    np.savez(folder / "calib.npz", **calibration(model))
    mcugen.export(folder / "net.onnx", folder / "out", name="net", calib=folder / "calib.npz", **options)
    return open_folder(folder / "out")


class Folders(dict[tuple[str, bool, str], ExportedFolder]):
    """Exports by (net, float32, io), made when they are asked for; the tests do what the verification would."""

    def __init__(self, base: Path) -> None:
        super().__init__()
        self.base = base

    def __missing__(self, key: tuple[str, bool, str]) -> ExportedFolder:
        kind, float32, io = key
        folder = self.base / f"{kind}_{float32}_{io}"
        self[key] = exported_to(folder, NETS[kind](), float32=float32, io=io, verify=False)
        return self[key]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    return Folders(tmp_path_factory.mktemp("places"))


#: Nets with the type of their elements; all with both is a slow test. ("two" and "many" run on all targets in
#: test_net_ports.py.)
FEW = [("shrinking", False), ("late", True), ("handed_on", True)]


def few_and_all(few: list[tuple[str, bool]]) -> pytest.MarkDecorator:
    rest = [pair for pair in product(NETS, (False, True)) if pair not in few]
    slow = [pytest.param(*pair, marks=pytest.mark.slow) for pair in rest]
    return pytest.mark.parametrize(("kind", "float32"), [*few, *slow])


@contextmanager
def library(export: ExportedFolder) -> Iterator[tuple[Any, cffi.FFI]]:
    """The functions of a net, with pointers as numbers."""
    count = len(export.inputs) + len(export.outputs)
    pointers = ", ".join(["uintptr_t"] * count)
    ffi = cffi.FFI()
    ffi.cdef(f"int32_t net_run({pointers}); int32_t net_run_batch({pointers}, uint32_t n);")
    for f in (f for side in place_functions("net", export.inputs, export.outputs) for f in side):
        ffi.cdef(f"uintptr_t {f}(void);")
    with build_shared(export.files, sources_of(export.files), find_host_compiler()) as path:
        lib = ffi.dlopen(str(path))
        yield lib, ffi
        ffi.dlclose(lib)


def rows_of(export: ExportedFolder) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    golden = export.golden()
    return tuple(tuple(t.data for t in golden.of_role(role)) for role in ("input", "output"))  # type: ignore[return-value]


@few_and_all(FEW)
def test_every_mix_of_places_and_buffers(kind: str, float32: bool, folders: Folders) -> None:
    """Each port on its own in the arena or in memory of the caller's, which is exactly as large as it needs."""
    export = folders[kind, float32, "arena"]
    ins, outs = rows_of(export)
    ports = (*export.inputs, *export.outputs)
    with library(export) as (lib, ffi):
        functions = place_functions("net", export.inputs, export.outputs)
        places = [int(getattr(lib, f)()) for side in functions for f in side]
        assert all(at % 8 == 0 for at in places)
        for row, inside in enumerate(product((False, True), repeat=len(ports))):
            i = row % len(ins[0])
            own = [np.ascontiguousarray(t[i]) for t in ins] + [np.full(t[i].shape, 77, t.dtype) for t in outs]
            before = [a.tobytes() for a in own]
            pointers = [at if here else a.ctypes.data for at, a, here in zip(places, own, inside, strict=True)]
            for to, a, here in zip(places, own[: len(ins)], inside, strict=False):
                if here:
                    ffi.memmove(ffi.cast("void *", to), a.tobytes(), a.nbytes)
            assert lib.net_run(*pointers) == 0
            for k, want in enumerate(outs, len(ins)):
                got = ffi.buffer(ffi.cast("void *", pointers[k]), want[i].nbytes)[:]
                assert bytes(got) == want[i].tobytes(), (inside, k)
            for k, a in enumerate(own):
                assert (k >= len(ins) and not inside[k]) or a.tobytes() == before[k], (inside, k)


@pytest.mark.parametrize("kind", ["handed_on", pytest.param("late", marks=pytest.mark.slow)])
def test_pointers_into_the_arena_but_not_to_a_place(kind: str, folders: Folders) -> None:
    export = folders[kind, True, "arena"]
    assert export.arena is not None
    ports = (*export.inputs, *export.outputs)
    with library(export) as (lib, _):
        functions = place_functions("net", export.inputs, export.outputs)
        places = [int(getattr(lib, f)()) for side in functions for f in side]
        start = places[0] - export.arena.inputs[0]
        for k, port in enumerate(ports):
            for at in range(start - port.size + 4, start + export.arena.size, 4):
                pointers = list(places)
                pointers[k] = at
                if at != places[k]:
                    assert lib.net_run(*pointers) == -1
        own = [np.zeros((3, p.count), p.dtype.np) for p in ports]
        outside = [a.ctypes.data for a in own]
        assert lib.net_run_batch(*outside, 3) == 0
        for k, at in enumerate(places):
            pointers = list(outside)
            for wrong in (at, start - 3 * ports[k].size + 4):
                pointers[k] = wrong
                assert lib.net_run_batch(*pointers, 3) == -1


@few_and_all(FEW[:2])
def test_sanitizers(kind: str, float32: bool, folders: Folders) -> None:
    export = folders[kind, float32, "arena"]
    names = place_functions("net", export.inputs, export.outputs)
    more = {"ports": (len(export.inputs), len(export.outputs)), "places": (*names[0], *names[1])}
    with build_runner(export.files, sources_of(export.files), "net", find_host_compiler("gcc"), **more) as program:  # type: ignore[arg-type]
        found = run_golden(program, export.files[export.golden_path])
    assert found.returncode == 0, found.output


@few_and_all(FEW[1:2])
@pytest.mark.parametrize("io", ["arena", pytest.param("caller", marks=pytest.mark.slow)])
def test_host_and_boards(kind: str, float32: bool, io: str, folders: Folders) -> None:
    for target in ("host", "stm32h743", "mps2_an500"):
        assert "every bit; self-test passes" in exported.verify(folders[kind, float32, io].path, target=target)[0]


@pytest.mark.parametrize(("kind", "float32"), FEW[:2])
def test_the_arena_holds_input_and_output(kind: str, float32: bool, folders: Folders) -> None:
    with_ports, without = (folders[kind, float32, io] for io in ("arena", "caller"))
    assert with_ports.arena is not None
    assert without.arena is not None
    assert [e.manifest["options"]["io"] for e in (with_ports, without)] == ["arena", "caller"]
    assert with_ports.arena.placed
    assert not without.arena.placed
    ports = sum(p.size for p in (*with_ports.inputs, *with_ports.outputs))
    # Not more than apart, each port being padded to the alignment of values.
    assert without.arena.size <= with_ports.arena.size
    room = sum(-(-p.size // 8) * 8 for p in (*with_ports.inputs, *with_ports.outputs))
    assert with_ports.arena.size <= max(without.arena.size, 8) + room
    assert with_ports.arena.size >= max(p.size for p in (*with_ports.inputs, *with_ports.outputs))
    header, source = (with_ports.files[f"net.{k}"].decode() for k in "hc")
    assert "net_input" not in without.files["net.h"].decode() + without.files["net.c"].decode()
    assert "_OFFSET" not in without.files["net.h"].decode()
    for entry in (*with_ports.manifest["inputs"], *with_ports.manifest["outputs"]):
        assert f"_OFFSET {entry['arena_offset']}u\n" in header
    assert ports > 0
    assert "_input" in source


@pytest.mark.parametrize("kind", ["relu", "depthwise", "shrinking", "late"])
def test_what_shares_memory(kind: str, tmp_path: Path) -> None:
    """x gives its memory to the first layer: in place, or so far in front of it that a layer never meets itself."""
    onnx.save(NETS[kind](), tmp_path / "net.onnx")
    np.savez(tmp_path / "calib.npz", **calibration(NETS[kind]()))
    done = mcugen.export(tmp_path / "net.onnx", tmp_path / "out", calib=tmp_path / "calib.npz", verify=False)
    ops = machine_ops(done.model)
    plan, first = plan_arena(done.model, ops, ports=True), ops[0]
    x, y = (plan.offset(v) for v in (first.inputs[0], first.outputs[0]))
    count = done.model.types[first.inputs[0]].count
    if kind in ("relu", "depthwise"):
        assert first.in_place == (0,)
        assert x == y
    elif kind == "shrinking":
        assert first.lag is not None
        assert first.lag <= x - y < done.model.types[first.outputs[0]].count
    else:  # x waits for the sum
        assert y >= x + count or x >= y + count
    assert plan.size <= sum(s.size for s in plan.slots) + sum(op.scratch_bytes + 7 for op in ops)


def test_an_output_that_is_read_on_and_one_twice(folders: Folders) -> None:
    arena = folders["handed_on", False, "arena"].arena
    assert arena is not None
    # x, which goes out as it came, and four outputs; 6 bytes each, on multiples of 8.
    assert arena.size == 40
    assert len(set(arena.outputs)) == 4


def test_the_names(folders: Folders) -> None:
    header = folders["two", False, "arena"].files["net.h"].decode()
    for f in ("*net_input_wave_in(void);", "*net_input_extra(void);", "*net_output_feature_map(void);"):
        assert f in header
    assert "#define NET_FEATURE_MAP_OFFSET " in header
    header = folders["relu", True, "arena"].files["net.h"].decode()
    assert "float *net_input(void);\nfloat *net_output(void);\n" in header
    assert "#define NET_INPUT_OFFSET 0u\n" in header


def test_int16(tmp_path: Path) -> None:
    nodes = [node("Gemm", "x w", "a", transB=1), node("Relu", "a", "r"), node("Gemm", "r v", "y", transB=1)]
    model = net(nodes, [1, 6], {"w": weights(RNG, 7, 6), "v": weights(RNG, 3, 7)})
    export = exported_to(tmp_path, model, int16=("r", "y"))
    assert export.outputs[0].dtype.label == "int16"
    assert export.arena is not None
    assert export.arena.placed
    for target in ("host", "stm32h743"):
        assert "every bit" in exported.verify(export.path, target=target)[0]


def changed(export: ExportedFolder, pattern: str, by: str) -> dict[str, bytes]:
    text = export.files["net.c"].decode()
    assert text.count(pattern) >= 1
    return {**export.files, "net.c": text.replace(pattern, by).encode()}


FAULTS = {
    "input": ("mcg_sigmoid_f32(x,", "((float *)(void *)(uintptr_t)x)[0] += 1.0f; mcg_sigmoid_f32(x,", "changes the in"),
    "outside": (
        "(void)arena;",
        "{ volatile uint32_t end = sizeof net_arena; arena[end] ^= 1u; }",
        "outside of its arena",
    ),
    "place": ("net_arena + NET_OUTPUT_OFFSET", "net_arena + (NET_OUTPUT_OFFSET ^ 4u)", "returned -1"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(fault: str, folders: Folders) -> None:
    """What only shows with a place, with a buffer, or in an arena with something behind it."""
    export = folders["late", True, "arena"]
    assert export.arena is not None
    pattern, by, words = FAULTS[fault]
    ins, outs = (join_rows(p, t) for p, t in zip((export.inputs, export.outputs), rows_of(export), strict=True))
    with (
        build_shared(changed(export, pattern, by), sources_of(export.files), find_host_compiler()) as path,
        HostModel(path, "net", export.inputs, export.outputs) as host,
        pytest.raises(DiffersError, match=words),
    ):
        # A changed input is another result where it lies in the arena.
        (host.run_each(ins) if fault == "input" else require_all_ways(outs, host, ins, export.arena))


@pytest.mark.parametrize("target", ["stm32h743", pytest.param("mps2_an500", marks=pytest.mark.slow)])
def test_a_board_finds_a_changed_input(target: str, folders: Folders, tmp_path: Path) -> None:
    export = folders["late", True, "arena"]
    for path, data in changed(export, FAULTS["input"][0], FAULTS["input"][1]).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    (tmp_path / "manifest.json").write_text(json.dumps(export.manifest))
    with pytest.raises(DiffersError, match=r"changes its input|the input is changed"):
        exported.verify(tmp_path, target=target)


def test_profile_says_what_is_counted(folders: Folders) -> None:
    found = {io: exported.profile(folders["late", True, io].path) for io in ("arena", "caller")}
    ports = 2 * 5 * 4
    assert (found["arena"].caller, found["caller"].caller) == (0, ports)
    for p in found.values():
        assert p.ram == sum(n for r, n in p.memory.items() if r != "flash") + p.caller
        text = "\n".join(profile_lines(p))
        assert ("and 40 of input and output)" in text) == (p.caller > 0)
        assert profile_json(p)["caller_bytes"] == p.caller
    assert abs(found["arena"].mean - found["caller"].mean) < 60


def test_max_ram_counts_what_is_in_the_arena(tmp_path: Path) -> None:
    sizes = {}
    for io in ("arena", "caller"):
        options = {"io": io, "verify": False}
        with pytest.raises(DoesNotFitError, match=r"of this net, .*, takes") as caught:
            exported_to(tmp_path / io, NETS["two"](), **options, max_ram=8)
        sizes[io] = int(str(caught.value).split(" takes ")[1].split()[0].replace(",", "").rstrip(":;"))
        export = exported_to(tmp_path / f"{io}_fits", NETS["two"](), **options, max_ram=sizes[io])
        assert export.arena is not None
        assert export.arena.size <= sizes[io]
        with pytest.raises(DoesNotFitError):
            exported_to(tmp_path / f"{io}_less", NETS["two"](), **options, max_ram=sizes[io] - 1)
    assert sizes["caller"] < sizes["arena"]


def test_a_damaged_place_is_refused(folders: Folders, tmp_path: Path) -> None:
    export = folders["two", False, "arena"]
    for wrong in (-8, 10**9, "8", None):
        manifest = json.loads(json.dumps(export.manifest))
        if wrong is None:
            del manifest["outputs"][0]["arena_offset"]
        else:
            manifest["outputs"][0]["arena_offset"] = wrong
        (tmp_path / "manifest.json").write_text(json.dumps(manifest))
        with pytest.raises(InputError, match="is damaged"):
            open_folder(tmp_path)


def test_the_command_line(tmp_path: Path) -> None:
    onnx.save(NETS["late"](), tmp_path / "net.onnx")
    for io in ("arena", "caller"):
        words = ["export", str(tmp_path / "net.onnx"), "-o", str(tmp_path / io), "--float32", "--no-verify", "--io", io]
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 0
        assert open_folder(tmp_path / io).manifest["options"]["io"] == io


def test_where_there_is_no_choice(tmp_path: Path) -> None:
    onnx.save(NETS["sequence"](), tmp_path / "net.onnx")
    for io in ("arena", "caller"):
        with pytest.raises(UnsupportedError, match="--io"):
            mcugen.export(tmp_path / "net.onnx", tmp_path / "out", float32=True, stream=True, io=io)
    chain = {"signal": {"rate": 100.0}, "channel": [{"name": "a"}], "filter": [{"kind": "taps", "taps": [0.5, 0.5]}]}
    with pytest.raises(UnsupportedError, match="--io"):
        mcugen.export(chain, tmp_path / "out", io="caller")
    with pytest.raises(InputError, match="known: arena, caller"):
        mcugen.export(tmp_path / "net.onnx", tmp_path / "out", float32=True, io="heap")
