"""C from other generators of tree code, wrapped so that it is called as a model of ours: float in, raw scores out.

Their text is taken as they write it, with their own arithmetic; only the conversion of the input is added, since each
wants its own. Compiled as one unit, as a header of the system, so that our warnings do not apply to it.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightgbm

from mcugen.core.ports import one_each
from mcugen.core.types import DType
from mcugen.emulate.image import BoardModel
from mcugen.resources import resource_dir

_WRAPPER = """\
#include "foreign.h"
#include "body.h"
mcg_status_t foreign_run(const float *x, double *y)
{
%s
    return MCG_OK;
}
"""
_HEADER = """\
#ifndef FOREIGN_H
#define FOREIGN_H
#include "mcugen/mcg.h"
mcg_status_t foreign_run(const float *x, double *y);
#endif
"""
#: They move nothing at start-up, so they are not charged for our function that does. Raw scores need no exp: it is
#: linked and not called, so they are not charged for that either.
_NO_SECTIONS = """\
#include "mcugen/mcg_sections.h"
void mcg_sections_init(void) {}
double exp(double x);
float expf(float x);
double exp(double x) { return x; }
float expf(float x) { return x; }
"""
#: A NaN is a missing value to these.
_ENTRIES = """\
    union Entry data[%(features)d];
    for (int i = 0; i < %(features)d; i++) {
        if (x[i] != x[i]) {
            data[i].missing = -1;
        } else {
            data[i].fvalue = (double)x[i];
        }
    }
    for (int k = 0; k < %(outputs)d; k++) {
        y[k] = 0.0;
    }
    predict(data, 1, y);"""
_DOUBLES = """\
    double data[%(features)d];
    for (int i = 0; i < %(features)d; i++) {
        data[i] = (double)x[i];
    }
    %(call)s"""


class RefusedError(Exception):
    """The generator says that it cannot do this model."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One generator with one way of using it, and the optimization its C is compiled with."""

    name: str
    generator: str
    opt: str


TOOLS = (
    Tool("m2cgen", "m2cgen", "-O2"),
    Tool("tl2cgen", "tl2cgen", "-O2"),
    Tool("tl2cgen quantize", "tl2cgen quantize", "-O2"),
    Tool("tl2cgen quantize -Os", "tl2cgen quantize", "-Os"),
    Tool("emlearn", "emlearn", "-O2"),
)


def foreign_model(generator: str, model_file: Path, outputs: int) -> BoardModel:
    """The C that ``generator`` writes for a LightGBM model, ready to be built. RefusedError with its words."""
    booster = lightgbm.Booster(model_file=str(model_file))
    sizes = {"features": booster.num_feature(), "outputs": outputs}
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            if generator == "m2cgen":
                body = _m2cgen(booster, outputs)
                # For several outputs the C has an output argument; for one it returns the score.
                call = "score(data, y);" if outputs > 1 else "y[0] = score(data);"
                wrapped = _DOUBLES % {**sizes, "call": call}
            elif generator.startswith("tl2cgen"):
                body = _tl2cgen(model_file, quantize="quantize" in generator)
                wrapped = _ENTRIES % sizes
            else:
                body = _emlearn(booster)
                wrapped = ""
    except Exception as error:
        raise RefusedError(f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}") from error
    include = resource_dir("runtime_c") / "include"
    files = {f"mcugen/{p.name}": p.read_bytes() for p in include.glob("mcg*.h")}
    files["sections.c"] = _NO_SECTIONS.encode()
    files["foreign.h"] = _HEADER.encode()
    files["body.h"] = b"#pragma GCC system_header\n" + body.encode()
    files["foreign.c"] = (_WRAPPER % wrapped).encode()
    return BoardModel("foreign", files, *one_each(DType.F32, sizes["features"], DType.F64, outputs))


def _m2cgen(booster: lightgbm.Booster, outputs: int) -> str:
    """m2cgen takes scikit-learn's wrappers only, and applies the transform; a stand-in asks for raw scores."""
    import m2cgen  # noqa: PLC0415
    from m2cgen.assemblers.boosting import LightGBMModelAssembler  # noqa: PLC0415

    # Without a transform it hands on a plain list for several outputs, which its own generator cannot take.
    LightGBMModelAssembler._multi_class_convert_output = lambda self, scores: m2cgen.ast.VectorVal(scores)

    class Raw:
        def dump_model(self) -> dict[str, Any]:
            return {**booster.dump_model(), "objective": "custom"}

    name = "LGBMClassifier" if outputs > 1 else "LGBMRegressor"
    stand_in = type(name, (), {"__module__": "lightgbm.sklearn"})()
    stand_in.booster_, stand_in.n_classes_ = Raw(), outputs
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000_000)
    try:
        return str(m2cgen.export_to_c(stand_in))
    finally:
        sys.setrecursionlimit(limit)


def _tl2cgen(model_file: Path, quantize: bool) -> str:
    import tl2cgen  # noqa: PLC0415
    import treelite  # noqa: PLC0415

    model = treelite.frontend.load_lightgbm_model(str(model_file))
    with tempfile.TemporaryDirectory() as folder:
        parameters = {"quantize": 1} if quantize else {}
        tl2cgen.generate_c_code(model, dirpath=folder, params=parameters, verbose=False)
        paths = [Path(folder) / n for n in ("header.h", "main.c", "quantize.c")]
        text = "\n".join(p.read_text() for p in paths if p.exists())
    return text.replace('#include "header.h"', "")


def _emlearn(booster: lightgbm.Booster) -> str:
    import emlearn  # noqa: PLC0415

    return str(emlearn.convert(booster, method="inline").save(name="model"))
