"""Plans of memory: runs of layers by rows are chosen at the least price, fit what was asked for, and change no bit."""

from __future__ import annotations

import sys
from itertools import combinations
from pathlib import Path

import cffi
import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machine_nets import Maker
from test_row_chain import branches, grow, same

import mcugen
from mcugen.core.passes import check_model, evaluate
from mcugen.core.types import Model
from mcugen.emit.parts import machine_ops
from mcugen.emit.sources import sources_of
from mcugen.errors import DoesNotFitError
from mcugen.exported import open_folder
from mcugen.nn.estimate import instructions
from mcugen.nn.ops.row_chain import RowChain
from mcugen.recipes.fusion import Fusions
from mcugen.target.arena import plan_arena
from mcugen.verify.compiler import find_host_compiler
from mcugen.verify.hostbuild import build_shared

sys.path.insert(0, str(Path(__file__).parents[1] / "frontends"))
from onnx_nets import net, node


def random_net(seed: int, layers: int) -> Model:
    rng = np.random.default_rng(seed)
    shape = (int(rng.integers(1, 5)), int(rng.integers(4, 14)), int(rng.integers(4, 14)))
    m = Maker(rng, shape, bool(rng.random() < 0.5))
    x = same(m, m.x, 6, 3, 1)
    while len(m.ops) < layers:
        x = grow(m, rng, str(rng.choice(["conv", "point", "deep", "table", "max", "residual", "shortcut"])), x)
    y = m.dense(x, 3) if rng.random() < 0.5 else x
    model = m.model(y)
    check_model(model, "test")
    return model


@settings(max_examples=15, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), ports=st.booleans())
def test_what_fits_is_honest_and_the_same_net(seed: int, ports: bool) -> None:
    """The arena's own bound is the peak that the search counted with; less room costs more, as a rule."""
    model = random_net(seed, 2 + seed % 9)
    fusions = Fusions(model, ports=ports)
    x = np.random.default_rng(seed).integers(-128, 128, (2, *model.types["x"].shape)).astype(np.int8)
    (output,) = model.outputs
    expected, before = evaluate(model, {"x": x})[output], 0.0
    for part in (1.0, 0.8, 0.6, 0.45):
        found = fusions.cheapest(int(part * fusions.peak))
        if found is None:
            break
        assert max(found.peaks) <= part * fusions.peak
        assert found.price >= 0.7 * before  # a run leaves out rows that nobody reads
        before = found.price
        check_model(found.machine, "fusion")
        np.testing.assert_array_equal(evaluate(found.machine, {"x": x})[output], expected)
        ops = machine_ops(found.machine)
        assert found.price == pytest.approx(sum(instructions(op) for op in ops))
        assert [e for _, e in found.spans][-1] == len(model.ops)
        if not ports and all(op.lag is None for op in ops):  # the arena gives up lags where it is smaller without
            assert plan_arena(found.machine, ops).lower_bound == max(found.peaks)


@pytest.mark.parametrize("seed", range(6))
def test_no_other_cover_is_cheaper(seed: int) -> None:
    """All covers of short nets by runs, each in all its ways."""
    model = random_net(100 + seed, 4)
    fusions = Fusions(model)
    n = len(model.ops)
    ways = {
        (i, j): [*(fusions._singles[i] if j == i + 1 else ()), *(fusions._chains(i, j) if j > i + 1 else ())]
        for i in range(n)
        for j in range(i + 1, n + 1)
    }
    for room in (fusions.peak, fusions.peak * 3 // 4, fusions.peak // 2):
        least = np.inf
        for count in range(n):
            for cuts in combinations(range(1, n), count):
                spans = zip((0, *cuts), (*cuts, n), strict=True)
                prices = [min((w.price for w in ways[s] if w.peak <= room), default=np.inf) for s in spans]
                least = min(least, sum(prices))
        found = fusions.cheapest(room)
        # A run of layers that fit one by one is not tried: those are cheaper alone, or nearly so.
        price = np.inf if found is None else found.price
        assert price >= least * (1 - 1e-9)
        assert price <= 1.05 * least


def test_limits_of_single_layers() -> None:
    m = Maker(np.random.default_rng(1), (4, 16, 16), False)
    x = branches(m, np.random.default_rng(2), same(m, m.x, 8, 3, 1), 1)
    fusions = Fusions(m.model(same(m, x, 8, 1, 1)))
    free = fusions.cheapest(fusions.peak)
    assert free is not None
    assert not free.chains
    held = fusions.cheapest(fusions.peak, {2: fusions.peak // 2})
    assert held is not None
    (chain,) = held.chains
    assert any(first <= 2 < end for (first, end), op in zip(held.spans, held.machine.ops, strict=True) if op is chain)
    assert fusions.smallest(free.price * 0.99) is None


def test_a_shortcut_is_computed_behind_its_input() -> None:
    """Stride 2: both branches read what the sum overwrites; peak: the input and a few rows."""
    m = Maker(np.random.default_rng(1), (6, 32, 32), False)
    x = same(m, m.x, 8, 3, 1)
    y = same(m, branches(m, np.random.default_rng(2), x, 2), 8, 1, 1)
    fusions = Fusions(m.model(y))
    found = fusions.smallest(np.inf)
    assert found is not None
    assert max(found.peaks) < 0.75 * fusions.peak
    assert max(found.peaks) < 8 * 32 * 32 + 3000


# From the model file to C. --------------------------------------------------------------------------------------------


def residual_net() -> onnx.ModelProto:
    """Two residual blocks, the second with stride 2, then depthwise and pointwise layers."""
    rng = np.random.default_rng(0)

    def w(*shape: int) -> np.ndarray:
        return rng.normal(0, 1 / np.sqrt(np.prod(shape[1:])), shape)

    constants = {"w0": w(8, 3, 3, 3), "w1": w(8, 8, 3, 3), "w2": w(8, 8, 3, 3), "w3": w(12, 8, 3, 3)}
    constants |= {"w4": w(12, 12, 3, 3), "w5": w(12, 8, 1, 1), "w6": w(12, 1, 3, 3), "w7": w(16, 12, 1, 1)}
    pads = {"pads": [1, 1, 1, 1]}
    nodes = [
        node("Conv", "x w0", "a", **pads),
        node("Relu", "a", "ar"),
        node("Conv", "ar w1", "b", **pads),
        node("Relu", "b", "br"),
        node("Conv", "br w2", "c", **pads),
        node("Add", "ar c", "d"),
        node("Relu", "d", "dr"),
        node("Conv", "dr w3", "e", pads=[0, 0, 1, 1], strides=[2, 2]),
        node("Relu", "e", "er"),
        node("Conv", "er w4", "f", **pads),
        node("Conv", "dr w5", "s", strides=[2, 2]),
        node("Add", "f s", "g"),
        node("Conv", "g w6", "h", group=12, **pads),
        node("Conv", "h w7", "i"),
        node("GlobalAveragePool", "i", "p"),
        node("Flatten", "p", "y"),
    ]
    return net(nodes, [1, 3, 20, 18], constants)


def exported(folder: Path, **options: object) -> Path:
    onnx.save(residual_net(), folder / "net.onnx")
    x = np.random.default_rng(2).normal(0, 1, (8, 3, 20, 18)).astype(np.float32)
    np.savez(folder / "c.npz", x=x)
    out = folder / "out"
    mcugen.export(folder / "net.onnx", out, name="net", calib=folder / "c.npz", board=None, force=True, **options)  # type: ignore[arg-type]
    return out


def arena_of(out: Path) -> int:
    return int((out / "net.h").read_text(encoding="utf-8").split("NET_ARENA_BYTES ")[1].split("u")[0])


def test_exports_of_all_plans(tmp_path: Path) -> None:
    """Every export is verified on the host; a limit is kept, or refused with what is needed."""
    fast = arena_of(exported(tmp_path))
    small = arena_of(exported(tmp_path, optimize="ram"))
    assert small < 0.8 * fast  # 0.72 takes 20 % more instructions, counted: too many
    run_poisoned(tmp_path / "out")
    limit = int(0.72 * fast)
    assert arena_of(exported(tmp_path, max_ram=limit)) <= limit
    run_poisoned(tmp_path / "out")
    with pytest.raises(DoesNotFitError, match="the smallest arena of this net"):
        exported(tmp_path, max_ram=small // 2)


def run_poisoned(out: Path) -> None:
    """The golden vectors in an arena that holds anything: the same bits, and nothing written outside of it."""
    folder, size = open_folder(out), arena_of(out)
    golden = folder.golden()
    x, y = golden.of_role("input")[0].data, golden.of_role("output")[0].data
    with build_shared(folder.files, sources_of(folder.files), find_host_compiler()) as library:
        ffi = cffi.FFI()
        ffi.cdef("int32_t net_run_with(void *arena, const int8_t *x, int8_t *y);")
        lib = ffi.dlopen(str(library))
        for poison in (0x00, 0xA5):
            block = np.full(size + 128, poison, np.uint8)
            start = (-block.ctypes.data) % 8 + 8
            found = np.zeros_like(y[0])
            for row, expected in zip(x[:3], y[:3], strict=True):
                pointers = [block.ctypes.data + start, np.ascontiguousarray(row).ctypes.data, found.ctypes.data]
                types = ("void *", "int8_t *", "int8_t *")
                assert lib.net_run_with(*(ffi.cast(t, p) for t, p in zip(types, pointers, strict=True))) == 0
                np.testing.assert_array_equal(found, expected)
            assert (block[:start] == poison).all()
            assert (block[start + size :] == poison).all()
        ffi.dlclose(lib)


def test_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The summary says which layers are computed together and what that costs; --explain which rows are kept."""
    onnx.save(residual_net(), tmp_path / "net.onnx")
    np.savez(tmp_path / "c.npz", x=np.random.default_rng(2).normal(0, 1, (8, 3, 20, 18)).astype(np.float32))
    from mcugen.cli import app  # noqa: PLC0415

    arguments = ["export", str(tmp_path / "net.onnx"), "-o", str(tmp_path / "out"), "--calib", str(tmp_path / "c.npz")]
    with pytest.raises(SystemExit) as ended:
        app([*arguments, "--name", "net", "--board", "none", "--optimize", "ram", "--explain"])
    assert not ended.value.code
    text = capsys.readouterr()
    shown = text.out + text.err
    assert "more instructions than the fastest plan" in shown
    assert "rows kept: " in shown
    source = (tmp_path / "out" / "net.c").read_text(encoding="utf-8")
    # One hook and one call for a run of layers.
    assert 1 <= source.count("mcg_strips_s8(&net_") < source.count("NET_HOOK(") < 10


def test_estimates_count_calls_and_moves() -> None:
    """More calls cost more; a chain costs more than its layers."""
    model = random_net(5, 6)
    fusions = Fusions(model)
    found = fusions.smallest(np.inf)
    assert found is not None
    for op, (first, end) in zip(found.machine.ops, found.spans, strict=True):
        if isinstance(op, RowChain):
            assert instructions(op) > 0.9 * sum(instructions(o) for o in op.layers)
            assert op.layers[-1].outputs == machine_ops(model)[first:end][-1].outputs


def test_less_memory_is_never_faster(tmp_path: Path) -> None:
    """The plan for a limit keeps it, and no plan that was found for a smaller limit is better by more than a little."""
    fast, prices = arena_of(exported(tmp_path, verify=False)), []
    for part in (0.75, 0.85, 0.97):
        limit = int(part * fast)
        out = exported(tmp_path, max_ram=limit, verify=False)
        assert arena_of(out) <= limit
        prices.append(sum(instructions(op) for op in machine_ops(open_folder(out).references().machine)))
    assert all(later <= 1.01 * min(prices[: i + 1]) for i, later in enumerate(prices))
