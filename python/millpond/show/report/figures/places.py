"""One picture of a study that has many places: completion time of every controller at each of them."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from millpond.results.directory import Results
from millpond.show.report import labels, style
from millpond.show.report.data import Data, Missing, Rows, Spread, View, number, only
from millpond.show.report.figures import marks
from millpond.show.report.figures.matrix import Place, ranked

SPARSE, MANY = 8, 15
"""With more places than the first their names are set small; with more than the second they are spread over rows."""

Found = Mapping[tuple[Place, int, str], Spread]


def completion_by_place(results: Results | Data, workload: str = "continuous", view: View | None = None) -> Figure:
    """Median flow completion time at each place, a marker per controller, lines from the 10th to the 90th percentile.

    A panel for the smallest and one for the largest buffer; of many places, a row of such panels for each part of them.
    Raises `Missing` if no client finished.
    """
    data = Data.of(results)
    found = _spreads(data, workload, view)
    view = view or View(data.paths[0], {})
    buffers = sorted({key[1] for key in found})
    chosen = buffers if len(buffers) == 1 else [buffers[0], buffers[-1]]
    everywhere = ranked(found)
    parts = [(view, everywhere)]
    if len(everywhere) > MANY:
        parts = [(part, [p for p in everywhere if p in _of(data, part)]) for part in data.parts(view)]
    abreast = len(chosen) if len(parts) > 1 else 1
    controllers = [name for name in data.controllers() if name in {key[2] for key in found}]
    looks = style.looks(controllers)
    rows = len(parts) * len(chosen) // abreast
    with style.applied():
        figure = Figure(figsize=(style.WIDTH, 2.6 * rows + 2.0), layout="constrained")
        marks.more_room(figure)
        panels = figure.subplots(rows, abreast, sharey=True, squeeze=False)
        cells = [(part, places, buffer) for part, places in parts for buffer in chosen]
        for index, (panel, (part, places, buffer)) in enumerate(zip(panels.flat, cells, strict=True)):
            at, _ = marks.positions(len(places), len(controllers), share=0.78)
            for c, name in enumerate(controllers):
                here = [(i, found[p, buffer, name]) for i, p in enumerate(places) if (p, buffer, name) in found]
                marks.medians(panel, looks[name], [at[i][c] for i, _ in here], [spread for _, spread in here])
            panel.set_yscale("log")
            panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: labels.count(value)))
            panel.yaxis.set_minor_formatter(NullFormatter())
            words = part.words if len(parts) > 1 else ""
            panel.set_title(", ".join(word for word in (words, f"buffer {labels.buffer(buffer)}") if word))
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
        marks.legend_below(figure, marks.line_keys(controllers, looks), 4)
    return figure


def _of(data: Data, view: View) -> set[Place]:
    return {data.place(cell) for cell in data.plain(view)}


def completion_by_place_rows(results: Results | Data, workload: str = "continuous", view: View | None = None) -> Rows:
    """The percentiles that `completion_by_place` draws, for all buffers, in seconds."""
    data = Data.of(results)
    rows = [
        (*place, buffer, workload, name, *spread.row())
        for (place, buffer, name), spread in _spreads(data, workload, view).items()
    ]
    return Rows(("clients", *data.varying, "buffer_bytes", "workload", "controller", *Spread.HEADER), tuple(rows))


def _ticks(data: Data, places: Sequence[Place], view: View, width: int) -> list[str]:
    """What a place is, a word a line: clients, and what is not the same at all of them."""
    told = [data.further_in_words(place, view) for place in places]
    everywhere = set.intersection(*(set(words) for words in told))
    ticks = []
    for place, words in zip(places, told, strict=True):
        lines = [labels.clients(int(place[0])), *(word for word in words if word not in everywhere)]
        short = (line.replace(" payload", "") for line in lines)
        ticks.append("\n".join(textwrap.fill(line, width) for line in short))
    return ticks


def _spreads(data: Data, workload: str, view: View | None) -> Found:
    found: dict[tuple[Place, int, str], Spread] = {}
    for cell in data.plain(view, workload):
        spread = data.spread("fct_us", cell)
        if spread is not None:
            found[data.place(cell), int(number(cell, "buffer_bytes")), only(cell)] = spread
    if not found:
        raise Missing(f"Nothing to draw for {workload} clients: no client finished in these runs.")
    return found
