"""Functions of the runtime in ITCM, on the board: they get there, run from there, and give the same bits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from board_models import HAVE_GCC, HAVE_ZIG
from onnx import TensorProto, helper, numpy_helper
from scipy.signal import butter, firwin

import mcugen
from mcugen.build import export_together
from mcugen.doctor.check_elf import check_program
from mcugen.doctor.program import read_program
from mcugen.emit.kernels import HEADER, kernels
from mcugen.emulate.elf import Elf, region_at
from mcugen.emulate.image import BoardModel, build_image
from mcugen.emulate.machine import EmulatedBoard
from mcugen.emulate.run import require_placed, run_on_board
from mcugen.emulate.toolchain import find_cross_compiler
from mcugen.errors import DiffersError
from mcugen.exported import open_folder
from mcugen.pipelines import Filter
from mcugen.recipes.prepared import ExportOptions
from mcugen.resources import resource_dir
from mcugen.target.board import load_board

pytest.importorskip("unicorn")
pytestmark = pytest.mark.skipif(not HAVE_GCC, reason="no arm-none-eabi-gcc")

BOARD = load_board("stm32h743")
COMPILERS = ["arm-none-eabi-gcc", pytest.param("zig", marks=pytest.mark.skipif(not HAVE_ZIG, reason="no ziglang"))]
NOTHING = (resource_dir("runtime_c") / "include" / "mcg_placement.h").read_bytes()


def iir(rate: float = 500.0) -> Filter:
    return Filter(rate=rate, sos=butter(2, 20.0, fs=rate, output="sos"), dtype="int16", arithmetic="q31")


def fir() -> Filter:
    return Filter(rate=500.0, taps=firwin(16, 40.0, fs=500.0), dtype="int16", arithmetic="q15")


def net() -> onnx.ModelProto:
    """A convolution, a pool and a dense layer: the kernels of most nets."""
    rng = np.random.default_rng(3)
    weights = {
        "w0": rng.normal(size=(5, 2, 3, 3)) * 0.3,
        "b0": rng.normal(size=5) * 0.1,
        "w1": rng.normal(size=(5, 3)) * 0.3,
        "b1": rng.normal(size=3) * 0.1,
    }
    nodes = [
        helper.make_node("Conv", ["x", "w0", "b0"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "w1", "b1"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 7, 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3])],
        [numpy_helper.from_array(w.astype(np.float32), n) for n, w in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("chain") / "low"
    mcugen.export(iir(), out, name="low")
    return out


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small")
    np.savez(folder / "x.npz", x=np.random.default_rng(4).normal(size=(12, 2, 7, 6)).astype(np.float32))
    mcugen.export(net(), folder / "small", name="small", calib=folder / "x.npz")
    return folder / "small"


def model_of(folder: Path) -> tuple[BoardModel, np.ndarray, np.ndarray]:
    export = open_folder(folder)
    golden = export.golden()
    x, y = (golden.of_role(role)[0].data for role in ("input", "output"))
    return export.board_model(), x.reshape(len(x), -1), y.reshape(len(y), -1)


def regions_of(elf: Elf, names: set[str]) -> dict[str, str]:
    """Memory by function, clones included."""
    found = {}
    for f in elf.functions():
        if f.name.split(".")[0] in names:
            region = region_at(BOARD, f.address)
            found[f.name] = region.name if region is not None else ""
    return found


@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_chain_runs_from_itcm(chain: Path, compiler: str) -> None:
    """RAM holds 0xA5 at reset, ITCM too: the kernels are there because start-up copies them. A push fetches nothing
    from flash."""
    model, x, y = model_of(chain)
    moved = {s for s, r in model.regions.items() if r == "itcm"}
    assert {"low_push", "mcg_biquad_q31_block"} <= moved
    cross = find_cross_compiler(compiler)
    ran = run_on_board(model, x, BOARD, cross)
    np.testing.assert_array_equal(ran.y, y)
    assert ran.selftest == 0
    image = build_image(model, BOARD, cross)
    execution = EmulatedBoard(image, BOARD).record(model, x[:3])[-1]
    assert execution is not None
    regions = {r.name for a, _ in execution.blocks if (r := region_at(BOARD, a)) is not None}
    assert regions == {"itcm"}


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("opt", ["-O2", "-O0"])
def test_kernels_of_a_net_with_their_helpers(small: Path, tmp_path: Path, compiler: str, opt: str) -> None:
    called = [s for s in open_folder(small).board_model().regions if s.startswith("mcg_")]
    assert {"mcg_conv_s8", "mcg_avg_pool_s8", "mcg_dense_s8"} <= set(called)
    np.savez(tmp_path / "x.npz", x=np.random.default_rng(4).normal(size=(12, 2, 7, 6)).astype(np.float32))
    wishes = dict.fromkeys(called, "itcm")
    mcugen.export(net(), tmp_path / "small", name="small", calib=tmp_path / "x.npz", place=wishes)
    model, x, y = model_of(tmp_path / "small")
    ran = run_on_board(model, x, BOARD, find_cross_compiler(compiler), opt)
    np.testing.assert_array_equal(ran.y, y)
    names = {h for s in called for h in (s, *kernels()[s].helpers)}
    assert set(regions_of(ran.elf, names).values()) == {"itcm"}


def test_in_flash_the_bits_are_the_same(small: Path, tmp_path: Path) -> None:
    model, x, y = model_of(small)
    flash = {s: "flash" if r == "itcm" else r for s, r in model.regions.items()}
    ran = run_on_board(
        replace(model, files={**model.files, HEADER: NOTHING}, regions=flash), x, BOARD, find_cross_compiler()
    )
    np.testing.assert_array_equal(ran.y, y)
    assert set(regions_of(ran.elf, set(kernels())).values()) == {"flash"}


def test_a_kernel_that_is_elsewhere_is_found(chain: Path, tmp_path: Path) -> None:
    """As with the runtime of another export: its header places nothing."""
    pytest.importorskip("elftools")
    model, _, _ = model_of(chain)
    compiler = find_cross_compiler()
    good = build_image(model, BOARD, compiler)
    require_placed(good, model, BOARD)
    bad = build_image(model, BOARD, compiler, replace={HEADER: NOTHING.decode()})
    with pytest.raises(DiffersError, match=r"mcg_\w+: stands in flash, and the plan has it in itcm"):
        require_placed(bad, model, BOARD)
    for image, found in ((good, set()), (bad, {s for s in model.regions if s.startswith("mcg_")})):
        (tmp_path / "app.elf").write_bytes(image.elf.data)
        report = check_program(read_program(tmp_path / "app.elf"), BOARD)
        assert {f.where for f in report.findings} == found
        assert all("mcg_placement.h" in f.hint for f in report.findings)


def test_two_models_share_a_kernel(tmp_path: Path) -> None:
    """One place, one copy in the program, the same runtime in both folders; both give their bits."""
    options = [ExportOptions(name="low"), ExportOptions(name="slow")]
    results = export_together([iir(), iir(100.0)], tmp_path, options)
    assert {r.plan.of("mcg_biquad_q31_block").region for r in results} == {"itcm"}
    for path in sorted((tmp_path / "low" / "mcugen").iterdir()):
        assert path.read_bytes() == (tmp_path / "slow" / "mcugen" / path.name).read_bytes()
    (low, x, y), (slow, u, v) = model_of(tmp_path / "low"), model_of(tmp_path / "slow")
    more = {f: c for f, c in slow.files.items() if f in ("slow.c", "slow.h")}
    ran = run_on_board(replace(low, files={**low.files, **more}), x, BOARD, find_cross_compiler())
    np.testing.assert_array_equal(ran.y, y)
    assert list(regions_of(ran.elf, {"mcg_biquad_q31_block"}).values()) == ["itcm"]
    np.testing.assert_array_equal(run_on_board(slow, u, BOARD, find_cross_compiler()).y, v)


def test_without_a_board_no_function_moves(tmp_path: Path) -> None:
    mcugen.export(fir(), tmp_path / "low", name="low", board="none")
    assert (tmp_path / "low" / HEADER).read_bytes() == NOTHING
