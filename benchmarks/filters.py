"""Instructions a sample of the filter kernels on an emulated Cortex-M7, beside CMSIS-DSP's.

    python benchmarks/filters.py [--cmsis FOLDER] [--flags "-O2"] [--json]

FOLDER holds the sources of CMSIS-DSP (Include, PrivateInclude, Source), as the source package of cmsisdsp does: it is
compiled with -Ofast and its loop unrolling. Without it, figures as read for its head of July 2026 stand beside ours.
Every output is compared with the integer reference; blocks of 1, 16 and 64 samples.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy import signal

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "dsp"))
from block_rig import Board, board, run_on_board
from filter_cases import Biquad, Fir, biquad_op, fir_op, quantized, signals

from mcugen.dsp.ops import BiquadF32, BiquadQ15, BiquadQ31, BiquadQ63, FirF32, FirQ15, FirQ31

BLOCKS = (1, 16, 64)
SAMPLES = 768
#: Instructions a sample of CMSIS-DSP, -Ofast with ARM_MATH_LOOPUNROLL, GCC 12.2, as read: blocks of 1, 16, 64.
AS_READ = {
    "arm_fir_q15": (338, 73.9, 67.2),
    "arm_fir_q31": (321, 111.4, 98.9),
    "arm_fir_f32": (312, 65.2, 57.4),
    "arm_biquad_cascade_df1_q15": (204, 86.5, 78.6),
    "arm_biquad_cascade_df1_q31": (247, 68.7, 58.4),
    "arm_biquad_cas_df1_32x64_q31": (548, 253.2, 238.8),
    "arm_biquad_cascade_df2T_f32": (147, 36.9, 31.7),
}
#: What CMSIS-DSP expects of CMSIS-Core, in terms of the compiler.
_CORE = """#include <arm_acle.h>
#include <stdint.h>
#define __STATIC_FORCEINLINE static inline __attribute__((always_inline))
#define __STATIC_INLINE static inline
#define __INLINE inline
#define __ASM __asm__
#define __ALIGNED(x) __attribute__((aligned(x)))
#define __WEAK __attribute__((weak))
#define __SSAT(x, n) __ssat((x), (n))
#define __USAT(x, n) __usat((x), (n))
#define __SMUAD(x, y) ((uint32_t)__smuad((int16x2_t)(x), (int16x2_t)(y)))
#define __SMUADX(x, y) ((uint32_t)__smuadx((int16x2_t)(x), (int16x2_t)(y)))
#define __SMLAD(x, y, z) ((uint32_t)__smlad((int16x2_t)(x), (int16x2_t)(y), (int32_t)(z)))
#define __SMLADX(x, y, z) ((uint32_t)__smladx((int16x2_t)(x), (int16x2_t)(y), (int32_t)(z)))
#define __SMLALD(x, y, z) ((uint64_t)__smlald((int16x2_t)(x), (int16x2_t)(y), (int64_t)(z)))
#define __SMLALDX(x, y, z) ((uint64_t)__smlaldx((int16x2_t)(x), (int16x2_t)(y), (int64_t)(z)))
#define __QADD(x, y) __qadd((x), (y))
#define __QSUB(x, y) __qsub((x), (y))
#define __QADD16(x, y) ((int32_t)__qadd16((int16x2_t)(x), (int16x2_t)(y)))
#define __QSUB16(x, y) ((int32_t)__qsub16((int16x2_t)(x), (int16x2_t)(y)))
#define __SHADD16(x, y) ((int32_t)__shadd16((int16x2_t)(x), (int16x2_t)(y)))
#define __QADD8(x, y) ((int32_t)__qadd8((int8x4_t)(x), (int8x4_t)(y)))
#define __QSUB8(x, y) ((int32_t)__qsub8((int8x4_t)(x), (int8x4_t)(y)))
#define __SXTB16(x) ((uint32_t)__sxtb16((int8x4_t)(x)))
#define __ROR(x, n) __ror((x), (n))
#define __CLZ(x) ((uint8_t)__clz(x))
#define __PKHBT(a, b, n) (((uint32_t)(a) & 0xFFFFu) | (((uint32_t)(b) << (n)) & 0xFFFF0000u))
#define __PKHTB(a, b, n) (((uint32_t)(a) & 0xFFFF0000u) | ((uint32_t)((int32_t)(b) >> (n)) & 0xFFFFu))
"""


def cases() -> Iterator[tuple[str, str, Fir | Biquad]]:
    """Name, CMSIS-DSP's function, op: FIR filters of 32 taps, cascades of 4 sections."""
    taps, sos = signal.firwin(32, 0.2), signal.butter(8, 0.2, output="sos")
    rows, post = quantized(sos, 15)
    loud, shifts = rows.copy(), list(post)
    loud[0] = [32767, 32767, 0, -20000, 9000]
    yield "FIR q15, 32 taps", "arm_fir_q15", fir_op(FirQ15, np.rint(taps * 2**15))
    yield "FIR q15, 32 taps, sums of 64 bits", "arm_fir_q15", fir_op(FirQ15, np.rint(taps * 2.5 * 2**15))
    yield "FIR q31, 32 taps", "arm_fir_q31", fir_op(FirQ31, np.rint(taps * 2**31))
    yield "FIR f32, 32 taps", "arm_fir_f32", fir_op(FirF32, taps)
    yield "biquad q15, 4 sections", "arm_biquad_cascade_df1_q15", biquad_op(BiquadQ15, rows, post)
    yield (
        "biquad q15, 4 sections, sums of 64 bits",
        "arm_biquad_cascade_df1_q15",
        biquad_op(BiquadQ15, loud, tuple(shifts)),
    )
    wide = quantized(sos, 31)
    yield "biquad q31, 4 sections", "arm_biquad_cascade_df1_q31", biquad_op(BiquadQ31, *wide)
    yield "biquad 32x64, 4 sections", "arm_biquad_cas_df1_32x64_q31", biquad_op(BiquadQ63, *wide)
    columns = sos[:, [0, 1, 2, 4, 5]]
    yield "biquad f32, 4 sections", "arm_biquad_cascade_df2T_f32", biquad_op(BiquadF32, columns, (0,) * 4)


def ours(op: Fir | Biquad, block: int, rig: Board) -> float:
    """Instructions a sample, on average over blocks."""
    x = signals(op.dtype.np.type, 1, SAMPLES)["random"]
    y, counts = run_on_board(op, x, block, rig)
    if y.tobytes() != np.ascontiguousarray(op.eval(x[:, None])[0][: len(y), 0]).tobytes():
        raise SystemExit(f"{type(op).__name__} differs from its reference")
    return float(np.mean(counts)) / block


def cmsis_board(folder: Path, sources: Path) -> Board:
    """CMSIS-DSP's functions, compiled as its makers measure them."""
    (folder / "cmsis_compiler.h").write_text(_CORE, encoding="utf-8")
    # One file has another name than its function.
    names = [name.replace("cas_df1_32x64", "cascade_df1_32x64") for name in AS_READ]
    files = [sources / "Source" / "FilteringFunctions" / f"{name}.c" for name in names]
    flags = ["-Ofast", "-DARM_MATH_LOOPUNROLL", "-w", f"-I{folder}"]
    return Board.build(folder, files, [*flags, f"-I{sources / 'Include'}", f"-I{sources / 'PrivateInclude'}"])


def theirs(function: str, op: Fir | Biquad, block: int, rig: Board) -> float:
    """The same for CMSIS-DSP. Its instances are: count, pointers to state and coefficients, post shift."""
    rig.reset()
    x = signals(op.dtype.np.type, 1, SAMPLES)["random"]
    if isinstance(op, FirQ15 | FirQ31 | FirF32):
        table = rig.place(np.ascontiguousarray(op.taps[::-1]).tobytes())
        state = rig.place(bytes(4 * (op.taps.size + block)))
        instance = np.array([op.taps.size, state, table], "<u4").tobytes()
    else:
        rows = op.coefficients * np.array([1, 1, 1, -1, -1], op.coefficients.dtype)
        if isinstance(op, BiquadQ15):
            rows = np.insert(rows, 1, 0, axis=1)
        table, state = rig.place(np.ascontiguousarray(rows).tobytes()), rig.place(bytes(8 * 4 * len(rows)))
        instance = np.array([len(rows), state, table, op.post_shift[0]], "<u4").tobytes()
    at = rig.place(instance)
    source, result = rig.place(bytes(4 * block)), rig.place(bytes(4 * block))
    total = 0
    for start in range(0, SAMPLES // block * block, block):
        rig.write(source, x[start : start + block].tobytes())
        total += rig.call(function, at, source, result, block)
    return total / (SAMPLES // block * block)


def table(rows: list[dict[str, object]], measured: bool) -> str:
    """Markdown."""
    whose = "compiled here" if measured else "as read"
    head = [
        f"| kernel | {' | '.join(f'block {b}' for b in BLOCKS)} | CMSIS-DSP, {whose} | ratio |",
        "|---|" + "---|" * 5,
    ]
    lines = []
    for r in rows:
        mine, other = r["instructions"], r["cmsis"]
        assert isinstance(mine, list)
        assert isinstance(other, list)
        ratios = " / ".join(f"{a / b:.2f}" for a, b in zip(mine, other, strict=True))
        cells = [str(r["kernel"]), *(f"{v:.1f}" for v in mine), " / ".join(f"{v:.1f}" for v in other), ratios]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*head, *lines])


def main() -> None:
    parser = argparse.ArgumentParser(description="instructions of the filter kernels")
    parser.add_argument("--cmsis", type=Path, help="folder of CMSIS-DSP's sources")
    parser.add_argument("--flags", default="-O2")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    rig, rows = board(*args.flags.split()), []
    with tempfile.TemporaryDirectory() as folder:
        other = None if args.cmsis is None else cmsis_board(Path(folder), args.cmsis)
        for kernel, function, op in cases():
            mine = [ours(op, b, rig) for b in BLOCKS]
            beside = list(AS_READ[function]) if other is None else [theirs(function, op, b, other) for b in BLOCKS]
            rows.append({"kernel": kernel, "function": function, "instructions": mine, "cmsis": beside})
    print(json.dumps(rows) if args.json else table(rows, args.cmsis is not None))


if __name__ == "__main__":
    main()
