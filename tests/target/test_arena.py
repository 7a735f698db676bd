"""The arena: nothing that lives together overlaps, and plans are as low as can be."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mcugen.core.op import Cost, Item, MachineOp, Names, OpText
from mcugen.core.types import Array, DType, Loc, Model, Source, TensorType
from mcugen.target.arena import ALIGN, ArenaPlan, plan_arena


class Layer(MachineOp):
    """A layer with the memory behaviour that a test asks for."""

    __slots__ = ("_alias", "_lag", "_scratch")
    kernel = ("none", "none")

    def __init__(
        self,
        inputs: tuple[str, ...],
        outputs: tuple[str, ...],
        scratch: int = 0,
        alias: tuple[int, ...] = (),
        lag: int | None = None,
    ):
        for name, value in (("inputs", inputs), ("outputs", outputs), ("loc", Loc("t", ""))):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_scratch", scratch)
        object.__setattr__(self, "_alias", alias)
        object.__setattr__(self, "_lag", lag)

    @property
    def scratch_bytes(self) -> int:
        return self._scratch

    @property
    def in_place(self) -> tuple[int, ...]:
        return self._alias

    @property
    def lag(self) -> int | None:
        return self._lag

    def check(self, types: object) -> None: ...
    def eval(self, *args: Array) -> tuple[Array, ...]:
        return args

    def items(self, prefix: str) -> tuple[Item, ...]:
        return ()

    def emit(self, prefix: str, args: tuple[str, ...], results: tuple[str, ...], names: Names) -> OpText:
        return OpText((), "", "")

    def cost(self) -> Cost:
        return Cost(0.0, 0, 0.0, 0)


def plan(
    layers: list[Layer],
    sizes: dict[str, int],
    outputs: tuple[str, ...] = ("y",),
    inputs: tuple[str, ...] = ("x",),
    ports: bool = False,
) -> ArenaPlan:
    types = {v: TensorType((n,), DType.I8) for v, n in sizes.items()}
    model = Model("m", "machine", inputs, outputs, types, tuple(layers), Source("t", "t", ""))
    return plan_arena(model, layers, ports=ports)


def test_a_chain_needs_two_neighbours() -> None:
    layers = [Layer(("x",), ("a",)), Layer(("a",), ("b",)), Layer(("b",), ("c",)), Layer(("c",), ("y",))]
    result = plan(layers, {"x": 8, "a": 64, "b": 32, "c": 64, "y": 8})
    assert result.size == result.lower_bound == 96


def test_inputs_and_outputs_are_the_callers() -> None:
    result = plan([Layer(("x",), ("y",))], {"x": 800, "y": 800})
    assert (result.size, result.slots) == (0, ())


def test_ports_live_before_and_behind_all_ops() -> None:
    layers = [Layer(("x",), ("a",)), Layer(("a",), ("b",)), Layer(("b",), ("y",))]
    sizes = {"x": 100, "a": 64, "b": 16, "y": 80}
    result = plan(layers, sizes, ports=True)
    assert result.ports
    assert result.size == result.lower_bound == 104 + 64
    assert {s.value: (s.first, s.last) for s in result.slots} == {"x": (-1, 0), "a": (0, 1), "b": (1, 2), "y": (2, 3)}
    assert plan(layers, sizes).size == 64 + 16


def test_a_layer_that_takes_over_the_input() -> None:
    sizes = {"x": 96, "y": 64}
    both = plan([Layer(("x",), ("y",), alias=(0,))], sizes, ports=True)
    assert (both.size, both.offset("x"), both.offset("y")) == (96, 0, 0)
    behind = plan([Layer(("x",), ("y",), lag=10)], sizes, ports=True)
    assert behind.size == 112
    assert behind.offset("x") - behind.offset("y") == 16
    # Not from an input that somebody reads later, nor from one that goes out again.
    late = plan([Layer(("x",), ("a",), alias=(0,)), Layer(("a", "x"), ("y",))], sizes | {"a": 64}, ports=True)
    assert late.size == 96 + 64 + 64
    out = plan([Layer(("x",), ("y",), alias=(0,))], sizes, ("y", "x"), ports=True)
    assert out.size == 96 + 64


def test_odd_ports() -> None:
    """An input that nobody reads, one that is an output, a value that is two outputs, and one that is read on."""
    layers = [Layer(("x",), ("y",)), Layer(("y",), ("z",))]
    sizes = {"x": 8, "u": 64, "w": 16, "y": 32, "z": 40}
    result = plan(layers, sizes, ("y", "w", "y", "z"), ("x", "u", "w"), ports=True)
    spans = {s.value: (s.first, s.last) for s in result.slots}
    assert spans == {"x": (-1, 0), "u": (-1, -1), "w": (-1, 2), "y": (0, 2), "z": (1, 2)}
    assert result.size == result.lower_bound == 16 + 72  # u is gone when y and z come
    empty = plan([], {"x": 8}, ("x",), ports=True)
    assert (empty.size, len(empty.slots)) == (8, 1)


def test_a_residual_value_stays_alive() -> None:
    layers = [
        Layer(("x",), ("a",)),
        Layer(("a",), ("b",)),
        Layer(("b",), ("c",)),
        Layer(("a", "c"), ("d",), alias=(0, 1)),
        Layer(("d",), ("y",)),
    ]
    result = plan(layers, {"x": 8, "a": 64, "b": 64, "c": 64, "d": 64, "y": 8})
    assert result.size == 192
    assert result.offset("d") in (result.offset("a"), result.offset("c"))


def test_memory_is_taken_over_only_from_a_value_nobody_reads_any_more() -> None:
    layers = [Layer(("x",), ("a",)), Layer(("a",), ("b",), alias=(0,)), Layer(("a", "b"), ("y",))]
    result = plan(layers, {"x": 8, "a": 64, "b": 64, "y": 8})
    assert result.offset("a") != result.offset("b")


def test_taken_over_twice_and_read_late() -> None:
    layers = [
        Layer(("x",), ("a",)),
        Layer(("a",), ("b",), alias=(0,)),
        Layer(("b",), ("c",), alias=(0,)),
        Layer(("x",), ("d",)),
        Layer(("c", "d"), ("y",)),
    ]
    result = plan(layers, {"x": 8, "a": 64, "b": 64, "c": 64, "d": 64, "y": 8})
    assert result.offset("a") == result.offset("b") == result.offset("c")
    assert abs(result.offset("d") - result.offset("c")) >= 64


def test_scratch_is_apart_from_the_operands() -> None:
    layers = [Layer(("x",), ("a",)), Layer(("a",), ("b",), scratch=100), Layer(("b",), ("y",))]
    result = plan(layers, {"x": 8, "a": 64, "b": 64, "y": 8})
    assert result.size == 64 + 64 + 104
    assert result.scratch[0] is None
    assert result.scratch[1] is not None


@st.composite
def nets(draw: st.DrawFn) -> tuple[list[Layer], dict[str, int], tuple[str, ...], tuple[str, ...]]:
    """Layers, sizes, inputs and outputs. Not every input is read; outputs may be read, given twice, or inputs."""
    count = draw(st.integers(1, 7))
    inputs = ("x", "x1", "x2")[: draw(st.integers(1, 3))]
    values, layers = [*inputs], []
    for i in range(count):
        operands = tuple(draw(st.lists(st.sampled_from(values), min_size=1, max_size=3, unique=True)))
        output = "y" if i == count - 1 else f"v{i}"
        kind = draw(st.integers(0, 2))
        alias = tuple(range(len(operands))) if kind == 1 else ()
        lag = draw(st.integers(0, 60)) if kind == 2 else None
        layers.append(Layer(operands, (output,), draw(st.sampled_from([0, 0, 5, 40])), alias, lag))
        values.append(output)
    more = draw(st.lists(st.sampled_from(values), max_size=3))
    return layers, {v: draw(st.integers(1, 100)) for v in values}, inputs, ("y", *more)


@settings(max_examples=300, deadline=None)
@example(([Layer(("x", "x1"), ("y",), lag=9)], {"x": 1, "x1": 1, "y": 1}, ("x", "x1"), ("y",)), True)
@given(nets(), st.booleans())
def test_nothing_that_lives_together_overlaps(
    net: tuple[list[Layer], dict[str, int], tuple[str, ...], tuple[str, ...]], ports: bool
) -> None:
    """Simulated: every value is filled when it is made, and must be unharmed whenever it is read, outputs at the end.

    With places for ports each may be elsewhere all the same, so a value is only written, never counted on, unless it
    is there: all inputs are written before the first op.
    """
    layers, sizes, inputs, outputs = net
    result = plan(layers, sizes, outputs, inputs, ports)
    outside = set() if ports else {*inputs, *outputs}
    assert {s.value for s in result.slots} == {*inputs, *(v for la in layers for v in la.outputs)} - outside
    assert result.lower_bound <= result.size
    memory = np.full(result.size + 1, -1, np.int64)
    mark = {v: i for i, v in enumerate(sizes)}

    def span(value: str) -> slice:
        at = result.offset(value)
        assert at % ALIGN == 0
        assert at + sizes[value] <= result.size
        return slice(at, at + sizes[value])

    def unharmed(values: tuple[str, ...]) -> bool:
        return all((memory[span(v)] == mark[v]).all() for v in values if v not in outside)

    for value in inputs:
        if value not in outside:
            memory[span(value)] = mark[value]
    assert unharmed(inputs)
    for i, layer in enumerate(layers):
        assert unharmed(layer.inputs)
        place = result.scratch[i]
        if place is not None:
            memory[place : place + layer.scratch_bytes] = -2
            assert unharmed(layer.inputs), "scratch hits an input"
        (value,) = layer.outputs
        if value in outside:
            continue
        target = span(value)
        for k, operand in enumerate(layer.inputs):
            if operand in outside:
                continue
            source = span(operand)
            if target.start < source.stop and source.start < target.stop:  # only as the op allows
                behind = k == 0 and layer.lag is not None and target.start + layer.lag <= source.start
                assert behind or (k in layer.in_place and target.start == source.start)
        memory[target] = mark[value]
        if place is not None:
            assert not (place < target.stop and target.start < place + layer.scratch_bytes)
    assert unharmed(outputs)


def test_small_plans_are_optimal() -> None:
    """Against every order of placement, which for these sizes contains the optimum."""
    rng = np.random.default_rng(1)
    for _ in range(30):
        sizes = {f"v{i}": int(rng.integers(1, 9)) * 8 for i in range(5)} | {"x": 8, "y": 8}
        order = [f"v{i}" for i in range(5)]
        layers = [Layer(("x",), (order[0],))]
        layers += [Layer((order[i], order[max(0, i - int(rng.integers(1, 3)))]), (order[i + 1],)) for i in range(4)]
        layers.append(Layer((order[4],), ("y",)))
        result = plan(layers, sizes)
        assert result.size == best_height(result), result


def best_height(result: ArenaPlan) -> int:
    best = 10**9
    for order in permutations(result.slots):
        placed: list[tuple[int, int, int, int]] = []
        for s in order:
            at = 0
            for offset, size, first, last in sorted(placed):
                if first <= s.last and s.first <= last and offset < at + s.size:
                    at = max(at, offset + size)
            placed.append((at, s.size, s.first, s.last))
        best = min(best, max(a + n for a, n, *_ in placed))
    return best
