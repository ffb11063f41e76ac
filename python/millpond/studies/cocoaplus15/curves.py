"""Lines of the study: carried against offered load, how delays are distributed, what exchanges wait at first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from millpond.measure.population import Population
from millpond.show.report import style
from millpond.show.report.data import Data
from millpond.show.report.figures import marks
from millpond.show.report.values import Floats, Missing, Rows
from millpond.studies.cocoaplus15.points import LINKS, PAPER, TOPOLOGIES, names, point, populations

#: Links, and retransmissions of theirs, as rows of the loads.
ROWS = {
    ("100", "on"): "links deliver all",
    ("lossy", "on"): "links deliver 75 to 100 %",
    ("100", "off"): "no retransmissions of the link",
}
#: What is undelivered, or takes longer, stands at the end of the axis (section 5.3).
LONGEST = 60.0


def loads(data: Data) -> Figure:
    """Carried against offered load, a row for each kind of links. Raises `Missing` without constant traffic."""
    found = _loads(data)
    topologies = [name for name in TOPOLOGIES if any(p.column("topology") == name for p in found)]
    rows = [row for row in ROWS if any((str(p.column("ldr")), p.column("mac_retx")) == row for p in found)]
    shown = names(data, found)
    with style.applied():
        figure = Figure(figsize=(style.WIDTH, 2.5 * len(rows) + 0.9), layout="constrained")
        panels = figure.subplots(len(rows), len(topologies), squeeze=False, sharex=True, sharey=True)
        for down, row in enumerate(rows):
            for beside, topology in enumerate(topologies):
                panel = panels[down][beside]
                here = [
                    p
                    for p in found
                    if (str(p.column("ldr")), p.column("mac_retx"), p.column("topology")) == (*row, topology)
                ]
                for name in shown:
                    _line(panel, data, [p for p in here if p.algorithm == name], name)
                most = max((float(p.column("offered_kbps")) for p in found), default=10)
                panel.plot([0, most], [0, most], color="#bbbbbb", linewidth=0.8, zorder=0)
                panel.set_title(f"{TOPOLOGIES[topology]}\n{ROWS[row]}", fontsize=9)
        for panel in panels[-1]:
            panel.set_xlabel("offered (kbit/s)")
        for panel in panels[:, 0]:
            panel.set_ylabel("carried (kbit/s)")
        ends = [found_.mean for p in found if (found_ := point(data, "carried_load", p)) is not None]
        panels[0][0].set_ylim(0, max(ends) / 1e3 * 1.1)
        marks.legend_below(figure, marks.line_keys(data, shown), 3)
    return figure


def loads_rows(data: Data) -> Rows:
    """What `loads` draws: mean and standard deviation over runs."""
    rows = []
    for p in _loads(data):
        told = point(data, "carried_load", p)
        if told is not None:
            where = (p.column("topology"), p.column("ldr"), p.column("mac_retx"), p.column("offered_kbps"))
            rows.append((*where, p.algorithm, told.mean / 1e3, told.deviation / 1e3))
    return Rows(("topology", "ldr", "mac_retx", "offered_kbps", "controller", "carried_kbps", "sd"), tuple(rows))


def delays(data: Data) -> Figure:
    """The share of all messages that were delivered within a time, mixed traffic. Raises `Missing` without it."""
    found = _mixed(data)
    topologies = [name for name in TOPOLOGIES if any(p.column("topology") == name for p in found)]
    shown = [name for name in names(data, found) if name in PAPER]
    with style.applied():
        figure = Figure(figsize=(style.WIDTH, 5.4), layout="constrained")
        panels = figure.subplots(2, len(topologies), squeeze=False, sharex=True, sharey=True)
        for down, links in enumerate(LINKS):
            for beside, topology in enumerate(topologies):
                panel = panels[down][beside]
                for p in found:
                    if (str(p.column("ldr")), p.column("topology")) == (links, topology) and p.algorithm in shown:
                        times, shares = _distribution(data, p)
                        look = data.looks[p.algorithm]
                        panel.step(times, shares, where="post", color=look.colour, linestyle=look.dash, linewidth=1.4)
                panel.set_title(f"{TOPOLOGIES[topology]}\nlinks deliver {LINKS[links]}", fontsize=9)
                panel.set_xscale("log")
                panel.set_xlim(0.01, LONGEST)
                panel.set_ylim(0, 1)
        for panel in panels[-1]:
            panel.set_xlabel("delay (s)")
        for panel in panels[:, 0]:
            panel.set_ylabel("share of all messages")
        marks.legend_below(figure, marks.line_keys(data, shown), 3)
    return figure


def delays_rows(data: Data) -> Rows:
    """What `delays` draws."""
    rows = []
    for p in _mixed(data):
        if p.algorithm in PAPER:
            times, shares = _distribution(data, p)
            where = (p.column("topology"), p.column("ldr"), p.algorithm)
            rows += [(*where, float(time), float(share)) for time, share in zip(times, shares, strict=True)]
    return Rows(("topology", "ldr", "controller", "delay_s", "share"), tuple(rows))


def first_waits(data: Data) -> Figure:
    """What exchanges wait at first, 6x6 grid with lossy links at 6 kbit/s. Raises `Missing` if that was not run."""
    found = _waits(data)
    edges = np.geomspace(0.5, 128, 49)
    with style.applied():
        figure = Figure(figsize=(style.WIDTH, 2.6), layout="constrained")
        panels = figure.subplots(1, len(found), squeeze=False, sharex=True, sharey=True)[0]
        for panel, p in zip(panels, found, strict=True):
            sample = data.measures.sample("first_wait", p)
            weights = np.ones(len(sample.values)) if sample.weights is None else sample.weights
            counts, _ = np.histogram(np.clip(sample.values, edges[0], edges[-1]), edges, weights=weights)
            look = data.looks[p.algorithm]
            panel.stairs(counts / counts.sum(), edges, fill=True, color=look.colour)
            mean = data.measures.estimate("first_wait", p, "mean").value
            panel.axvline(mean, color=style.INK, linewidth=1.0, linestyle="--")
            panel.set_title(f"{data.label(p.algorithm)}\nmean {mean:.3g} s", fontsize=9)
            panel.set_xscale("log")
            panel.set_xticks([1, 10, 100], ["1", "10", "100"])
            panel.set_xlabel("first wait (s)")
        panels[0].set_ylabel("share of exchanges")
    return figure


def first_waits_rows(data: Data) -> Rows:
    """The bins behind `first_waits`: times up to an upper end, and how many exchanges."""
    rows = []
    for p in _waits(data):
        sample = data.measures.sample("first_wait", p)
        bins: dict[float, int] = {}
        weights = np.ones(len(sample.values), np.int64) if sample.weights is None else sample.weights
        for value, count in zip(sample.values.tolist(), weights.tolist(), strict=True):
            bins[value] = bins.get(value, 0) + count
        rows += [(p.algorithm, value, count) for value, count in sorted(bins.items())]
    return Rows(("controller", "first_wait_up_to_s", "exchanges"), tuple(rows))


# ----------------------------------------------------------------------------------------------- helpers


def _loads(data: Data) -> list[Population]:
    found = [p for p in populations(data, traffic="constant") if p.algorithm in PAPER]
    if not found:
        raise Missing("Carried load: not drawn, constant traffic was not run.")
    return found


def _mixed(data: Data) -> list[Population]:
    found = populations(data, traffic="mixed", notifications=1)
    if not found:
        raise Missing("Delays: not drawn, mixed traffic was not run.")
    return found


def _waits(data: Data) -> list[Population]:
    found = populations(data, traffic="constant", topology="grid-6x6", ldr="lossy", offered_kbps=6)
    found = [p for p in found if p.algorithm in PAPER and data.measures.sample("first_wait", p).n]
    if not found:
        raise Missing("First waits: not drawn, the grid at 6 kbit/s was not run.")
    return found


def _line(panel: Axes, data: Data, here: Sequence[Population], name: str) -> None:
    told = sorted((float(p.column("offered_kbps")), point(data, "carried_load", p)) for p in here)
    places = [(offered, found) for offered, found in told if found is not None]
    if not places:
        return
    look = data.looks[name]
    panel.errorbar(
        [offered for offered, _ in places],
        [found.mean / 1e3 for _, found in places],
        [found.deviation / 1e3 for _, found in places],
        color=look.colour, linestyle=look.dash, marker=look.marker, markersize=3.5, linewidth=1.2, elinewidth=0.8,
        capsize=2,
    )  # fmt: skip


def _distribution(data: Data, population: Population) -> tuple[Floats, Floats]:
    """Times and the share of all messages that had been delivered by then."""
    sample = data.measures.sample("one_way_delay", population)
    born = float(np.sum(data.measures.flow_column(population, "born").astype(np.float64)))
    order = np.argsort(sample.values)
    weights = np.ones(len(order)) if sample.weights is None else sample.weights[order]
    shares: Floats = np.cumsum(weights, dtype=np.float64) / born
    return sample.values[order], shares
