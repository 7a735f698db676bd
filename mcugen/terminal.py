"""What a person sees while a command runs: lines as they are, and a bar with the current step."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from mcugen.errors import one_line


class Lines(Console):
    """Prints text as it is, a line each: brackets, colons and control characters in names mean nothing here."""

    def __init__(self, *, stderr: bool) -> None:
        super().__init__(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)

    def say(self, text: str) -> None:
        """One line, whatever ``text`` holds."""
        self.print(one_line(text))

    def on_broken_pipe(self) -> None:
        """A reader that has seen enough, as ``head`` does, is no fault."""
        with suppress(SystemExit):
            super().on_broken_pipe()  # points stdout elsewhere, for the flush at exit, and would exit with 1
        sys.exit(0)


out = Lines(stderr=False)
err = Lines(stderr=True)


@contextmanager
def progress_bar(steps: int) -> Iterator[Callable[[str], None]]:
    """A bar with the current step, on a terminal; quiet elsewhere."""
    if not sys.stderr.isatty():
        yield lambda step: None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task("starting", total=steps)
        done = -1

        def show(step: str) -> None:
            nonlocal done
            done += 1
            bar.update(task, description=step, completed=done)

        yield show
