"""Pictures of a single scenario: its groups of clients side by side, whatever they are."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from millpond.results.directory import Cell, Group, Results
from millpond.show import labels
from millpond.show.report import style
from millpond.show.report.data import Data
from millpond.show.report.figures import marks
from millpond.show.report.figures.clock import Clock
from millpond.show.report.figures.queue import Course, follow, panel_pair, waiting_axis
from millpond.show.report.values import Missing, Rows, Spread

NO_TIMES = "no client has a completion time, because its work has no end, its last request failed, or the run ended"


def bottleneck_over_time(results: Results | Data) -> Figure:
    """Queue of the busiest link above, useful share of what it carried below, over time.

    Raises `Missing` if the run was not traced.
    """
    data = Data.of(results)
    course = _course(data)
    with style.applied():
        figure = Figure(figsize=(style.WIDTH, 5.4), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        panel_pair(above, below, {"run": course}, {"run": style.SOLID})
        kind = "radio" if course.cell.scenario.get("mesh") else "link"
        above.set_title(f"{labels.link(course.cell.scenario, course.link)}, the busiest {kind}")
        above.set_ylabel("queue (kB)")
        above.set_ylim(bottom=0)
        above.set_xlim(left=0)
        waiting_axis(above, course)
        below.set_ylabel("useful share of\nthe bytes carried")
        below.set_ylim(0, 1.03)
        longest = float(course.times[-1]) if course.times.size else 0.0
        clock = Clock.of([longest])
        clock.mark(below.xaxis, longest)
        below.set_xlabel(clock.label("time since the start"))
        below.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
    return figure


def bottleneck_over_time_rows(results: Results | Data) -> Rows:
    """The lines of `bottleneck_over_time`, point by point."""
    course = _course(Data.of(results))
    rows: list[tuple[object, ...]] = [
        ("queue", "B", float(t), float(v)) for t, v in zip(course.times, course.queue, strict=True)
    ]
    rows += [
        ("useful share", "1", float(t), float(v))
        for t, v in zip(course.share_times, course.share, strict=True)
        if np.isfinite(v)
    ]
    return Rows(("quantity", "unit", "time_s", "value"), tuple(rows))


def completion_by_group(results: Results | Data) -> Figure:
    """Boxes of the flow completion time of each group of clients. Raises `Missing` if no client has one."""
    data = Data.of(results)
    cell = _cell(data)
    return _by_group(data, cell, "fct_us", "flow completion time (s)", NO_TIMES, boxes=True)


def unnecessary_by_group(results: Results | Data) -> Figure:
    """Bars of the median number of unnecessary retransmissions of a client of each group.

    Raises `Missing` if no client made one.
    """
    data = Data.of(results)
    cell = _cell(data)
    axis = "unnecessary retransmissions\nper client"
    if not np.any(data.values("flows", "unnecessary", cell) > 0):
        raise Missing("No client made an unnecessary retransmission.")
    return _by_group(data, cell, "unnecessary", axis, "there is no client", boxes=False)


def by_group_rows(results: Results | Data, column: str, unit: str) -> Rows:
    """The percentiles that the pictures by group draw."""
    data = Data.of(results)
    cell = _cell(data)
    rows = []
    for group in cell.groups:
        spread = data.spread(column, cell, group)
        if spread is not None:
            rows.append((group.index, group.count, group.algorithm, unit, *spread.row()))
    return Rows(("group", "clients", "controller", "unit", *Spread.HEADER), tuple(rows))


def transmissions_by_group(results: Results | Data) -> Figure:
    """Share of exchanges by number of retransmissions, of each group. Raises `Missing` if none completed."""
    data = Data.of(results)
    cell = _cell(data)
    counts = _counts(data, cell)
    last = max(k for histogram in counts.values() for k in histogram)
    looks = _looks(data, cell)
    with style.applied():
        figure = Figure(figsize=(style.WIDTH * 0.8, 3.6), layout="constrained")
        panel = figure.subplots()
        width = 0.8 / len(counts)
        for place, (index, histogram) in enumerate(counts.items()):
            total = sum(histogram.values())
            shift = (place - (len(counts) - 1) / 2) * width
            panel.bar(
                [k + shift for k in histogram],
                [100 * n / total for n in histogram.values()],
                width,
                facecolor=looks[index].fill,
                edgecolor=style.INK,
                hatch=looks[index].hatch,
                linewidth=0.7,
            )
        panel.set_xticks(range(last + 1))
        panel.set_xlim(-0.7, max(last, 3) + 0.7)
        panel.set_xlabel("retransmissions of an exchange")
        panel.set_ylabel("share of exchanges (%)")
        panel.set_ylim(0, 105)
        figure.legend(
            handles=[
                marks.area_key(looks[group.index], _name(data, group).replace("\n", " "))
                for group in cell.groups
                if group.index in counts
            ],
            loc="outside lower center",
            ncols=2,
        )
    return figure


def transmissions_by_group_rows(results: Results | Data) -> Rows:
    """The counts that `transmissions_by_group` draws as shares."""
    data = Data.of(results)
    cell = _cell(data)
    rows = [(index, k, n) for index, histogram in _counts(data, cell).items() for k, n in histogram.items()]
    return Rows(("group", "retransmissions", "exchanges"), tuple(rows))


def _cell(data: Data) -> Cell:
    if not data.cells:
        raise Missing("These results hold no scenario.")
    return data.cells[0]


def _course(data: Data) -> Course:
    cell = _cell(data)
    traced = data.traced([cell])
    if not traced:
        raise Missing(
            "Queue and useful share over time are not drawn: the run was not traced (--trace queue,share does)."
        )
    return follow(data, {"run": traced[0]})["run"]


def _counts(data: Data, cell: Cell) -> dict[int, dict[int, int]]:
    counts = {group.index: data.histogram(cell, group) for group in cell.groups}
    counts = {index: histogram for index, histogram in counts.items() if sum(histogram.values())}
    if not counts:
        raise Missing("The histogram is not drawn: no exchange was completed.")
    return counts


def _looks(data: Data, cell: Cell) -> dict[int, style.Look]:
    return {group.index: data.looks[group.algorithm] for group in cell.groups}


def _name(data: Data, group: Group) -> str:
    return f"{labels.clients(group.count)}\n{data.label(group.algorithm)}"


def _by_group(data: Data, cell: Cell, column: str, axis: str, otherwise: str, *, boxes: bool) -> Figure:
    found = [(group, spread) for group in cell.groups if (spread := data.spread(column, cell, group)) is not None]
    if not found:
        raise Missing(f"Nothing to draw: {otherwise}.")
    looks = _looks(data, cell)
    with style.applied():
        # few groups need few inches: a row each, so that names of any length stand beside their boxes
        figure = Figure(
            figsize=(min(style.WIDTH, 6.4 + 0.2 * len(found)), 1.1 + 0.62 * len(found)), layout="constrained"
        )
        panel = figure.subplots()
        for y, (group, spread) in enumerate(found):
            (marks.lying_box if boxes else marks.lying_bar)(panel, looks[group.index], float(y), spread, 0.5)
        low = min(spread.minimum for _, spread in found)
        high = max(spread.maximum if boxes else spread.p90 for _, spread in found)
        marks.from_zero_lying(panel, low if boxes else 0.0, high)
        panel.set_yticks(range(len(found)), [_name(data, group) for group, _ in found])
        panel.tick_params(axis="y", length=0, labelsize=9)
        panel.set_ylim(len(found) - 0.4, -0.6)
        panel.grid(axis="x")
        panel.grid(visible=False, axis="y")
        panel.set_xlabel(axis.replace("\n", " "))
    return figure
