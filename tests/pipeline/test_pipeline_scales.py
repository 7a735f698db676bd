"""Scales that float32 does not hold, and results all of one scale: NAME_dequantize gives real values of any chain."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

import mcugen
from mcugen.exported import open_folder
from mcugen.verify.compiler import find_host_compiler
from mcugen.verify.hostbuild import build_shared


@pytest.mark.parametrize("scale", [0.1, -0.01, 1 / 3, 2.0**-9])
def test_dequantize_of_any_scale(scale: float, tmp_path: Path) -> None:
    channel = {"name": "a", "scale": scale}
    given = {"signal": {"rate": 100.0, "name": "m"}, "channel": [channel], "filter": [{"kind": "median", "length": 3}]}
    mcugen.export(given, tmp_path / "m")
    folder = open_folder(tmp_path / "m")
    sources = [p for p in folder.files if p.endswith(".c") and "selftest" not in p and "sections" not in p]
    with build_shared(folder.files, sources, find_host_compiler()) as library:
        call = ctypes.CDLL(str(library)).m_dequantize
        for y in (-32768, -1, 0, 7, 32767):
            real = ctypes.c_float()
            call(ctypes.byref(ctypes.c_int16(y)), ctypes.byref(real))
            assert real.value == pytest.approx(scale * y, rel=2 * float(np.finfo(np.float32).eps))
