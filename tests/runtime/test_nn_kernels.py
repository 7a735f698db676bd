"""The int8 kernels give the bits of their reference: host compilers, sanitizers, plain C, an emulated Cortex-M7."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kernel_cases import conv, convs, denses, depthwises, inputs_of, named_cases, random_input
from kernel_rigs import SANITIZE, HostOp, board, host, hosts

from mcugen.nn.ops.qconv import QConv
from mcugen.nn.ops.qdepthwise import QDepthwise

NAMED = named_cases()
CROSS = pytest.mark.skipif(shutil.which("arm-none-eabi-gcc") is None, reason="needs arm-none-eabi-gcc")
ANY_OP = st.one_of(convs(), depthwises(), denses())
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def reference(op: HostOp, x: np.ndarray) -> np.ndarray:
    return op.eval(x[None])[0][0]


@pytest.mark.parametrize("name", NAMED)
def test_named_shapes_on_the_host(name: str) -> None:
    op = NAMED[name]
    for i, x in enumerate(inputs_of(op, 3)[::3]):
        for rig, h in hosts().items():
            y, used = h.run(op, x, shift=i)
            np.testing.assert_array_equal(y, reference(op, x), err_msg=rig)
            assert used <= op.scratch_bytes


@CROSS
@pytest.mark.parametrize("flags", [("-O2",), ("-O2", "-DMCG_PLAIN"), ("-O2", "-DMCG_NO_ASM")], ids=" ".join)
def test_named_shapes_on_the_board(flags: tuple[str, ...]) -> None:
    b = board("arm-none-eabi-gcc", *flags)
    for name, op in NAMED.items():
        for i, x in enumerate(inputs_of(op, 4)[::3]):
            np.testing.assert_array_equal(b.run(op, x, shift=3 * i)[0], reference(op, x), err_msg=name)


@QUICK
@given(ANY_OP, st.integers(0, 2**32 - 1), st.integers(0, 3))
def test_random_layers_on_the_host(op: HostOp, seed: int, shift: int) -> None:
    rigs = hosts()
    for i, x in enumerate(inputs_of(op, seed)):
        for name in ("sanitized",) if i else rigs:
            np.testing.assert_array_equal(rigs[name].run(op, x, shift)[0], reference(op, x), err_msg=name)


def shared(op: HostOp) -> int | None:
    """How far an output may start before its input, or None."""
    return 0 if op.in_place else op.lag


@QUICK
@given(ANY_OP, st.integers(0, 2**32 - 1), st.integers(0, 3))
def test_outputs_behind_their_inputs(op: HostOp, seed: int, more: int) -> None:
    """What `lag` and `in_place` promise to the arena: the same bits where both share memory."""
    if isinstance(op, QDepthwise):
        op = replace(op, whole=True)
    elif isinstance(op, QConv) and not op.out_planar:
        op = replace(op, tile=4 * (more % 3))
    lag = shared(op)
    if lag is not None:
        for x in inputs_of(op, seed)[::3]:
            y, _ = host("gcc", *SANITIZE).run(op, x, lag=lag if op.in_place else lag + more)
            np.testing.assert_array_equal(y, reference(op, x))


@pytest.mark.parametrize("pixels", range(1, 14))
def test_the_least_lag_is_the_least(pixels: int) -> None:
    """One byte less and a pointwise layer of growing width overwrites what it still reads, at every tile size."""
    for tile, planar in ((4, False), (8, False), (4, True), (8, True)):
        op = replace(conv(pixels, (8, 1, pixels), 24, (1, 1), in_planar=planar), tile=tile)
        x, lag = random_input(op, 3), op.lag
        assert lag is not None
        np.testing.assert_array_equal(host("gcc").run(op, x, lag=lag)[0], reference(op, x))
        if lag > 0:
            assert not np.array_equal(host("gcc").run(op, x, lag=lag - 1)[0], reference(op, x))


@CROSS
@settings(QUICK, max_examples=150)
@given(ANY_OP, st.integers(0, 2**32 - 1), st.integers(0, 3))
def test_random_layers_on_the_board(op: HostOp, seed: int, shift: int) -> None:
    for x in inputs_of(op, seed):
        np.testing.assert_array_equal(board().run(op, x, shift)[0], reference(op, x))


@CROSS
@pytest.mark.slow
@pytest.mark.parametrize(
    "build",
    [
        ("arm-none-eabi-gcc", "-O0"),
        ("arm-none-eabi-gcc", "-Os"),
        ("arm-none-eabi-gcc", "-O3"),
        ("arm-none-eabi-gcc", "-O2", "-DMCG_PLAIN"),
        ("arm-none-eabi-gcc", "-O2", "-DMCG_NO_ASM"),
        ("clang", "-O2", "--target=arm-none-eabi"),
    ],
    ids=" ".join,
)
def test_random_layers_by_other_builds(build: tuple[str, ...]) -> None:
    b = board(*build)

    @settings(QUICK, max_examples=400)
    @given(ANY_OP, st.integers(0, 2**32 - 1))
    def check(op: HostOp, seed: int) -> None:
        for x in inputs_of(op, seed)[:2]:
            np.testing.assert_array_equal(b.run(op, x)[0], reference(op, x))

    check()


@pytest.mark.slow
@settings(QUICK, max_examples=1500)
@given(ANY_OP, st.integers(0, 2**32 - 1), st.integers(0, 3))
def test_many_random_layers_sanitized(op: HostOp, seed: int, shift: int) -> None:
    for x in inputs_of(op, seed):
        np.testing.assert_array_equal(host("gcc", *SANITIZE).run(op, x, shift)[0], reference(op, x))


@pytest.mark.parametrize("name", NAMED)
def test_scratch_is_as_large_as_it_is_used(name: str) -> None:
    """N11: CMSIS-NN 19 and 35. A convolution of up to three pixels packs them one by one."""
    op = NAMED[name]
    _, used = host("gcc").run(op, random_input(op, 1))
    slack = op.scratch_bytes - used
    pixels = op.cost().macs // op.weight.size if op.weight.ndim == 4 else 4
    assert slack == (12 if pixels < 4 else 0) or 0 < slack <= 2, (used, op.scratch_bytes)


@CROSS
def test_instructions_repeat_and_stay_low() -> None:
    """Ceilings about 5 % above what was measured; a kernel that falls back or spills goes far beyond them."""
    from kernel_cases import dense, depthwise  # noqa: PLC0415

    ceilings = (
        (conv(1, (64, 25, 5), 64, (1, 1), out_planar=True), 0.99),
        (conv(2, (16, 16, 16), 16, (3, 3), (1, 1), (1, 1, 1, 1)), 1.02),
        (conv(6, (3, 32, 32), 16, (3, 3), (1, 1), (1, 1, 1, 1), in_planar=True), 1.7),
        (depthwise(3, (64, 25, 5), 1, (3, 3), (1, 1), (1, 1, 1, 1)), 2.6),
        (depthwise(4, (8, 48, 48), 1, (3, 3), (1, 1), (1, 1, 1, 1)), 2.1),
        (depthwise(7, (32, 24, 24), 1, (5, 5), (1, 1), (2, 2, 2, 2)), 2.75),
        (depthwise(8, (32, 24, 24), 1, (3, 3), (1, 1), (1, 1, 1, 1), low=0), 2.35),
        (dense(5, 640, 128), 1.05),
    )
    for op, most in ceilings:
        counts = {board().run(op, random_input(op, seed))[1] for seed in (1, 2)}
        assert len(counts) == 1
        assert counts.pop() / op.cost().macs <= most
