"""Pictures of a single scenario: its groups of clients side by side, whatever they are."""

from __future__ import annotations

import textwrap

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import PercentFormatter

from millpond.results.directory import Cell, Results
from millpond.show import labels
from millpond.show.document import Missing, Plot, Rows
from millpond.show.report import style
from millpond.show.report.figures import facets, marks
from millpond.show.report.figures.facets import Point, Spec
from millpond.show.report.figures.queue import course_rows, follow, over_time
from millpond.show.report.grid import Grid

NO_TIMES = "no client has a completion time, because its work has no end, its last request failed, or the run ended"


UNNECESSARY = "unnecessary_retx_per_client"


def bottleneck_over_time(results: Results | Grid) -> Plot:
    """Queue of the busiest link above, goodput ratio of what it carried below, over time.

    Raises `Missing` if the run was not traced.
    """
    grid = Grid.of(results)
    cell = _cell(grid)
    traced = grid.traced([cell])
    if not traced:
        raise Missing(
            "Queue and goodput ratio over time are not drawn: the run was not traced (--trace queue,share does)."
        )
    course = follow(grid, {"run": traced[0]})["run"]

    def draw() -> Figure:
        kind = "radio" if course.cell.scenario.get("mesh") else "link"
        title = f"{labels.link(course.cell.scenario, course.link)}, the busiest {kind}"
        return over_time([(title, {"run": course})], {"run": ("", style.SOLID)}, "queue (kB)")

    return Plot(course_rows({"": course}, ()), draw)


def completion_by_group(results: Results | Grid) -> Plot:
    """Boxes of the flow completion time of each group of clients. Raises `Missing` if no client has one."""
    return _by_group(Grid.of(results), "fct", "s", "flow completion time (s)", NO_TIMES, "box")


def unnecessary_by_group(results: Results | Grid) -> Plot:
    """Bars of the median number of unnecessary retransmissions of a client of each group.

    Raises `Missing` if no client made one.
    """
    grid = Grid.of(results)
    if not np.any(grid.measures.sample(UNNECESSARY, grid.measures.of(_cell(grid))).values > 0):
        raise Missing("No client made an unnecessary retransmission.")
    axis = "unnecessary retransmissions\nper client"
    return _by_group(grid, UNNECESSARY, "retransmissions", axis, "there is no client", "bar")


def delays_by_group(results: Results | Grid) -> Plot:
    """The share of requests answered within a time, of each group whose work does not end. Raises `Missing` without."""
    grid = Grid.of(results)
    measures, points, lines = grid.measures, [], []
    for population in measures.populations():
        sample = measures.sample("answer_delay", population)
        if not sample.n:
            continue
        values, shares = sample.distribution()
        lines.append((population.algorithm, values, shares))
        points += [(population.algorithm, float(t), float(s)) for t, s in zip(values, shares, strict=True)]
    if not lines:
        raise Missing("Not drawn: no request was answered.")

    def draw() -> Figure:
        words = "arrival to answer (s)", "share of all requests"
        with marks.panels(3.6 * style.scale(), words=words, width=min(style.width(), 7.0)) as (figure, (panel,)):
            for name, times, shares in lines:
                marks.steps(panel, grid.looks[name], times, shares)
            panel.set_xscale("log")
            panel.set_ylim(0, 1.02)
            panel.yaxis.set_major_formatter(PercentFormatter(1.0))
            panel.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
            marks.legend_below(figure, marks.line_keys(grid, [name for name, *_ in lines]), 2)
        return figure

    return Plot(Rows(("controller", "delay_s", "share_of_requests"), tuple(points)), draw)


def transmissions_by_group(results: Results | Grid) -> Plot:
    """Share of exchanges by number of retransmissions, of each group. Raises `Missing` if none completed."""
    grid = Grid.of(results)
    cell = _cell(grid)
    counts = {group: grid.measures.histogram(grid.measures.of(cell, group)) for group in cell.groups}
    counts = {group: histogram for group, histogram in counts.items() if sum(histogram.values())}
    if not counts:
        raise Missing("The histogram is not drawn: no exchange was completed.")
    last = max(k for histogram in counts.values() for k in histogram)

    def draw() -> Figure:
        words = "retransmissions of an exchange", "share of exchanges (%)"
        with marks.panels(3.6 * style.scale(), words=words, width=min(style.width(), 8.4)) as (figure, (panel,)):
            width = 0.8 / len(counts)
            for place, (group, histogram) in enumerate(counts.items()):
                shift, total = (place - (len(counts) - 1) / 2) * width, sum(histogram.values())
                bodies = [Rectangle((k + shift - width / 2, 0), width, 100 * n / total) for k, n in histogram.items()]
                marks.areas(panel, bodies, grid.looks[group.algorithm])
            panel.set_xticks(range(last + 1))
            panel.set_xlim(-0.7, max(last, 3) + 0.7)
            panel.set_ylim(0, 105)
            names = [(grid.looks[g.algorithm], f"{labels.clients(g.count)} {grid.label(g.algorithm)}") for g in counts]
            marks.legend_below(figure, [marks.area_key(*one) for one in names], 2)
        return figure

    rows = tuple((group.index, k, n) for group, histogram in counts.items() for k, n in histogram.items())
    return Plot(Rows(("group", "retransmissions", "exchanges"), rows), draw)


def _cell(grid: Grid) -> Cell:
    if not grid.cells:
        raise Missing("These results hold no scenario.")
    return grid.cells[0]


def _by_group(grid: Grid, metric: str, unit: str, axis: str, otherwise: str, kind: facets.Kind) -> Plot:
    points = []
    for group in _cell(grid).groups:
        if (spread := grid.spread(metric, grid.cells[0], group)) is not None:
            told = (group.index, group.count, group.algorithm, unit)
            name = textwrap.fill(f"{labels.clients(group.count)} {grid.label(group.algorithm)}", 16)
            points.append(Point("", "", name, "", spread, told, grid.looks[group.algorithm]))
    if not points:
        raise Missing(f"Nothing to draw: {otherwise}.")
    spec = Spec(kind, axis, {"": ("", style.SOLID)}, wrapped=True, height=3.2)
    return facets.plot(points, spec, ("group", "clients", "controller", "unit"))
