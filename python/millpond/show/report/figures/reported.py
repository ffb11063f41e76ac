"""The first picture of every report: how large a share of the clients is done by when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from millpond.measure.reported import SHARES, Course
from millpond.plan.values import in_units
from millpond.results.directory import Cell, Results
from millpond.results.factor import Value
from millpond.show.document import Missing, Plot, Rows
from millpond.show.report import style
from millpond.show.report.figures import marks
from millpond.show.report.figures.clock import Clock
from millpond.show.report.grid import Facet, Grid, only

STRETCHED = 20.0
"""The axis of time is logarithmic where the last client is done so many times later than the first tenth."""
NOBODY = "not one ever had all its answers"
Lines = Mapping[str, Course]


@dataclass(frozen=True)
class Panel:
    """One panel: its title, and by what each line is called who is done by when."""

    title: str
    lines: Lines
    looks: Mapping[str, style.Look]
    #: When the longest of its runs ended, in s since what its times count from.
    until: float

    @property
    def is_flat(self) -> bool:
        """Whether nobody is ever done."""
        return not any(course.times.size for course in self.lines.values())


def reported_by_group(results: Results | Grid) -> Plot:
    """The share of each group's clients that is done, against the time since the start; a panel for each event.

    Raises `Missing` if no client can be done before the run has ended.
    """
    panels = _of_groups(Grid.of(results))
    lines = [((panel.title, name), course) for panel in panels for name, course in panel.lines.items()]
    return Plot(_rows(("event", "controller"), lines), lambda: draw(panels, _shown_looks(panels)))


def reported(results: Results | Grid, view: Facet | None = None) -> Plot:
    """The share of clients that is done, against the time since the start: a panel a place, a line a controller.

    Of the values along the axis of other pictures, only the one that the study looks at closely is drawn; the numbers
    say when so large a share is done everywhere. Raises `Missing` if no client can be done before the run has ended.
    """
    grid = Grid.of(results)
    panels, rows = _of_places(grid, view), []
    for cell in grid.plain(view):
        course = grid.reported.course(cell)
        for share in SHARES:
            by = course.by(share)
            rows.append((*grid.spot(cell), only(cell), share, "" if by is None else by, course.of))
    told = Rows((*grid.columns, "controller", "share_of_clients", "time_s", "clients"), tuple(rows))
    since = grid.since(grid.plain(view))
    return Plot(told, lambda: draw(panels, _shown_looks(panels), since))


# ----------------------------------------------------------------------------------------------- helpers


def _shown_looks(panels: Sequence[Panel]) -> dict[str, style.Look]:
    return {name: panels[0].looks[name] for panel in panels for name in panel.lines}


def _of_groups(grid: Grid) -> list[Panel]:
    if not grid.cells:
        raise Missing("These results hold no scenario.")
    cell = grid.cells[0]
    looks = {grid.label(group.algorithm): grid.looks[group.algorithm] for group in cell.groups}
    panels = []
    for event in grid.reported.events(cell):
        asking = [
            group
            for group in cell.groups
            if event in grid.reported.ending(cell, group) and not grid.reported.outcome(cell, group).is_silent
        ]
        lines = {grid.label(group.algorithm): grid.reported.course(cell, group, event) for group in asking}
        lines = {name: course for name, course in lines.items() if course.of}
        if lines:
            title = "" if event == 0 else f"event {event}"
            panels.append(Panel(title, lines, looks, _end(grid, [cell]) - _since(cell, event)))
    return _with_any(panels)


def _of_places(grid: Grid, view: Facet | None) -> list[Panel]:
    view = view or grid.whole
    plain = grid.plain(view)
    chosen = _closely(grid, plain)
    looks = {grid.label(name): grid.looks[name] for name in grid.controllers()}
    found: dict[tuple[Value, ...], dict[str, Course]] = {}
    ends: dict[tuple[Value, ...], list[Cell]] = {}
    order = grid.controllers()
    for cell in sorted((c for c in plain if grid.at(c) == chosen), key=lambda c: order.index(only(c))):
        found.setdefault(grid.place(cell), {})[grid.label(only(cell))] = grid.reported.course(cell)
        ends.setdefault(grid.place(cell), []).append(cell)
    panels = []
    for place in grid.ranked(found):
        told = grid.further_in_words(place, view)
        if grid.across:
            told.append(grid.factors[grid.across].say(chosen))
        panels.append(Panel(", ".join(word for word in told if word), found[place], looks, _end(grid, ends[place])))
    return _with_any(panels)


def _closely(grid: Grid, cells: Sequence[Cell]) -> Value:
    """The value along the axis that the study looks at closely, else the last of these cells."""
    along = grid.along(cells)
    here = grid.stages[0].only.get(grid.across) if grid.stages and grid.across else None
    return here if here is not None and here in along else along[-1] if along else ""


def _with_any(panels: list[Panel]) -> list[Panel]:
    if not any(course.of for panel in panels for course in panel.lines.values()):
        raise Missing("The share of clients that is done is not drawn: no client's work has an end before the run has.")
    return panels


def _since(cell: Cell, event: int) -> float:
    return in_units(str(cell.scenario["timeline"][event - 1]["at"])) if event else 0.0


def _end(grid: Grid, cells: Sequence[Cell]) -> float:
    return max(1e-6 * float(grid.measures.run_column(cell, "simulated_us").max()) for cell in cells)


def draw(panels: Sequence[Panel], looks: Mapping[str, style.Look], since: str = "the start") -> Figure:
    """The lines of some panels: the share of clients done, against the time since something happened."""
    columns = min(2, len(panels), max(1, int(style.width() // 3)))
    rows = -(-len(panels) // columns)
    clock = Clock.of(_longest(panel) for panel in panels)
    width = style.width() if columns > 1 else min(style.width(), 8.4)
    height = ((2.5 if rows > 1 else 3.1) * rows + 1.0) * style.scale()
    with marks.panels(height, len(panels), columns, ("", "share of clients done"), width=width, sharey=True) as (
        figure,
        drawn,
    ):
        marks.more_room(figure)
        for index, (axes, panel) in enumerate(zip(drawn, panels, strict=True)):
            _paint(axes, panel, clock)
            if panel.is_flat:
                axes.text(0.5, 0.4, NOBODY, transform=axes.transAxes, ha="center", va="center", color=style.INK)
            axes.set_title(panel.title)
            if index >= len(panels) - columns:
                words = f"time since {since if not panel.title.startswith('event') else 'the event'}"
                axes.set_xlabel(clock.label(words, axes.get_xscale() == "log"))
        keys = [marks.line_key(look, name) for name, look in looks.items()]
        marks.legend_below(figure, keys, max(1, int(width // 2.6)) if columns > 1 else 2)
    return figure


def _longest(panel: Panel) -> float:
    ends = (float(course.times[-1]) for course in panel.lines.values() if course.times.size)
    return panel.until if panel.is_flat else max(ends)


def _paint(axes: Axes, panel: Panel, clock: Clock) -> None:
    early = [t for course in panel.lines.values() if (t := course.by(0.1)) is not None and t > 0]
    longest = _longest(panel)
    stretched = bool(early) and longest > STRETCHED * min(early)
    begin = min(early) / 3 if stretched else 0.0
    for place, (name, course) in enumerate(panel.lines.items()):
        look = panel.looks[name]
        times, share = marks.thinned(course.times, course.share)
        end = longest * (1.15 if stretched else 1.03)
        # what is never done is a line that stays below the top to the end
        times, share = np.append(times, end), np.append(share, course.end)
        times, share = np.insert(times, 0, begin), np.insert(share, 0, 0.0)
        every = max(1, times.size // 6)
        axes.plot(
            times, share, drawstyle="steps-post", color=look.colour, linestyle=look.dash, marker=look.marker,
            markersize=5.0, markeredgecolor=style.INK, markeredgewidth=0.5,
            markevery=(every // 2 + place * every // 5, every),
        )  # fmt: skip
    if stretched:
        axes.set_xscale("log")
        clock.mark_logarithmic(axes.xaxis)
    else:
        clock.mark(axes.xaxis, longest)
    axes.set_xlim(begin, longest * (1.15 if stretched else 1.03))
    # a line on the ground is seen above the axis
    axes.set_ylim(-0.02 if panel.is_flat else 0, 1.04)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    for line in SHARES[:-1]:
        axes.axhline(line, color=style.GRID, linewidth=0.8, linestyle=(0, (2, 2)), zorder=0)


def _rows(header: tuple[str, ...], lines: Sequence[tuple[tuple[object, ...], Course]]) -> Rows:
    rows = []
    for told, course in lines:
        times, share = marks.thinned(course.times, course.share)
        rows += [(*told, float(t), float(s), course.of) for t, s in zip(times, share, strict=True)]
    return Rows((*header, "time_s", "share_of_clients", "clients"), tuple(rows))
