"""The pictures of an answer: devices done, the queue and what it carries, and how far it is to the edge."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from millpond.fleet.answer import Answer
from millpond.fleet.outcome import Drawn
from millpond.fleet.scenario import LEAD_S
from millpond.fleet.search import Edge
from millpond.show.document import Plot, Rows
from millpond.show.report import style
from millpond.show.report.figures import marks, queue
from millpond.show.report.figures.reported import Panel, draw
from millpond.show.report.grid import Floats

AS_IT_IS, BEST = "#C8321E", "#0072B2"
LOOKS = (style.Look(AS_IT_IS, "-", "o", ""), style.Look(BEST, (0, (6, 2)), "s", "////"))


def drawn(answer: Answer) -> dict[str, Drawn]:
    """What is drawn side by side, by what it is called: how it is, and the best remedy."""
    best = answer.best
    chosen = [answer.as_it_is, *([best.outcome] if best is not None else [])]
    return {outcome.change.title: outcome.drawn for outcome in chosen if outcome.drawn is not None}


def done(answer: Answer) -> Plot:
    """The share of devices done over time, in the first run."""
    lines = {name: shown.done for name, shown in drawn(answer).items()}
    looks = dict(zip(lines, LOOKS, strict=False))
    rows = [
        (name, float(t), float(share))
        for name, course in lines.items()
        for t, share in zip(course.times, course.share, strict=True)
    ]
    told = Rows(("setting", "time_s", "share_of_devices"), tuple(rows))
    return Plot(told, lambda: draw([Panel("", lines, looks, answer.fleet.horizon_s)], looks, "the event"))


def collapse(answer: Answer) -> Plot:
    """Queue of the bottleneck and the goodput ratio of what it carries, over time, in the first run."""
    found = {name: shown.link for name, shown in drawn(answer).items()}
    looks = {name: (name, look) for name, look in zip(found, LOOKS, strict=False)}

    def draw() -> Figure:
        title = f"{next(iter(found.values())).link}, the busiest link"
        figure = queue.over_time([(title, found)], looks, "queue (kB)", f"time (s); the event is at {LEAD_S} s")
        for axes in figure.axes:
            axes.axvline(LEAD_S, color=style.INK, linewidth=0.9, linestyle=(0, (2, 2)))
        return figure

    return Plot(queue.course_rows(found, ("setting",)), draw)


def edges(answer: Answer) -> Plot:
    """The share of runs that are safe, and when the goal's share is done, against the size of the fleet."""
    rows = tuple(
        (edge.change.title, point.devices, point.verdict, *point.probability("safe"), point.median("goal_s"))
        for edge in answer.edges
        for point in edge.points
    )
    told = Rows(("setting", "devices", "verdict", "safe", "safe_low", "safe_high", "goal_s"), rows)
    return Plot(told, lambda: _edges(answer))


def _edges(answer: Answer) -> Figure:
    with marks.panels(5.6, 2, 1, ("devices in the fleet", ""), sharex=True) as (figure, (above, below)):
        looks = dict(zip((edge.change.title for edge in answer.edges), LOOKS, strict=False))
        for edge in answer.edges:
            look, sizes = looks[edge.change.title], _sizes(edge)
            how = {"color": look.colour, "linestyle": look.dash, "marker": look.marker, "markersize": 5.0,
                   "markeredgecolor": style.INK, "markeredgewidth": 0.5}  # fmt: skip
            safe = np.array([point.probability("safe") for point in edge.points])
            above.plot(sizes, safe[:, 0], **how)
            above.fill_between(sizes, safe[:, 1], safe[:, 2], color=look.colour, alpha=0.15, linewidth=0)
            times = np.array([point.median("goal_s") for point in edge.points])
            below.plot(sizes, np.where(np.isfinite(times), times, np.nan), **how)
            for axes in (above, below):
                if edge.largest:
                    axes.axvline(edge.largest, color=look.colour, linewidth=0.9, linestyle=(0, (2, 2)))
            if edge.largest:
                above.annotate(
                    f"{edge.largest}", (edge.largest, 1.0), (3, 3), textcoords="offset points", color=look.colour,
                    fontsize=9.5,
                )  # fmt: skip
        above.set_ylabel("share of runs\nthat are safe")
        above.set_ylim(0, 1.12)
        above.set_yticks((0, 0.25, 0.5, 0.75, 1.0))
        above.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
        goal = answer.fleet.goal
        below.axhline(goal.within_s, color=style.INK, linewidth=0.9, linestyle=(0, (4, 2)))
        below.set_ylabel(f"{100 * goal.share:g} % done after (s)")
        below.set_ylim(bottom=0)
        below.set_xscale("log")
        below.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        below.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        below.xaxis.set_minor_formatter(NullFormatter())
        keys: list[marks.Key] = [marks.line_key(look, name) for name, look in looks.items()]
        marks.legend_below(figure, keys, 2)
    return figure


# ----------------------------------------------------------------------------------------------- helpers


def _sizes(edge: Edge) -> Floats:
    return np.array([point.devices for point in edge.points], dtype=np.float64)
