"""How long an event is felt and how late messages around bursts are, beside what was printed."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from millpond.judge.compare import Comparison
from millpond.measure.population import Population
from millpond.show.report import style
from millpond.show.report.data import Data
from millpond.show.report.figures import marks
from millpond.show.report.values import Missing, Rows
from millpond.studies.cocoaplus15.points import LINKS, TOPOLOGIES, names, point, populations, published

#: Metric, the paper's name for it, traffic, notifications, what it is called, and its factor for the axis.
SETTLING = ("settling_time", "settling_time", "global event", 0, "settling time (s)", 1.0)
BURSTS = ("event_delay", "delay_during_burst", "mixed", 1, "mean delay around bursts (s)", 1.0)
DELIVERY = ("packet_delivery_ratio", "pdr", "mixed", 1, "messages delivered (%)", 100.0)

What = tuple[str, str, str, int, str, float]


def by_place(data: Data, what: What, comparison: Comparison | None) -> Figure:
    """The metric by topology, links and controller with 95 % intervals; diamonds are printed."""
    metric, theirs_name, _, _, title, scale = what
    found = _found(data, what)
    topologies = [name for name in TOPOLOGIES if any(p.column("topology") == name for p in found)]
    shown = names(data, found)
    theirs = published(comparison, theirs_name)
    with style.applied():
        figure = Figure(figsize=(style.WIDTH, 5.6), layout="constrained")
        panels = figure.subplots(2, len(topologies), squeeze=False, sharex=True, sharey="row")
        for down, links in enumerate(LINKS):
            for beside, topology in enumerate(topologies):
                panel = panels[down][beside]
                for place, name in enumerate(shown):
                    here = [p for p in found if _is(p, topology, links) and p.algorithm == name]
                    told = point(data, metric, here[0]) if here else None
                    look = data.looks[name]
                    if told is not None:
                        panel.errorbar(
                            [place], [told.mean * scale], [[end * scale] for end in told.reach], color=look.colour,
                            marker=look.marker, markersize=6, markeredgecolor=style.INK, capsize=3, linewidth=1.3,
                        )  # fmt: skip
                    printed = theirs.get((topology, links, name))
                    if printed is not None:
                        panel.errorbar(
                            [place + 0.28], [printed[0] * scale], [printed[1] * scale], color=style.INK, elinewidth=0.8,
                            **{**marks.PUBLISHED_MARK, "markersize": 6.5},
                        )  # fmt: skip
                panel.set_title(f"{TOPOLOGIES[topology]}\nlinks deliver {LINKS[links]}", fontsize=9)
                panel.set_xticks([])
                panel.set_xlim(-0.7, len(shown) - 0.3)
                panel.set_ylim(bottom=0)
        for panel in panels[:, 0]:
            panel.set_ylabel(title)
        keys = marks.line_keys(data, shown)
        if theirs:
            keys.append(Line2D([], [], color=style.INK, **marks.PUBLISHED_MARK, label="published"))
        marks.legend_below(figure, keys, 4)
    return figure


def by_place_rows(data: Data, what: What) -> Rows:
    """What `by_place` draws: means and their 95 % intervals over runs."""
    rows = []
    for p in _found(data, what):
        told = point(data, what[0], p)
        if told is not None:
            rows.append(
                (p.column("topology"), p.column("ldr"), p.algorithm, told.mean, *(told.estimate.interval or ("", "")))
            )
    return Rows(("topology", "ldr", "controller", what[0], "ci95_low", "ci95_high"), tuple(rows))


# ----------------------------------------------------------------------------------------------- helpers


def _found(data: Data, what: What) -> list[Population]:
    found = populations(data, traffic=what[2], notifications=what[3])
    if not found:
        raise Missing(f"{what[4]}: not drawn, {what[2]} was not run.")
    return found


def _is(population: Population, topology: str, links: str) -> bool:
    return (population.column("topology"), str(population.column("ldr"))) == (topology, links)
