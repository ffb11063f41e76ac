"""Boxes, bars, published marks and legends, drawn the same way in every picture.

Artists are collected, one collection per series and panel: a study has hundreds of boxes, and one artist for each part
of each box would take ten times as long to draw and to open.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from millpond.show.report import style
from millpond.show.report.data import Data
from millpond.show.report.style import Look
from millpond.show.report.values import Spread

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


def lying_box(axes: Axes, look: Look, at: float, spread: Spread, width: float) -> None:
    """A box as `boxes` draws it, on its side."""
    half, s = width / 2, spread
    areas(axes, [Rectangle((s.p25, at - half), s.p75 - s.p25, width)], look)
    whiskers = [[(s.p10, at), (s.p25, at)], [(s.p75, at), (s.p90, at)]]
    whiskers += [[(x, at - half / 2), (x, at + half / 2)] for x in (s.p10, s.p90)]
    whiskers += [[(x, at - half / 4), (x, at + half / 4)] for x in (s.minimum, s.maximum)]
    median = [[(s.median, at - half), (s.median, at + half)]]
    _stroke(axes, whiskers, 0.8, 2)
    _stroke(axes, median, 3.0, 3, "white")
    _stroke(axes, median, 1.5, 3)
    axes.plot([s.median], [at], **_marker(look), linestyle="none", zorder=4)


def lying_bar(axes: Axes, look: Look, at: float, spread: Spread, width: float) -> None:
    """A bar as `bars` draws it, on its side."""
    areas(axes, [Rectangle((0, at - width / 2), spread.median, width)], look)
    _stroke(axes, [[(spread.p10, at), (spread.p90, at)]], 2.6, 3, "white")
    _stroke(axes, [[(spread.p10, at), (spread.p90, at)]], 1.1, 3)
    if spread.p90 == 0:
        axes.plot([0.0], [at], linestyle="none", marker=".", markersize=4, color=style.INK, zorder=3)


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


def area_keys(data: Data, names: Sequence[str], markers: bool = False) -> list[Key]:
    """Legend entries of bars, or of boxes with their markers."""
    keys: list[Key] = []
    for name in names:
        area = area_key(data.looks[name], data.label(name))
        marker = Line2D([], [], **_marker(data.looks[name]), linestyle="none")
        keys.append((area, marker) if markers else area)
    return keys


def line_keys(data: Data, names: Sequence[str]) -> list[Key]:
    """Legend entries of lines with their sparse markers."""
    return [line_key(data.looks[name], data.label(name)) for name in names]


def line_key(look: Look, label: str) -> Line2D:
    """The legend entry of a line with sparse markers."""
    return Line2D([], [], color=look.colour, linestyle=look.dash, label=label, **_marker(look))


def legend_below(figure: Figure, keys: Sequence[Key], columns: int) -> None:
    """One legend under all panels, outside of the data."""
    names = [str((key[0] if isinstance(key, tuple) else key).get_label()) for key in keys]
    handles: list[Any] = list(keys)  # matplotlib draws a tuple as one entry, its types do not say so
    figure.legend(handles, names, loc="outside lower center", ncols=min(columns, max(1, len(keys))))


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


def from_zero_lying(axes: Axes, lowest: float, highest: float) -> None:
    """The same for marks that lie on their side; an axis that does not start at zero says so."""
    if highest <= 0:
        axes.set_xlim(0, 1)
    elif lowest > 0 and (highest - lowest) / highest < 0.25:
        margin = max((highest - lowest) * 0.12, highest * 1e-3)
        axes.set_xlim(lowest - margin, highest + margin)
        title(axes, "", from_zero=False)
    else:
        axes.set_xlim(0, highest * 1.06)


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
