"""docs/manifest.schema.json describes what exports write, and nothing else passes."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np
import pytest

import mcugen

jsonschema = pytest.importorskip("jsonschema")

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "quickstart"
CHAIN: dict[str, Any] = {"signal": {"rate": 100.0}, "channel": [{"name": "a", "scale": 0.5, "dma": True}]}
Manifests = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return json.loads((ROOT / "docs" / "manifest.schema.json").read_text(encoding="utf-8"))  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def check(schema: dict[str, Any]) -> Any:
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def train(objective: str, labels: np.ndarray, **extra: Any) -> lgb.Booster:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(len(labels), 3))
    x[:, 2] = rng.integers(0, 5, len(labels))
    categorical = extra.pop("categorical_feature", "auto")
    fixed = {"verbosity": -1, "num_leaves": 4, "min_data_in_leaf": 5, "num_threads": 1, "seed": 1}
    data = lgb.Dataset(x, labels, categorical_feature=categorical)
    return lgb.train({"objective": objective, **fixed, **extra}, data, num_boost_round=3)


@pytest.fixture(scope="module")
def manifests(tmp_path_factory: pytest.TempPathFactory) -> Manifests:
    folder = tmp_path_factory.mktemp("exports")
    rng = np.random.default_rng(5)
    real, classes = rng.normal(size=300), rng.integers(0, 3, 300)
    spec = EXAMPLE / "spec.toml"
    one_feature = lgb.train(
        {"objective": "regression", "verbosity": -1, "num_leaves": 4, "num_threads": 1, "min_data_in_leaf": 5},
        lgb.Dataset(real[:, None], real),
        num_boost_round=2,
    )
    jobs: dict[str, tuple[Any, dict[str, Any]]] = {
        "counts": (EXAMPLE / "furnace.txt", {"spec": spec, "place": {"furnace_maps": "axi"}}),
        "no_board": (EXAMPLE / "furnace.txt", {"board": None, "leaf": "float64", "num_iteration": 5}),
        "unverified": (EXAMPLE / "furnace.txt", {"verify": False, "optimize": "ram"}),
        "classes": (train("multiclass", classes, num_class=3), {"output": "class"}),
        "proba": (train("binary", classes > 0), {"output": "proba", "input_dtype": "float64"}),
        "categories": (train("regression", real, categorical_feature=[2]), {"leaf": "int32"}),
        "linear": (train("regression", real, linear_tree=True), {"leaf": "float64"}),
        "filter": (CHAIN | {"filter": [{"kind": "taps", "taps": [0.5, 0.5]}]}, {}),
        "chain": (CHAIN | {"window": {"length": 8}, "feature": [{"kind": "mean"}], "model": one_feature}, {}),
    }
    found = {}
    for name, (source, options) in jobs.items():
        mcugen.export(source, folder / name, name="model" if "place" not in options else None, **options)
        found[name] = json.loads((folder / name / "manifest.json").read_text(encoding="utf-8"))
    return found


def test_manifests_are_valid(check: Any, manifests: Manifests) -> None:
    for name, manifest in manifests.items():
        errors = [f"{name} {e.json_path}: {e.message}" for e in check.iter_errors(manifest)]
        assert not errors, errors


def test_manifests_differ_where_the_schema_has_choices(manifests: Manifests) -> None:
    """The exports above use the optional parts; without this the first test could pass on too little."""
    assert manifests["counts"]["inputs"][0]["features"][0].keys() == {"name", "scale", "offset", "missing"}
    assert "scale" in manifests["counts"]["outputs"][0]
    assert "scale" not in manifests["no_board"]["outputs"][0]
    assert manifests["no_board"]["board"] is None
    assert manifests["unverified"]["verification"]["host"] == "not verified"
    assert manifests["classes"]["outputs"][0]["labels"]
    assert manifests["linear"]["bounds"]["score"]["low"] is None


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for value in schema.values():
            yield from objects(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from objects(value)


def test_schema_is_strict(schema: dict[str, Any]) -> None:
    for entry in objects(schema):
        assert "additionalProperties" in entry, entry
        assert set(entry.get("required", ())) <= {*entry.get("properties", {}), "score"}


def test_wrong_manifests_are_refused(check: Any, manifests: Manifests) -> None:
    right = manifests["counts"]

    def refused(change: Any) -> bool:
        wrong = copy.deepcopy(right)
        change(wrong)
        return not check.is_valid(wrong)

    assert check.is_valid(right)
    for key in right:
        assert refused(lambda m, key=key: m.pop(key)), key
    assert refused(lambda m: m.update(time="2026-01-01"))
    assert refused(lambda m: m["symbols"][0].update(path="/tmp"))
    assert refused(lambda m: m["inputs"][0].update(dtype="float16"))
    assert refused(lambda m: m["outputs"][0].pop("zero_point"))
    assert refused(lambda m: m["verification"].pop("vectors"))
    assert refused(lambda m: m["bounds"]["score"].update(error=-1.0))
    for path in ("../up.c", "/etc/x", "a//b", "a/.", "."):
        assert refused(lambda m, path=path: m["files"].update({path: "0" * 64})), path
    assert refused(lambda m: m["files"].update({"x.c": "short"}))
