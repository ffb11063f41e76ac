"""A controller's waits as a picture in the style of the report, beside those of RFC 7252."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from millpond.controllers import series
from millpond.controllers.own import is_own
from millpond.controllers.peer import SECOND, Make
from millpond.show import labels
from millpond.show.document import Plot, Rows
from millpond.show.report import style
from millpond.show.report.figures import marks
from millpond.show.report.style import Look

_TICKS = [n * 10.0**k for k in range(-3, 5) for n in (1, 2, 5)]
_FADED = 0.16


def waits(makes: Mapping[str, Make]) -> Plot:
    """Three rows of panels: an exchange nobody answers, what answers leave behind, and a path that changes.

    Args:
        makes: the controllers by name, in the order of the legend.
    """
    found: list[tuple[object, ...]] = []
    for name, make in makes.items():
        for one in series.unanswered(make):
            for copy, (low, high) in enumerate(zip(one.lowest_us, one.highest_us, strict=True)):
                found.append((name, f"unanswered {one.past}", copy, low / SECOND, high / SECOND))
        for after in series.aftermaths(make):
            what = f"after {after.retransmissions} retransmissions"
            for number, (low, high) in enumerate(zip(after.first_us, after.second_us, strict=True), 1):
                found.append((name, what, number, low / SECOND, high / SECOND))
        for point in series.trace(make):
            found.append((name, "changing path", point.at_s, point.first_us / SECOND, point.rtt_us / SECOND))
    header = ("controller", "what", "copy, exchange or second", "wait_s", "highest, second wait or rtt_s")
    return Plot(Rows(header, tuple(found)), lambda: draw(makes))


def draw(makes: Mapping[str, Make]) -> Figure:
    """The picture of `waits`."""
    with style.applied():
        figure = Figure(figsize=(style.width(), 10.6), layout="constrained")
        grid = figure.add_gridspec(3, 4, height_ratios=(1.0, 0.9, 1.1))
        looks = style.looks({name: name for name in makes}, {name for name in makes if is_own(name)})
        first = [figure.add_subplot(grid[0, 2 * side : 2 * side + 2]) for side in (0, 1)]
        second = [figure.add_subplot(grid[1, side]) for side in range(4)]
        third = figure.add_subplot(grid[2, :])
        _unanswered(first, makes, looks)
        _aftermaths(second, makes, looks)
        _trace(third, makes, looks)
        keys: list[marks.Key] = [_key(name, looks[name]) for name in makes]
        keys += [
            Patch(color=style.INK, alpha=_FADED, linewidth=0, label="from the lowest to the highest draw"),
            Line2D([], [], color=style.INK, linewidth=1.1, marker="_", label="up to the wait in force, or the second"),
            Line2D([], [], color=style.INK, linewidth=1.8, label="round-trip time of the path"),
            Line2D([], [], **_LOST, label="first copies lost"),
        ]
        marks.legend_below(figure, keys, 3)
        marks.more_room(figure)
    return figure


# ----------------------------------------------------------------------------------------------- panels

_LOST: dict[str, Any] = {
    "linestyle": "none",
    "marker": "x",
    "markersize": 7,
    "markeredgewidth": 1.6,
    "color": style.INK,
}


def _unanswered(panels: list[Axes], makes: Mapping[str, Make], looks: dict[str, Look]) -> None:
    values: list[float] = []
    for name, make in reversed(list(makes.items())):
        look = looks[name]
        for axes, one in zip(panels, series.unanswered(make), strict=True):
            copies = range(len(one.lowest_us))
            low, high = _in_seconds(one.lowest_us), _in_seconds(one.highest_us)
            values += low + high
            axes.fill_between(copies, low, high, color=look.colour, alpha=_FADED, linewidth=0, zorder=2)
            axes.plot(copies, low, **_line(look))
            axes.set_title(f"Waits of an exchange nobody answers,\n{one.past}")
    for axes in panels:
        _seconds_axis(axes, values)
        axes.set_xticks(range(series.COPIES))
        axes.set_xlabel("copy (0: the first)")
        axes.axvline(4.5, color=style.GRID, linewidth=1.0, zorder=1)
    panels[0].set_ylabel("wait after the copy (s)")
    panels[1].tick_params(labelleft=False)
    floor = panels[0].get_ylim()[0]
    for axes in panels:
        _note(axes, "past MAX_RETRANSMIT", (4.5, floor), (4, 4), fontsize=8.5, va="bottom")


def _aftermaths(panels: list[Axes], makes: Mapping[str, Make], looks: dict[str, Look]) -> None:
    values: list[float] = []
    for place, (name, make) in enumerate(makes.items()):
        look = looks[name]
        shift = 0.09 * (2 * place - len(makes) + 1)
        for axes, after in zip(panels, series.aftermaths(make), strict=True):
            firsts, seconds = _in_seconds(after.first_us), _in_seconds(after.second_us)
            at = [number + shift for number in range(1, len(firsts) + 1)]
            values += [*firsts, *seconds, *_in_seconds((after.before_us, after.in_force_us))]
            axes.vlines(at, firsts, seconds, color=look.colour, linewidth=1.1, alpha=0.75, zorder=2)
            axes.plot(at, firsts, **{**_line(look), "linestyle": "none"})
            axes.vlines(shift, after.before_us / SECOND, after.in_force_us / SECOND, color=look.colour, linewidth=1.1)
            axes.plot([shift], [after.before_us / SECOND], **{**_line(look), "linestyle": "none"})
            axes.plot(
                [shift], [after.in_force_us / SECOND], color=look.colour, marker="_", markersize=9, markeredgewidth=2.2
            )
            axes.set_title(_answer(after.retransmissions))
    for axes in panels:
        _seconds_axis(axes, values)
        axes.set_xticks(range(series.FOLLOWING + 1))
        axes.axvspan(-0.5, 0.5, color="#f0f0f0", zorder=0, linewidth=0)
        axes.set_xlim(-0.5, series.FOLLOWING + 0.5)
        axes.set_xlabel("exchanges later")
    for axes in panels[1:]:
        axes.tick_params(labelleft=False)
    panels[0].set_ylabel("first wait (s)")


def _trace(axes: Axes, makes: Mapping[str, Make], looks: dict[str, Look]) -> None:
    values: list[float] = []
    lost: dict[float, int] = {}
    for name, make in reversed(list(makes.items())):
        look = looks[name]
        points = series.trace(make)
        values += [point.first_us / SECOND for point in points]
        lost.update({point.at_s: point.lost for point in points if point.lost})
        for run in _runs(points):
            waits = [point.first_us / SECOND for point in run]
            axes.step([point.at_s for point in run], waits, where="post", **{**_line(look), "markersize": 3.6})
    values += [phase.rtt_us / SECOND for phase in series.STORY if phase.rtt_us is not None]
    _seconds_axis(axes, values, above=2.2)
    floor, top = axes.get_ylim()
    begun = 0
    for phase in series.STORY:
        if phase.rtt_us is not None:
            axes.hlines(phase.rtt_us / SECOND, begun, phase.until_s, color=style.INK, linewidth=1.8, zorder=4)
        else:
            axes.axvspan(begun, phase.until_s, color="#f0f0f0", zorder=0, linewidth=0)
        _note(axes, phase.title, ((begun + phase.until_s) / 2, top), (0, -3), fontsize=9.5, ha="center", va="top")
        begun = phase.until_s
    axes.plot(list(lost), [floor * 1.13] * len(lost), zorder=6, **_LOST)
    for at, copies in lost.items():
        _note(axes, str(copies), (at, floor * 1.13), (6, 0), fontsize=9, va="center")
    axes.set_xlim(0, begun)
    axes.set_xlabel("time (s)")
    axes.set_ylabel("first wait (s)")
    axes.set_title("First waits on a path that changes, an exchange every 5 s")


# ----------------------------------------------------------------------------------------------- helpers


def _answer(retransmissions: int) -> str:
    if retransmissions == 0:
        return "After a clean answer"
    return f"After {retransmissions} retransmission{'' if retransmissions == 1 else 's'}"


def _in_seconds(lengths: tuple[int, ...]) -> list[float]:
    return [us / SECOND for us in lengths]


def _note(axes: Axes, text: str, at: tuple[float, float], by: tuple[float, float], **how: Any) -> None:
    axes.annotate(text, at, by, textcoords="offset points", color="#555555", **how)


def _line(look: Look) -> dict[str, Any]:
    return {
        "color": look.colour,
        "linestyle": look.dash,
        "marker": look.marker,
        "markersize": 5.0,
        "markeredgecolor": style.INK,
        "markeredgewidth": 0.5,
        "zorder": 3,
    }


def _key(name: str, look: Look) -> Line2D:
    return Line2D([], [], **{**_line(look), "zorder": 1}, label=name)


def _runs(points: tuple[series.Point, ...]) -> list[list[series.Point]]:
    """The points between silences."""
    ends = [phase.until_s for phase in series.STORY if phase.rtt_us is None]
    edges = pairwise((0, *ends, series.STORY[-1].until_s))
    return [[point for point in points if low <= point.at_s < high] for low, high in edges]


def _seconds_axis(axes: Axes, values: list[float], above: float = 1.25) -> None:
    """A logarithmic axis around the values, with plain numbers."""
    low, high = min(values) / 1.4, max(values) * above
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    axes.yaxis.set_major_locator(FixedLocator([tick for tick in _TICKS if low <= tick <= high]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: labels.plain(value)))
