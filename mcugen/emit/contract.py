"""What the reader of the generated header must know: where the model came from, what goes in, what comes out."""

from __future__ import annotations

from mcugen.core.types import Bound, DType, Feature, Model, TensorType
from mcugen.ctext.comments import comment_text
from mcugen.ctext.idents import unique_identifiers
from mcugen.ctext.literals import float64_literal
from mcugen.emit.parts import port_texts


def number(value: float) -> str:
    """A short decimal for prose."""
    return f"{value:.6g}"


def title(model: Model) -> str:
    """The first line of every file."""
    return comment_text(f"{model.name}: {model.source.format} model {model.source.name}, exported by mcugen.")


def contract_lines(model: Model, output: str, verified: str) -> list[str]:
    """The comment at the top of the header."""
    x, y = model.types[model.inputs[0]], model.types[model.outputs[0]]
    lines = [f"Source sha256 {model.source.sha256}", verified, ""]
    lines += [f"Input: {x.count} {x.dtype.ctype}, the features in the order of the model."]
    lines += _signal_lines(model, x)
    lines += ["", *_output_lines(model, output, y)]
    lines += ["", *model.notes] if model.notes else []
    return [comment_text(line) for line in lines]


def _signal_lines(model: Model, x: TensorType) -> list[str]:
    mapped = [f for f in model.features if f.scale is not None or f.missing is not None]
    if not mapped:
        return ["NaN stands for a missing value."] if x.dtype.is_float else ["No value stands for a missing one."]
    lines = []
    for i, f in enumerate(model.features):
        if f.scale is not None:
            lines.append(f"  x[{i}] {f.name}: value = {f.scale!r} * x + {f.offset!r}")
        if f.missing is not None:
            lines.append(f"  x[{i}] {f.name}: {f.missing} stands for a missing value")
    return lines


def _output_lines(model: Model, output: str, y: TensorType) -> list[str]:
    bound = model.bounds.get("mean", model.bounds.get("score"))
    labels = f" Classes: {', '.join(model.labels)}." if model.labels else ""
    if output == "class":
        limit = "" if bound is None else f" Scores it compares are within {number(bound.error)} of the library's."
        return [f"Output: the index of the class, the lowest on ties.{labels}{limit}"]
    if output == "proba":
        what = "one probability a class" if y.count > 1 and model.labels else "the prediction"
        what = "the probability of class 1" if y.count == 1 and model.labels else what
        limit = "" if bound is None else f" The score before the transform is within {number(bound.error)}."
        return [f"Output: {y.count} float, {what}, as the library predicts.{labels}{limit}"]
    lines = [f"Output: {y.count} raw score{'s' if y.count > 1 else ''}, as the library's raw prediction.{labels}"]
    if y.q is not None:
        lines.append(f"score = y * {float64_literal(y.q.scale)} ({y.q.scale!r})")
    if bound is not None:
        lines.append(bound_line(bound))
    return lines


def bound_line(bound: Bound) -> str:
    """The proven bound in one sentence."""
    if bound.error == 0.0:
        return "Proven: the same bits as the library's double."
    return f"Proven: |score - library's score| <= {number(bound.error)} for every input."


def macros(model: Model) -> list[str]:
    """Sizes and scales as macros."""
    upper = model.name.upper()
    x, y = model.types[model.inputs[0]], model.types[model.outputs[0]]
    lines = [f"#define {upper}_INPUTS {x.count}", f"#define {upper}_OUTPUTS {y.count}"]
    if y.q is not None:
        lines.append(f"#define {upper}_SCALE {float64_literal(y.q.scale)} /* score = y * scale */")
    if model.labels and model.outputs[0] == "class":
        lines.append(f"#define {upper}_CLASSES {len(model.labels)}")
    return lines


def feature_lines(model: Model) -> list[str]:
    """Enumerators of the feature indices, the model's own name behind each."""
    upper = model.name.upper()
    idents = unique_identifiers([f"x_{f.name}" for f in model.features])
    lines = []
    for i, (ident, f) in enumerate(zip(idents, model.features, strict=True)):
        note = f" /* {comment_text(f.name, 60)} */" if ident != f"x_{f.name}" else ""
        lines.append(f"{upper}_{ident} = {i},{note}")
    return lines


def category_blocks(model: Model) -> list[str]:
    """An enum per feature that pandas had as a category: the code of each label, which is what x must hold."""
    owners = [f for f in model.features if f.categories]
    labels = [f"{f.name}_{label}" for f in owners for label in f.categories or ()]
    idents = iter(unique_identifiers([f"c_{label}" for label in labels]))
    return [_category_block(model.name.upper(), f, [next(idents) for _ in f.categories or ()]) for f in owners]


def _category_block(upper: str, feature: Feature, idents: list[str]) -> str:
    rows = "".join(
        f"    {upper}_{ident} = {code}, /* {comment_text(label, 60)} */\n"
        for code, (ident, label) in enumerate(zip(idents, feature.categories or (), strict=True))
    )
    return f"/* Codes of the categories of {comment_text(feature.name, 60)}. */\nenum {{\n{rows}}};\n"


def bits_ctype(dtype: DType) -> str:
    """The unsigned type of a bit pattern of ``dtype``."""
    return f"uint{dtype.size * 8}_t"


def net_lines(model: Model, verified: str) -> list[str]:
    """The comment at the top of a net's header: what x and y hold."""
    lines = [f"Source sha256 {model.source.sha256}", verified, ""]
    for p in port_texts(model):
        name = "" if p.only else f" {p.port.name} ({p.value})"
        lines.append(f"{'Input' if p.is_input else 'Output'}{name}: {_tensor_text(model.types[p.value])}.")
    lines += [f"Classes: {', '.join(model.labels)}."] if model.labels else []
    lines += ["", *model.notes] if model.notes else []
    return [comment_text(line) for line in lines]


def stream_lines(model: Model, verified: str, about: tuple[str, ...]) -> list[str]:
    """The comment at the top of a model with state; ``about`` in place of what is known of samples and results."""
    x, y = model.types[model.inputs[0]], model.types[model.outputs[0]]
    lines = [f"Source sha256 {model.source.sha256}", verified, ""]
    if about:
        lines += about
    else:
        lines += [f"Sample: {_tensor_text(x)}."]
        lines += _signal_lines(model, x) if model.features else []
        lines += [f"Result: {_tensor_text(y)}."]
        lines += [f"Classes: {', '.join(model.labels)}."] if model.labels else []
    lines += ["", *model.notes] if model.notes else []
    return [comment_text(line) for line in lines]


def _tensor_text(t: TensorType) -> str:
    shape = " x ".join(map(str, t.shape))
    meaning = f", real = {t.q.scale!r} * (q - {t.q.zero_point})" if t.q is not None else ""
    return f"{shape} {t.dtype.ctype}, in the order of the model file{meaning}"


def net_macros(model: Model) -> list[str]:
    """Sizes, scales and zero points as macros."""
    lines = []
    for p in port_texts(model):
        q = model.types[p.value].q
        lines.append(f"#define {p.count} {p.port.count}")
        if q is not None:
            lines.append(f"#define {p.prefix}_SCALE {float64_literal(q.scale)} /* {number(q.scale)} */")
            lines.append(f"#define {p.prefix}_ZERO_POINT ({q.zero_point})")
    return lines
