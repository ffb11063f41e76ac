"""Boxes, bars, published marks and legends, drawn the same way in every picture.

Artists are collected, one collection per series and panel: a study has hundreds of boxes, and one artist for each part
of each box would take ten times as long to draw and to open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from millpond.show.report import style
from millpond.show.report.grid import Floats, Grid, Spread
from millpond.show.report.style import Look

Point = tuple[float, float]
Key = Artist | tuple[Patch, Line2D]
"""A legend entry: one artist, or a filled area with a marker on it."""

NARROW = 0.09
"""A box narrower than this, in steps of the axis, is a line to the eye."""
PUBLISHED_MARK: dict[str, Any] = {
    "linestyle": "none",
    "marker": "d",
    "markersize": 10.5,
    "markeredgewidth": 1.3,
    "fillstyle": "none",
}
"""How a published figure is marked: an empty diamond around the place where ours should be."""

POINTS = 400
"""At most so many points a line; more would not be seen."""


@contextmanager
def panels(
    height: float, count: int = 1, abreast: int = 1, words: tuple[str, str] = ("", ""), *, width: float = 0.0,
    **further: Any,
) -> Iterator[tuple[Figure, list[Axes]]]:  # fmt: skip
    """A figure of so many inches and its panels, some abreast, with words below the last ones and at its left."""
    with style.applied():
        figure = Figure(figsize=(width or style.width(), height), layout="constrained")
        every = figure.subplots(-(-count // abreast), abreast, squeeze=False, **further)
        for place, panel in enumerate(every.flat):
            panel.set_visible(place < count)
            if place % abreast == 0:
                panel.set_ylabel(words[1])
            if count - abreast <= place < count:
                panel.set_xlabel(words[0])
                panel.tick_params(axis="x", labelbottom=True)
        yield figure, list(every.flat)[:count]


def thinned(*columns: Floats) -> list[Floats]:
    """Columns of so many rows as can be seen, evenly chosen."""
    rows = len(columns[0])
    kept = np.unique(np.linspace(0, rows - 1, POINTS).astype(np.int64)) if rows > POINTS else slice(None)
    return [column[kept] for column in columns]


def steps(axes: Axes, look: Look, values: Floats, shares: Floats) -> None:
    """How values are distributed: the share of all that has at most so much."""
    axes.step(values, shares, where="post", color=look.colour, linestyle=look.dash)


def boxes(axes: Axes, look: Look, at: Sequence[float], spreads: Sequence[Spread], width: float) -> None:
    """Boxes from the 25th to the 75th percentile, whiskers to the 10th and 90th, small dashes at least and most.

    The series' marker stands at the median: many boxes are too flat to show colour or hatch. Boxes that would be too
    narrow are not drawn: only the marker, on a line from the 10th to the 90th percentile.
    """
    if not at:
        return
    if width < NARROW:
        medians(axes, look, at, spreads)
        return
    half = width / 2
    bodies, whiskers, middles = [], [], []
    for x, s in zip(at, spreads, strict=True):
        bodies.append(Rectangle((x - half, s.p25), width, s.p75 - s.p25))
        whiskers += [[(x, s.p10), (x, s.p25)], [(x, s.p75), (x, s.p90)]]
        whiskers += [[(x - half / 2, y), (x + half / 2, y)] for y in (s.p10, s.p90)]
        whiskers += [[(x - half / 4, y), (x + half / 4, y)] for y in (s.minimum, s.maximum)]
        middles.append([(x - half, s.median), (x + half, s.median)])
    areas(axes, bodies, look)
    _stroke(axes, whiskers, 0.8, 2)
    _stroke(axes, middles, 3.0, 3, "white")
    _stroke(axes, middles, 1.5, 3)
    axes.plot(at, [s.median for s in spreads], **_marker(look), linestyle="none", zorder=4)


def bars(axes: Axes, look: Look, at: Sequence[float], spreads: Sequence[Spread], width: float) -> None:
    """Bars up to the median with a line from the 10th to the 90th percentile; a dot where the bar has no height."""
    if not at:
        return
    half = width / 2
    bodies = [Rectangle((x - half, 0), width, s.median) for x, s in zip(at, spreads, strict=True)]
    ranges = [[(x, s.p10), (x, s.p90)] for x, s in zip(at, spreads, strict=True)]
    areas(axes, bodies, look)
    _stroke(axes, ranges, 2.6, 3, "white")
    _stroke(axes, ranges, 1.1, 3)
    flat = [x for x, s in zip(at, spreads, strict=True) if s.p90 == 0]
    if flat:
        axes.plot(flat, [0.0] * len(flat), linestyle="none", marker=".", markersize=4, color=style.INK, zorder=3)


def medians(axes: Axes, look: Look, at: Sequence[float], spreads: Sequence[Spread]) -> None:
    """The series' marker at the median, on a thin line from the 10th to the 90th percentile."""
    if not at:
        return
    _stroke(axes, [[(x, s.p10), (x, s.p90)] for x, s in zip(at, spreads, strict=True)], 1.0, 2, look.colour)
    axes.plot(at, [s.median for s in spreads], **_marker(look), linestyle="none", zorder=4)


def intervals(axes: Axes, found: Sequence[tuple[float, tuple[float, float] | None]]) -> None:
    """Thick upright lines from the lower to the upper end of intervals, around the marker of the median."""
    lines = [[(x, ends[0]), (x, ends[1])] for x, ends in found if ends is not None and ends[0] < ends[1]]
    if lines:
        _stroke(axes, lines, 4.5, 3, "white")
        _stroke(axes, lines, 2.8, 3)


def _marker(look: Look) -> dict[str, Any]:
    return {
        "marker": look.marker,
        "markersize": 5.0,
        "markerfacecolor": look.colour,
        "markeredgecolor": style.INK,
        "markeredgewidth": 0.7,
    }


def areas(axes: Axes, bodies: Sequence[Rectangle], look: Look) -> None:
    """Rectangles filled as the look says."""
    axes.add_collection(
        PatchCollection(bodies, facecolor=look.fill, edgecolor=style.INK, hatch=look.hatch, linewidth=0.7, zorder=2)
    )


def _stroke(axes: Axes, lines: Sequence[Sequence[Point]], width: float, layer: int, colour: str = style.INK) -> None:
    """All lines as one path with gaps."""
    gap = (float("nan"), float("nan"))
    points = [point for line in lines for point in (*line, gap)]
    axes.plot(*zip(*points, strict=True), color=colour, linewidth=width, solid_capstyle="butt", zorder=layer)


def published(axes: Axes, points: Sequence[Point]) -> None:
    """Marks of published figures."""
    if points:
        halo = {**PUBLISHED_MARK, "markeredgewidth": 3.2}
        axes.plot(*zip(*points, strict=True), color="white", zorder=5, **halo)
        axes.plot(*zip(*points, strict=True), color=style.PUBLISHED, zorder=6, **PUBLISHED_MARK)


def published_key(text: str = "published median") -> Line2D:
    """The legend entry of `published`."""
    return Line2D([], [], color=style.PUBLISHED, label=text, **PUBLISHED_MARK)


def area_key(look: Look, label: str) -> Patch:
    """The legend entry of a box or bar."""
    return Patch(facecolor=look.fill, edgecolor=style.INK, hatch=look.hatch, linewidth=0.7, label=label)


def box_key(look: Look, label: str) -> Key:
    """The legend entry of a box with its marker."""
    return area_key(look, label), Line2D([], [], **_marker(look), linestyle="none")


def published_line_key() -> Line2D:
    """The legend entry of a published median that is the same along the axis."""
    return Line2D([], [], color=style.INK, linestyle=":", linewidth=1.4, label="published median")


def published_box(panel: Axes, x: float, said: Mapping[str, float], width: float) -> None:
    """A box as ours are, empty and black; of what was not published it leaves the part out."""
    line: dict[str, Any] = {"color": style.PUBLISHED, "linewidth": 0.9, "solid_capstyle": "butt", "zorder": 5}
    half = width / 2
    if "p25" in said and "p75" in said:
        corners = [(x - half, said["p25"]), (x + half, said["p25"]), (x + half, said["p75"]), (x - half, said["p75"])]
        panel.fill(*zip(*corners, strict=True), facecolor="white", edgecolor=style.PUBLISHED, linewidth=0.9, zorder=4)
    for low, high in (("p10", "p25"), ("p75", "p90")):
        if low in said and high in said:
            panel.plot([x, x], [said[low], said[high]], **line)
    for name, reach in (("min", 0.25), ("p10", 0.5), ("p90", 0.5), ("max", 0.25)):
        if name in said:
            panel.plot([x - half * 2 * reach, x + half * 2 * reach], [said[name]] * 2, **line)
    if "median" in said:
        panel.plot([x - half, x + half], [said["median"]] * 2, **{**line, "linewidth": 1.5})
        panel.plot(
            [x], [said["median"]], marker="d", markersize=5, markerfacecolor="white", markeredgewidth=0.9,
            markeredgecolor=style.PUBLISHED, zorder=6,
        )  # fmt: skip


def line_keys(grid: Grid, names: Sequence[str]) -> list[Key]:
    """Legend entries of lines with their sparse markers."""
    return [line_key(grid.looks[name], grid.label(name)) for name in names]


def line_key(look: Look, label: str) -> Line2D:
    """The legend entry of a line with sparse markers."""
    return Line2D([], [], color=look.colour, linestyle=look.dash, label=label, **_marker(look))


def legend_below(figure: Figure, keys: Sequence[Key], columns: int) -> None:
    """One legend under all panels, outside of the data."""
    names = [str((key[0] if isinstance(key, tuple) else key).get_label()) for key in keys]
    handles: list[Any] = list(keys)  # matplotlib draws a tuple as one entry, its types do not say so
    # a letter is about a twelfth of an inch wide, and what stands before it half an inch
    widest = (0.09 * max(map(len, names), default=1) + 0.75) * style.scale()
    fitting = max(1, int(figure.get_figwidth() / widest))
    figure.legend(handles, names, loc="outside lower center", ncols=min(columns, fitting, max(1, len(keys))))


def more_room(figure: Figure) -> None:
    """Leave more room between rows of panels, so that titles stand with their own panel."""
    engine = figure.get_layout_engine()
    if isinstance(engine, ConstrainedLayoutEngine):
        engine.set(hspace=0.06)


def title(axes: Axes, text: str, from_zero: bool = True) -> None:
    """The title of a panel, with a warning at its right if the axis does not start at zero."""
    axes.set_title(text)
    if not from_zero:
        axes.set_title("axis does not start at 0", loc="right", fontsize=9, fontweight="normal", style="italic")


def positions(groups: int, members: int, share: float = 0.84) -> tuple[list[list[float]], float]:
    """Where members of groups stand: `x[group][member]`, groups one unit apart, and the width of a member."""
    step = min(share / max(1, members), 0.2)
    rows = [[g + (m - (members - 1) / 2) * step for m in range(members)] for g in range(groups)]
    return rows, step * 0.88


def from_zero(axes: Axes, lowest: float, highest: float, zoom: float = 0.25) -> bool:
    """Start the axis at zero, or zoom in if all values lie within a share of `zoom`. Whether it starts at zero."""
    if highest <= 0:
        axes.set_ylim(0, 1)
        return True
    if lowest > 0 and (highest - lowest) / highest < zoom:
        margin = max((highest - lowest) * 0.12, highest * 1e-3)
        axes.set_ylim(lowest - margin, highest + margin)
        return False
    axes.set_ylim(0, highest * 1.06)
    return True
