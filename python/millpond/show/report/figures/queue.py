"""The bottleneck over time: how long its queue is, and how much of what it carries is of use."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from millpond.controllers.own import is_own
from millpond.engine import presets
from millpond.results.directory import Cell, Results
from millpond.show.document import Missing, Plot, Rows
from millpond.show.report import style
from millpond.show.report.figures import marks
from millpond.show.report.figures.clock import Clock
from millpond.show.report.grid import Facet, Floats, Grid, only, rate

POINTS = 240
"""At most this many points a line; more would not be seen."""
WINDOWS = 90
"""The longest run is cut into so many windows for the goodput ratio."""


@dataclass(frozen=True)
class Course:
    """One traced run: the queue of its bottleneck, and the goodput ratio of what that carried, over time."""

    cell: Cell
    run: int
    link: str
    times: Floats
    queue: Floats
    share_times: Floats
    share: Floats
    window: float

    @property
    def delay_per_byte(self) -> float | None:
        """Seconds that a queued byte takes to leave."""
        bits = rate(self.cell, self.link)
        return None if bits is None else 8 / bits


def queue_over_time(results: Results | Grid, stage: Facet | None = None, controllers: Sequence[str] = ()) -> Plot:
    """Queue (kB, and as seconds of waiting) above, goodput ratio below, over time, for each traced controller.

    A panel per family of controllers, so that each published controller is seen beside its variants; custom
    ones stand in every panel. `controllers` picks some, in one panel. Raises `Missing` if no such run was traced.
    """
    grid = Grid.of(results)
    found = courses(grid, stage)
    picked = [name for name in controllers if name in found]
    families = [("", picked)] if controllers else _families(grid, list(found))
    shown = [(title, {name: found[name] for name in names}) for title, names in families if names]
    if not shown:
        raise Missing(f"None of {', '.join(controllers)} was traced there.")
    looks = {name: (grid.label(name), grid.looks[name]) for name in found}
    return Plot(course_rows(found), lambda: over_time(shown, looks, "queue of the bottleneck (kB)"))


def course_rows(found: Mapping[str, Course], header: tuple[str, ...] = ("controller",)) -> Rows:
    """Such lines: of each run the queue and the goodput ratio, point by point."""
    rows: list[tuple[object, ...]] = []
    for name, course in found.items():
        told = (name,) if header else ()
        rows += [(*told, "queue", "B", float(t), float(v)) for t, v in zip(course.times, course.queue, strict=True)]
        rows += [
            (*told, "goodput ratio", "1", float(t), float(v))
            for t, v in zip(course.share_times, course.share, strict=True)
            if np.isfinite(v)
        ]
    return Rows((*header, "quantity", "unit", "time_s", "value"), tuple(rows))


def courses(grid: Grid, stage: Facet | None = None) -> dict[str, Course]:
    """The traced runs of a place, by controller; of the first one traced if none is named.

    Raises `Missing` if there are none.
    """
    stage = stage or (grid.stages[0] if grid.stages else grid.whole)
    traced = grid.traced(grid.plain(stage))
    if not traced:
        raise Missing(
            "Queue and goodput ratio over time are not drawn: no run was traced (the plan's [trace] says which)."
        )
    here = {only(cell): (cell, run) for cell, run in reversed(traced)}
    return follow(grid, {name: here[name] for name in grid.controllers() if name in here})


def follow(grid: Grid, runs: dict[str, tuple[Cell, int]], until: float = math.inf) -> dict[str, Course]:
    """Queue and goodput ratio of each run at its bottleneck up to a time in s, thinned to what can be seen."""
    raw = {}
    for name, (cell, run) in runs.items():
        link = grid.bottleneck(cell)
        times, queue = grid.rows("queue_trace", run, ("t_us", "bytes"), link=link)
        seen = times <= until
        raw[name] = (cell, run, link, (times[seen], queue[seen]))
    longest = max((float(queue[0][-1]) for *_, queue in raw.values() if queue[0].size), default=0.0)
    window = _round_up(longest / WINDOWS)
    found = {}
    for name, (cell, run, link, (times, queue)) in raw.items():
        share_times, share = _shares(grid, run, link, window)
        seen = share_times <= until
        share_times, share = share_times[seen], share[seen]
        kept = thinned(times, queue, longest / POINTS)
        found[name] = Course(cell, run, link, *kept, share_times, share, window)
    return found


def panel_pair(
    queue_axes: Axes, share_axes: Axes, drawn: Mapping[str, Course], looks: Mapping[str, style.Look]
) -> None:
    """Draw courses into a pair of panels: queue above, goodput ratio below."""
    for place, (name, course) in enumerate(drawn.items()):
        look = looks[name]
        every = max(1, len(course.times) // 7)
        how: dict[str, Any] = {
            "color": look.colour,
            "linestyle": look.dash,
            "marker": look.marker,
            "markersize": 5.0,
            "markeredgecolor": style.INK,
            "markeredgewidth": 0.5,
        }
        queue_axes.plot(course.times, course.queue / 1e3, markevery=(place * every // 3 + every // 3, every), **how)
        seen = np.isfinite(course.share)
        every = max(1, int(seen.sum()) // 7)
        share_axes.plot(
            course.share_times[seen], course.share[seen], markevery=(place * every // 3 + every // 3, every), **how
        )


def scales(grid: Grid, cells: Iterable[Cell]) -> str:
    """What the two scales of a queue are, in words; empty where there is one, as without a rate or with several."""
    if all(rate(cell, grid.bottleneck(cell)) is None for cell in cells):
        return ""
    return " (left scale) and how long a new packet has to wait for it (right scale)"


def waiting_axis(axes: Axes, course: Course) -> None:
    """A second axis on the right: the queue as the time that a packet waits in it."""
    per_byte = course.delay_per_byte
    if per_byte is None:
        return
    factor = 1e3 * per_byte
    second = axes.secondary_yaxis("right", functions=(partial(np.multiply, factor), partial(np.multiply, 1 / factor)))
    second.set_ylabel("waiting time in the queue (s)")
    second.yaxis.set_major_locator(MaxNLocator(6))


def over_time(
    shown: Sequence[tuple[str, Mapping[str, Course]]],
    looks: Mapping[str, tuple[str, style.Look]],
    axis: str,
    time: str = "",
) -> Figure:
    """Runs over time, a pair of panels for each title: queue above, goodput ratio below; labels and looks by name."""
    found = {name: course for _, members in shown for name, course in members.items()}
    longest = max((float(course.times[-1]) for course in found.values() if course.times.size), default=0.0)
    clock = Clock.of([longest])
    beside = len(shown)
    how: dict[str, Any] = {"sharex": True, "sharey": "row", "height_ratios": (3, 2)}
    with marks.panels(6.0 * style.scale(), 2 * beside, beside, **how) as (figure, panels):
        for (title, members), above, below in zip(shown, panels, panels[beside:], strict=False):
            panel_pair(above, below, members, {name: look for name, (_, look) in looks.items()})
            above.set_title(title)
            clock.mark(below.xaxis, longest)
            below.set_xlabel(time or clock.label("time since the start"))
            above.tick_params(axis="x", labelbottom=False)
        panels[0].set_ylabel(axis)
        panels[beside].set_ylabel("goodput ratio")
        panels[0].set_ylim(bottom=0)
        panels[0].set_xlim(left=0)
        panels[beside].set_ylim(0, 1.03)
        panels[beside].yaxis.set_major_formatter(PercentFormatter(1.0))
        waiting_axis(panels[beside - 1], next(iter(found.values())))
        keys = [marks.line_key(look, label) for name, (label, look) in looks.items() if label and name in found]
        if keys:
            marks.legend_below(figure, keys, max(1, int(style.width() // (3.3 if len(shown) > 1 else 2.6))))
    return figure


def _families(grid: Grid, names: list[str]) -> list[tuple[str, list[str]]]:
    own = [name for name in names if is_own(name)]
    families = {preset.name: preset.family for preset in presets()}
    told = {"Default CoAP and its variants": "rfc7252", "CoCoA and its variants": "cocoa"}
    named = {title: [n for n in names if families.get(grid.presets[n]) == of] for title, of in told.items()}
    rest = [name for name in names if name not in own and all(name not in members for members in named.values())]
    named["Other controllers"] = rest
    shown = [(title, [*members, *own]) for title, members in named.items() if members]
    return shown if len(shown) > 1 else [("", names)]


def _shares(grid: Grid, run: int, link: str, window: float) -> tuple[Floats, Floats]:
    if not grid.results.has("share_trace"):
        return np.empty(0), np.empty(0)
    times, carried, useful = grid.rows("share_trace", run, ("t_us", "carried_bytes", "useful_bytes"), link=link)
    if times.size == 0:
        return np.empty(0), np.empty(0)
    bins = (times // window).astype(np.int64)
    carried_bytes: Floats = np.bincount(bins, weights=carried).astype(np.float64)
    useful_bytes: Floats = np.bincount(bins, weights=useful).astype(np.float64)
    share: Floats = np.full(carried_bytes.size, np.nan)
    np.divide(useful_bytes, carried_bytes, out=share, where=carried_bytes > 0)
    # a copy may be known to be useful a little after it was carried
    share = np.minimum(share, 1.0)
    middles: Floats = (np.arange(share.size, dtype=np.float64) + 0.5) * np.float64(window)
    return middles, share


def thinned(times: Floats, values: Floats, step: float) -> tuple[Floats, Floats]:
    """The largest value of each `step`, so that no peak is lost, and both ends."""
    if times.size <= POINTS or step <= 0:
        return times, values
    starts = np.flatnonzero(np.diff((times // step).astype(np.int64), prepend=-1))
    ends = np.append(starts[1:], times.size)
    peaks = [int(start + np.argmax(values[start:end])) for start, end in zip(starts, ends, strict=True)]
    kept = np.unique([0, *peaks, times.size - 1])
    return times[kept], values[kept]


def _round_up(seconds: float) -> float:
    """The next 1, 2 or 5 times a power of ten, at least one second."""
    size = 1.0
    while True:
        for factor in (1.0, 2.0, 5.0):
            if size * factor >= seconds:
                return size * factor
        size *= 10
