"""Pictures with a panel per place, a group per value of the factor along the axis and a mark per controller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.patches import Patch

from millpond.judge.compare import Comparison
from millpond.results.directory import Cell, Results, Value
from millpond.show.document import Missing, Plot, Rows
from millpond.show.factors import SERIES
from millpond.show.report import style
from millpond.show.report.data import Data, only
from millpond.show.report.figures import facets, marks
from millpond.show.report.figures.facets import Point, Spec
from millpond.show.report.values import Spread, View

Place = tuple[Value, ...]
"""The factors beside the one along the axis."""


def completion_times(results: Results | Data, view: View | None = None, comparison: Comparison | None = None) -> Plot:
    """Boxes of the flow completion time, with published medians marked. Raises `Missing` if nothing was run."""
    data = Data.of(results)
    points = _points(data, "fct_us", "s", view, "no client finished in these runs")
    theirs = published_medians(data, "fct", comparison, view)
    spec = spec_of(data, view, "box", "flow completion time (s)", published=theirs)
    return facets.plot(points, spec, _header(data))


def unnecessary_copies(results: Results | Data, view: View | None = None, comparison: Comparison | None = None) -> Plot:
    """Bars of the median number of unnecessary retransmissions of a client. Raises `Missing` if nothing was run."""
    data = Data.of(results)
    points = _points(data, "unnecessary", "retransmissions", view, "these results count no retransmissions")
    shown, note = _without_quiet(data, points, view)
    theirs = published_medians(data, "unnecessary_retx_per_client", comparison, view)
    spec = spec_of(data, view, "bar", "unnecessary retransmissions\nper client", published=theirs, note=note)
    return Plot(facets.plot(points, spec, _header(data)).rows, facets.plot(shown, spec, ()).draw)


def retransmissions(results: Results | Data, view: View | None = None) -> Plot:
    """Bars of the mean number of retransmissions of a client: unnecessary ones below, necessary ones above.

    Raises `Missing` if there were none.
    """
    data = Data.of(results)
    points, rows = [], []
    for cell in data.plain(view):
        total, needless = (data.values("flows", name, cell) for name in ("retransmissions", "unnecessary"))
        if not total.size:
            continue
        place, name = (data.place(cell), data.at(cell)), only(cell)
        both, below = float(total.mean()), float(needless.mean())
        look = data.looks[name]
        for height, how in ((both, look.pale), (below, look)):
            points.append(Point("", *place, name, Spread.alone(height, total.size), look=how))
        rows.append((*data.spot(cell), name, below, both - below))
    if not points:
        raise Missing("Nothing to draw: these results count no retransmissions.")
    shown, note = _without_quiet(data, points, view)
    pale = Patch(facecolor="#eeeeee", edgecolor=style.INK, linewidth=0.7, label="pale on top: necessary ones")
    keys = [marks.area_key(data.looks[name], data.label(name)) for name in _names(data, points)]
    spec = spec_of(data, view, "bar", "retransmissions of a client", note=note, keys=(*keys, pale))
    header = (*data.columns, "controller", "unnecessary_mean", "necessary_mean")
    return Plot(Rows(header, tuple(rows)), facets.plot(shown, spec, ()).draw)


def spec_of(
    data: Data,
    view: View | None,
    kind: facets.Kind,
    axis: str,
    *,
    published: Mapping[facets.Place, float] | None = None,
    note: str = "",
    keys: Sequence[marks.Key] = (),
) -> Spec:
    """The frame of such a picture."""
    factor = data.factors.get(data.across)
    view = view or data.whole
    return Spec(
        kind,
        axis,
        series_of(data),
        x=factor.axis if factor is not None else "",
        tick=factor.tick if factor is not None else lambda _: "",
        title=lambda _, place: data.place_in_words(place, view),
        xs=data.along(data.cells),
        columns=data.ranked(data.place(cell) for cell in data.cells),
        wrapped=True,
        published=published or {},
        note=note,
        keys=keys,
    )


def series_of(data: Data) -> dict[str, tuple[str, style.Look]]:
    """Every algorithm with its label and look, in the order of legends."""
    return {name: (data.label(name), data.looks[name]) for name in data.controllers()}


def published_medians(
    data: Data, metric: str, comparison: Comparison | None, view: View | None = None
) -> dict[facets.Place, float]:
    """Published medians of a metric, by where the cell that they belong to stands."""
    found: dict[facets.Place, float] = {}
    names = [SERIES, *data.varying, *([data.across] if data.across else [])]
    for figure in comparison.figures if comparison is not None else []:
        if figure.metric != metric or figure.statistic != "median":
            continue
        for cell in data.plain(view):
            if data.belongs(figure.scenario, cell, names):
                found.setdefault(place_of(data, cell), figure.published)
    return found


def place_of(data: Data, cell: Cell) -> facets.Place:
    """Where a cell stands in such a picture."""
    return "", data.place(cell), data.at(cell), only(cell)


# ----------------------------------------------------------------------------------------------- helpers


def _header(data: Data) -> tuple[str, ...]:
    return (*data.columns, "controller", "unit", "clients_of_all_runs")


def _points(data: Data, column: str, unit: str, view: View | None, otherwise: str) -> list[Point]:
    found = []
    for cell in data.plain(view):
        spread = data.spread(column, cell)
        if spread is not None:
            told = (*data.spot(cell), only(cell), unit, data.values("flows", column, cell).size)
            sure = data.estimated(column, cell)
            found.append(Point(*place_of(data, cell), spread, told, interval=None if sure.same else sure.interval))
    if not found:
        raise Missing(f"Nothing to draw: {otherwise}.")
    return found


def _without_quiet(data: Data, points: Sequence[Point], view: View | None) -> tuple[list[Point], str]:
    """The points without panels in which nothing was counted, and a note on these. Raises `Missing` if none is left."""
    places = data.ranked(point.column for point in points)
    loud = {point.column for point in points if point.spread.p90 > 0}
    quiet = [", ".join(data.further_in_words(p, view or data.whole)) for p in places if p not in loud]
    told = "; ".join(word for word in quiet if word)
    where = f", with {told}" if told else ""
    if not loud:
        raise Missing(f"No client made one in these runs{where}.")
    note = f"No client made one{where} (panels left out)." if quiet else ""
    return [point for point in points if point.column in loud], note


def _names(data: Data, points: Sequence[Point]) -> list[str]:
    there = {point.series for point in points}
    return [name for name in data.controllers() if name in there]
