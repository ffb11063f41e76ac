"""Pictures with a panel per place, a group per value of the factor along the axis and a mark per controller."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from millpond.judge.compare import Comparison
from millpond.results.directory import Cell, Results, Value
from millpond.show.factors import SERIES
from millpond.show.report import style
from millpond.show.report.data import Data, only
from millpond.show.report.figures import marks
from millpond.show.report.values import Missing, Rows, Spread, View

Place = tuple[Value, ...]
"""The factors beside the one along the axis."""
Key = tuple[Place, Value, str]
"""Place, value along the axis, algorithm."""
CROWDED = 7
"""With more controllers than this a panel takes the whole width."""


def completion_times(results: Results | Data, view: View | None = None, comparison: Comparison | None = None) -> Figure:
    """Boxes of the flow completion time, with published medians marked. Raises `Missing` if nothing was run."""
    data = Data.of(results)
    spreads = _spreads(data, "fct_us", view, "no client finished in these runs")
    theirs = published_medians(data, "fct", comparison, view)
    return _draw(data, spreads, "flow completion time (s)", theirs, view, boxes=True)


def completion_times_rows(results: Results | Data, view: View | None = None) -> Rows:
    """The percentiles that `completion_times` draws, in seconds."""
    return _rows(Data.of(results), "fct_us", "s", view)


def unnecessary_copies(
    results: Results | Data, view: View | None = None, comparison: Comparison | None = None
) -> Figure:
    """Bars of the median number of unnecessary retransmissions of a client. Raises `Missing` if nothing was run."""
    data = Data.of(results)
    spreads = _spreads(data, "unnecessary", view, "these results count no retransmissions")
    theirs = published_medians(data, "unnecessary_retx_per_client", comparison, view)
    return _draw(data, spreads, "unnecessary retransmissions\nper client", theirs, view, boxes=False)


def unnecessary_copies_rows(results: Results | Data, view: View | None = None) -> Rows:
    """The percentiles that `unnecessary_copies` draws, in retransmissions per client."""
    return _rows(Data.of(results), "unnecessary", "retransmissions", view)


def published_medians(
    data: Data, metric: str, comparison: Comparison | None, view: View | None = None
) -> Mapping[Key, float]:
    """Published medians of a metric, by the cell they belong to."""
    found: dict[Key, float] = {}
    names = [SERIES, *data.varying, *([data.across] if data.across else [])]
    for figure in comparison.figures if comparison is not None else []:
        if figure.metric != metric or figure.statistic != "median":
            continue
        for cell in data.plain(view):
            if data.belongs(figure.scenario, cell, names):
                found.setdefault(key_of(data, cell), figure.published)
    return found


def key_of(data: Data, cell: Cell) -> Key:
    """Where a cell stands in such a picture."""
    return data.place(cell), data.at(cell), only(cell)


@dataclass(frozen=True)
class Grid:
    """The frame of such a picture: which panels, and where in a panel each value and controller stands."""

    data: Data
    places: Sequence[Place]
    along: Sequence[Value]
    controllers: Sequence[str]
    at: Mapping[tuple[Value, str], float]
    width: float

    @staticmethod
    def of(data: Data, keys: Iterable[Key], places: Sequence[Place]) -> Grid:
        """The frame for these places, with every value along the axis and controller that the keys name."""
        wanted = list(keys)
        controllers = [name for name in data.controllers() if name in {key[2] for key in wanted}]
        values = {key[1] for key in wanted}
        along = [value for value in data.along(data.cells) if value in values]
        at, width = marks.positions(len(along), len(controllers))
        where = {(value, name): at[i][c] for i, value in enumerate(along) for c, name in enumerate(controllers)}
        return Grid(data, places, along, controllers, where, width)

    def draw(
        self, view: View, axis: str, paint: Callable[[Axes, Place], bool], keys: Sequence[marks.Key], note: str = ""
    ) -> Figure:
        """All panels; `paint` fills one and says whether its axis starts at zero."""
        few = len(self.places) == 1 and len(self.along) * len(self.controllers) <= CROWDED
        columns = 1 if len(self.places) == 1 or len(self.controllers) > CROWDED else 2
        rows = -(-len(self.places) // columns)
        factor = self.data.factors.get(self.data.across)
        # few bars on a wide plot tell nothing that a narrow one would not
        width = max(4.2, 1.6 + 0.9 * len(self.along) * len(self.controllers)) if few else style.WIDTH
        with style.applied():
            figure = Figure(figsize=(width, 2.55 * rows + 0.9), layout="constrained")
            marks.more_room(figure)
            panels = figure.subplots(rows, columns, squeeze=False)
            for index, (panel, place) in enumerate(zip(panels.flat, self.places, strict=False)):
                marks.title(panel, self.data.place_in_words(place, view), paint(panel, place))
                panel.set_xlim(-0.5, len(self.along) - 0.5)
                ticks = [factor.tick(value) if factor is not None else "" for value in self.along]
                panel.set_xticks(range(len(self.along)), ticks)
                panel.tick_params(axis="x", length=0)
                for step in range(1, len(self.along)):
                    panel.axvline(step - 0.5, color=style.GRID, linewidth=0.8, zorder=0)
                if index % columns == 0:
                    panel.set_ylabel(axis)
                if index >= len(self.places) - columns and factor is not None:
                    panel.set_xlabel(factor.axis)
            for panel in panels.flat[len(self.places) :]:
                panel.set_visible(False)
            if note:
                figure.suptitle(note, x=0.01, ha="left", fontsize=10)
            figure.align_ylabels()
            marks.legend_below(figure, keys, 1 if few else 4)
        return figure


def listed(data: Data, places: Sequence[Place], view: View) -> str:
    """Places in a sentence, after a comma; nothing if there is nothing to tell them apart."""
    told = [", ".join(data.further_in_words(place, view)) for place in places]
    words = "; ".join(word for word in told if word)
    return f", with {words}" if words else ""


# ----------------------------------------------------------------------------------------------- helpers


def _spreads(data: Data, column: str, view: View | None, otherwise: str) -> dict[Key, Spread]:
    found: dict[Key, Spread] = {}
    for cell in data.plain(view):
        spread = data.spread(column, cell)
        if spread is not None:
            found[key_of(data, cell)] = spread
    if not found:
        raise Missing(f"Nothing to draw: {otherwise}.")
    return found


def _rows(data: Data, column: str, unit: str, view: View | None) -> Rows:
    rows = []
    for cell in data.plain(view):
        spread = data.spread(column, cell)
        if spread is not None:
            place, value, name = key_of(data, cell)
            clients = data.values("flows", column, cell).size
            rows.append((*place, *([value] if data.across else []), name, unit, clients, *spread.row()))
    return Rows((*data.columns, "controller", "unit", "clients_of_all_runs", *Spread.HEADER), tuple(rows))


def _draw(
    data: Data,
    spreads: Mapping[Key, Spread],
    axis: str,
    published: Mapping[Key, float],
    view: View | None,
    *,
    boxes: bool,
) -> Figure:
    view = view or data.whole
    note, places = "", data.ranked(key[0] for key in spreads)
    if not boxes:
        left_out = [p for p in places if all(s.p90 == 0 for (place, *_), s in spreads.items() if place == p)]
        places = [p for p in places if p not in left_out]
        if not places:
            raise Missing(f"No client made one in these runs{listed(data, left_out, view)}.")
        if left_out:
            note = f"No client made one{listed(data, left_out, view)} (panels left out)."
    grid = Grid.of(data, spreads, places)

    def paint(panel: Axes, place: Place) -> bool:
        low, high = float("inf"), 0.0
        marked = []
        for name in grid.controllers:
            found = [(v, spreads[place, v, name]) for v in grid.along if (place, v, name) in spreads]
            draw = marks.boxes if boxes else marks.bars
            draw(panel, data.looks[name], [grid.at[v, name] for v, _ in found], [s for _, s in found], grid.width)
            for value, spread in found:
                low = min(low, spread.minimum if boxes else spread.p10)
                high = max(high, spread.maximum if boxes else spread.p90)
                theirs = published.get((place, value, name))
                if theirs is not None:
                    marked.append((grid.at[value, name], theirs))
                    low, high = min(low, theirs), max(high, theirs)
        marks.published(panel, marked)
        return marks.from_zero(panel, low, high) if boxes else marks.from_zero(panel, 0.0, high)

    keys = marks.area_keys(data, grid.controllers, markers=boxes)
    if any(key in spreads for key in published):
        keys.append(marks.published_key())
    return grid.draw(view, axis, paint, keys, note)
