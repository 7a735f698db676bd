"""Tables as pandas writes them: labels of categories and truth values instead of numbers."""

from __future__ import annotations

from pathlib import Path

import lightgbm as lgb
import numpy as np
import pytest

import mcugen
from mcugen.core.types import Feature
from mcugen.errors import InputError
from mcugen.frontends.data import load_table

WORDS = (Feature("t"), Feature("mode", categories=("off", "on", "a b")), Feature("flag"))


def table(tmp_path: Path, text: str, features: tuple[Feature, ...] = WORDS):
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    return load_table(path, features)


def test_words_are_labels(tmp_path: Path) -> None:
    found = table(tmp_path, "t,mode,flag,label\n1.5,on,True,hot\n2,a b,false,idle\n-1,,FALSE,hot\n4,0,1,hot\n")
    np.testing.assert_array_equal(found.x, [[1.5, 1, 1], [2, 2, 0], [-1, np.nan, 0], [4, 0, 1]])
    assert found.notes == ()
    assert table(tmp_path, "mode,t,flag\non,3,True\n").x.dtype == np.int64


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("1,onn,0", r"line 2, column 2: 'onn' is no category of feature 'mode' \(did you mean on\?\)"),
        ("warm,on,0", "line 2, column 1: 'warm' is not a number"),
        ("1,on,yes", "line 2, column 3: 'yes' is not a number"),
    ],
)
def test_other_words(row: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        table(tmp_path, f"t,mode,flag\n{row}\n")


@pytest.mark.parametrize(
    ("labels", "cells", "codes", "told"),
    [
        (("10", "20", "30"), "30 10 20", [2, 0, 1], "read as labels: 10, 20, 30"),
        (("10", "20", "30"), "2 0 1", [2, 0, 1], ""),
        (("10", "20", "30"), "10 5", [10, 5], ""),  # 5 is neither: as in every other file
        (("3", "1", "7"), "1 1", [1, 1], "read as codes from 0 on, not as its labels 3, 1, 7"),
        (("3", "1", "7"), "7 1 3 nan", [2, 1, 0, np.nan], "read as labels: 3, 1, 7"),
        (("0", "1", "2"), "2 1 0", [2, 1, 0], ""),
        (("0.5", "1.5"), "1.5 0.5", [1, 0], "read as labels"),
    ],
)
def test_labels_that_are_numbers(
    labels: tuple[str, ...], cells: str, codes: list[float], told: str, tmp_path: Path
) -> None:
    features = (Feature("t"), Feature("size", categories=labels))
    rows = "".join(f"1,{c}\n" for c in cells.split())
    found = table(tmp_path, f"t,size\n{rows}", features)
    np.testing.assert_array_equal(found.x[:, 1], codes)
    assert len(found.notes) == bool(told)
    assert told in "".join(found.notes)


def test_what_pandas_wrote(tmp_path: Path) -> None:
    """Trained on a frame, exported and run with the same frame as CSV: LightGBM's classes."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "t": rng.normal(20, 5, 300).round(2),
            "mode": pd.Categorical(rng.choice(["off", "on", "a b"], 300)),
            "size": pd.Categorical(rng.choice([10, 20, 50], 300)),
            "flag": rng.integers(0, 2, 300).astype(bool),
        }
    )
    y = np.where(frame["t"] > 22, 2, np.where((frame["mode"] == "on") ^ (frame["size"] == 20), 1, 0))
    model = lgb.LGBMClassifier(n_estimators=8, verbose=-1, n_jobs=1, min_child_samples=5).fit(frame, y)
    model.booster_.save_model(tmp_path / "m.txt")
    frame.to_csv(tmp_path / "x.csv", index=False)
    result = mcugen.export(tmp_path / "m.txt", tmp_path / "m", output="class", leaf="float64", calib=tmp_path / "x.csv")
    assert any("'size' is read as labels" in text for _, text in result.report.facts)
    found, warnings = mcugen.run(tmp_path / "m", tmp_path / "x.csv", tmp_path / "y.npy")
    assert any("'size' is read as labels" in w for w in warnings)
    np.testing.assert_array_equal(found[:, 0], model.predict(frame))
