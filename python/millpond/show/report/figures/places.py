"""One picture of a study that has many places: completion time of every controller at each of them."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from millpond.results.directory import Results, Value
from millpond.show import labels
from millpond.show.report import style
from millpond.show.report.data import Data
from millpond.show.report.figures import marks
from millpond.show.report.figures.matrix import Key, Place, key_of
from millpond.show.report.values import Missing, Rows, Spread, View

SPARSE, MANY = 8, 15
"""With more places than the first their names are set small; with more than the second they are spread over rows."""

Found = Mapping[Key, Spread]


def completion_by_place(results: Results | Data, view: View | None = None) -> Figure:
    """Median flow completion time at each place, a marker per controller, lines from the 10th to the 90th percentile.

    A panel for the smallest and one for the largest value along the axis; of many places, a row of such panels for each
    part of them. Raises `Missing` if no client finished.
    """
    data = Data.of(results)
    found = _spreads(data, view)
    view = view or data.whole
    along = [value for value in data.along(data.cells) if value in {key[1] for key in found}]
    chosen = along if len(along) == 1 else [along[0], along[-1]]
    everywhere = data.ranked(key[0] for key in found)
    parts = [(view, everywhere)]
    if len(everywhere) > MANY:
        parts = [(part, [p for p in everywhere if p in _of(data, part)]) for part in data.parts(view)]
    abreast = len(chosen) if len(parts) > 1 else 1
    controllers = [name for name in data.controllers() if name in {key[2] for key in found}]
    rows = len(parts) * len(chosen) // abreast
    with style.applied():
        figure = Figure(figsize=(style.WIDTH, 2.6 * rows + 2.0), layout="constrained")
        marks.more_room(figure)
        panels = figure.subplots(rows, abreast, sharey=True, squeeze=False)
        cells = [(part, places, value) for part, places in parts for value in chosen]
        for index, (panel, (part, places, value)) in enumerate(zip(panels.flat, cells, strict=True)):
            at, _ = marks.positions(len(places), len(controllers), share=0.78)
            for c, name in enumerate(controllers):
                here = [(i, found[p, value, name]) for i, p in enumerate(places) if (p, value, name) in found]
                marks.medians(panel, data.looks[name], [at[i][c] for i, _ in here], [spread for _, spread in here])
            panel.set_yscale("log")
            panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: labels.count(value)))
            panel.yaxis.set_minor_formatter(NullFormatter())
            words = data.words(part) if len(parts) > 1 else ""
            panel.set_title(", ".join(word for word in (words, _along(data, value)) if word))
            if index % abreast == 0:
                panel.set_ylabel("flow completion time (s)")
            panel.set_xlim(-0.5, len(places) - 0.5)
            for i in range(1, len(places)):
                panel.axvline(i - 0.5, color=style.GRID, linewidth=0.8, zorder=0)
            small = len(places) > SPARSE
            panel.set_xticks(range(len(places)), _ticks(data, places, part, 11 if small or abreast > 1 else 22))
            panel.tick_params(axis="x", length=0, labelsize=6.8 if small else 8)
            if abreast == 1 and index < len(cells) - 1:
                panel.tick_params(axis="x", labelbottom=False)
        low, high = panels.flat[0].get_ylim()
        if high < 100 * low:  # so few powers of ten, or none, say too little
            for panel in panels.flat:
                panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)) if high >= 10 * low else MaxNLocator(5))
                panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        marks.legend_below(figure, marks.line_keys(data, controllers), 4)
    return figure


def completion_by_place_rows(results: Results | Data, view: View | None = None) -> Rows:
    """The percentiles that `completion_by_place` draws, for all values along the axis, in seconds."""
    data = Data.of(results)
    rows = [
        (*place, *([value] if data.across else []), name, *spread.row())
        for (place, value, name), spread in _spreads(data, view).items()
    ]
    return Rows((*data.columns, "controller", *Spread.HEADER), tuple(rows))


def _of(data: Data, view: View) -> set[Place]:
    return {data.place(cell) for cell in data.plain(view)}


def _along(data: Data, value: Value) -> str:
    return f"{data.factors[data.across].label} {data.factors[data.across].tick(value)}" if data.across else ""


def _ticks(data: Data, places: Sequence[Place], view: View, width: int) -> list[str]:
    """What a place is, a word a line: what is not the same at all of them."""
    told = [data.further_in_words(place, view) for place in places]
    everywhere = set.intersection(*(set(words) for words in told))
    ticks = []
    for words in told:
        lines = [word for word in words if word not in everywhere] or words[:1]
        ticks.append("\n".join(textwrap.fill(line, width) for line in lines))
    return ticks


def _spreads(data: Data, view: View | None) -> Found:
    found: dict[Key, Spread] = {}
    for cell in data.plain(view):
        spread = data.spread("fct_us", cell)
        if spread is not None:
            found[key_of(data, cell)] = spread
    if not found:
        raise Missing("Nothing to draw: no client finished in these runs.")
    return found
