"""Pictures of the sites of a fleet: each number as a distribution over sites, and a map of all of them."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from millpond.measure.metric import UNITS
from millpond.measure.metrics import METRICS
from millpond.measure.sample import Sample
from millpond.measure.sites import Number, Sites
from millpond.show.document import Missing, Plot, Rows
from millpond.show.report import style
from millpond.show.report.figures import marks

#: So many of the worst sites are framed on a map.
FRAMED = 10
#: At most so many numbers have a map.
MAPS = 3
#: White is as good as any, this as bad as any.
_SHADES = "Oranges"


def distributions(sites: Sites) -> Plot:
    """A panel for each number, a line for each kind of site. Raises `Missing` if no site has a number."""
    if not sites.numbers:
        raise Missing("Nothing to draw: no site has a number.")
    table = sites.to_table()
    rows = tuple(tuple(row.values()) for row in table.to_pylist())
    return Plot(Rows(tuple(table.column_names), rows), lambda: _distributions(sites))


def _distributions(sites: Sites) -> Figure:
    numbers, looks = sites.numbers, _looks(sites)
    columns = min(3, len(numbers), max(1, int(style.width() // 2.3)))
    height = 2.6 * math.ceil(len(numbers) / columns) + 0.7
    with marks.panels(height, len(numbers), columns, ("", "share of sites"), sharey=True) as (figure, panels):
        marks.more_room(figure)
        for panel, number in zip(panels, numbers, strict=True):
            for kind, look in zip(sites.kinds, looks, strict=True):
                values = kind.values[number.name]
                found, shares = marks.thinned(*Sample.of(values, np.empty_like(values)).distribution())
                marks.steps(panel, look, found * _scale(number), shares)
            panel.set_xlabel(_axis(number))
            panel.set_ylim(0, 1.02)
        named = zip(sites.kinds, looks, strict=True)
        marks.legend_below(figure, [marks.line_key(look, sites.place_in_words(kind)) for kind, look in named], 2)
    return figure


def mapped(sites: Sites) -> tuple[Number, ...]:
    """The numbers that a map is drawn of: the first ones that differ between sites."""
    found = []
    for number in sites.numbers:
        values = np.concatenate([kind.values[number.name] for kind in sites.kinds])
        values = values[np.isfinite(values)]
        if number.better and values.size and values.min() != values.max():
            found.append(number)
    return tuple(found[:MAPS])


def site_map(sites: Sites, number: Number) -> Plot:
    """A square for each site, the darker the worse; the numbers in base units."""
    rows = [
        (kind.cell.first_run + place, sites.place_in_words(kind), float(value))
        for kind in sites.kinds
        for place, value in enumerate(kind.values[number.name])
    ]
    return Plot(Rows(("site", "where", number.name), tuple(rows)), lambda: _site_map(sites, number))


def _site_map(sites: Sites, number: Number) -> Figure:
    values = np.concatenate([kind.values[number.name] for kind in sites.kinds]) * _scale(number)
    wide = math.ceil(math.sqrt(2 * len(values)))
    high = math.ceil(len(values) / wide)
    grid = np.full(wide * high, np.nan)
    grid[: len(values)] = values
    with marks.panels(style.width() * high / wide * 0.86 + 0.5) as (figure, (panel,)):
        shades = f"{_SHADES}_r" if number.better == "more" else _SHADES
        drawn = panel.imshow(grid.reshape(high, wide), cmap=shades, interpolation="nearest")
        figure.colorbar(drawn, ax=panel, label=_axis(number), fraction=0.03)
        finite = np.flatnonzero(np.isfinite(values))
        order = finite[np.argsort(values[finite] if number.better == "more" else -values[finite], kind="stable")]
        for place in order[:FRAMED].tolist():
            corner = (place % wide - 0.5, place // wide - 0.5)
            panel.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor=style.INK, linewidth=1.2))
        begun = 0
        for kind in sites.kinds[:-1]:
            begun += len(kind.seeds)
            panel.axhline(begun / wide - 0.5, color=style.INK, linewidth=0.6, linestyle=":")
        panel.set_xticks([])
        panel.set_yticks([])
        panel.grid(visible=False)
    return figure


# ----------------------------------------------------------------------------------------------- helpers


def _looks(sites: Sites) -> list[style.Look]:
    given = list(style.PRESETS.values())
    return [given[place % len(given)] for place in range(len(sites.kinds))]


def _scale(number: Number) -> float:
    return UNITS["1"]["percent"] if METRICS[number.metric].unit == "1" else 1.0


def _axis(number: Number) -> str:
    unit = METRICS[number.metric].unit
    return f"{number.title} ({'%' if unit == '1' else unit})"
