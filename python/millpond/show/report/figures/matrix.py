"""Pictures with a panel per place, a group per value of the factor along the axis and a mark per controller."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Mapping, Sequence

from matplotlib.patches import Patch

from millpond.judge.compare import Comparison
from millpond.results.directory import Cell, Results
from millpond.results.factor import ALGORITHM, Value
from millpond.show.document import Missing, Plot, Rows
from millpond.show.report import style
from millpond.show.report.figures import facets, marks
from millpond.show.report.figures.facets import Point, Spec
from millpond.show.report.grid import Facet, Grid, Spread, only

Place = tuple[Value, ...]
"""The factors beside the one along the axis."""


def completion_times(results: Results | Grid, view: Facet | None = None, comparison: Comparison | None = None) -> Plot:
    """Boxes of the flow completion time, with published medians marked. Raises `Missing` if nothing was run."""
    grid = Grid.of(results)
    points = _points(grid, "fct", "s", view, "no client finished in these runs")
    theirs = published_medians(grid, "fct", comparison, view)
    spec = spec_of(grid, view, "box", "flow completion time (s)", published=theirs)
    return facets.plot(points, spec, _header(grid))


def unnecessary_copies(
    results: Results | Grid, view: Facet | None = None, comparison: Comparison | None = None
) -> Plot:
    """Bars of the median number of unnecessary retransmissions of a client. Raises `Missing` if nothing was run."""
    grid = Grid.of(results)
    points = _points(
        grid, "unnecessary_retx_per_client", "retransmissions", view, "these results count no retransmissions"
    )
    shown, note = _without_quiet(grid, points, view)
    theirs = published_medians(grid, "unnecessary_retx_per_client", comparison, view)
    spec = spec_of(grid, view, "bar", "unnecessary retransmissions\nper client", published=theirs, note=note)
    return Plot(facets.plot(points, spec, _header(grid)).rows, facets.plot(shown, spec, ()).draw)


def retransmissions(results: Results | Grid, view: Facet | None = None) -> Plot:
    """Bars of the mean number of retransmissions of a client: unnecessary ones below, necessary ones above.

    Raises `Missing` if there were none.
    """
    grid = Grid.of(results)
    points, rows = [], []
    for cell in grid.plain(view):
        names = ("retransmissions_per_client", "unnecessary_retx_per_client")
        both, below = (grid.estimated(one, cell, statistic="mean").value for one in names)
        if math.isnan(both):
            continue
        place, name = (grid.place(cell), grid.at(cell)), only(cell)
        look = grid.looks[name]
        for height, how in ((both, look.pale), (below, look)):
            points.append(Point("", *place, name, Spread(1, *[height] * 7), look=how))
        rows.append((*grid.spot(cell), name, below, both - below))
    if not points:
        raise Missing("Nothing to draw: these results count no retransmissions.")
    shown, note = _without_quiet(grid, points, view)
    pale = Patch(facecolor="#eeeeee", edgecolor=style.INK, linewidth=0.7, label="pale on top: necessary ones")
    keys = [marks.area_key(grid.looks[name], grid.label(name)) for name in _names(grid, points)]
    spec = spec_of(grid, view, "bar", "retransmissions of a client", note=note, keys=(*keys, pale))
    header = (*grid.columns, "controller", "unnecessary_mean", "necessary_mean")
    return Plot(Rows(header, tuple(rows)), facets.plot(shown, spec, ()).draw)


def spec_of(
    grid: Grid,
    view: Facet | None,
    kind: facets.Kind,
    axis: str,
    *,
    published: Mapping[facets.Place, float] | None = None,
    note: str = "",
    keys: Sequence[marks.Key] = (),
) -> Spec:
    """The frame of such a picture."""
    factor = grid.factors.get(grid.across)
    view = view or grid.whole
    return Spec(
        kind,
        axis,
        series_of(grid),
        x=factor.axis if factor is not None else "",
        tick=factor.tick if factor is not None else lambda _: "",
        title=lambda _, place: grid.place_in_words(place, view),
        xs=grid.along(grid.cells),
        columns=grid.ranked(grid.place(cell) for cell in grid.cells),
        wrapped=True,
        published=published or {},
        note=note,
        keys=keys,
    )


def series_of(grid: Grid) -> dict[str, tuple[str, style.Look]]:
    """Every algorithm with its label and look, in the order of legends."""
    return {name: (grid.label(name), grid.looks[name]) for name in grid.controllers()}


def published_medians(
    grid: Grid, metric: str, comparison: Comparison | None, view: Facet | None = None
) -> dict[facets.Place, float]:
    """Published medians of a metric, by where the cell that they belong to stands."""
    found: dict[facets.Place, float] = {}
    names = [ALGORITHM, *grid.varying, *([grid.across] if grid.across else [])]
    for figure in comparison.figures if comparison is not None else []:
        if figure.metric != metric or figure.statistic != "median":
            continue
        for cell in grid.plain(view):
            if grid.belongs(figure.scenario, cell, names):
                found.setdefault(place_of(grid, cell), figure.published)
    return found


def place_of(grid: Grid, cell: Cell) -> facets.Place:
    """Where a cell stands in such a picture."""
    return "", grid.place(cell), grid.at(cell), only(cell)


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


# ----------------------------------------------------------------------------------------------- helpers


def _header(grid: Grid) -> tuple[str, ...]:
    return (*grid.columns, "controller", "unit", "clients_of_all_runs")


def _points(grid: Grid, metric: str, unit: str, view: Facet | None, otherwise: str) -> list[Point]:
    found = []
    for cell in grid.plain(view):
        spread = grid.spread(metric, cell)
        if spread is not None:
            every = grid.measures.sample(metric, grid.measures.of(cell))
            told = (*grid.spot(cell), only(cell), unit, every.n + every.missing)
            sure = grid.estimated(metric, cell)
            found.append(Point(*place_of(grid, cell), spread, told, interval=None if sure.same else sure.interval))
    if not found:
        raise Missing(f"Nothing to draw: {otherwise}.")
    return found


def _without_quiet(grid: Grid, points: Sequence[Point], view: Facet | None) -> tuple[list[Point], str]:
    """The points without panels in which nothing was counted, and a note on these. Raises `Missing` if none is left."""
    places = grid.ranked(point.column for point in points)
    loud = {point.column for point in points if point.spread.p90 > 0}
    quiet = [", ".join(grid.further_in_words(p, view or grid.whole)) for p in places if p not in loud]
    told = "; ".join(word for word in quiet if word)
    where = f", with {told}" if told else ""
    if not loud:
        raise Missing(f"No client made one in these runs{where}.")
    note = f"No client made one{where} (panels left out)." if quiet else ""
    return [point for point in points if point.column in loud], note


def _names(grid: Grid, points: Sequence[Point]) -> list[str]:
    there = {point.series for point in points}
    return [name for name in grid.controllers() if name in there]
