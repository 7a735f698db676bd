"""What a file has that mcugen cannot translate, gathered over the whole graph and told in one error."""

from __future__ import annotations

from dataclasses import dataclass

from mcugen.errors import UnsupportedError
from mcugen.frontends.onnx.scanner import Node, short

#: Faults that one error lists; a file with more needs another tool anyway.
MAX_FAULTS = 40


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is not supported."""

    what: str
    reason: str
    workaround: str

    def __str__(self) -> str:
        return f"{self.what}: {self.reason} -> {self.workaround}"


def node_text(node: Node) -> str:
    """A node for a message: name and op."""
    return f"node {short(node.name)} ({f'{node.domain}.' if node.domain else ''}{node.op})"


def unsupported(file: str, faults: list[Fault]) -> UnsupportedError:
    """One error, one line, for all of them."""
    more = [f"and {len(faults) - MAX_FAULTS} more"] if len(faults) > MAX_FAULTS else []
    listed = "; ".join([*(str(f) for f in faults[:MAX_FAULTS]), *more])
    count = "1 thing is" if len(faults) == 1 else f"{len(faults)} things are"
    return UnsupportedError(file, f"{count} not supported: {listed}")
