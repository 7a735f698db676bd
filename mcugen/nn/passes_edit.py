"""A model under rewriting: who writes and who reads each value, kept up to date. Passes give a new Model at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from mcugen.core.op import Op
from mcugen.core.types import Loc, Model, TensorType


class Editor:
    """The ops of a model by their place; places of removed ops stay empty, so the order stays good."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.types: dict[str, TensorType] = dict(model.types)
        self.outputs = model.outputs
        self._ops: list[Op | None] = list(model.ops)
        self._writer: dict[str, int] = {}
        self._readers: dict[str, set[int]] = {}
        for place, op in enumerate(model.ops):
            self._link(place, op)

    def _link(self, place: int, op: Op) -> None:
        for v in op.outputs:
            self._writer[v] = place
        for v in op.inputs:
            self._readers.setdefault(v, set()).add(place)

    def _unlink(self, place: int, op: Op) -> None:
        for v in op.outputs:
            if self._writer.get(v) == place:
                del self._writer[v]
        for v in op.inputs:
            self._readers[v].discard(place)

    def places(self) -> Iterator[tuple[int, Op]]:
        """Every op with its place; what the caller does to the model on the way is seen."""
        for place in range(len(self._ops)):
            op = self._ops[place]
            if op is not None:
                yield place, op

    def writer(self, value: str) -> tuple[int, Op] | None:
        """The op that writes ``value``; None for an input of the model."""
        place = self._writer.get(value)
        op = self._ops[place] if place is not None else None
        return (place, op) if place is not None and op is not None else None

    def read_once(self, value: str) -> bool:
        """Whether exactly one op reads ``value`` and the caller of the model does not."""
        return len(self._readers.get(value, ())) == 1 and value not in self.outputs

    def is_read(self, value: str) -> bool:
        return bool(self._readers.get(value)) or value in self.outputs

    def put(self, place: int, op: Op) -> None:
        """``op`` instead of what stands there."""
        old = self._ops[place]
        if old is not None:
            self._unlink(place, old)
        self._ops[place] = op
        self._link(place, op)

    def remove(self, place: int) -> None:
        old = self._ops[place]
        if old is not None:
            self._unlink(place, old)
        self._ops[place] = None

    def retype(self, value: str, shape: tuple[int, ...]) -> None:
        """Another shape for a value."""
        self.types[value] = replace(self.types[value], shape=shape)

    def bypass(self, place: int, op: Op) -> bool:
        """Take away an op that gives what it gets. False where the model's interface would lose a name."""
        source, result = op.inputs[0], op.outputs[0]
        if result not in self.outputs:
            self.remove(place)
            self._reread(result, source)
            return True
        before = self.writer(source)
        if before is None or source in self.outputs or self.types[source].shape != self.types[result].shape:
            return False
        # The result is an output: it keeps its name, and its writer takes it over.
        self.remove(place)
        where, writer = before
        self.put(where, replace(writer, outputs=tuple(result if v == source else v for v in writer.outputs)))
        self._reread(source, result)
        return True

    def _reread(self, old: str, new: str) -> None:
        for place in sorted(self._readers.get(old, ())):
            op = self._ops[place]
            if op is not None:
                self.put(place, replace(op, inputs=tuple(new if v == old else v for v in op.inputs)))

    def drop_dead(self) -> bool:
        """Remove what nothing reads; whether there was any."""
        found = False
        for place in reversed(range(len(self._ops))):
            op = self._ops[place]
            if op is not None and not any(self.is_read(v) for v in op.outputs):
                self.remove(place)
                found = True
        return found

    def finish(self) -> Model:
        """The model as it is now, with types of the values that are left."""
        ops = tuple(op for op in self._ops if op is not None)
        alive = {*self.model.inputs, *(v for op in ops for v in op.outputs)}
        alive |= {c.name for c in self.model.consts} | {s.name for s in self.model.states}
        types = {v: t for v, t in self.types.items() if v in alive}
        return replace(self.model, ops=ops, types=types)


Rule = Callable[[Editor, int, Op], bool]


def rewrite(model: Model, *rules: Rule) -> Model:
    """``rules`` on every op until none applies. A rule edits and says whether it did; each must make progress."""
    editor = Editor(model)
    changed = True
    while changed:
        changed = False
        for place, op in editor.places():
            if any(rule(editor, place, op) for rule in rules):
                changed = True
        changed |= editor.drop_dead()
    return editor.finish()


def joined(first: Loc, second: Loc) -> Loc:
    """Where an op came from that was made of two."""
    return Loc(first.file, f"{first.item} + {second.item}")
