"""Lines of the study: carried against offered load, how delays are distributed, what exchanges wait at first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from millpond.judge.compare import Comparison
from millpond.measure.estimate import Estimate
from millpond.measure.nodes import FATES
from millpond.measure.population import Population
from millpond.show.document import Missing, Plot, Rows
from millpond.show.mesh import picture
from millpond.show.mesh.nodes import Node
from millpond.show.report import style
from millpond.show.report.figures import facets, marks
from millpond.show.report.figures.facets import Point, Spec
from millpond.show.report.figures.matrix import series_of
from millpond.show.report.grid import Floats, Grid, Spread
from millpond.studies.cocoaplus15.points import LINKS, PAPER, TOPOLOGIES, names, point, populations, published

#: Links, and retransmissions of theirs, as rows of the loads.
ROWS = {
    ("100", "on"): "links deliver all",
    ("lossy", "on"): "links deliver 75 to 100 %",
    ("100", "off"): "no retransmissions of the link",
}
#: What is undelivered, or takes longer, stands at the end of the axis (section 5.3).
LONGEST = 60.0


def loads(grid: Grid) -> Plot:
    """Carried against offered load, a row for each kind of links. Raises `Missing` without constant traffic."""
    points, rows = [], []
    for p in populations(grid, traffic="constant"):
        told = point(grid, "carried_load", p)
        if told is None or p.algorithm not in PAPER:
            continue
        mean, deviation = told.mean / 1e3, told.deviation / 1e3
        spread = Spread.around(Estimate(mean, mean - deviation, mean + deviation, told.estimate.n))
        kind = str(p.column("ldr")), str(p.column("mac_retx"))
        points.append(Point(kind, p.column("topology"), p.column("offered_kbps"), p.algorithm, spread))
        rows.append((p.column("topology"), *kind, p.column("offered_kbps"), p.algorithm, mean, deviation))
    if not points:
        raise Missing("Carried load: not drawn, constant traffic was not run.")
    offered = sorted({float(point.x) for point in points})

    def all_of_it(panel: Axes, *_: object) -> None:
        panel.plot([0, offered[-1]], [0, offered[-1]], color="#bbbbbb", linewidth=0.8, zorder=0)

    spec = Spec(
        "line",
        "carried (kbit/s)",
        series_of(grid),
        x="offered (kbit/s)",
        tick=lambda x: f"{float(x):g}",
        title=lambda kind, topology: f"{TOPOLOGIES[topology]}\n{ROWS[kind]}",
        xs=sorted({point.x for point in points}, key=float),
        rows=list(ROWS),
        columns=list(TOPOLOGIES),
        numeric=True,
        shared=True,
        further=all_of_it,
    )
    header = ("topology", "ldr", "mac_retx", "offered_kbps", "controller", "carried_kbps", "sd")
    return Plot(Rows(header, tuple(rows)), partial(facets.draw, points, spec))


def delays(grid: Grid) -> Plot:
    """The share of all messages that were delivered within a time, mixed traffic. Raises `Missing` without it."""
    found = [p for p in populations(grid, traffic="mixed", notifications=1) if p.algorithm in PAPER]
    if not found:
        raise Missing("Delays: not drawn, mixed traffic was not run.")
    rows = []
    for p in found:
        where = (p.column("topology"), p.column("ldr"), p.algorithm)
        rows += [(*where, float(t), float(s)) for t, s in zip(*_distribution(grid, p), strict=True)]
    header = ("topology", "ldr", "controller", "delay_s", "share")
    return Plot(Rows(header, tuple(rows)), lambda: _draw_delays(grid, found))


def _draw_delays(grid: Grid, found: Sequence[Population]) -> Figure:
    topologies = [name for name in TOPOLOGIES if any(p.column("topology") == name for p in found)]
    shown = names(grid, found)
    places = [(links, topology) for links in LINKS for topology in topologies]
    words = "delay (s)", "share of all messages"
    with marks.panels(5.4, len(places), len(topologies), words, sharex=True, sharey=True) as (figure, panels):
        for panel, (links, topology) in zip(panels, places, strict=True):
            for p in found:
                if (str(p.column("ldr")), p.column("topology")) == (links, topology):
                    marks.steps(panel, grid.looks[p.algorithm], *_distribution(grid, p))
            panel.set_title(f"{TOPOLOGIES[topology]}\nlinks deliver {LINKS[links]}", fontsize=9)
            panel.set_xscale("log")
            panel.set_xlim(0.01, LONGEST)
            panel.set_ylim(0, 1)
        marks.legend_below(figure, marks.line_keys(grid, shown), 3)
    return figure


def first_waits(grid: Grid) -> Plot:
    """What exchanges wait at first, 6x6 grid with lossy links at 6 kbit/s. Raises `Missing` if that was not run."""
    found = populations(grid, traffic="constant", topology="grid-6x6", ldr="lossy", offered_kbps=6)
    found = [p for p in found if p.algorithm in PAPER and grid.measures.sample("first_wait", p).n]
    if not found:
        raise Missing("First waits: not drawn, the grid at 6 kbit/s was not run.")
    rows = []
    for p in found:
        sample, bins = grid.measures.sample("first_wait", p), dict[float, int]()
        weights = np.ones(len(sample.values), np.int64) if sample.weights is None else sample.weights
        for value, count in zip(sample.values.tolist(), weights.tolist(), strict=True):
            bins[value] = bins.get(value, 0) + count
        rows += [(p.algorithm, value, count) for value, count in sorted(bins.items())]
    return Plot(Rows(("controller", "first_wait_up_to_s", "exchanges"), tuple(rows)), lambda: _draw_waits(grid, found))


def _draw_waits(grid: Grid, found: Sequence[Population]) -> Figure:
    edges = np.geomspace(0.5, 128, 49)
    words = "first wait (s)", "share of exchanges"
    with marks.panels(2.6, len(found), len(found), words, sharex=True, sharey=True) as (figure, panels):
        for panel, p in zip(panels, found, strict=True):
            sample = grid.measures.sample("first_wait", p)
            weights = np.ones(len(sample.values)) if sample.weights is None else sample.weights
            counts, _ = np.histogram(np.clip(sample.values, edges[0], edges[-1]), edges, weights=weights)
            look = grid.looks[p.algorithm]
            panel.stairs(counts / counts.sum(), edges, fill=True, color=look.colour)
            mean = grid.measures.estimate("first_wait", p, "mean").value
            panel.axvline(mean, color=style.INK, linewidth=1.0, linestyle="--")
            panel.set_title(f"{grid.label(p.algorithm)}\nmean {mean:.3g} s", fontsize=9)
            panel.set_xscale("log")
            panel.set_xticks([1, 10, 100], ["1", "10", "100"])
    return figure


#: Metric, the paper's name for it, traffic, notifications, what it is called, and its factor for the axis.
SETTLING = ("settling_time", "settling_time", "global event", 0, "settling time (s)", 1.0)
BURSTS = ("event_delay", "delay_during_burst", "mixed", 1, "mean delay around bursts (s)", 1.0)
DELIVERY = ("packet_delivery_ratio", "pdr", "mixed", 1, "messages delivered (%)", 100.0)

What = tuple[str, str, str, int, str, float]


def by_place(grid: Grid, what: What, comparison: Comparison | None) -> Plot:
    """The metric by topology, links and controller with 95 % intervals; diamonds are printed."""
    metric, theirs_name, traffic, notifications, title, scale = what
    points, rows = [], []
    for p in populations(grid, traffic=traffic, notifications=notifications):
        told = point(grid, metric, p)
        if told is not None and p.algorithm in names(grid, [p]):
            where = str(p.column("ldr")), str(p.column("topology"))
            points.append(Point(*where, "", p.algorithm, Spread.around(told.estimate.scaled(scale))))
            rows.append((where[1], where[0], p.algorithm, told.mean, *(told.estimate.interval or ("", ""))))
    if not points:
        raise Missing(f"{title}: not drawn, {traffic} was not run.")
    printed = published(comparison, theirs_name)
    spec = Spec(
        "line",
        title,
        series_of(grid),
        tick=lambda _: "",
        title=lambda links, topology: f"{TOPOLOGIES[topology]}\nlinks deliver {LINKS[links]}",
        rows=list(LINKS),
        columns=list(TOPOLOGIES),
        shared=True,
        height=2.6,
        published={(links, topology, "", name): mean * scale for (topology, links, name), mean in printed.items()},
    )
    header = ("topology", "ldr", "controller", metric, "ci95_low", "ci95_high")
    return Plot(Rows(header, tuple(rows)), partial(facets.draw, points, spec))


LOAD = 4
CONTROLLER = "cocoa_plus"


def frames(grid: Grid) -> Plot:
    """The share of the frames for each node that it did not receive, lossy links; the tree of the first run."""
    shares = {p: _shares(grid, p) for p in _found(grid)}
    rows = [(p.column("topology"), name, share) for p, told in shares.items() for name, share in told.items()]
    return Plot(Rows(("topology", "node", "share_lost"), tuple(rows)), lambda: _draw(grid, shares))


def _draw(grid: Grid, shares: Mapping[Population, Mapping[str, float]]) -> Figure:
    found = list(shares)
    most = max(max(values.values()) for values in shares.values())
    with marks.panels(2.9 * ((len(found) + 1) // 2), len(found), min(2, len(found))) as (figure, panels):
        shown: Any = None
        for panel, p in zip(panels, found, strict=True):
            nodes = Node.of_run(grid.results, grid.measures.cell(p).first_run)
            shown = picture.paint(panel, nodes, shares[p], most)
            panel.set_title(TOPOLOGIES[str(p.column("topology"))], fontsize=9)
            panel.set_axis_off()
        bar = figure.colorbar(shown, ax=panels, shrink=0.7)
        bar.set_label("frames not received (%)")
        bar.ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f}")
    return figure


# ----------------------------------------------------------------------------------------------- helpers


def _distribution(grid: Grid, population: Population) -> tuple[Floats, Floats]:
    """Times and the share of all messages that had been delivered by then."""
    arrivals = float(np.sum(grid.measures.flow_column(population, "arrivals").astype(np.float64)))
    return grid.measures.sample("one_way_delay", population).distribution(arrivals)


def _found(grid: Grid) -> list[Population]:
    found = populations(grid, traffic="constant", ldr="lossy", offered_kbps=LOAD, mac_retx="on")
    found = [p for p in found if p.algorithm == CONTROLLER]
    if not found or not grid.results.has("nodes"):
        raise Missing(f"Where frames die: not drawn, constant traffic of {LOAD} kbit/s was not run.")
    return found


def _shares(grid: Grid, population: Population) -> dict[str, float]:
    """By node, over all runs of its cell."""
    cell = grid.measures.cell(population)
    table = grid.measures.table("nodes")
    names = table.of(cell, "node").astype(str)
    known, place = np.unique(names, return_inverse=True)
    every, got = (
        sum(np.bincount(place, weights=table.of(cell, column).astype(np.float64)) for column in columns)
        for columns in (FATES, FATES[:1])
    )
    return {
        str(name): float(1 - mine / whole) if whole else 0.0
        for name, mine, whole in zip(known, got, every, strict=True)  # type: ignore[arg-type]
    }
