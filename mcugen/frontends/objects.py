"""Live Python objects to Models: LightGBM boosters and wrappers, scikit-learn estimators, ONNX models.

Objects are recognised by the names of their classes and modules, so that no library is imported for a user who has
files only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mcugen.core.types import Model
from mcugen.errors import InputError, UnsupportedError
from mcugen.frontends import lightgbm, sklearn

_LIGHTGBM = frozenset({"Booster", "LGBMModel"})
_HOLDERS = {
    "best_estimator_": "pass the fitted estimator inside it: search.best_estimator_",
    "steps": "convert the whole with skl2onnx.to_onnx, or pass pipeline[-1] and do the earlier steps before the call",
    "calibrated_classifiers_": "pass the estimator that was calibrated",
}
#: Packages whose models come as ONNX files.
_CONVERTED = {
    "xgboost": "convert it, onnxmltools.convert_xgboost(model, initial_types=...), and pass the result",
    "catboost": "save it, model.save_model('model.onnx', format='onnx'), and pass the file",
}


#: num_iteration and start_iteration, as in ``Booster.predict``.
Iterations = tuple[int | None, int]
ALL: Iterations = (None, 0)


def refuse_iterations(chosen: Iterations) -> None:
    """InputError where somebody chose iterations of a model that has none."""
    if chosen != ALL:
        where = "--num-iteration" if chosen[0] is not None else "--start-iteration"
        raise InputError(where, "chooses iterations of a LightGBM model, and of nothing else", "leave it out")


def load_object(
    obj: Any, name: str, shapes: Mapping[str, tuple[int, ...]] | None = None, chosen: Iterations = ALL
) -> Model:
    """The source model of a fitted ``obj``; ``name`` becomes Model.name.

    Accepts lightgbm.Booster, LightGBM's scikit-learn wrappers, the estimators in ``sklearn.ESTIMATORS``, and
    onnx.ModelProto (``shapes``: of inputs with dynamic axes). A booster gives the trees that its ``predict`` uses: up
    to the best iteration, if early stopping found one; ``chosen`` ones, as ``predict`` counts them. Raises InputError
    for an object that was not fitted, UnsupportedError for any other object.
    """
    found = _base(obj, "lightgbm", _LIGHTGBM)
    if found is not None:
        return _load_lightgbm(obj, name, found, chosen)
    refuse_iterations(chosen)
    if type(obj).__name__ == "ModelProto" and type(obj).__module__.partition(".")[0] == "onnx":
        # onnx is slow to import, and only needed here. Deterministic: maps in a fixed order.
        from mcugen.frontends.onnx import load_onnx  # noqa: PLC0415

        return load_onnx(obj.SerializeToString(deterministic=True), "ModelProto", name, dict(shapes or {}))
    found = _base(obj, "sklearn", sklearn.ESTIMATORS)
    if found is not None:
        return sklearn.load_estimator(obj, name, found)
    if isinstance(obj, type):
        raise InputError(obj.__name__, "is a class, not a model", "make an object of it, and call fit")
    raise UnsupportedError(type(obj).__name__, "cannot be translated", _hint(obj))


def _hint(obj: Any) -> str:
    """What to do with an object that is no model that mcugen reads."""
    held = next((text for attribute, text in _HOLDERS.items() if hasattr(obj, attribute)), None)
    packages = {cls.__module__.partition(".")[0] for cls in type(obj).__mro__}
    converted = next((text for package, text in _CONVERTED.items() if package in packages), None)
    families = ", ".join(k.removesuffix("Classifier") for k in sklearn.ESTIMATORS if k.endswith("Classifier"))
    accepted = f"accepted: LightGBM's boosters and wrappers, scikit-learn's {families}, onnx.ModelProto"
    linear = "; linear models by skl2onnx.to_onnx" if "sklearn" in packages else ""
    return held or converted or accepted + linear


def _base(obj: Any, package: str, names: Any) -> type | None:
    """The nearest class of ``obj`` that ``package`` defines and that is among ``names``."""
    for cls in type(obj).__mro__:
        if cls.__module__.partition(".")[0] == package and cls.__name__ in names:
            return cls
    return None


def _load_lightgbm(obj: Any, name: str, base: type, chosen: Iterations) -> Model:
    """Through LightGBM's own text, which holds all that prediction needs, in 17 digits."""
    file = type(obj).__name__
    whole = base.__name__ == "Booster"
    if not whole and getattr(obj, "_Booster", None) is None:
        raise InputError(file, "this estimator is not fitted", "call fit first")
    booster = obj if whole else obj.booster_
    # The best iteration counts only where nothing was chosen.
    text = booster.model_to_string() if chosen == ALL else booster.model_to_string(num_iteration=-1)
    model = lightgbm.load_text(text.encode(), file, name, *chosen)
    if whole:
        return model
    # The wrapper trains on class numbers; a custom objective has no labels, and there predict gives raw scores.
    labels = tuple(str(c) for c in getattr(obj, "classes_", ()))
    return replace(model, labels=labels) if len(labels) == len(model.labels) else model
