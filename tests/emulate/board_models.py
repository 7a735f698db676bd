"""Models for the board tests: tiny trained ones, exported for the STM32H743, and hand-written C in their place."""

from __future__ import annotations

import functools
import importlib.util
import shutil
from collections.abc import Mapping
from pathlib import Path

import lightgbm as lgb
import numpy as np

from mcugen.build import export
from mcugen.core.ports import one_each
from mcugen.core.types import DType
from mcugen.emulate.image import BoardModel
from mcugen.exported import open_folder
from mcugen.resources import resource_dir
from mcugen.target.board import Board, load_board
from mcugen.trees.proof import reference, walked
from mcugen.trees.vectors import make_vectors

H743 = "stm32h743"
AN500 = "mps2_an500"
HAVE_GCC = shutil.which("arm-none-eabi-gcc") is not None
HAVE_QEMU = shutil.which("qemu-system-arm") is not None
HAVE_ZIG = importlib.util.find_spec("ziglang") is not None
KINDS = ("float32", "sentinel", "multiclass", "categorical", "linear", "proba")

_SPEC = '[[input]]\nname = "Column_0"\ndtype = "int16"\nscale = 0.01\noffset = 1.0\nmissing = -32768\n'
_SPEC += "".join(f'[[input]]\nname = "Column_{i}"\ndtype = "int16"\nscale = 0.02\nmissing = -1\n' for i in (1, 2, 3))


def export_kind(kind: str, out: Path) -> Path:
    """Trains and exports the tiny model ``kind`` into ``out``."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=(400, 4)).round(2) * 10
    x[rng.random(x.shape) < 0.1] = np.nan
    y = np.nan_to_num(x[:, 0]) * 2 + np.nan_to_num(x[:, 1]) ** 2 / 10
    # Tables, so that there is something to spoil; tests/trees has the other ways.
    options: dict[str, object] = {"name": kind, "board": H743, "ways": "" if kind == "linear" else "search+tables"}
    params: dict[str, object] = {"objective": "regression", "num_leaves": 7, "verbose": -1, "min_data_in_leaf": 10}
    params |= {"deterministic": True, "num_threads": 1, "seed": 1}
    categories: list[int] | str = "auto"
    if kind == "sentinel":
        (out.parent / "spec.toml").write_text(_SPEC)
        options |= {"spec": out.parent / "spec.toml"}
    elif kind == "multiclass":
        params |= {"objective": "multiclass", "num_class": 3}
        y = np.digitize(y, (-5, 15)).astype(np.float64)
    elif kind == "categorical":
        x[:, 3] = rng.integers(0, 40, len(x))
        y = y + (x[:, 3] % 3) * 10
        categories = [3]
        params |= {"min_data_per_group": 5, "cat_smooth": 1.0}
    elif kind == "linear":
        params |= {"linear_tree": True}
        options |= {"input_dtype": "float64", "leaf": "float64"}
    elif kind == "proba":
        params |= {"objective": "binary"}
        y = (y > 5).astype(np.float64)
        options |= {"output": "proba"}
    data = lgb.Dataset(x, y, categorical_feature=categories, params={"verbose": -1}, free_raw_data=False)
    booster = lgb.train(params, data, num_boost_round=6)
    export(booster, out, **options)
    return out


def vectors_of(folder: Path) -> tuple[BoardModel, np.ndarray, np.ndarray]:
    """An export as the emulator takes it, with golden inputs and outputs."""
    export = open_folder(folder)
    golden = export.golden()
    return export.board_model(), golden.of_role("input")[0].data, golden.of_role("output")[0].data


def boundaries_of(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Inputs on both sides of every threshold, and the integer reference: far more than the golden file keeps."""
    refs = open_folder(folder).references()
    rank, tables = walked(refs.machine)
    found = reference(refs.refs.source, refs.machine, refs.refs.spec, make_vectors(rank, tables).x)
    return found.x, found.y


@functools.cache
def board(name: str) -> Board:
    return load_board(name)


def hand_written(c_text: str, inputs: int = 4, outputs: int = 1, more: Mapping[str, bytes] | None = None) -> BoardModel:
    """A BoardModel whose ``mcg_status_t tiny_run(const int32_t *x, int32_t *y)`` is in ``c_text``."""
    runtime = resource_dir("runtime_c")
    files = {
        f"mcugen/{n}": (runtime / "include" / n).read_bytes() for n in ("mcg.h", "mcg_placement.h", "mcg_sections.h")
    }
    files["mcugen/mcg_sections.c"] = (runtime / "src" / "mcg_sections.c").read_bytes()
    head = '#include "mcugen/mcg.h"\nmcg_status_t tiny_run(const int32_t *x, int32_t *y);\n'
    files["tiny.h"] = head.encode()
    files["tiny.c"] = ('#include "tiny.h"\n' + c_text).encode()
    return BoardModel("tiny", {**files, **(more or {})}, *one_each(DType.I32, inputs, DType.I32, outputs))


def replaced(text: bytes | str, *changes: tuple[str, str]) -> str:
    """``text`` with each change made, every one of which must apply."""
    text = text.decode() if isinstance(text, bytes) else text
    for old, new in changes:
        assert text.count(old) >= 1, old
        text = text.replace(old, new)
    return text
