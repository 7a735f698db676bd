"""Identifiers and comments made from names that someone else chose."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcugen.ctext.comments import comment_text
from mcugen.ctext.idents import (
    MAX_LENGTH,
    MAX_PREFIX,
    check_prefix,
    prefix_from,
    sanitize,
    unique_identifiers,
)
from mcugen.errors import InputError

few = settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

HOSTILE = [
    "*/ int x; /*",
    "*/",
    "/*",
    "/",
    "*",
    "\\",
    "\\ ",
    "\\\t",
    "*\\\n/",
    "??/\n",
    "*??/\n/",
    "//",
    "/*/",
    "*/*",
    "/**/",
    "line\nbreak",
    "cr\rlf\r\n",
    "\x00\x1b[31m",
    "quote\"and'",
    "int",
    "class",
    "_Bool",
    "_x",
    "__x",
    "x__y",
    "x_",
    "1st",
    "",
    " ",
    "日本",
    "Temperatür",
    "\u202e\u2066",
    "\ud800",
    "\u2028",
    "linux",
    "NULL",
    "main",
    "a b",
    "a.b",
    "a_b",
    "a-b",
    "%s%n",
    "\\u00e9",
    "\\param x",
    "@param",
    "a" * 500,
    "ﬁ",
    "²",
    "e\u0301",
    "é",
]
names = st.one_of(
    st.text(),
    st.sampled_from(HOSTILE),
    st.text("*/\\?\n ", max_size=12),
    st.text("_aA1", max_size=6),
    st.from_regex(r"a(_[0-9]{1,2})?", fullmatch=True),
)


@given(names)
def test_sanitize(name: str) -> None:
    out = sanitize(name)
    assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", out)
    assert "__" not in out
    assert len(out) <= MAX_LENGTH + 1
    assert sanitize(out) == out


@pytest.mark.parametrize("name", ["x", "temp_1", "Abc", "a1_b2", "T0", "NAME_run"])
def test_good_names_stay(name: str) -> None:
    assert sanitize(name) == name


def test_sanitize_examples() -> None:
    given_names = ["Temperatür", "日", "int", "_Bool", "1st", "", "petal length (cm)", "²", "linux", "xor", "a__b_"]
    wanted = ["Temperatur", "u65E5", "int_", "Bool", "x1st", "x", "petal_length_cm", "x2", "linux_", "xor_", "a_b"]
    assert list(map(sanitize, given_names)) == wanted


@given(st.lists(names, max_size=60))
def test_unique(given_names: list[str]) -> None:
    out = unique_identifiers(given_names)
    assert len(out) == len(given_names)
    assert len(set(out)) == len(out)
    assert out == unique_identifiers(given_names)
    assert all(re.fullmatch(r"[A-Za-z](_?[A-Za-z0-9])*_?", n) and len(n) <= 63 for n in out)
    assert not set(out) & set(KEYWORDS)
    for i, name in enumerate(given_names):  # the first to claim an identifier gets it
        if sanitize(name) not in map(sanitize, given_names[:i]):
            assert out[i] == sanitize(name)


def test_unique_examples() -> None:
    assert unique_identifiers(["a", "a", "a_2", "a"]) == ["a", "a_3", "a_2", "a_4"]
    assert unique_identifiers(["int", "int"]) == ["int_", "int_2"]
    assert unique_identifiers([]) == []


def test_unique_is_fast() -> None:
    out = unique_identifiers(["f"] * 50_000 + [f"f_{i}" for i in range(50_000)])
    assert len(set(out)) == 100_000


def test_identifiers_compile(compile_c: Callable[[str], None]) -> None:
    idents = unique_identifiers([*HOSTILE, *HOSTILE, *KEYWORDS])
    headers = ["stdint", "stddef", "stdbool", "string", "math", "errno", "limits", "float"]
    source = "".join(f"#include <{h}.h>\n" for h in headers)
    source += "struct s {\n" + "".join(f"    int {i};\n" for i in idents) + "};\n"
    source += "enum {\n" + "".join(f"    p_{i},\n" for i in idents) + "};\n"
    source += "extern struct s unused;\n"
    for number, ident in enumerate(idents):
        source += f"extern int f{number}(int {ident});\nint f{number}(int {ident}) {{ return {ident}; }}\n"
    compile_c(source)


KEYWORDS = """auto break case char const continue default do double else enum extern float for goto if inline int long
register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while asm bool
alignas alignof true false nullptr static_assert thread_local typeof and or not xor compl bitand bitor and_eq or_eq
xor_eq not_eq catch class const_cast constexpr decltype delete dynamic_cast explicit export friend mutable namespace new
noexcept operator private protected public reinterpret_cast static_cast template this throw try typeid typename using
virtual wchar_t char16_t char32_t linux unix NULL errno NAN INFINITY uint8_t size_t isnan""".split()


@pytest.mark.parametrize(
    "name",
    [
        "",
        "1a",
        "COM1",
        "a" * (MAX_PREFIX + 1),
        "x;",
        "x\n",
        "../x",
        "NULL",
        "linux",
        "stdint",
        "_a",
        "a_",
        "a__b",
        "a b",
        "a-b",
        "ü",
        "int",
        "class",
        "math",
        "String",
        "mcg",
        "MCG_x",
        "atomic",
        "aux",
    ],
)
def test_bad_prefix(name: str) -> None:
    with pytest.raises(InputError) as caught:
        check_prefix(name)
    assert "\n" not in str(caught.value)
    assert "for example" in str(caught.value)


@pytest.mark.parametrize("name", ["model", "Iris", "m1", "gas_sensor_2", "M", "a" * MAX_PREFIX])
def test_good_prefix(name: str) -> None:
    assert check_prefix(name) == name
    assert prefix_from(name) == name


@given(st.one_of(names, st.sampled_from(["math", "int", "aux", "mcg", "mcg_" + "x" * 80, "mcg_a_model", "NULL"])))
def test_prefix_from(name: str) -> None:
    assert check_prefix(prefix_from(name)) == prefix_from(name)


@given(names, names)
def test_comment_text(a: str, b: str) -> None:
    for text in (
        comment_text(a),
        comment_text(a, limit=20),
        f"x{comment_text(a)}/{comment_text(b)}",
        f"{comment_text(a)}*{comment_text(b)}",
    ):
        assert "*/" not in text
        assert "/*" not in text
        assert "??" not in text
        assert not text.rstrip().endswith("\\")
        assert all(" " <= c <= "~" for c in text)
    assert len(comment_text(a, limit=20)) <= 20


def test_comment_text_keeps_plain_text() -> None:
    assert comment_text("petal length (cm) = 5 * 3 / 2") == "petal length (cm) = 5 * 3 / 2"
    assert comment_text("ü\n") == "\\xfc\\n"


@few
@given(st.lists(names, min_size=100, max_size=200))
def test_comments_compile(compile_c: Callable[[str], None], texts: list[str]) -> None:
    """A comment that ends early, or not at all, would lose a declaration or leave rubbish between two."""
    source = ""
    texts = [*texts, *HOSTILE]
    for i, text in enumerate(texts):
        safe = comment_text(text)
        source += f"/* {safe} */ extern int a{i};\n/*{safe}*/ extern int b{i};\n/**{safe}**/ extern int c{i};\n"
        source += f"extern int d{i}; // {safe}\nextern int e{i};\n"
    source += "extern int last;\nint all(void);\nint all(void) { return last"
    source += "".join(f" + {v}{i}" for i in range(len(texts)) for v in "abcde") + "; }\n"
    compile_c(source)
