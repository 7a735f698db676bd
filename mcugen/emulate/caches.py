"""A set-associative cache with least-recently-used replacement, and a branch predictor with two-bit counters.

The H743's caches hold 16 KiB in lines of 32 bytes: two ways for instructions, four for data. Its replacement and
its predictor are not public; these are the usual textbook ones.
"""

from __future__ import annotations


class Cache:
    """Counts misses. ``size`` and ``line`` in bytes; a cache of size 0 misses always."""

    def __init__(self, size: int, line: int, ways: int) -> None:
        self.size = size
        self.line = max(line, 1)
        self._ways = ways
        self._sets: list[list[int]] = [[] for _ in range(size // (self.line * ways))]
        self.misses = 0

    def touch(self, line_number: int) -> bool:
        """Use the line (an address divided by the line's size); whether it was there."""
        if not self._sets:
            self.misses += 1
            return False
        lines = self._sets[line_number % len(self._sets)]
        if lines and lines[-1] == line_number:
            return True
        hit = line_number in lines
        if hit:
            lines.remove(line_number)
        else:
            self.misses += 1
            if len(lines) == self._ways:
                del lines[0]
        lines.append(line_number)
        return hit

    def clear(self) -> None:
        """Forget all lines, keep the count."""
        for lines in self._sets:
            lines.clear()


class Predictor:
    """Two-bit counters, one a branch. ``entries``: how many branches it can hold (0: any number).

    A branch it does not know is predicted taken if it goes backward, and a return is always predicted.
    """

    def __init__(self, entries: int = 0) -> None:
        self._entries = entries
        self._counters: dict[int, int] = {}
        self._targets: dict[int, int] = {}
        self.misses = 0

    def branch(self, address: int, target: int, taken: bool) -> bool:
        """A conditional branch; whether it was predicted."""
        count = self._counters.pop(address, None)
        backward = target <= address
        predicted = backward if count is None else count >= 2
        if count is None:
            count = 2 if backward else 1
        self._store(self._counters, address, min(3, count + 1) if taken else max(0, count - 1))
        return self._counted(predicted == taken)

    def indirect(self, address: int, target: int) -> bool:
        """A jump through a register or a table; predicted where it goes as the last time."""
        known = self._targets.pop(address, None)
        self._store(self._targets, address, target)
        return self._counted(known == target)

    def clear(self) -> None:
        """Forget all branches, keep the count."""
        self._counters.clear()
        self._targets.clear()

    def _store(self, table: dict[int, int], address: int, value: int) -> None:
        table[address] = value
        if self._entries and len(table) > self._entries:
            del table[next(iter(table))]  # the one unused for longest: every use moves an entry to the end

    def _counted(self, right: bool) -> bool:
        self.misses += not right
        return right
