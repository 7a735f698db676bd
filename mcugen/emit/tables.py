"""Items of a plan as C definitions, and the names by which other C reaches them."""

from __future__ import annotations

from collections.abc import Mapping

from mcugen.core.op import Item, Names
from mcugen.ctext.arrays import array_rows
from mcugen.ctext.comments import comment_text
from mcugen.errors import InternalError
from mcugen.target.plan import Assignment, Plan

_HEX = ("nodes", "sets")


def table_text(assignment: Assignment) -> str:
    """The definition of a constant table; one that runs from RAM is an image, a copy and an entry for the start-up."""
    item = assignment.item
    if not assignment.copied:
        return _array(item, item.symbol, f'MCG_SECTION("{assignment.section}") ', assignment.region)
    s, t = item.symbol, item.ctype
    return (
        _array(item, f"{s}_image", f'MCG_SECTION("{assignment.image_section}") ', assignment.region)
        + f'MCG_SECTION("{assignment.section}") static {_word(item)}{t} {s}_copy[{item.count}];\n'
        + f"static const void *{s}_active = {s}_image;\n"
        + f"MCG_TABLE_COPY static const mcg_table_copy_t {s}_entry = "
        + f"{{{s}_image, {s}_copy, &{s}_active, (uint32_t)sizeof {s}_copy}};\n"
    )


def plain_table_text(item: Item) -> str:
    """A table in whatever section the compiler chooses."""
    return _array(item, item.symbol, "", "")


def _array(item: Item, symbol: str, attribute: str, region: str) -> str:
    if item.data is None:
        raise InternalError(item.symbol, "a table without data")
    place = f", in {region}" if region and region != "default" else ""
    rows = array_rows(item.data, hexadecimal=item.symbol.rpartition("_")[2] in _HEX)
    head = f"/* {comment_text(item.about)}: {item.size} bytes{place}. */\n"
    return f"{head}{attribute}static {_word(item)}const {item.ctype} {symbol}[{item.count}] = {{\n{rows}}};\n"


def _word(item: Item) -> str:
    """Word alignment, so that the start-up copies whole words (and ECC memories see whole first writes)."""
    return "_Alignas(4) " if item.align < 4 else ""


def names_of(plan: Plan, scratch: str = "NULL", state: Mapping[str, str] | None = None) -> Names:
    """How C reaches the items of the plan; ``scratch`` is the pointer to an op's scratch bytes, ``state`` has its
    members."""
    table, section = {}, {}
    for a in plan.assignments:
        if a.item.role == "code":
            section[a.item.symbol] = f'MCG_SECTION("{a.section}") MCG_NOINLINE'
        elif a.copied:
            table[a.item.symbol] = f"(const {a.item.ctype} *){a.item.symbol}_active"
        else:
            table[a.item.symbol] = a.item.symbol
    return Names(table, section, scratch, state or {})
