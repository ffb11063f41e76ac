"""The page of the study `burst23`: the usual one, with rate, queue and retransmissions of every algorithm over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from millpond.judge.compare import Comparison
from millpond.results.directory import Cell
from millpond.show import labels
from millpond.show.document import Missing, Picture, Plot, Rows, Section
from millpond.show.report import study, style
from millpond.show.report.figures import marks
from millpond.show.report.grid import Floats, Grid, only, rate

_CAPTION = (
    "Twenty senders that are alike, one run of each algorithm (the first one), means over {window} s. Left, the "
    "messages that all of them send for the first time; dashed is what the link could carry. Middle, how long a "
    "byte waits in its queue. Right, the messages sent again. Numbers are means over the run."
)


def sections(grid: Grid, comparison: Comparison | None) -> list[Section]:
    """Everything that the study shows."""
    found = study.sections(grid, comparison)
    ours = _over_time(grid)
    return [ours if section.name == ours.name else section for section in found]


def _over_time(grid: Grid) -> Section:
    return Section(
        "over-time",
        "Rate, queue and retransmissions over time",
        (),
        tuple(
            Picture(
                f"over-time-{scenario.split()[0]}",
                f"{scenario.capitalize()}: rate, queue and retransmissions over time",
                _CAPTION.format(window=WINDOW),
                partial(over_time, grid, scenario),
            )
            for scenario in SCENARIOS
        ),
    )


SCENARIOS = ("occasional congestion", "heavy congestion")
#: Seconds over which rates are means.
WINDOW = 5
QUANTITIES = ("sent for the first time (/s)", "wait in the queue (s)", "sent again (/s)")
_AGAIN = 2


@dataclass(frozen=True)
class Course:
    """One traced run, in windows: messages a second of all senders, and seconds that a byte waits."""

    cell: Cell
    times: Floats
    first: Floats
    wait: Floats
    again: Floats
    #: Messages a second that the bottleneck carries at most.
    capacity: float | None

    def lines(self) -> tuple[Floats, Floats, Floats]:
        """In the order of the columns."""
        return self.first, self.wait, self.again


def over_time(grid: Grid, scenario: str) -> Plot:
    """A row for each algorithm, with its rate, queue and retransmissions. Raises `Missing` without traces."""
    found, rows = courses(grid, scenario), []
    for name, course in found.items():
        columns = zip(course.times.tolist(), *(line.tolist() for line in course.lines()), strict=True)
        rows += [(name, *values) for values in columns]
    header = ("controller", "time_s", "sent_per_s", "queue_wait_s", "sent_again_per_s")
    return Plot(Rows(header, tuple(rows)), lambda: _draw(grid, found))


def _draw(grid: Grid, found: Mapping[str, Course]) -> Figure:
    height, words = 0.82 * len(found) + 1.0, ("time since the start (s)", "")
    with marks.panels(height, 3 * len(found), 3, words, sharex=True, sharey="col") as (figure, panels):
        for row, (name, course) in enumerate(found.items()):
            _row(panels[3 * row : 3 * row + 3], grid, name, course)
        for column, quantity in enumerate(QUANTITIES):
            panels[column].set_title(quantity, fontsize=10)
            highest = max(float(np.nanmax(course.lines()[column], initial=0.0)) for course in found.values())
            panels[column].set_ylim(0, highest * 1.08 or 1.0)
            if column == _AGAIN:
                # From none to hundreds: below one a second it is linear.
                panels[column].set_yscale("symlog", linthresh=1)
                panels[column].set_ylim(0, max(highest * 1.5, 10))
                panels[column].set_yticks([0, 1, 10, 100], ["0", "1", "10", "100"])
        panels[0].set_xlim(0, max(float(course.times[-1]) for course in found.values()) + WINDOW / 2)
    return figure


def courses(grid: Grid, scenario: str) -> dict[str, Course]:
    """The traced runs of endless backlogs in a scenario, by algorithm. Raises `Missing` if there are none."""
    if not grid.has("sent_trace"):
        raise Missing("Rates over time are not drawn: no run was traced (the plan's [trace] says which).")
    cells = [
        cell
        for cell in grid.plain()
        if cell.columns.get("traffic") == scenario and cell.columns.get("offered_load", "backlog") == "backlog"
    ]
    runs = {only(cell): (cell, run) for cell, run in reversed(grid.traced(cells))}
    found = {name: _course(grid, *runs[name]) for name in grid.controllers() if name in runs}
    if not found:
        raise Missing(f"Rates over time are not drawn: no run of {scenario} was traced.")
    return found


# ----------------------------------------------------------------------------------------------- helpers


def _course(grid: Grid, cell: Cell, run: int) -> Course:
    times, first, again, size = grid.rows("sent_trace", run, ("t_us", "first", "again", "bytes"))
    bins = (times // WINDOW).astype(np.int64)
    windows = max(1, int(times.max(initial=0.0) + 1) // WINDOW)

    def each(values: Floats) -> Floats:
        """The mean over each whole window."""
        summed: Floats = np.bincount(bins, weights=values, minlength=windows)[:windows].astype(np.float64)
        return summed / WINDOW

    bottleneck = grid.bottleneck(cell)
    bits = rate(cell, bottleneck)
    queue_times, queued = grid.rows("queue_trace", run, ("t_us", "bytes"), link=bottleneck)
    at = (queue_times // WINDOW).astype(np.int64)
    counts = np.maximum(np.bincount(at, minlength=windows)[:windows], 1)
    mean_queue = np.bincount(at, weights=queued, minlength=windows)[:windows] / counts
    sent = float(first.sum() + again.sum())
    middles: Floats = (np.arange(windows, dtype=np.float64) + 0.5) * WINDOW
    return Course(
        cell,
        middles,
        each(first),
        np.asarray(mean_queue * (8 / bits if bits else np.nan), dtype=np.float64),
        each(again),
        bits / 8 * sent / float(size.sum()) if bits and sent else None,
    )


def _row(panels: list[Axes], grid: Grid, name: str, course: Course) -> None:
    look = grid.looks[name]
    for panel, values in zip(panels, course.lines(), strict=True):
        panel.fill_between(course.times, values, color=look.fill, linewidth=0)
        panel.plot(course.times, values, color=look.colour, linewidth=1.0)
        panel.text(
            0.985, 0.92, labels.number(float(np.nanmean(values)), 3), transform=panel.transAxes, ha="right", va="top",
            fontsize=8, bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1.0},
        )  # fmt: skip
        panel.tick_params(labelsize=8)
    if course.capacity is not None:
        panels[0].axhline(course.capacity, color=style.INK, linewidth=0.8, linestyle="--")
    panels[0].set_ylabel(grid.label(name).replace(", ", ",\n"), rotation=0, ha="right", va="center", fontsize=8.5)
