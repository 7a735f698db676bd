"""Compiler discovery, the shared library and its calls."""

from __future__ import annotations

import contextlib
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from fake_model import FEATURES, OUTPUTS, SOURCES, TREES, fake_files, fake_inputs, fake_reference

from mcugen.core.ports import one_each
from mcugen.core.types import DType
from mcugen.errors import DiffersError, InputError, InternalError
from mcugen.verify.compare import compare_bits
from mcugen.verify.compiler import HostCompiler, find_host_compiler, first_complaint
from mcugen.verify.hostbuild import HostModel, build_shared

KINDS = [k for k in ("gcc", "clang") if shutil.which(k)]


def _script(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text("#!/bin/sh\n" + text, encoding="utf-8")
    path.chmod(0o755)
    return path


def _model(library: Path, **more: object) -> HostModel:
    return HostModel(library, "fake", *one_each(DType.F32, FEATURES, DType.F32, OUTPUTS), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
def test_all_calls(kind: str) -> None:
    compiler = find_host_compiler(kind)
    assert compiler.kind == kind
    x = fake_inputs()
    with build_shared(fake_files(), SOURCES, compiler, ["-DMCG_TRACE"]) as library:
        folder = library.parent
        with _model(library, trees=TREES) as m:
            assert compare_bits(fake_reference(x), m.run(x), "y") is None
            assert compare_bits(fake_reference(x), m.run_each(x), "y") is None
            assert m.leaves(x[[18 * 3, 3 * 27 + 2]]).tolist() == [[65535, 7], [1, 3]]
            assert m.selftest() == 0
            m.init_sections()
            assert m.run(x[:0]).shape == (0, OUTPUTS)
            assert m.leaves(x[:0]).shape == (0, TREES)
            assert m.run(np.asfortranarray(x)).tobytes() == m.run(x).tobytes()
            assert m.run(x.reshape(-1, 3, 1)).tobytes() == m.run(x).tobytes()
            frozen = x.copy()
            frozen.flags.writeable = False
            m.run(frozen)
        with pytest.raises(InternalError, match="closed"):
            m.run(x)
        m.close()
    assert not folder.exists()


def test_misaligned_input_is_copied() -> None:
    raw = np.zeros(4 * FEATURES + 1, np.uint8)
    x = raw[1:].view(np.float32).reshape(1, FEATURES)
    with build_shared(fake_files(), SOURCES, find_host_compiler()) as library, _model(library) as m:
        assert m.run(x).tolist() == [[0.0, 0.0]]


def test_without_batch_and_without_trace() -> None:
    arguments = "(const float *x, float *y, uint32_t n)"
    gone = f"fake_gone{arguments};\nmcg_status_t fake_gone{arguments} {{"
    files = fake_files({f"fake_run_batch{arguments} {{": gone})
    x = fake_inputs()
    with build_shared(files, SOURCES, find_host_compiler()) as library, _model(library, trees=TREES) as m:
        assert compare_bits(fake_reference(x), m.run(x), "y") is None
        with pytest.raises(InternalError, match="no fake_leaves"):
            m.leaves(x)


def test_two_builds_of_one_name_do_not_mix() -> None:
    x = fake_inputs()[:5]
    compiler = find_host_compiler()
    other = fake_files({"scale_of = 2.0f": "scale_of = 3.0f"})
    builds = build_shared(fake_files(), SOURCES, compiler), build_shared(other, SOURCES, compiler)
    with builds[0] as one, builds[1] as two, _model(one) as a, _model(two) as b:
        assert a.run(x).tobytes() == fake_reference(x).tobytes()
        assert (a.selftest(), b.selftest()) == (0, 2)


def test_status_is_checked() -> None:
    files = fake_files({"y[0] = x[0] *": "if (x[0] > 3.0f) { return MCG_ERR_ARG; }\n y[0] = x[0] *"})
    x = np.array([[1, 0, 0], [4, 0, 0]], np.float32)
    with build_shared(files, SOURCES, find_host_compiler()) as library, _model(library) as m:
        with pytest.raises(DiffersError, match=r"fake_run_batch returned -1, expected 0"):
            m.run(x)
        with pytest.raises(DiffersError, match=r"fake_run returned -1 for vector 1"):
            m.run_each(x)


def test_wrong_input_is_our_fault() -> None:
    with build_shared(fake_files(), SOURCES, find_host_compiler()) as library, _model(library) as m:
        for x in (np.zeros((2, 3)), np.zeros((2, 4), np.float32), np.float32(1), np.zeros((0, 3), np.int8)):
            with pytest.raises(InternalError):
                m.run(np.asarray(x))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("y[1] = x[2] - x[0];", "y[1] = x[2] - x[0]", "error: expected"),
        ("y[1] = x[2] - x[0];", "int n = (int)x[0]; y[1] = n;", "conver"),
        ("y[1] = x[2] - x[0];", "int unused;", "unused"),
        ('#include "fake.h"', '#include "missing.h"', "missing.h"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_refused_code_is_internal_and_one_line(kind: str, old: str, new: str, told: str) -> None:
    with (
        pytest.raises(InternalError, match=told) as e,
        build_shared(fake_files({old: new}), SOURCES, find_host_compiler(kind)),
    ):
        pass
    assert "\n" not in str(e.value)
    assert "/tmp" not in str(e.value)


def test_folder_goes_when_the_body_fails() -> None:
    seen = []
    build = build_shared(fake_files(), SOURCES, find_host_compiler())
    with contextlib.suppress(ZeroDivisionError), build as library:
        seen.append(library)
        raise ZeroDivisionError
    assert not seen[0].parent.exists()


@pytest.mark.parametrize("name", ["../out.c", "/tmp/out.c", "a/../../b.c", ""])
def test_no_file_leaves_the_folder(name: str) -> None:
    with (
        pytest.raises(InternalError, match="leaves its folder"),
        build_shared({name: ""}, [name], find_host_compiler()),
    ):
        pass


def test_source_that_is_not_a_file() -> None:
    with pytest.raises(InternalError, match="not among the files"), build_shared({}, ["a.c"], find_host_compiler()):
        pass


def test_default_is_found_and_explicit_words_are_kept() -> None:
    assert find_host_compiler().kind in ("gcc", "clang")
    assert find_host_compiler("gcc -m64").argv == ("gcc", "-m64")


@pytest.mark.parametrize("command", ["", "no-such-compiler-here", "gcc 'open", "false"])
def test_explicit_that_does_not_work(command: str) -> None:
    with pytest.raises(InputError, match=r"install|brew") as e:
        find_host_compiler(command)
    assert e.value.exit_code == 2


def test_explicit_path_with_a_space_and_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "my tools"
    folder.mkdir()
    _script(folder, "mycc", 'exec cc "$@"\n')
    monkeypatch.chdir(tmp_path)
    for command in (str(folder / "mycc"), "my tools/mycc", "'my tools/mycc' -DX=1"):
        with build_shared(fake_files(), SOURCES, find_host_compiler(command)) as library:
            assert library.exists()


def test_no_compiler_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install ziglang|xcode-select"):
        find_host_compiler()


def test_a_broken_cc_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _script(tmp_path, "cc", "echo no developer tools >&2; exit 1\n")
    _script(tmp_path, "clang", 'echo "clang version 99"\n')
    monkeypatch.setenv("PATH", str(tmp_path))
    found = find_host_compiler()
    assert (found.kind, found.version, Path(found.argv[0]).name) == ("clang", "clang version 99", "clang")


def test_zig_from_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "ziglang"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text("print('clang version 0 (zig)')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    found = find_host_compiler()
    assert found == HostCompiler((sys.executable, "-m", "ziglang", "cc"), "zig", "clang version 0 (zig)")


def test_compiler_that_builds_nothing_is_the_users(tmp_path: Path) -> None:
    cc = _script(
        tmp_path, "cc", 'case "$1" in --version) echo gcc;; *) echo "x.c:1: error: no stdint.h"; exit 1;; esac\n'
    )
    with (
        pytest.raises(InputError, match=r"builds nothing .*no stdint\.h"),
        build_shared(fake_files(), SOURCES, find_host_compiler(str(cc))),
    ):
        pass


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a.c: In function f:\na.c:3:1: warning: x\na.c:4:2: error: y\n", "a.c:4:2: error: y"),
        ("In file included from a.c\n/usr/bin/ld: a.o: undefined reference to `f'\ncollect2: error: ld returned 1\n",
         "collect2: error: ld returned 1"),
        ("\n  only this\n", "only this"),
        ("", ""),
    ],
)  # fmt: skip
def test_first_complaint(text: str, line: str) -> None:
    assert first_complaint(text) == line
