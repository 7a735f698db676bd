"""docs/signals.md knows every key, its file is a good one, and docs/numerics_dsp.md has every op."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import mcugen
from mcugen.core.op import MachineOp
from mcugen.dsp.ops import MACHINE_OPS
from mcugen.dsp.source.features import MIN_LENGTH
from mcugen.frontends.pipeline import read, schema
from mcugen.resources import resource_dir

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "signals.md").read_text(encoding="utf-8")


def test_every_key_is_on_the_page() -> None:
    tables = [schema.SignalTable, schema.Channel, schema.Window, schema.FeatureTable, schema.ModelTable]
    keys = {key for t in tables for key in t.model_fields}
    keys |= {key for t in read._FILTERS.values() for key in t.model_fields} | {
        *read._FILTERS,
        *read._TABLES,
        *MIN_LENGTH,
    }
    rows = " ".join(line for line in PAGE.splitlines() if line.startswith("|"))
    words = set(re.findall(r"[a-z_0-9]+", rows))
    assert keys - words == set()


def test_the_file_of_the_page_is_a_chain(tmp_path: Path) -> None:
    text = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)[0]
    path = tmp_path / "motion.toml"
    path.write_text(text, encoding="utf-8")
    f = mcugen.features.load(path)
    assert f.names == ("ax_mean", "ax_std", "ax_slope", "ay_mean", "ay_std", "ay_slope", "ax_band_power_4_8")
    assert f.transform(np.zeros((150, 2), np.int16)).shape == (2, 7)


@pytest.mark.parametrize("op", MACHINE_OPS, ids=lambda op: op.__name__)
def test_every_op_has_a_section_and_a_kernel(op: type[MachineOp]) -> None:
    page = (DOCS / "numerics_dsp.md").read_text(encoding="utf-8")
    sections = {s.split("\n", 1)[0].strip(): s for s in re.split(r"^## ", page, flags=re.MULTILINE)}
    named = [s for title, s in sections.items() if op.__name__ in re.split(r"[ ,]+", title)]
    assert len(named) == 1, list(sections)
    assert len(named[0].split()) > 20
    symbol, file = op.kernel
    assert re.search(rf"\b{symbol}\b\s*\(", (resource_dir("runtime_c") / file).read_text(encoding="utf-8"))
