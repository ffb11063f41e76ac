"""Retransmissions of a client that were needed, and those that were not, one on top of the other."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from millpond.results.directory import Results
from millpond.show.report import style
from millpond.show.report.data import Data
from millpond.show.report.figures import marks
from millpond.show.report.figures.matrix import Grid, Key, Place, key_of, listed
from millpond.show.report.values import Missing, Rows, View

Pair = tuple[float, float]
"""Unnecessary and necessary retransmissions of a client, means."""


def retransmissions(results: Results | Data, view: View | None = None) -> Figure:
    """Bars of the mean number of retransmissions of a client: unnecessary ones below, necessary ones above.

    Raises `Missing` if there were none.
    """
    data = Data.of(results)
    pairs = _pairs(data, view)
    view = view or data.whole
    places = data.ranked(key[0] for key in pairs)
    quiet = [p for p in places if all(sum(pair) == 0 for (place, *_), pair in pairs.items() if place == p)]
    places = [place for place in places if place not in quiet]
    if not places:
        raise Missing(f"No client made one in these runs{listed(data, quiet, view)}.")
    grid = Grid.of(data, pairs, places)

    def paint(panel: Axes, place: Place) -> bool:
        high = 0.0
        for name in grid.controllers:
            found = [(grid.at[v, name], pairs[place, v, name]) for v in grid.along if (place, v, name) in pairs]
            half, look = grid.width / 2, data.looks[name]
            below = [Rectangle((x - half, 0), grid.width, unnecessary) for x, (unnecessary, _) in found]
            above = [Rectangle((x - half, pair[0]), grid.width, pair[1]) for x, pair in found]
            marks.areas(panel, below, look)
            marks.areas(panel, above, look.pale)
            high = max([high, *(sum(pair) for _, pair in found)])
        return marks.from_zero(panel, 0.0, high)

    keys = marks.area_keys(data, grid.controllers)
    keys.append(Patch(facecolor="#eeeeee", edgecolor=style.INK, linewidth=0.7, label="pale on top: necessary ones"))
    note = f"No client made one{listed(data, quiet, view)} (panels left out)." if quiet else ""
    return grid.draw(view, "retransmissions of a client", paint, keys, note)


def retransmissions_rows(results: Results | Data, view: View | None = None) -> Rows:
    """The means that `retransmissions` draws."""
    data = Data.of(results)
    rows = []
    for (place, value, name), (unnecessary, necessary) in _pairs(data, view).items():
        rows.append((*place, *([value] if data.across else []), name, unnecessary, necessary))
    return Rows((*data.columns, "controller", "unnecessary_mean", "necessary_mean"), tuple(rows))


def _pairs(data: Data, view: View | None) -> dict[Key, Pair]:
    found: dict[Key, Pair] = {}
    for cell in data.plain(view):
        total = data.values("flows", "retransmissions", cell)
        needless = data.values("flows", "unnecessary", cell)
        if total.size:
            found[key_of(data, cell)] = float(needless.mean()), float((total - needless).mean())
    if not found:
        raise Missing("Nothing to draw: these results count no retransmissions.")
    return found
