"""Projects around a model: STM32CubeIDE's is read as the IDE does, CMake's built by its two commands; both are run."""

from __future__ import annotations

import json
import shutil
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cubeide_build
import numpy as np
import onnx
import pytest
import target_image as ti
from onnx import helper, numpy_helper

import mcugen
from mcugen.build import export_together
from mcugen.doctor.verbs import check_elf, check_ld
from mcugen.errors import InputError
from mcugen.recipes.prepared import ExportOptions
from mcugen.target.board import load_board
from mcugen.verify.golden import read_golden

BOARD = load_board("stm32h743")
MODEL = Path(__file__).parents[2] / "examples" / "quickstart" / "furnace.txt"
needs_gcc = pytest.mark.skipif(not ti.have_cross_compiler(), reason="no arm-none-eabi-gcc")
needs_cmake = pytest.mark.skipif(
    not (ti.have_cross_compiler() and shutil.which("cmake") and shutil.which("ninja")), reason="no cmake or ninja"
)


def export(out: Path, kind: str, **more: Any) -> Path:
    mcugen.export(MODEL, out, project=kind, verify=False, **more)
    return out


def run(elf: Path) -> tuple[int, str]:
    """app_selftest after main has reached its loop, and what came out of SWO."""
    import unicorn as uc  # noqa: PLC0415
    from unicorn import arm_const as arm  # noqa: PLC0415

    image = ti.Image(elf)
    cpu = uc.Uc(uc.UC_ARCH_ARM, uc.UC_MODE_THUMB)
    cpu.ctl_set_cpu_model(arm.UC_CPU_ARM_MAX)
    for r in BOARD.regions:
        if r.name != "backup":
            cpu.mem_map(r.base, r.size, uc.UC_PROT_ALL if r.writable else uc.UC_PROT_READ | uc.UC_PROT_EXEC)
            cpu.mem_write(r.base, (b"\xa5" if r.writable else b"\xff") * r.size)
    assert BOARD.unicorn is not None
    for ram in BOARD.unicorn.ram:
        cpu.mem_map(ram.base, ram.size)
    for _, load, _, data in image.segments:
        if data:
            cpu.mem_write(load, data)
    for register in (0xE000_0000, 0xE000_0E00, 0xE000_0E80):  # a debugger has enabled port 0, and it is free
        cpu.mem_write(register, b"\x01\0\0\0")
    printed = bytearray()
    cpu.hook_add(
        uc.UC_HOOK_MEM_WRITE, lambda c, a, at, n, v, u: printed.append(v & 0xFF), None, 0xE000_0000, 0xE000_0003
    )
    cpu.reg_write(arm.UC_ARM_REG_C1_C0_2, cpu.reg_read(arm.UC_ARM_REG_C1_C0_2) | (0xF << 20))
    cpu.reg_write(arm.UC_ARM_REG_FPEXC, 0x4000_0000)
    stack, reset = (int.from_bytes(cpu.mem_read(BOARD.home.base + i, 4), "little") for i in (0, 4))
    cpu.reg_write(arm.UC_ARM_REG_SP, stack)
    idle = image.symbols["app_idle"] & ~1
    cpu.emu_start(reset | 1, idle, count=20_000_000)
    assert cpu.reg_read(arm.UC_ARM_REG_PC) & ~1 == idle
    return int.from_bytes(cpu.mem_read(image.symbols["app_selftest"], 4), "little"), printed.decode()


@pytest.fixture(scope="module")
def ide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(tmp_path_factory.mktemp("ide") / "oven_1", "cubeide", name="furnace")


def test_the_ide_files_are_well_formed(ide: Path) -> None:
    project = ET.fromstring((ide / ".project").read_bytes())
    assert project.findtext("name") == ide.name
    natures = {n.text for n in project.iter("nature")}
    assert "com.st.stm32cube.ide.mcu.MCURootProjectNature" in natures
    assert "com.st.stm32cube.ide.mcu.MCUCubeProjectNature" not in natures  # that one needs an .ioc
    text = (ide / ".cproject").read_text()
    assert text.startswith('<?xml version="1.0" encoding="UTF-8" standalone="no"?>\n<?fileVersion 4.0.0?>')
    root = ET.fromstring(text)
    kinds = {"option", "tool", "toolChain", "targetPlatform", "builder", "inputType"}
    ids = [e.attrib["id"] for e in root.iter() if e.tag in kinds]
    assert len(ids) == len(set(ids)) > 60
    for e in root.iter():
        if e.tag in kinds:
            head, _, number = e.attrib["id"].rpartition(".")
            assert head == e.attrib["superClass"]
            assert number.isdigit()
    assert list(cubeide_build.configurations(ide)) == ["Debug", "Release"]
    outer = [c.attrib["id"] for c in root.iter("cconfiguration")]
    assert len(set(outer)) == 2
    for name, c in cubeide_build.configurations(ide).items():
        assert c.attrib["id"] in outer
        assert c.attrib["parent"] == f"{cubeide_build.B}.config.exe.{name.lower()}"
        assert all(
            cubeide_build.tool(c, part) is not None for part in ("assembler", "cpp.compiler", "archiver", "size")
        )
    assert "toolchain.pinned" not in text


def test_no_path_of_this_machine_is_in_a_project(ide: Path) -> None:
    for name in (".project", ".cproject"):
        assert str(ide.parent) not in (ide / name).read_text()


@needs_gcc
@pytest.mark.parametrize("name", ["Debug", "Release"])
def test_the_ide_project_builds_and_runs(name: str, ide: Path) -> None:
    elf = cubeide_build.build(ide, name)
    report = check_elf(elf, exports=[ide])
    assert report.findings == ()
    assert run(elf) == (0, "furnace: self-test passes, 0 cycles a run\n")


@needs_cmake
@pytest.mark.parametrize("name", ["Debug", "Release"])
def test_the_cmake_project_builds_and_runs(name: str, tmp_path: Path) -> None:
    folder = export(tmp_path / "app", "cmake", name="furnace", leaf="float32", output="raw")
    for command in (["cmake", "--preset", name], ["cmake", "--build", "--preset", name]):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    elf = folder / "build" / name / "app.elf"
    assert check_elf(elf, exports=[folder]).findings == ()
    assert run(elf) == (0, "furnace: self-test passes, 0 cycles a run\n")
    assert (folder / "build" / name / "app.bin").stat().st_size < 100_000
    # A changed fragment links again.
    (folder / "mcugen" / "mcugen.ld").touch()
    done = subprocess.run(
        ["cmake", "--build", "--preset", name], cwd=folder, capture_output=True, text=True, check=True
    )
    assert "Linking C executable" in done.stdout


def of_two_inputs(folder: Path) -> tuple[Path, dict[str, Any]]:
    """A net with two inputs and two outputs: y = W x + b, and a second sum."""
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["a", "w"], ["y"]), helper.make_node("Relu", ["b"], ["z"])],
        "two",
        [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [1, 4]) for n in "ab"],
        [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [1, k]) for n, k in (("y", 3), ("z", 4))],
        [numpy_helper.from_array(np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3), "w")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), folder / "two.onnx")
    rng = np.random.default_rng(1)
    np.savez(folder / "calib.npz", **{n: rng.normal(0, 1, (32, 4)).astype(np.float32) for n in "ab"})
    return folder / "two.onnx", {"calib": folder / "calib.npz"}


def with_a_state(folder: Path) -> tuple[Path, dict[str, Any]]:
    """A recurrent net by step: it has NAME_push and no NAME_run."""
    rng = np.random.default_rng(2)
    weights = {"W": (1, 12, 2), "R": (1, 12, 3), "B": (1, 24)}
    graph = helper.make_graph(
        [
            helper.make_node("LSTM", ["x", "W", "R", "B"], ["", "h"], hidden_size=3),
            helper.make_node("Reshape", ["h", "shape"], ["y"]),
        ],
        "steps",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [5, 1, 2])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, 3])],
        [
            *(numpy_helper.from_array(rng.normal(0, 0.5, s).astype(np.float32), n) for n, s in weights.items()),
            numpy_helper.from_array(np.array([1, 3]), "shape"),
        ],
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), folder / "steps.onnx"
    )
    np.savez(folder / "calib.npz", x=rng.normal(0, 1, (32, 5, 1, 2)).astype(np.float32))
    return folder / "steps.onnx", {"calib": folder / "calib.npz", "stream": True}


@needs_gcc
@pytest.mark.parametrize("make", [of_two_inputs, with_a_state])
def test_main_calls_every_kind_of_model(make: Callable[[Path], tuple[Path, dict[str, Any]]], tmp_path: Path) -> None:
    source, options = make(tmp_path)
    folder = tmp_path / "app"
    mcugen.export(source, folder, project="cubeide", verify=False, name="m", **options)
    elf = cubeide_build.build(folder, "Release")
    assert check_elf(elf, exports=[folder]).findings == ()
    assert run(elf) == (0, "m: self-test passes, 0 cycles a run\n")


@needs_cmake
@pytest.mark.parametrize("kind", ["cubeide", "cmake"])
def test_a_project_of_two_models(kind: str, tmp_path: Path) -> None:
    """One budget, one runtime, one program; the user's files stay."""
    shutil.copy(MODEL, tmp_path / "other.txt")
    folder = tmp_path / "both"
    options = [ExportOptions(verify=False, project=kind, leaf=leaf) for leaf in ("int16", "float32")]
    export_together([MODEL, tmp_path / "other.txt"], folder, options)
    (folder / "app" / "mine.h").write_text("/* mine */\n")
    if kind == "cubeide":
        elf = cubeide_build.build(folder, "Release")
    else:
        for command in (["cmake", "--preset", "Release"], ["cmake", "--build", "--preset", "Release"]):
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
        elf = folder / "build" / "Release" / "both.elf"
    assert check_elf(elf, exports=[folder / "furnace", folder / "other"]).findings == ()
    lines = "furnace: self-test passes, 0 cycles a run\nother: self-test passes, 0 cycles a run\n"
    assert run(elf) == (0, lines)
    before = (folder / "app" / "main.c").read_bytes()
    (folder / "app" / "main.c").write_bytes(before + b"/* mine */\n")
    export_together([MODEL, tmp_path / "other.txt"], folder, options)
    assert (folder / "app" / "main.c").read_bytes() == before + b"/* mine */\n"


@needs_cmake
def test_an_export_in_a_project_of_another_kind(tmp_path: Path) -> None:
    """As in a CubeMX project: its own script with -T in the flags, the export by add_subdirectory, another fragment."""
    model = tmp_path / "model"
    mcugen.export(MODEL, model, verify=False)
    shutil.copy(ti.SCRIPTS / "cubeh7_rom.ld", tmp_path / "user.ld")
    check_ld(tmp_path / "user.ld", write=tmp_path / "mcugen_app.ld")
    (tmp_path / "main.c").write_text(
        '#include "furnace.h"\n#include "mcugen/mcg_sections.h"\nextern unsigned _estack[]; void Reset_Handler(void);\n'
        "float x[12]; int32_t y;\nvoid Reset_Handler(void) { mcg_sections_init(); furnace_run(x, &y); for (;;) {} }\n"
        '__attribute__((section(".isr_vector"), used)) void *const v[2] = {_estack, (void *)Reset_Handler};\n'
    )
    flags = " ".join(BOARD.flags)
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.22)\nset(CMAKE_SYSTEM_NAME Generic)\n"
        "set(CMAKE_C_COMPILER arm-none-eabi-gcc)\n"
        "set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)\nproject(user C)\n"
        f'set(CMAKE_C_FLAGS "{flags}")\n'
        'set(CMAKE_EXE_LINKER_FLAGS "-nostartfiles -Wl,--gc-sections -T ${CMAKE_SOURCE_DIR}/user.ld")\n'
        'set(MCUGEN_FRAGMENT "${CMAKE_SOURCE_DIR}/mcugen_app.ld")\nadd_subdirectory(model)\n'
        "add_executable(user.elf main.c)\ntarget_link_libraries(user.elf PRIVATE furnace)\n"
    )
    for command in (["cmake", "-G", "Ninja", "-B", "build"], ["cmake", "--build", "build"]):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert check_elf(tmp_path / "build" / "user.elf", exports=[model]).findings == ()


def test_the_script_of_the_projects_fits() -> None:
    script = Path(__file__).parents[2] / "boards" / "stm32h743" / "project" / "app.ld"
    assert check_ld(script).fits


def test_what_the_user_changed_stays(tmp_path: Path) -> None:
    folder = export(tmp_path / "app", "cmake", name="furnace")
    listed = json.loads((folder / "manifest.json").read_text())["files"]
    assert not any(p.startswith(("app/", "cmake/", ".")) for p in listed)
    (folder / "app" / "main.c").write_text("/* mine */\n")
    (folder / "app" / "swo.c").unlink()
    (folder / "app" / "mine.c").write_text("/* mine too */\n")
    export(folder, "cmake", name="furnace", leaf="int32", force=True)
    assert (folder / "app" / "main.c").read_text() == "/* mine */\n"
    assert (folder / "app" / "mine.c").is_file()
    assert (folder / "app" / "swo.c").is_file()
    assert "app" in (folder / "CMakeLists.txt").read_text()
    golden = read_golden((folder / "golden" / "furnace.golden.bin").read_bytes(), "golden")
    assert golden.vectors > 0
    export(folder, "cmake", name="furnace", leaf="int32", check=True)


@pytest.mark.parametrize(
    ("out", "options", "message"),
    [
        ("app", {"project": "make"}, "known: cubeide, cmake"),
        ("app", {"project": "cmake", "board": "none"}, "needs a board"),
        ("app", {"project": "cubeide", "board": "mps2_an500"}, "has no files for it"),
        ("my app", {"project": "cubeide"}, "cannot be the name of a project"),
    ],
)
def test_wrong_use(out: str, options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        mcugen.export(MODEL, tmp_path / out, verify=False, name="furnace", **options)
    assert not (tmp_path / out).exists()
