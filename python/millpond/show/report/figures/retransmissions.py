"""Retransmissions of a client that were needed, and those that were not, one on top of the other."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from millpond.results.directory import Results
from millpond.show.report import style
from millpond.show.report.data import Data, Missing, Rows, View
from millpond.show.report.figures import marks
from millpond.show.report.figures.matrix import Grid, Key, Place, key_of, listed, ranked

Pair = tuple[float, float]
"""Unnecessary and necessary retransmissions of a client, means."""


def retransmissions(results: Results | Data, workload: str = "continuous", view: View | None = None) -> Figure:
    """Bars of the mean number of retransmissions of a client: unnecessary ones below, necessary ones above.

    Raises `Missing` if there were none.
    """
    data = Data.of(results)
    pairs = _pairs(data, workload, view)
    view = view or View(data.paths[0], {})
    places = ranked(pairs)
    quiet = [p for p in places if all(sum(pair) == 0 for (place, *_), pair in pairs.items() if place == p)]
    places = [place for place in places if place not in quiet]
    if not places:
        raise Missing(f"No client made one in these runs, with {listed(data, quiet, view)}.")
    grid = Grid.of(data, pairs, places)

    def paint(panel: Axes, place: Place) -> bool:
        high = 0.0
        for name in grid.controllers:
            found = [(grid.at[b, name], pairs[place, b, name]) for b in grid.buffers if (place, b, name) in pairs]
            half = grid.width / 2
            below = [Rectangle((x - half, 0), grid.width, unnecessary) for x, (unnecessary, _) in found]
            above = [Rectangle((x - half, pair[0]), grid.width, pair[1]) for x, pair in found]
            marks.areas(panel, below, grid.looks[name])
            marks.areas(panel, above, grid.looks[name].pale)
            high = max([high, *(sum(pair) for _, pair in found)])
        return marks.from_zero(panel, 0.0, high)

    keys = marks.area_keys(grid.controllers, grid.looks)
    keys.append(Patch(facecolor="#eeeeee", edgecolor=style.INK, linewidth=0.7, label="pale on top: necessary ones"))
    note = f"No client made one with {listed(data, quiet, view)} (panels left out)." if quiet else ""
    return grid.draw(data, view, "retransmissions of a client", paint, keys, note)


def retransmissions_rows(results: Results | Data, workload: str = "continuous", view: View | None = None) -> Rows:
    """The means that `retransmissions` draws."""
    data = Data.of(results)
    rows = []
    for (place, buffer, name), (unnecessary, necessary) in _pairs(data, workload, view).items():
        rows.append((*place, buffer, workload, name, unnecessary, necessary))
    header = ("clients", *data.varying, "buffer_bytes", "workload", "controller", "unnecessary_mean", "necessary_mean")
    return Rows(header, tuple(rows))


def _pairs(data: Data, workload: str, view: View | None) -> dict[Key, Pair]:
    found: dict[Key, Pair] = {}
    for cell in data.plain(view, workload):
        total = data.values("flows", "retransmissions", cell)
        needless = data.values("flows", "unnecessary", cell)
        if total.size:
            found[key_of(data, cell)] = float(needless.mean()), float((total - needless).mean())
    if not found:
        raise Missing(f"Nothing to draw for {workload} clients: these results count no retransmissions.")
    return found
