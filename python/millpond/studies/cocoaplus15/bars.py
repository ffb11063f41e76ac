"""How long an event is felt and how late messages around bursts are, beside what was printed."""

from __future__ import annotations

from functools import partial

from millpond.judge.compare import Comparison
from millpond.show.document import Missing, Plot, Rows
from millpond.show.report.figures import facets
from millpond.show.report.figures.facets import Point, Spec
from millpond.show.report.figures.matrix import series_of
from millpond.show.report.grid import Grid, Spread
from millpond.studies.cocoaplus15.points import LINKS, TOPOLOGIES, names, point, populations, published

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
        published={(links, topology, "", name): mean * scale for (topology, links, name), (mean, _) in printed.items()},
    )
    header = ("topology", "ldr", "controller", metric, "ci95_low", "ci95_high")
    return Plot(Rows(header, tuple(rows)), partial(facets.draw, points, spec))
