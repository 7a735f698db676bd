"""Foreign names as C identifiers. The result is also safe in C++ and next to the headers of the C library."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from mcugen.errors import InputError

#: Longest identifier from here. C11 promises 63 significant characters: this leaves room for prefix and suffix.
MAX_LENGTH = 48
#: Longest prefix: external names such as PREFIX_run_batch stay well below what old linkers print.
MAX_PREFIX = 40

_KEYWORDS = frozenset(
    # C11, C23 and GNU
    "auto break case char const continue default do double else enum extern float for goto if inline int long "
    "register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while "
    "alignas alignof bool constexpr false nullptr static_assert thread_local true typeof typeof_unqual asm fortran "
    # C++
    "and and_eq bitand bitor catch char8_t char16_t char32_t class co_await co_return co_yield compl concept "
    "const_cast consteval constinit decltype delete dynamic_cast explicit export final friend import module mutable "
    "namespace new noexcept not not_eq operator or or_eq override private protected public reinterpret_cast "
    "requires static_cast template this throw try typeid typename using virtual wchar_t xor xor_eq".split()
)
#: Macros and names of the C library, and macros that compilers define in gnu modes (``linux`` is 1 there).
_TAKEN = frozenset(
    "linux unix i386 main errno assert complex imaginary I NULL EOF NAN INFINITY HUGE_VAL offsetof noreturn setjmp "
    "va_arg va_start va_end va_copy signbit isnan isinf isfinite isnormal fpclassify stdin stdout stderr "
    "size_t ssize_t ptrdiff_t max_align_t intptr_t uintptr_t intmax_t uintmax_t float_t double_t "
    "int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t std memcpy memset memmove memcmp".split()
)
#: Prefixes with which PREFIX_init or the like is a function or macro of the C library, of POSIX or of the runtime.
_TAKEN_PREFIXES = frozenset("mcg mcugen atomic mtx cnd thrd tss memory sem".split())
#: PREFIX.h would hide a header of the library when the folder is on the include path.
_HEADERS = frozenset(
    "assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg stdatomic "
    "stdbool stddef stdint stdio stdlib stdnoreturn string strings tgmath threads time uchar wchar wctype memory "
    "unistd fcntl poll sched semaphore pthread malloc alloca features endian".split()
)
#: PREFIX.c could not be checked out on Windows.
_DEVICES = frozenset("con prn aux nul".split()) | {f"{d}{i}" for d in ("com", "lpt") for i in range(10)}

_PLAIN = re.compile(r"[A-Za-z](?:_?[A-Za-z0-9])*")


def sanitize(name: str) -> str:
    """A C identifier that resembles ``name``; a good one is returned as it is, and the function is idempotent.

    Accents are dropped, other letters and digits outside ASCII become ``u`` and their code point, all else an
    underscore. No leading, trailing or double underscores (reserved), no keyword of C or C++, at most
    MAX_LENGTH characters. Two names may give one identifier: see unique_identifiers.
    """
    clean = "".join(map(_clean_char, unicodedata.normalize("NFKD", name)))
    clean = re.sub(r"_+", "_", clean).strip("_")
    if not clean[:1].isalpha():
        clean = "x" + clean
    clean = clean[:MAX_LENGTH].rstrip("_")
    return clean + "_" if clean in _KEYWORDS or clean in _TAKEN else clean


def unique_identifiers(names: Iterable[str]) -> list[str]:
    """An identifier for each of ``names``, all different, by sanitize.

    The first that claims an identifier gets it; later ones get ``_2``, ``_3`` and so on, past all that some other
    name claims. The result depends on the names and their order alone.
    """
    clean = [sanitize(n) for n in names]
    taken = set(clean)
    seen: set[str] = set()
    last: dict[str, int] = {}
    unique = []
    for base in clean:
        candidate = base
        if base in seen:
            number = last.get(base, 1)
            while candidate in taken:
                number += 1
                candidate = f"{base.rstrip('_')}_{number}"
            last[base] = number
            taken.add(candidate)
        seen.add(base)
        unique.append(candidate)
    return unique


def check_prefix(name: str, where: str = "--name") -> str:
    """``name`` if it can be the prefix of all names and files of an export, else InputError with a better one."""
    fault = _prefix_fault(name)
    if fault:
        raise InputError(where, f"{name!r} {fault}", f"for example {prefix_from(name)}")
    return name


def prefix_from(name: str) -> str:
    """A prefix that check_prefix accepts, made from any text such as the name of a file."""
    prefix = sanitize(name).rstrip("_")[:MAX_PREFIX].rstrip("_")
    return f"model_{prefix[: MAX_PREFIX - 6].rstrip('_')}" if _prefix_fault(prefix) else prefix


def _clean_char(c: str) -> str:
    if c.isascii():
        return c if c.isalnum() else "_"
    if unicodedata.combining(c):
        return ""
    return f"u{ord(c):04X}" if c.isalnum() else "_"


def _prefix_fault(name: str) -> str:
    low = name.lower()
    if not _PLAIN.fullmatch(name):
        return "is not a C identifier of letters, digits and single underscores inside"
    if len(name) > MAX_PREFIX:
        return f"is longer than {MAX_PREFIX} characters"
    if name in _KEYWORDS or name in _TAKEN:
        return "is a keyword or a name of the C library"
    if low in _TAKEN_PREFIXES or low.startswith(("mcg_", "mcugen_")):
        return "would clash with names of the C library or of the runtime"
    if low in _HEADERS:
        return "would hide a header of the C library"
    if low in _DEVICES:
        return "is a device on Windows"
    return ""
