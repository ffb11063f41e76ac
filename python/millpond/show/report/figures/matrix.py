"""Pictures with a panel per place (a number of clients), a group per buffer and a mark per controller."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from millpond.judge.compare import Comparison
from millpond.results.directory import Cell, Results, Value
from millpond.show.report import labels, style
from millpond.show.report.data import FIXED, Data, Missing, Rows, Spread, View, number, only
from millpond.show.report.figures import marks

Place = tuple[Value, ...]
"""Clients, and what else tells cells of a study apart."""
Key = tuple[Place, int, str]
"""Place, buffer in bytes, preset."""
CROWDED = 7
"""With more controllers than this a panel takes the whole width."""


def completion_times(
    results: Results | Data,
    workload: str = "continuous",
    comparison: Comparison | None = None,
    view: View | None = None,
) -> Figure:
    """Boxes of the flow completion time, with published medians marked. Raises `Missing` if nothing was run."""
    data = Data.of(results)
    spreads = _spreads(data, "fct_us", workload, view, "no client finished in these runs")
    return _draw(
        data,
        spreads,
        "flow completion time (s)",
        published=published_medians(data, "fct", workload, comparison, view),
        boxes=True,
        view=view,
    )


def completion_times_rows(results: Results | Data, workload: str = "continuous", view: View | None = None) -> Rows:
    """The percentiles that `completion_times` draws, in seconds."""
    return _rows(Data.of(results), "fct_us", workload, "s", view)


def unnecessary_copies(
    results: Results | Data,
    workload: str = "continuous",
    comparison: Comparison | None = None,
    view: View | None = None,
) -> Figure:
    """Bars of the median number of unnecessary retransmissions of a client. Raises `Missing` if nothing was run."""
    data = Data.of(results)
    spreads = _spreads(data, "unnecessary", workload, view, "these results count no retransmissions")
    return _draw(
        data,
        spreads,
        "unnecessary retransmissions\nper client",
        published=published_medians(data, "unnecessary_retx_per_client", workload, comparison, view),
        boxes=False,
        view=view,
    )


def unnecessary_copies_rows(results: Results | Data, workload: str = "continuous", view: View | None = None) -> Rows:
    """The percentiles that `unnecessary_copies` draws, in retransmissions per client."""
    return _rows(Data.of(results), "unnecessary", workload, "retransmissions", view)


def published_medians(
    data: Data, metric: str, workload: str, comparison: Comparison | None, view: View | None = None
) -> Mapping[Key, float]:
    """Published medians of a metric, by the cell they belong to."""
    found: dict[Key, float] = {}
    first = data.paths[0]
    for figure in comparison.figures if comparison is not None else []:
        if figure.metric != metric or figure.statistic != "median" or figure.scenario.get("path", FIXED) != first:
            continue
        for cell in data.plain(view, workload):
            if _belongs(figure.scenario, cell, data.varying):
                found.setdefault(key_of(data, cell), figure.published)
    return found


def _belongs(scenario: Mapping[str, object], cell: Cell, varying: Sequence[str]) -> bool:
    needed = ("clients", "buffer_bytes", "workload", "algorithm")
    further = [name for name in varying if name in scenario]
    return all(name in scenario and str(scenario[name]) == str(cell.columns.get(name)) for name in (*needed, *further))


def key_of(data: Data, cell: Cell) -> Key:
    """Where a cell stands in such a picture."""
    return data.place(cell), int(number(cell, "buffer_bytes")), only(cell)


def _spreads(data: Data, column: str, workload: str, view: View | None, otherwise: str) -> dict[Key, Spread]:
    found: dict[Key, Spread] = {}
    for cell in data.plain(view, workload):
        spread = data.spread(column, cell)
        if spread is not None:
            found[key_of(data, cell)] = spread
    if not found:
        raise Missing(f"Nothing to draw for {workload} clients: {otherwise}.")
    return found


def _rows(data: Data, column: str, workload: str, unit: str, view: View | None) -> Rows:
    rows = []
    for cell in data.plain(view, workload):
        spread = data.spread(column, cell)
        if spread is not None:
            place, buffer, controller = key_of(data, cell)
            rows.append((*place, buffer, workload, controller, unit, data.unfinished(cell), *spread.row()))
    columns = ("clients", *data.varying, "buffer_bytes", "workload", "controller", "unit", "unfinished")
    return Rows((*columns, *Spread.HEADER), tuple(rows))


def _draw(
    data: Data,
    spreads: Mapping[Key, Spread],
    axis: str,
    *,
    published: Mapping[Key, float],
    boxes: bool,
    view: View | None,
) -> Figure:
    note, places = "", ranked(spreads)
    view = view or View(data.paths[0], {})
    if not boxes:
        left_out = [p for p in places if all(s.p90 == 0 for (place, *_), s in spreads.items() if place == p)]
        places = [p for p in places if p not in left_out]
        if not places:
            raise Missing(f"No client made one in these runs, with {listed(data, left_out, view)}.")
        if left_out:
            note = f"No client made one with {listed(data, left_out, view)} (panels left out)."
    grid = Grid.of(data, spreads, places)

    def paint(panel: Axes, place: Place) -> bool:
        low, high = float("inf"), 0.0
        marked = []
        for name in grid.controllers:
            found = [(b, spreads[place, b, name]) for b in grid.buffers if (place, b, name) in spreads]
            draw = marks.boxes if boxes else marks.bars
            draw(panel, grid.looks[name], [grid.at[b, name] for b, _ in found], [s for _, s in found], grid.width)
            for b, spread in found:
                low = min(low, spread.minimum if boxes else spread.p10)
                high = max(high, spread.maximum if boxes else spread.p90)
                theirs = published.get((place, b, name))
                if theirs is not None:
                    marked.append((grid.at[b, name], theirs))
                    low, high = min(low, theirs), max(high, theirs)
        marks.published(panel, marked)
        return marks.from_zero(panel, low, high) if boxes else marks.from_zero(panel, 0.0, high)

    keys = marks.area_keys(grid.controllers, grid.looks, markers=boxes)
    if any(key in spreads for key in published):
        keys.append(marks.published_key())
    return grid.draw(data, view, axis, paint, keys, note)


@dataclass(frozen=True)
class Grid:
    """The frame of such a picture: which panels, and where in a panel each buffer and controller stands."""

    places: Sequence[Place]
    buffers: Sequence[int]
    controllers: Sequence[str]
    at: Mapping[tuple[int, str], float]
    width: float
    looks: Mapping[str, style.Look]

    @staticmethod
    def of(data: Data, keys: Iterable[Key], places: Sequence[Place]) -> Grid:
        """The frame for these places, with every buffer and controller that the keys name."""
        wanted = list(keys)
        controllers = [name for name in data.controllers() if name in {key[2] for key in wanted}]
        buffers = sorted({key[1] for key in wanted})
        at, width = marks.positions(len(buffers), len(controllers))
        where = {(b, name): at[i][c] for i, b in enumerate(buffers) for c, name in enumerate(controllers)}
        return Grid(places, buffers, controllers, where, width, style.looks(controllers))

    def draw(
        self,
        data: Data,
        view: View,
        axis: str,
        paint: Callable[[Axes, Place], bool],
        keys: Sequence[marks.Key],
        note: str = "",
    ) -> Figure:
        """All panels; `paint` fills one and says whether its axis starts at zero."""
        columns = 1 if len(self.places) == 1 or len(self.controllers) > CROWDED else 2
        rows = -(-len(self.places) // columns)
        with style.applied():
            figure = Figure(figsize=(style.WIDTH, 2.55 * rows + 0.9), layout="constrained")
            marks.more_room(figure)
            panels = figure.subplots(rows, columns, squeeze=False)
            for index, (panel, place) in enumerate(zip(panels.flat, self.places, strict=False)):
                marks.title(panel, data.place_in_words(place, view), paint(panel, place))
                panel.set_xlim(-0.5, len(self.buffers) - 0.5)
                panel.set_xticks(range(len(self.buffers)), [labels.buffer(size) for size in self.buffers])
                panel.tick_params(axis="x", length=0)
                for b in range(1, len(self.buffers)):
                    panel.axvline(b - 0.5, color=style.GRID, linewidth=0.8, zorder=0)
                if index % columns == 0:
                    panel.set_ylabel(axis)
                if index >= len(self.places) - columns:
                    panel.set_xlabel("bottleneck buffer")
            for panel in panels.flat[len(self.places) :]:
                panel.set_visible(False)
            if note:
                figure.suptitle(note, x=0.01, ha="left", fontsize=10)
            figure.align_ylabels()
            marks.legend_below(figure, keys, 4)
        return figure


def ranked(keys: Iterable[Key]) -> list[Place]:
    """The places of the keys: as they come, but with more and more clients where nothing else differs."""
    places = list(dict.fromkeys(key[0] for key in keys))
    order = list(dict.fromkeys(place[1:] for place in places))
    return sorted(places, key=lambda place: (order.index(place[1:]), int(place[0])))


def listed(data: Data, places: Sequence[Place], view: View) -> str:
    """Places in a sentence."""
    if any(place[1:] != places[0][1:] for place in places):
        return "; ".join(data.place_in_words(place, view) for place in places)
    texts = [labels.count(int(place[0])) for place in places]
    words = texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
    return f"{words} client{'' if texts == ['1'] else 's'}"
