"""Two controllers on one bottleneck: each half beside the same controller alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from millpond.results.directory import Cell, Results
from millpond.show.report import labels, style
from millpond.show.report.data import Data, Missing, Rows, Spread, members, number, only
from millpond.show.report.figures import marks

PAIR = 2.6
"""Width of a pair of controllers on the axis."""


@dataclass(frozen=True)
class Half:
    """The clients of one controller in a mix, and the cell in which all clients have that controller."""

    mix: Cell
    controller: str
    partner: str
    mixed: Spread
    alone: Spread | None


def sharing(results: Results | Data, workload: str = "continuous") -> Figure:
    """Flow completion times of each half of a mix, beside those of as many clients that all have its controller.

    A panel per number of clients and buffer. Raises `Missing` if no mix was run.
    """
    data = Data.of(results)
    found = halves(data, workload)
    places = sorted({_place(half) for half in found})
    pairs = list(dict.fromkeys((half.controller, half.partner) for half in found))
    couples = list(dict.fromkeys(half.mix.columns.get("algorithm") for half in found))
    looks = style.looks([name for pair in pairs for name in pair])
    columns = min(2, len(places))
    rows = -(-len(places) // columns)
    with style.applied():
        figure = Figure(figsize=(style.WIDTH, 3.3 * rows + 0.8), layout="constrained")
        marks.more_room(figure)
        panels = figure.subplots(rows, columns, squeeze=False)
        for index, (panel, place) in enumerate(zip(panels.flat, places, strict=False)):
            here = [half for half in found if _place(half) == place]
            low, high, ticks, names = float("inf"), 0.0, [], []
            for half in here:
                couple = couples.index(half.mix.columns.get("algorithm"))
                second = half.controller != members(half.mix)[0]
                x = couple * PAIR + (1.15 if second else 0.0)
                if half.alone is not None:
                    marks.boxes(panel, _pale(looks[half.controller]), [x - 0.2], [half.alone], 0.34)
                marks.boxes(panel, looks[half.controller], [x + 0.2], [half.mixed], 0.34)
                for spread in (half.alone, half.mixed):
                    if spread is not None:
                        low, high = min(low, spread.minimum), max(high, spread.maximum)
                ticks.append(x)
                names.append(_short(half.controller))
            zero = marks.from_zero(panel, low, high)
            marks.title(panel, f"{labels.clients(place[0])}, {labels.buffer(place[1])}", zero)
            panel.set_xticks(ticks, names)
            panel.tick_params(axis="x", length=0, labelsize=8.5)
            panel.set_xlim(-0.725, max(ticks) + 0.725)
            for couple in range(1, len(couples)):
                panel.axvline(couple * PAIR - 0.725, color=style.GRID, linewidth=0.8, zorder=0)
            if index % columns == 0:
                panel.set_ylabel("flow completion time (s)")
        for panel in panels.flat[len(places) :]:
            panel.set_visible(False)
        keys = [
            marks.area_key(style.Look("#ffffff", "-", "", ""), "left of the pair: all clients have this controller"),
            marks.area_key(
                style.Look("#bbbbbb", "-", "", "////"), "right: half of them, the other half its neighbour's"
            ),
        ]
        figure.align_ylabels()
        marks.legend_below(figure, keys, 2)
    return figure


def sharing_rows(results: Results | Data, workload: str = "continuous") -> Rows:
    """The percentiles that `sharing` draws, in seconds."""
    rows = []
    for half in halves(Data.of(results), workload):
        for who, spread in (("all", half.alone), ("half", half.mixed)):
            if spread is not None:
                rows.append((*_place(half), workload, half.controller, who, half.partner, *spread.row()))
    header = ("clients", "buffer_bytes", "workload", "controller", "share_of_clients", "neighbour", *Spread.HEADER)
    return Rows(header, tuple(rows))


def halves(data: Data, workload: str) -> list[Half]:
    """Each controller of each mix. Raises `Missing` if there is no mix with finished clients."""
    alone = {(only(cell), *_where(cell)): cell for cell in data.plain(workload=workload)}
    found = []
    for cell in data.cells:
        if not cell.mixed or cell.columns.get("workload") != workload:
            continue
        names = members(cell)
        for group in cell.groups:
            name = labels.preset(group.algorithm)
            spread = data.spread("fct_us", cell, group)
            partner = ", ".join(other for other in names if other != name)
            same = alone.get((name, *_where(cell)))
            if spread is not None:
                found.append(Half(cell, name, partner, spread, data.spread("fct_us", same) if same else None))
    if not found:
        raise Missing(f"Two controllers on one bottleneck are not drawn: no mix was run with {workload} clients.")
    return found


def _where(cell: Cell) -> tuple[float, float]:
    return number(cell, "clients"), number(cell, "buffer_bytes")


def _place(half: Half) -> tuple[float, float]:
    return _where(half.mix)


def _pale(look: style.Look) -> style.Look:
    return style.Look("#ffffff", look.dash, look.marker, "")


def _short(name: str) -> str:
    words: Sequence[str] = labels.controller(name).replace(" CoAP", "").replace("Full Backoff ", "FB").split(" + ")
    return "\n+ ".join(words)
