"""F7: blocks of any size give the output of sample by sample, in place too, within every buffer's exact size."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from bare_core import RUNTIME, WARNINGS
from block_rig import Blocks, board, builds, run_blocks, run_on_board, shape_of
from filter_cases import Biquad, Fir, biquad_op, fir_op, quantized, sections, signals
from push_rig import LOC, same_bits
from scipy import signal

from mcugen.dsp.ops import BiquadF32, BiquadF64, BiquadQ15, BiquadQ31, BiquadQ63, FirF32, FirQ15, FirQ31

BLOCKS = (1, 2, 3, 4, 7, 16, 64)
#: Cuts of 200 samples: blocks of one size, the last shorter, and sizes that change.
CUTS = [[b] * (200 // b) + [200 % b] * (200 % b > 0) for b in BLOCKS] + [[5, 1, 64, 2, 1, 1, 60, 0, 33, 33]]


def ops() -> list[Fir | Biquad]:
    found: list[Fir | Biquad] = []
    for count in (1, 2, 3, 5, 8, 13, 32, 41):
        taps = signal.firwin(count, 0.3) if count > 1 else np.array([0.7])
        found += [fir_op(FirQ15, np.rint(taps * 32768)), fir_op(FirQ15, np.rint(taps * 90000).clip(-32767, 32767))]
        found += [fir_op(FirQ31, np.rint(taps * 2.0**31).clip(1 - 2**31, 2**31 - 1)), fir_op(FirF32, taps)]
    for order in (1, 2, 3, 4, 6, 7, 8, 9):
        sos = sections(order, 0.1)
        wide, post = quantized(sos, 15)
        loud = np.minimum(wide * 0 + 20000, 32767)
        found += [biquad_op(BiquadQ15, wide, post), biquad_op(BiquadQ15, loud, post)]
        found += [biquad_op(kind, *quantized(sos, 31)) for kind in (BiquadQ31, BiquadQ63)]
        found.append(biquad_op(BiquadF32, sos[:, [0, 1, 2, 4, 5]], (0,) * len(sos)))
    return found


@pytest.mark.parametrize("build", builds())
def test_any_blocking_on_the_host(build: str) -> None:
    cases = []
    for op in ops():
        x = signals(op.dtype.np.type, 9, 200)["random"]
        cases += [Blocks(op, x, cut, i % 2 == 1) for i, cut in enumerate(CUTS)]
    for case, y in zip(cases, run_blocks(cases, build), strict=True):
        same_bits(y, case.op.eval(case.x[:, None])[0][:, 0], f"{type(case.op).__name__}, {case.cut[:3]}")


def test_sizes_are_those_of_the_headers(tmp_path: Path) -> None:
    """What the ops take of tables and state is what the headers of their kernels say."""
    lines = ['#include "mcg_filter_biquad.h"', '#include "mcg_filter_fir.h"']
    double = BiquadF64(("x",), ("y",), LOC, (0,), 1, np.array([[0.5, 0.0, 0.0, -0.5, 0.0]] * 3), (0,) * 3)
    for op in [*ops(), double]:
        (table,), (state,) = op.items("f"), op.state
        if isinstance(op, Fir):
            taps, room, _ = shape_of(op)
            # Even, so that the lines of all channels are aligned.
            sizes = {f"(MCG_FIR_STATE({taps}u, {room}u) + 1u) / 2u * 2u": state.count}
        else:
            macro, n = f"MCG_{type(op).__name__.upper().replace('BIQUAD', 'BIQUAD_')}", len(op.coefficients)
            sizes = {f"{macro}_TABLE({n}u)": table.count, f"{macro}_STATE({n}u)": state.count}
        lines += [f'_Static_assert({size} == {count}u, "{size}");' for size, count in sizes.items()]
    source = tmp_path / "sizes.c"
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    subprocess.run(["cc", "-fsyntax-only", *WARNINGS, f"-I{RUNTIME / 'include'}", str(source)], check=True)


CROSS = pytest.mark.skipif(shutil.which("arm-none-eabi-gcc") is None, reason="needs arm-none-eabi-gcc")


@CROSS
@pytest.mark.parametrize("block", BLOCKS)
def test_any_blocking_on_the_board(block: int) -> None:
    for op in ops():
        x = signals(op.dtype.np.type, 9, 200)["random"]
        y, _ = run_on_board(op, x, block)
        same_bits(y, op.eval(x[:, None])[0][: len(y), 0], type(op).__name__)


@CROSS
@pytest.mark.slow
@pytest.mark.parametrize("flags", ["-O0", "-O1", "-Os", "-O3", "-O2 -DMCG_PLAIN", "-O2 -DMCG_NO_ASM"])
def test_other_builds_on_the_board(flags: str) -> None:
    rig = board(*flags.split())
    for block in (1, 4, 7):
        for op in ops():
            x = signals(op.dtype.np.type, 9, 60)["random"]
            y, _ = run_on_board(op, x, block, rig)
            same_bits(y, op.eval(x[:, None])[0][: len(y), 0], type(op).__name__)


@CROSS
def test_instructions_stay_low() -> None:
    """Ceilings a few percent above what was measured; a kernel that falls back or spills goes far beyond them."""
    taps, sos = signal.firwin(32, 0.2), signal.butter(8, 0.2, output="sos")
    wide = quantized(sos, 31)
    ceilings = [
        (fir_op(FirQ15, np.rint(taps * 2**15)), (88, 44, 39)),
        (fir_op(FirQ31, np.rint(taps * 2**31)), (117, 84, 81)),
        (fir_op(FirF32, taps), (88, 62, 57.4)),
        (biquad_op(BiquadQ15, *quantized(sos, 15)), (83, 41, 36)),
        (biquad_op(BiquadQ31, *wide), (92, 57, 49)),
        (biquad_op(BiquadQ63, *wide), (149, 140, 140)),
        (biquad_op(BiquadF32, sos[:, [0, 1, 2, 4, 5]], (0,) * 4), (71, 33, 28)),
    ]
    for op, most in ceilings:
        x = signals(op.dtype.np.type, 1, 256)["random"]
        for block, ceiling in zip((1, 16, 64), most, strict=True):
            _, counts = run_on_board(op, x, block)
            assert sum(counts) / len(counts) / block <= ceiling, f"{type(op).__name__}, block {block}"
