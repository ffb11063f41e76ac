"""A progress bar on standard error: runs done, runs a second, time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from millpond.given_files import printable
from millpond.run.campaign import Watcher
from millpond.run.jobs import Job


class Bar(Watcher):
    """Draws while standard error is a terminal; otherwise leaves one line at the end."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(file=sys.stderr, highlight=False)
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._total = 0
        self._since: float | None = None
        #: Runs of this campaign, and of all.
        self._done = self._of_all = 0
        #: What this campaign is about, if it is a step of several.
        self._step: str | None = None

    def step(self, what: str) -> None:
        """Say what follows."""
        self._step = what

    def start(self, jobs: Sequence[Job], kept: int) -> None:
        """Begin with these jobs; `kept` runs were there already."""
        self._total, self._done = len(jobs), 0
        self._since = self._since or time.monotonic()
        if kept and jobs:
            self._console.print(f"{kept} runs are there already, {len(jobs)} to go")
        if not self._console.is_terminal or not jobs:
            return
        if self._bar is None:
            self._bar = Progress(
                BarColumn(bar_width=30),
                TextColumn("{task.fields[runs]}"),
                TimeRemainingColumn(compact=True, elapsed_when_finished=False),
                TextColumn("{task.description}"),
                console=self._console,
                transient=True,
            )
            self._task = self._bar.add_task("left", total=1, runs="")
            self._bar.start()
        if self._task is not None:
            # time left goes by the work of a run, not by their number: 400 clients take longer than one
            work = sum(job.work for job in jobs)
            self._bar.reset(self._task, total=work, description=self._step or "left", runs=self._told())

    def finished(self, job: Job) -> None:
        """Count one run."""
        self._done += 1
        self._of_all += 1
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, advance=job.work, runs=self._told())

    def say(self, line: str) -> None:
        """Print a line above the bar."""
        self._console.print(printable(line), markup=False, soft_wrap=True)

    def end(self) -> None:
        """Of the only campaign, or the last step: take the bar away and leave one line."""
        if self._step is None:
            self.close()

    def close(self) -> None:
        """Take the bar away and leave one line."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
        if self._of_all:
            runs = "1 run" if self._of_all == 1 else f"{self._of_all} runs"
            self._console.print(f"{runs} in {self._seconds():.1f} s, {self._rate():.1f} runs/s")

    def _told(self) -> str:
        return f"{self._done}/{self._total} runs, {self._rate():.0f} runs/s"

    def _rate(self) -> float:
        return self._of_all / self._seconds()

    def _seconds(self) -> float:
        return max(1e-9, time.monotonic() - (self._since or 0.0))
