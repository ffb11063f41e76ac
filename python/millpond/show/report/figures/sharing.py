"""Two controllers on one bottleneck: each half beside the same controller alone."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.figure import Figure

from millpond.results.directory import Cell, Results
from millpond.show.factors import SERIES
from millpond.show.report import style
from millpond.show.report.data import Data, members, only
from millpond.show.report.figures import marks
from millpond.show.report.values import Missing, Rows, Spread, View

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


def sharing(results: Results | Data, view: View | None = None) -> Figure:
    """Flow completion times of each half of a mix, beside those of as many clients that all have its controller.

    A panel per place. Raises `Missing` if no mix was run.
    """
    data = Data.of(results)
    found = halves(data, view)
    spots = {data.spot(half.mix): data.spot_in_words(half.mix) for half in found}
    couples = list(dict.fromkeys(half.mix.columns.get(SERIES) for half in found))
    columns = min(2, len(spots))
    rows = -(-len(spots) // columns)
    with style.applied():
        figure = Figure(figsize=(style.WIDTH, 3.3 * rows + 0.8), layout="constrained")
        marks.more_room(figure)
        panels = figure.subplots(rows, columns, squeeze=False)
        for index, (panel, (spot, words)) in enumerate(zip(panels.flat, spots.items(), strict=False)):
            here = [half for half in found if data.spot(half.mix) == spot]
            low, high, ticks, names = float("inf"), 0.0, [], []
            for half in here:
                couple = couples.index(half.mix.columns.get(SERIES))
                second = half.controller != members(half.mix)[0]
                x = couple * PAIR + (1.15 if second else 0.0)
                look = data.looks[half.controller]
                if half.alone is not None:
                    marks.boxes(panel, style.Look("#ffffff", look.dash, look.marker, ""), [x - 0.2], [half.alone], 0.34)
                marks.boxes(panel, look, [x + 0.2], [half.mixed], 0.34)
                for spread in (half.alone, half.mixed):
                    if spread is not None:
                        low, high = min(low, spread.minimum), max(high, spread.maximum)
                ticks.append(x)
                names.append(data.label(half.controller).replace(" ", "\n"))
            zero = marks.from_zero(panel, low, high)
            marks.title(panel, words, zero)
            panel.set_xticks(ticks, names)
            panel.tick_params(axis="x", length=0, labelsize=8.5)
            panel.set_xlim(-0.725, max(ticks) + 0.725)
            for couple in range(1, len(couples)):
                panel.axvline(couple * PAIR - 0.725, color=style.GRID, linewidth=0.8, zorder=0)
            if index % columns == 0:
                panel.set_ylabel("flow completion time (s)")
        for panel in panels.flat[len(spots) :]:
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


def sharing_rows(results: Results | Data, view: View | None = None) -> Rows:
    """The percentiles that `sharing` draws, in seconds."""
    data = Data.of(results)
    rows = []
    for half in halves(data, view):
        for who, spread in (("all", half.alone), ("half", half.mixed)):
            if spread is not None:
                rows.append((*data.spot(half.mix), half.controller, who, half.partner, *spread.row()))
    return Rows((*data.columns, "controller", "share_of_clients", "neighbour", *Spread.HEADER), tuple(rows))


def halves(data: Data, view: View | None = None) -> list[Half]:
    """Each controller of each mix. Raises `Missing` if there is no mix with finished clients."""
    view = view or data.whole
    alone = {(only(cell), data.spot(cell)): cell for cell in data.plain(view)}
    found = []
    for cell in data.cells:
        if not cell.mixed or not view.covers(cell):
            continue
        names = members(cell)
        for group in cell.groups:
            spread = data.spread("fct_us", cell, group)
            partner = ", ".join(data.label(other) for other in names if other != group.algorithm)
            same = alone.get((group.algorithm, data.spot(cell)))
            if spread is not None:
                lone = data.spread("fct_us", same) if same is not None else None
                found.append(Half(cell, group.algorithm, partner, spread, lone))
    if not found:
        raise Missing("Two controllers on one bottleneck are not drawn: no mix was run.")
    return found
