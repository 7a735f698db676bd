"""Static buffers of a model that DMA fills: where they stand, and what the reader of the header must do."""

from __future__ import annotations

from dataclasses import dataclass

from mcugen.core.types import Model
from mcugen.target.plan import FRAGMENT_SYMBOL, Plan

#: Bytes of a cache line of every Cortex-M7: a buffer for DMA shares no line with anything else.
DMA_ALIGN = 32


@dataclass(frozen=True, slots=True)
class BufferText:
    """The C of the buffer NAME_dma; all empty where there is none. ``init``: lines of NAME_init."""

    header: str = ""
    source: str = ""
    init: tuple[str, ...] = ()


def buffer_text(model: Model, plan: Plan) -> BufferText:
    """Declaration, definition, and a reference to the linker fragment: without it the buffer may lie anywhere."""
    found = [a for a in plan.assignments if a.item.dma and a.item.role == "arena"]
    if not found:
        return BufferText()
    (a,) = found
    item, upper = a.item, model.name.upper()
    size, inputs = item.size // item.count, model.types[model.inputs[0]].count
    whole = -(-item.size // DMA_ALIGN) * DMA_ALIGN
    array = f"{item.ctype} {item.symbol}[{whole // size}]"
    home = "in the memory that the linker script gives to .bss" if plan.board is None else f"in {a.region}"
    header = (
        f"/* {upper}_DMA_SAMPLES samples of {upper}_INPUTS elements, {home}, for DMA alone to write. Whole\n"
        " * cache lines of its own: before the CPU reads what DMA wrote, make the data cache forget it, with CMSIS\n"
        f" * SCB_InvalidateDCache_by_Addr({item.symbol}, {upper}_DMA_BYTES). x of sample i: &{item.symbol}[i * "
        f"{upper}_INPUTS]. */\n"
        f"#define {upper}_DMA_SAMPLES {item.count // inputs}u\n"
        f"#define {upper}_DMA_BYTES {whole}u\n"
        f"extern {array};\n"
    )
    source = (
        f"/* {item.about}: {whole} bytes in {a.region}. */\n"
        f'MCG_SECTION("{a.section}") _Alignas({DMA_ALIGN}) {array};\n'
        f"_Static_assert(sizeof {item.symbol} == {upper}_DMA_BYTES && {upper}_DMA_BYTES % {DMA_ALIGN}u == 0u,\n"
        '               "a DMA buffer is whole cache lines");\n'
    )
    if not a.needs_fragment:
        return BufferText(header, source)
    bare = "#if defined(__arm__) && !defined(__linux__)"
    init = (
        f"{bare} /* does not link without mcugen.ld: the buffer could lie where DMA does not reach */",
        f'__asm__ volatile("" : : "r"(&{FRAGMENT_SYMBOL}));',
        "#endif",
    )
    return BufferText(header, f"{source}{bare}\nextern const char {FRAGMENT_SYMBOL};\n#endif\n", init)
