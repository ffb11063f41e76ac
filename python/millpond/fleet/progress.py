"""How far the search for an answer is, on standard error."""

from __future__ import annotations

import sys
import time

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn

from millpond.fleet.answer import Watch


class Bar(Watch):
    """Says what is being tried while standard error is a terminal; otherwise leaves one line at the end."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(file=sys.stderr, highlight=False)
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._runs = 0
        self._since = time.monotonic()

    def step(self, what: str, runs: int) -> None:
        """Begin with so many runs of something."""
        if not self._console.is_terminal:
            return
        if self._bar is None:
            columns = (SpinnerColumn(), TextColumn("{task.completed:.0f}/{task.total:.0f} runs  {task.description}"))
            self._bar = Progress(*columns, console=self._console, transient=True)
            self._task = self._bar.add_task("")
            self._bar.start()
        if self._task is not None:
            self._bar.reset(self._task, total=runs, description=what)

    def finished(self) -> None:
        """Count one run."""
        self._runs += 1
        if self._bar is not None and self._task is not None:
            self._bar.advance(self._task)

    def end(self) -> None:
        """Take the bar away and leave one line."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
        if self._runs:
            self._console.print(f"{self._runs} runs in {time.monotonic() - self._since:.1f} s")
