"""What the emitters of both kinds of models share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mcugen.core.op import MachineOp, OpText
from mcugen.core.ports import Port, Ports
from mcugen.core.stream import StateLayout, rhythm
from mcugen.core.types import DType, Model
from mcugen.ctext.comments import comment_text
from mcugen.ctext.idents import sanitize, unique_identifiers
from mcugen.errors import InternalError

#: Raised when generated files and runtime files of different versions must not be mixed; the same as in mcg.h.
ABI = 3
#: Names that the generated functions use beside their inputs and outputs.
_RESERVED = ("arena", "n", "i", "s", "real", "scratch", *(f"v{i}" for i in range(1000)))


def machine_ops(model: Model) -> tuple[MachineOp, ...]:
    """The ops of a machine model, typed."""
    ops = tuple(op for op in model.ops if isinstance(op, MachineOp))
    if len(ops) != len(model.ops):
        raise InternalError(model.name, "a source op has not been lowered")
    return ops


def ports_of(model: Model) -> tuple[Ports, Ports]:
    """Inputs and outputs of the generated functions: x and y, or names from the model file where there are several."""
    names = [(*model.inputs,), (*model.outputs,)]
    if len(model.inputs) == len(model.outputs) == 1:
        return tuple(_ports(model, values, [c]) for values, c in zip(names, ("x", "y"), strict=True))  # type: ignore[return-value]
    wanted = [*_RESERVED, *(sanitize(v).lower() for v in (*model.inputs, *model.outputs))]
    idents = unique_identifiers(wanted)[len(_RESERVED) :]
    split = len(model.inputs)
    return _ports(model, model.inputs, idents[:split]), _ports(model, model.outputs, idents[split:])


def _ports(model: Model, values: Sequence[str], names: Sequence[str]) -> Ports:
    return tuple(Port(n, model.types[v].dtype, model.types[v].shape) for v, n in zip(values, names, strict=True))


@dataclass(frozen=True, slots=True)
class PortText:
    """A port in generated C: whether it is an input, its value in the model, and its macros for count, scale and zero
    point. ``only``: there is no other on its side, so that functions need not name it."""

    port: Port
    is_input: bool
    value: str
    count: str
    prefix: str
    only: bool

    @property
    def suffix(self) -> str:
        """What tells functions of this port from those of others on its side."""
        return "" if self.only else f"_{self.port.name}"

    @property
    def parameter(self) -> str:
        """Its declaration in a list of parameters."""
        return f"{'const ' if self.is_input else ''}{self.port.dtype.ctype} *{self.port.name}"


def port_texts(model: Model) -> tuple[PortText, ...]:
    """Inputs, then outputs. Counts: NAME_INPUTS and NAME_OUTPUTS where there is one of each, else NAME_PORT_COUNT."""
    upper = model.name.upper()
    single = len(model.inputs) == len(model.outputs) == 1
    texts = []
    for side, ports, values in zip(("INPUT", "OUTPUT"), ports_of(model), (model.inputs, model.outputs), strict=True):
        for port, value in zip(ports, values, strict=True):
            prefix = f"{upper}_{side}" if single else f"{upper}_{port.name.upper()}"
            count = f"{prefix}S" if single else f"{prefix}_COUNT"
            texts.append(PortText(port, side == "INPUT", value, count, prefix, single))
    return tuple(texts)


def place_functions(name: str, inputs: Ports, outputs: Ports) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The functions that tell the place of each input and output in the model's own arena: NAME_input, NAME_output,
    or NAME_input_PORT and NAME_output_PORT where there are several ports."""
    only = len(inputs) == len(outputs) == 1
    sides = (("input", inputs), ("output", outputs))
    found = [tuple(f"{name}_{side}" if only else f"{name}_{side}_{p.name}" for p in ports) for side, ports in sides]
    return found[0], found[1]


def size_assertions(model: Model) -> list[str]:
    """Assumptions of the generator that the C compiler checks again."""
    lines = []
    for value in (*model.inputs, *model.outputs):
        dtype = model.types[value].dtype
        lines.append(f'_Static_assert(sizeof({dtype.ctype}) == {dtype.size}, "{dtype.ctype} has another size here");')
    return sorted(set(lines))


@dataclass(frozen=True, slots=True)
class StateText:
    """What stands in the C of a model with state: the members of NAME_state_t with their comments, the headers that
    their types need, the statements of NAME_init, assertions on the layout, and the rhythm in words."""

    members: tuple[str, ...]
    includes: tuple[str, ...]
    init: tuple[str, ...]
    assertions: tuple[str, ...]
    size: int
    rhythm: str


def state_text(model: Model, layout: StateLayout, ops: tuple[MachineOp, ...], texts: Sequence[OpText]) -> StateText:
    """The C of the state; ``texts``: that of each op."""
    known = {t.ctype for t in DType} | {"int64_t", "uint64_t"}
    members, includes = [], set()
    for f in layout.fields:
        m = f.member
        size = f"[{m.count}]" if m.count else ""
        members.append(f"{m.ctype} {f.symbol}{size}; /* {comment_text(m.about)} */")
        if m.ctype not in known:
            includes |= set(texts[f.index].includes)
    init = tuple(t.init for t in texts if t.init)
    for op, text in zip(ops, texts, strict=True):
        if bool(op.state) != bool(text.init):
            raise InternalError(str(op.loc), f"{type(op).__name__} has state without init, or init without state")
    struct = f"{model.name}_state_t"
    assertions = [
        f'_Static_assert(offsetof({struct}, {f.symbol}) == {f.offset}u, "{f.symbol} lies elsewhere");'
        for f in layout.fields
    ]
    assertions.append(
        f'_Static_assert(sizeof({struct}) == {model.name.upper()}_STATE_BYTES, "the state has another size here");'
    )
    return StateText(tuple(members), tuple(sorted(includes)), init, tuple(assertions), layout.size, rhythm(ops).text())
