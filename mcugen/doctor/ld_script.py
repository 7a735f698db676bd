"""A GNU ld script as a value: memories with their addresses, output sections in order, symbols. Parsing only.

What is read: MEMORY (expressions, K and M, attributes, org and len), REGION_ALIAS, INCLUDE anywhere, SECTIONS with
the region, load region and input patterns of each output section, assignments, PROVIDE, ASSERT. What does not
change where things land (PHDRS, OUTPUT_FORMAT, ENTRY and the like) is skipped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mcugen.doctor.ld_expr import Scope, Value, parse_definition, parse_expression
from mcugen.doctor.ld_scanner import Scanner, read_script
from mcugen.errors import InputError

_WORD = re.compile(r'"[^"]*"|(?:[A-Za-z0-9_.$/\\~*?\[\]]|[-+](?!=))+')
_FILE = re.compile(r'"[^"]*"|[^\s;,(){}]+')
_ASSIGN = re.compile(r"(?:<<=|>>=|\+=|-=|\*=|/=|&=|\|=|\^=|=(?!=))")
_REGION_NAME = re.compile(r'"[^"]*"|[A-Za-z_.][A-Za-z0-9_.$\-]*')
_ORIGIN = re.compile(r"(?:ORIGIN|origin|org|o)\b(?=\s)")
_LENGTH = re.compile(r"(?:LENGTH|length|len|l)\b(?=\s)")
_GLUED = re.compile(r"(?:ORIGIN|org|o|LENGTH|len|l)=")
_TYPE = re.compile(r"\(\s*(?:NOLOAD|DSECT|COPY|INFO|OVERLAY|READONLY|TYPE)\b|\(\s*\)")
_SKIPPED = {"ENTRY", "OUTPUT_FORMAT", "OUTPUT_ARCH", "STARTUP", "SEARCH_DIR", "GROUP", "INPUT", "EXTERN", "TARGET"}
_SKIPPED |= {"OUTPUT", "NOCROSSREFS", "NOCROSSREFS_TO", "LD_FEATURE", "INHIBIT_COMMON_ALLOCATION"}
_SKIPPED |= {"FORCE_COMMON_ALLOCATION", "FORCE_GROUP_ALLOCATION"}
_DATA = {"BYTE", "SHORT", "LONG", "QUAD", "SQUAD", "FILL", "ASCIZ"}
_BARE = {"CONSTRUCTORS", "CREATE_OBJECT_SYMBOLS"}
_PROVIDES = {"PROVIDE", "PROVIDE_HIDDEN", "HIDDEN"}


@dataclass(frozen=True, slots=True)
class Memory:
    """One line of MEMORY: bytes from ``origin`` on. ``line``: where it is declared, as file:line."""

    name: str
    origin: int
    length: int
    line: str

    @property
    def end(self) -> int:
        """First address behind it."""
        return self.origin + self.length


@dataclass(frozen=True, slots=True)
class Input:
    """An input pattern of an output section. ``every_file``: it takes the section from any object file."""

    pattern: str
    every_file: bool


@dataclass(frozen=True, slots=True)
class OutputSection:
    """``region`` and ``load``: names of memories, aliases resolved; empty where the script gives none. ``address``:
    an address that the script fixes, as far as it is known."""

    name: str
    address: Value
    region: str
    load: str
    inputs: tuple[Input, ...]
    symbols: tuple[str, ...]
    line: str


@dataclass(frozen=True, slots=True, eq=False)
class Script:
    """``aliases``: second names of memories. ``symbols``: values where they are known before the link."""

    name: str
    memories: tuple[Memory, ...]
    aliases: Mapping[str, str]
    sections: tuple[OutputSection, ...]
    symbols: Mapping[str, Value]
    included: tuple[str, ...]

    def memory(self, name: str) -> Memory | None:
        """The memory that has this name or alias."""
        real = self.aliases.get(name, name)
        return next((m for m in self.memories if m.name == real), None)

    def section(self, name: str) -> OutputSection | None:
        """The first output section with this name."""
        return next((s for s in self.sections if s.name == name), None)


def load_script(path: Path, folders: Sequence[Path] = (), definitions: Sequence[str] = ()) -> Script:
    """The script in a file. ``folders``: as ld's -L; ``definitions``: NAME=VALUE as ld's --defsym."""
    if path.is_dir() or not path.exists():
        raise InputError(str(path), "there is no such file", "give a linker script (.ld)")
    places = (path.parent, Path(), *folders)
    return parse_script(read_script(path), str(path), definitions, Scanner(places))


def parse_script(
    text: str, name: str = "script.ld", definitions: Sequence[str] = (), scanner: Scanner | None = None
) -> Script:
    """The script that ``text`` is. InputError names file and line of what ld would refuse as well."""
    scanner = scanner or Scanner(())
    fixed = dict(parse_definition(word) for word in definitions)
    # Symbols may be computed from memories that are declared below: the first reading learns the memories.
    first = _Parser(scanner, Scope(symbols=dict(fixed), early=True), frozenset(fixed))
    first.read(name, text)
    scanner.included.clear()
    second = _Parser(scanner, Scope(first.scope.regions, dict(fixed)), frozenset(fixed))
    second.read(name, text)
    return second.result(name)


@dataclass(slots=True)
class _Parser:
    scanner: Scanner
    scope: Scope
    #: Symbols of --defsym: an assignment in the script does not change what ld computed from them before.
    fixed: frozenset[str]
    memories: dict[str, Memory] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    sections: list[OutputSection] = field(default_factory=list)
    inputs: list[Input] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def read(self, name: str, text: str) -> None:
        self.scanner.enter(name, text)
        try:
            self.statements("top")
        except RecursionError:
            raise self.scanner.fail("is nested too deeply to be a linker script") from None
        if not self.scanner.at_end:
            raise self.scanner.fail(f"{self.scanner.rest()!r} closes nothing")
        self.scanner.leave()

    def result(self, name: str) -> Script:
        real = self.aliases
        sections = tuple(
            OutputSection(
                s.name, s.address, real.get(s.region, s.region), real.get(s.load, s.load), s.inputs, s.symbols, s.line
            )
            for s in self.sections
        )
        included = tuple(self.scanner.included)
        return Script(name, tuple(self.memories.values()), dict(real), sections, dict(self.scope.symbols), included)

    # -- statements: the same loop at the top, inside SECTIONS and inside an output section

    def statements(self, context: str) -> None:
        """Until the file ends, or the brace that closes the context."""
        s = self.scanner
        while not s.at_end:
            if context != "top" and s.peek(re.compile(r"\}")):
                return
            if s.accept(";") or s.accept(","):
                continue
            word = s.take(_WORD)
            if word is None:
                raise s.fail(f"{s.rest()!r} is not a statement of a linker script")
            self.statement(word, context)

    def statement(self, word: str, context: str) -> None:
        s = self.scanner
        if word == "INCLUDE":
            self.include(context)
        elif s.peek(_ASSIGN) and word not in _DATA:
            self.assign(word)
        elif word in _PROVIDES:
            s.expect("(", word)
            self.assign(s.take(_WORD) or "", provided=True)
            s.expect(")", word)
        elif word == "ASSERT":
            self.assertion()
        elif word in _SKIPPED and context != "inside":
            if s.peek(re.compile(r"\(")):
                s.balanced(word)
        elif context == "top":
            self.top(word)
        elif context == "inside":
            self.inside(word)
        else:
            self.output_section(word)

    def include(self, context: str) -> None:
        s = self.scanner
        name = s.take(_FILE)
        if name is None:
            raise s.fail("INCLUDE: the name of a file is expected")
        s.include(name.strip('"'))
        if context == "memory":
            self.memory_lines(included=True)
        else:
            self.statements(context)
        if not s.at_end:
            raise s.fail(f"{s.rest()!r} closes what another file opened")
        s.leave()

    def top(self, word: str) -> None:
        s = self.scanner
        if word == "MEMORY":
            s.expect("{", word)
            self.memory_lines(included=False)
            s.expect("}", word)
        elif word == "SECTIONS":
            s.expect("{", word)
            self.statements("sections")
            s.expect("}", word)
        elif word == "REGION_ALIAS":
            self.alias()
        elif word == "INSERT":
            s.take(_WORD)
            s.take(_WORD)
        elif word in {"PHDRS", "VERSION"}:
            s.balanced(word)
        else:
            raise s.fail(f"{word!r} is not a statement of a linker script")

    def assign(self, symbol: str, provided: bool = False) -> None:
        s = self.scanner
        operator = s.take(_ASSIGN)
        if operator is None or not symbol:
            raise s.fail("an assignment is expected")
        value = parse_expression(s, self.scope)
        symbol = symbol.strip('"')
        if symbol == "." or symbol in self.fixed or (provided and symbol in self.scope.symbols):
            return
        self.scope.symbols[symbol] = value if operator == "=" else None
        self.names.append(symbol)

    def assertion(self) -> None:
        s = self.scanner
        s.expect("(", "ASSERT")
        parse_expression(s, self.scope)
        if s.accept(","):
            s.take(_FILE if not s.peek(re.compile('"')) else re.compile(r'"[^"]*"'))
        s.expect(")", "ASSERT")

    # -- MEMORY

    def memory_lines(self, included: bool) -> None:
        s = self.scanner
        while not s.at_end:
            if not included and s.peek(re.compile(r"\}")):
                return
            name = s.take(_REGION_NAME)
            if name is None:
                raise s.fail(f"MEMORY: the name of a memory is expected, not {s.rest()!r}")
            if name == "INCLUDE":
                self.include("memory")
                continue
            line = s.where()
            if s.peek(re.compile(r"\(")):
                s.balanced("MEMORY")
            s.expect(":", f"memory {name}")
            origin = self.memory_value(name, _ORIGIN, "ORIGIN")
            s.accept(",")
            length = self.memory_value(name, _LENGTH, "LENGTH")
            self.memories[name] = Memory(name.strip('"'), origin & 0xFFFF_FFFF, length & 0xFFFF_FFFF, line)
            self.scope.regions[name] = (origin, length)

    def memory_value(self, name: str, word: re.Pattern[str], title: str) -> int:
        s = self.scanner
        if s.peek(_GLUED):
            what = f"memory {name}: ld reads {s.rest().split()[0]!r} as one name"
            raise s.fail(what, f"write {title} = VALUE, with blanks")
        if s.take(word) is None:
            raise s.fail(f"memory {name}: {title} is expected, not {s.rest()!r}")
        s.expect("=", f"memory {name}")
        self.scope.undefined.clear()
        early, self.scope.early = self.scope.early, False  # ld computes these at once
        value = parse_expression(s, self.scope)
        self.scope.early = early
        if value is None:
            missing = ", ".join(dict.fromkeys(self.scope.undefined))
            if not missing:
                raise s.fail(f"memory {name}: {title} depends on the link", "ld needs a number here")
            hint = f"your build passes it to the linker: --defsym {missing.split(',')[0]}=VALUE"
            raise s.fail(f"memory {name}: {title} needs {missing}, which the script does not define", hint)
        return value

    def alias(self) -> None:
        s = self.scanner
        s.expect("(", "REGION_ALIAS")
        name = (s.take(_REGION_NAME) or "").strip('"')
        s.expect(",", "REGION_ALIAS")
        target = (s.take(_REGION_NAME) or "").strip('"')
        s.expect(")", "REGION_ALIAS")
        target = self.aliases.get(target, target)
        if target not in self.memories:
            raise s.fail(f"REGION_ALIAS: there is no memory {target}")
        if name in self.memories or name in self.aliases:
            raise s.fail(f"REGION_ALIAS: {name} is a memory already")
        self.aliases[name] = target
        self.scope.regions[name] = self.scope.regions[target]

    # -- SECTIONS

    def output_section(self, name: str) -> None:
        s = self.scanner
        line = s.where()
        if name == "OVERLAY":
            raise s.fail("OVERLAY is not supported by this check")
        address: Value = None
        # An address, a type, and what stands between the colon and the brace.
        while not s.peek(re.compile(r":(?!:)")):
            if s.peek(_TYPE):
                s.balanced(name)
            elif s.at_end or s.peek(re.compile(r"[{}]")):
                raise s.fail(f"section {name}: ':' is expected, not {s.rest()!r}")
            else:
                address = parse_expression(s, self.scope)
        s.expect(":", name)
        while not s.peek(re.compile(r"\{")):
            if s.peek(re.compile(r"\(")):
                s.balanced(name)
            elif s.take(_WORD) is None:
                raise s.fail(f"section {name}: '{{' is expected, not {s.rest()!r}")
        s.expect("{", name)
        self.inputs, self.names = [], []
        self.statements("inside")
        s.expect("}", f"section {name}")
        region, load = self.regions_of(name)
        self.sections.append(OutputSection(name, address, region, load, tuple(self.inputs), tuple(self.names), line))

    def regions_of(self, name: str) -> tuple[str, str]:
        s = self.scanner
        region = load = ""
        while True:
            if s.accept(">"):
                region = self.region(name)
            elif s.take(re.compile(r"AT\b")):
                s.expect(">", f"section {name}")
                load = self.region(name)
            elif s.take(re.compile(r":[A-Za-z_][\w.]*")):
                continue
            elif s.peek(re.compile(r"=(?!=)")):
                s.accept("=")
                parse_expression(s, self.scope)
            else:
                return region, load

    def region(self, section: str) -> str:
        name = (self.scanner.take(_REGION_NAME) or "").strip('"')
        if name not in self.scope.regions and not self.scope.early:
            raise self.scanner.fail(f"section {section} stands in {name}, which MEMORY does not declare")
        return name

    def inside(self, word: str) -> None:
        """Data and input sections of an output section."""
        s = self.scanner
        if word in _DATA:
            s.balanced(word)
        elif word == "KEEP":
            inner = s.balanced(word)
            head, _, rest = inner.partition("(")
            self.inputs += _inputs(head, rest.rpartition(")")[0])
        elif word not in _BARE:
            head = word
            while True:
                if s.peek(re.compile(r"\(")):
                    group = s.balanced(word)
                    if head.startswith(("SORT", "EXCLUDE_FILE")) and not s.peek(re.compile(r"[;}]")):
                        head = group if head.startswith("SORT") else "?"
                        continue
                    self.inputs += _inputs(head, group)
                    return
                more = s.take(_FILE)
                if more is None:
                    return
                if s.peek(re.compile(r"\(")) is None:
                    return
                head = more


def _inputs(files: str, text: str) -> list[Input]:
    """The patterns of ``files(text)``; wrappers such as SORT_BY_NAME are looked through."""
    text = re.sub(r"EXCLUDE_FILE\s*\([^)]*\)", " ", text)
    text = re.sub(r"\b(?:SORT\w*|REVERSE|KEEP)\b|[()]", " ", text)
    every = files.strip() in {"*", "*.*", "*.o"}
    return [Input(p.strip('"'), every) for p in re.split(r"[\s,]+", text) if p]
