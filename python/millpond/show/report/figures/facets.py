"""Small multiples of any kind: points by row, column, place along the axis and series, and how they are drawn."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullFormatter, NullLocator

from millpond.show import labels
from millpond.show.document import Plot, Rows
from millpond.show.report import style
from millpond.show.report.figures import marks
from millpond.show.report.grid import Spread
from millpond.show.report.style import Look

#: Boxes of all values, bars up to the median, medians with the middle 80 %, or one number with its interval.
Kind = Literal["box", "bar", "median", "line"]
#: From zero (or zoomed in, said in the title), logarithmic, or either as far apart as values lie.
Upward = Literal["zero", "log", "stretched", "plain"]
#: A value of a factor, or several of them.
Value: TypeAlias = Any
#: Row, column, place along the axis, series.
Place: TypeAlias = tuple[Value, Value, Value, str]

STRETCHED = 6.0
"""An axis is logarithmic if its largest value is so many times its smallest."""


@dataclass(frozen=True)
class Point:
    """What stands at one place: how values are spread, or a number and its interval."""

    row: Value
    column: Value
    x: Value
    series: str
    spread: Spread
    #: Its cells before the numbers in the file of the picture.
    told: tuple[object, ...] = ()
    #: Where it does not look as its series does.
    look: Look | None = None
    #: The 95 % interval of its median over runs.
    interval: tuple[float, float] | None = None

    @property
    def place(self) -> Place:
        """Where it stands."""
        return self.row, self.column, self.x, self.series


@dataclass(frozen=True)
class Spec:
    """How points are drawn."""

    kind: Kind
    y: str
    #: What each series is called and how it looks, in order.
    series: Mapping[str, tuple[str, Look]]
    x: str = ""
    tick: Callable[[Value], str] = str
    #: The title of a panel.
    title: Callable[[Value, Value], str] = lambda _, column: str(column)
    #: All values along the axis, rows and columns in order; left out: as the points have them.
    xs: Sequence[Value] = ()
    rows: Sequence[Value] = ()
    columns: Sequence[Value] = ()
    #: Whether there are no rows: panels follow one another, two abreast.
    wrapped: bool = False
    #: Whether x is a number that stands where it belongs, and on which scale.
    numeric: bool = False
    log_x: bool = False
    upward: Upward = "zero"
    zoom: float = 0.25
    percent: bool = False
    shared: bool = False
    #: Whether medians of a series are joined by a line.
    joined: bool = False
    #: Whether words along the axis stand upright, for want of room.
    upright: bool = False
    #: Inches of a row of panels.
    height: float = 2.55
    note: str = ""
    #: Published numbers by place, as diamonds; and in full, as boxes beside ours.
    published: Mapping[Place, float] = field(default_factory=dict)
    boxes: Mapping[Place, Mapping[str, float]] = field(default_factory=dict)
    #: Of each series a published number that is the same along the axis, by row, column and series.
    lines: Mapping[tuple[Value, Value, str], float] = field(default_factory=dict)
    #: The legend, if it is not that of the series.
    keys: Sequence[marks.Key] = ()
    #: More on each panel.
    further: Callable[[Axes, Value, Value], None] = lambda *_: None


def plot(points: Sequence[Point], spec: Spec, header: Sequence[str]) -> Plot:
    """Points as a picture and as its numbers, below a header."""
    sure = any(point.interval is not None for point in points)
    rows = tuple((*p.told, *p.spread.row(), *((p.interval or ("", "")) if sure else ())) for p in points)
    ends = ("median_ci95_low", "median_ci95_high") if sure else ()
    return Plot(Rows((*header, *Spread.HEADER, *ends), rows), partial(draw, points, spec))


def draw(points: Sequence[Point], spec: Spec) -> Figure:
    """The picture."""
    xs = [x for x in spec.xs if any(point.x == x for point in points)] or list(dict.fromkeys(p.x for p in points))
    series = {name: told for name, told in spec.series.items() if any(point.series == name for point in points)}
    cells = _cells(points, spec)
    few = len(cells) == 1 and len(xs) * len(series) <= 7
    abreast = _abreast(cells, spec, len(series))
    height = (spec.height * -(-len(cells) // abreast) + 1.0) * style.scale()
    width = min(style.width(), max(4.2, 1.6 + 0.9 * len(xs) * len(series))) if few else style.width()
    sharey = _sharing(cells, abreast) if spec.shared else False
    with marks.panels(height, len(cells), abreast, (spec.x, spec.y), width=width, sharey=sharey) as (figure, panels):
        marks.more_room(figure)
        for panel, (row, column) in zip(panels, cells, strict=True):
            here = [point for point in points if (point.row, point.column) == (row, column)]
            values = _paint(panel, here, spec, xs, list(series), (row, column))
            from_zero = _upwards(panel, values, spec)
            title = textwrap.fill(spec.title(row, column), max(12, int(width / abreast * 9 / style.scale())))
            marks.title(panel, title, from_zero)
            _along(panel, spec, xs)
            spec.further(panel, row, column)
        if spec.shared and spec.upward != "plain":
            _shared_upwards(panels, [v for p in points for v in _values(p, spec)], spec)
        if spec.note:
            figure.suptitle(textwrap.fill(spec.note, int(width * 11)), x=0.01, ha="left", fontsize="medium")
        figure.align_ylabels()
        keys = list(spec.keys) or _keys(spec, series, points)
        if any(told for _, (told, _) in series.items()) or spec.keys:
            marks.legend_below(figure, keys, 1 if few else max(1, int(width // 2.6)))
    return figure


# ----------------------------------------------------------------------------------------------- panels


def _cells(points: Sequence[Point], spec: Spec) -> list[tuple[Value, Value]]:
    there = dict.fromkeys((point.row, point.column) for point in points)
    if spec.wrapped:
        order = {column: rank for rank, column in enumerate(spec.columns)}
        return sorted(there, key=lambda cell: order.get(cell[1], len(order)))
    rows = [row for row in spec.rows if any(cell[0] == row for cell in there)] or list(
        dict.fromkeys(r for r, _ in there)
    )
    columns = [column for column in spec.columns if any(cell[1] == column for cell in there)]
    columns = columns or list(dict.fromkeys(column for _, column in there))
    return [(row, column) for row in rows for column in columns]


def _abreast(cells: Sequence[tuple[Value, Value]], spec: Spec, series: int) -> int:
    """Panels side by side: as many as there are columns, and no more than can be read."""
    wide = max(1, int(style.width() // 1.7))
    if spec.wrapped:
        return min(1 if len(cells) == 1 or series > 7 else 2, wide)
    columns = len(dict.fromkeys(column for _, column in cells))
    return columns if columns <= max(wide, 1) else min(wide, 2)


def _sharing(cells: Sequence[tuple[Value, Value]], abreast: int) -> str | bool:
    columns = len(dict.fromkeys(column for _, column in cells))
    return "row" if abreast == columns and len(cells) > columns else True


def _paint(
    panel: Axes, here: Sequence[Point], spec: Spec, xs: Sequence[Value], names: Sequence[str], cell: tuple[Value, Value]
) -> list[float]:
    """All series in one panel; gives every value that has to be in view."""
    at, width = marks.positions(len(xs), len(names))
    values: list[float] = []
    diamonds = []
    beside = 0.5 if spec.boxes else 1.0
    for turn, name in enumerate(names):
        mine = sorted((xs.index(point.x), number) for number, point in enumerate(here) if point.series == name)
        if spec.numeric:
            where = [float(xs[step]) for step, _ in mine]
        else:
            where = [at[step][turn] - (0.22 * width if spec.boxes else 0.0) for step, _ in mine]
        spreads = [here[number].spread for _, number in mine]
        looks = [here[number].look or spec.series[name][1] for _, number in mine]
        for look in dict.fromkeys(map(id, looks)):
            chosen = [n for n, one in enumerate(looks) if id(one) == look]
            _mark(
                panel, spec, looks[chosen[0]], [where[n] for n in chosen], [spreads[n] for n in chosen], width * beside
            )
        marks.intervals(panel, [(x, here[n].interval) for x, (_, n) in zip(where, mine, strict=True)])
        values += [value for _, number in mine for value in _values(here[number], spec)]
        for step, x in enumerate(xs):
            place = (*cell, x, name)
            spot = float(xs[step]) if spec.numeric else at[step][turn]
            if place in spec.published:
                diamonds.append((spot, spec.published[place]))
            if place in spec.boxes:
                marks.published_box(panel, spot + 0.32 * width, spec.boxes[place], 0.3 * width)
                values += spec.boxes[place].values()
        if (said := spec.lines.get((*cell, name))) is not None and mine:
            panel.axhline(said, color=spec.series[name][1].colour, linestyle=":", linewidth=1.4, zorder=1)
            values.append(said)
    marks.published(panel, diamonds)
    return [*values, *(value for _, value in diamonds)]


def _mark(panel: Axes, spec: Spec, look: Look, at: Sequence[float], spreads: Sequence[Spread], width: float) -> None:
    if spec.kind == "box":
        marks.boxes(panel, look, at, spreads, width)
    elif spec.kind == "bar":
        marks.bars(panel, look, at, spreads, width)
    else:
        marks.medians(panel, look, at, spreads)
    if spec.joined or (spec.kind == "line" and spec.numeric):
        middles = [spread.median for spread in spreads]
        panel.plot(at, middles, color=look.colour, linestyle=look.dash, linewidth=1.2, zorder=1)


def _values(point: Point, spec: Spec) -> tuple[float, ...]:
    spread = point.spread
    return (spread.minimum, spread.maximum) if spec.kind == "box" else (spread.p10, spread.p90, spread.median)


# ----------------------------------------------------------------------------------------------- axes


def _along(panel: Axes, spec: Spec, xs: Sequence[Value]) -> None:
    words = [spec.tick(x) for x in xs]
    if spec.numeric:
        if spec.log_x:
            panel.set_xscale("log")
            panel.minorticks_off()
        panel.set_xticks([float(x) for x in xs], words)
        return
    panel.set_xticks(range(len(xs)), words, rotation=90 * spec.upright)
    panel.tick_params(axis="x", length=0)
    panel.set_xlim(-0.5, len(xs) - 0.5)
    for step in range(1, len(xs)):
        panel.axvline(step - 0.5, color=style.GRID, linewidth=0.8, zorder=0)


def _upwards(panel: Axes, values: Sequence[float], spec: Spec) -> bool:
    """The vertical axis of a panel of its own; whether it starts at zero, or need not."""
    finite = [value for value in values if np.isfinite(value)]
    if spec.shared or not finite:
        return True
    if spec.upward == "zero":
        zoom = spec.zoom if spec.kind != "bar" else 0.0
        return marks.from_zero(panel, min(finite), max(finite), zoom)
    scaled(panel.yaxis, finite, always=spec.upward == "log")
    return True


def _shared_upwards(panels: Sequence[Axes], values: Sequence[float], spec: Spec) -> None:
    finite = [value for value in values if np.isfinite(value)]
    if not finite:
        return
    if spec.upward == "zero":
        for panel in panels:
            panel.set_ylim(min(0.0, min(finite)), max(finite) * 1.08 or 1)
            if spec.percent:
                panel.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g}")
        return
    for panel in panels:
        if spec.upward == "log":
            logarithmic(panel.yaxis)
        else:
            scaled(panel.yaxis, finite)


def logarithmic(axis: Axis) -> None:
    """Equal ratios are equally far apart, with plain numbers: enough of them within a power of ten or two."""
    _set(axis, scale="log")
    low, high = axis.get_view_interval()
    axis.set_minor_formatter(NullFormatter())
    if high < 100 * low:  # so few powers of ten, or none, say too little
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)) if high >= 10 * low else MaxNLocator(5))
        axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda value, _: labels.count(value) if value >= 1 else f"{value:g}")


def _set(axis: Axis, **how: Any) -> None:
    name = "x" if isinstance(axis, XAxis) else "y"
    axis.axes.set(**{f"{name}{key}": value for key, value in how.items()})


def scaled(axis: Axis, values: Sequence[float], always: bool = False) -> None:
    """From zero, or logarithmic with round numbers if the values differ much."""
    low, high = min(values), max(values)
    if not always and high < STRETCHED * low:
        _set(axis, lim=(0, high * 1.06))
        return
    _set(axis, scale="log")
    across = isinstance(axis, XAxis)
    steps = (1, 2, 5) if not across and high < 60 * low else (1, 3) if not across or high < 300 * low else (1,)
    ticks = [f * 10.0**e for e in range(-4, 6) for f in steps if low / 1.15 <= f * 10.0**e <= high * 1.15]
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda value, _: labels.count(value) if value >= 1 else f"{value:g}")
    _set(axis, lim=(low / 1.12, high * 1.12))


def _keys(spec: Spec, series: Mapping[str, tuple[str, Look]], points: Sequence[Point]) -> list[marks.Key]:
    key = {"box": marks.box_key, "bar": marks.area_key}.get(spec.kind, marks.line_key)
    keys: list[marks.Key] = [key(look, label) for label, look in series.values()]
    drawn = {point.place for point in points}
    if spec.boxes or any(place in drawn for place in spec.published):
        keys.append(marks.published_key("published" if spec.boxes else "published median"))
    if spec.lines:
        keys.append(marks.published_line_key())
    return keys
