"""--max-flash: larger tables for fewer instructions, within the limit, and the same bits."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

import mcugen
from mcugen.errors import DoesNotFitError, InputError, UnsupportedError
from mcugen.exported import open_folder
from mcugen.nn.ops.qwinograd import QWinograd
from mcugen.recipes.flash import flash_bytes

sys.path.insert(0, str(Path(__file__).parents[1] / "frontends"))
from onnx_nets import net, node

FURNACE = Path(__file__).parents[2] / "examples" / "quickstart" / "furnace.txt"
ECG = Path(__file__).parents[2] / "examples" / "ecg" / "ecg.toml"


def residual_net() -> onnx.ModelProto:
    """A residual block of 16 channels, then 24 and a shortcut of stride 2: four layers of 3 x 3 without strides."""
    rng = np.random.default_rng(0)

    def w(*shape: int) -> np.ndarray:
        return rng.normal(0, 1 / np.sqrt(np.prod(shape[1:])), shape)

    constants = {"w0": w(16, 3, 3, 3), "w1": w(16, 16, 3, 3), "w2": w(16, 16, 3, 3), "w3": w(24, 16, 3, 3)}
    constants |= {"w4": w(24, 24, 3, 3), "w5": w(24, 16, 1, 1), "w6": w(5, 24, 1, 1)}
    pads = {"pads": [1, 1, 1, 1]}
    nodes = [
        node("Conv", "x w0", "a", **pads),
        node("Relu", "a", "ar"),
        node("Conv", "ar w1", "b", **pads),
        node("Relu", "b", "br"),
        node("Conv", "br w2", "c", **pads),
        node("Add", "ar c", "d"),
        node("Relu", "d", "dr"),
        node("Conv", "dr w3", "e", pads=[0, 0, 1, 1], strides=[2, 2]),
        node("Relu", "e", "er"),
        node("Conv", "er w4", "f", **pads),
        node("Conv", "dr w5", "s", strides=[2, 2]),
        node("Add", "f s", "g"),
        node("Conv", "g w6", "h"),
        node("GlobalAveragePool", "h", "p"),
        node("Flatten", "p", "y"),
    ]
    return net(nodes, [1, 3, 20, 18], constants)


def exported(folder: Path, name: str = "out", **options: object) -> mcugen.ExportResult:
    onnx.save(residual_net(), folder / "net.onnx")
    x = np.random.default_rng(2).normal(0, 1, (8, 3, 20, 18)).astype(np.float32)
    np.savez(folder / "c.npz", x=x)
    return mcugen.export(folder / "net.onnx", folder / name, name="net", calib=folder / "c.npz", **options)  # type: ignore[arg-type]


def layers_of(result: mcugen.ExportResult) -> int:
    return sum(isinstance(op, QWinograd) for op in result.model.ops)


def arena_of(result: mcugen.ExportResult) -> int:
    return next(s["size"] for s in open_folder(result.out).manifest["symbols"] if s["role"] == "arena")


def taken(result: mcugen.ExportResult) -> int:
    return flash_bytes(result.model.ops)  # type: ignore[arg-type]


def test_more_flash_gives_fewer_instructions_and_the_same_bits(tmp_path: Path) -> None:
    """Every export is verified on the host against its own reference, which is that of the plain layers."""
    plain = exported(tmp_path)
    golden = open_folder(plain.out).golden()
    found, arenas = [], []
    for limit in (taken(plain), taken(plain) + 10_000, 200_000):
        result = exported(tmp_path, f"out{limit}", max_flash=limit)
        found.append(layers_of(result))
        arenas.append(arena_of(result))
        assert taken(result) <= limit
        again = open_folder(result.out).golden()
        for a, b in zip(golden.tensors, again.tensors, strict=True):
            np.testing.assert_array_equal(a.data, b.data)
    assert found[0] == 0 < found[1] < found[2] == 3
    # Under --max-ram the arena does not grow, and layers that need it to stay plain.
    limited = exported(tmp_path, "limited", max_flash=200_000, max_ram=arenas[0])
    assert arena_of(limited) <= arenas[0] < arenas[2]
    assert layers_of(limited) < 3
    small = exported(tmp_path, "small", max_flash=200_000, optimize="ram")
    assert small.model.types.keys() <= plain.model.types.keys()


def test_the_summary_and_the_manifest_say_it(tmp_path: Path) -> None:
    result = exported(tmp_path, max_flash=200_000)
    assert any(
        label == "flash" and "3 convolutions by minimal filtering" in text for label, text in result.report.facts
    )
    assert open_folder(result.out).manifest["options"]["max_flash"] == 200_000
    assert layers_of(exported(tmp_path, "no_board", max_flash=200_000, board=None)) == 3  # instructions alone decide


@pytest.mark.skipif(__import__("shutil").which("arm-none-eabi-gcc") is None, reason="no arm-none-eabi-gcc")
def test_on_the_board(tmp_path: Path) -> None:
    pytest.importorskip("unicorn")
    slow, fast = exported(tmp_path), exported(tmp_path, "fast", max_flash=200_000)
    counts = []
    for result in (slow, fast):
        line = mcugen.verify(result.out, target="stm32h743")[1]
        counts.append(float(line.split("instructions mean ")[1].split(", max")[0].replace(",", "")))
    assert counts[1] < 0.95 * counts[0]


def test_too_little_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DoesNotFitError, match=r"--max-flash: 1,000 bytes are too few: this net takes about [\d,]+ \("):
        exported(tmp_path, max_flash=1000)
    with pytest.raises(InputError, match="--max-flash: -1 bytes"):
        exported(tmp_path, max_flash=-1)


def test_where_it_means_nothing(tmp_path: Path) -> None:
    for source, options in ((FURNACE, {"max_flash": 9}), (ECG, {"max_flash": 9}), (ECG, {"max_ram": 9})):
        with pytest.raises(UnsupportedError, match="is for nets"):
            mcugen.export(source, tmp_path / "o", **options)  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match="--max-flash: is for nets in int8"):
        exported(tmp_path, float32=True, max_flash=9)
    assert not (tmp_path / "o").exists()
