"""One picture of a study that has many places: completion time of every controller at each of them."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence

from millpond.results.directory import Results
from millpond.results.factor import Value
from millpond.show.document import Missing, Plot
from millpond.show.report.figures import facets
from millpond.show.report.figures.facets import Point, Spec
from millpond.show.report.figures.matrix import Place, series_of
from millpond.show.report.grid import Facet, Grid, only

MANY = 15
"""More places than this are spread over rows."""


def completion_by_place(results: Results | Grid, view: Facet | None = None) -> Plot:
    """Median flow completion time at each place, a marker per controller, lines from the 10th to the 90th percentile.

    A panel for the smallest and one for the largest value along the axis; of many places, such panels for each part of
    them. Raises `Missing` if no client finished.
    """
    grid = Grid.of(results)
    view = view or grid.whole
    found = [(cell, spread) for cell in grid.plain(view) if (spread := grid.spread("fct", cell)) is not None]
    if not found:
        raise Missing("Nothing to draw: no client finished in these runs.")
    along = [value for value in grid.along(grid.cells) if any(grid.at(cell) == value for cell, _ in found)]
    ends = {along[0], along[-1]}
    everywhere = grid.ranked(grid.place(cell) for cell, _ in found)
    parts = grid.parts(view) if len(everywhere) > MANY else [view]
    points, drawn = [], []
    for cell, spread in found:
        part = next((number for number, one in enumerate(parts) if one.covers(cell)), 0)
        name = only(cell)
        point = Point(grid.at(cell), part, grid.place(cell), name, spread, (*grid.spot(cell), name))
        points.append(point)
        drawn += [point] if grid.at(cell) in ends else []

    def title(value: Value, part: int) -> str:
        words = grid.words(parts[part]) if len(parts) > 1 else ""
        factor = grid.factors.get(grid.across)
        return ", ".join(filter(None, (words, f"{factor.label} {factor.tick(value)}" if factor else "")))

    spec = Spec(
        "median",
        "flow completion time (s)",
        series_of(grid),
        title=title,
        xs=everywhere,
        tick=_ticks(grid, everywhere, view),
        rows=along,
        columns=range(len(parts)),
        upward="log",
        shared=True,
        height=3.2,
    )
    header = (*grid.columns, "controller")
    return Plot(facets.plot(points, spec, header).rows, facets.plot(drawn, spec, header).draw)


def _ticks(grid: Grid, places: Sequence[Place], view: Facet) -> Callable[[Place], str]:
    """What a place is, a word a line: what is not the same at all of them."""
    told = {place: grid.further_in_words(place, view) for place in places}
    everywhere = set.intersection(*(set(words) for words in told.values()))
    width = 22 if len(places) <= 8 else 11

    def tick(place: Place) -> str:
        lines = [word for word in told[place] if word not in everywhere] or told[place][:1]
        return "\n".join(textwrap.fill(line, width) for line in lines)

    return tick
