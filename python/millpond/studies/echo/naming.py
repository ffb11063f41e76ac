"""What replies name after a retransmission, and by how much those are mistaken that name a wrong copy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from millpond.measure.estimate import Estimate
from millpond.measure.evidence import KINDS
from millpond.results.directory import Cell
from millpond.show.document import Missing, Plot, Rows
from millpond.show.report import style
from millpond.show.report.figures import facets, marks
from millpond.show.report.figures.facets import Point, Spec
from millpond.show.report.grid import Grid, Spread
from millpond.show.report.style import Look

SERVERS = {"stored": "stored replies", "afresh": "answered afresh"}
"""The kinds of servers, and what they do with duplicates."""
TIMER = "fixed"
"""The algorithm whose first wait never changes."""
SHOWN = (1.0, 5.0, 10.0, 30.0)
"""The losses, in percent, that get a panel; the table has all."""

_LOOKS: Mapping[str, tuple[str, Look]] = {
    "names_last_rightly": ("names the last copy, rightly", Look("#0072B2", "-", "o", "")),
    "names_earlier_rightly": ("names an earlier copy, rightly", Look("#56B4E9", "-", "s", "////")),
    "names_earlier_wrongly": ("names an earlier copy, wrongly", Look("#D55E00", "-", "D", "xxxx")),
    "names_last_wrongly": ("names the last copy, wrongly", Look("#333333", "-", "X", "----")),
}
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#333333")
_LINES = ("-", (0, (6, 2)), (0, (1.2, 1.6)), (0, (6, 2, 1.2, 2)), (0, (8, 2, 1.5, 2)), (0, (3, 1.5)))
_MARKERS = ("o", "s", "D", "^", "v", "P")


@dataclass(frozen=True)
class Answer:
    """What replies named in one cell."""

    server: str
    loss: float
    ratio: float
    shares: Mapping[str, Estimate]
    error: Estimate
    """By how many round trips those are mistaken that name a wrong copy; NaN if there are none."""
    theory: float
    """The share that names the last copy rightly, in theory; NaN if there is none."""


def answers(grid: Grid) -> list[Answer]:
    """What replies named, wherever the first wait is a setting. Raises `Missing` if that was not run."""
    cells = [cell for cell in grid.cells if cell.columns.get("algorithm") == TIMER and float(cell.columns["ratio"]) > 0]
    found = [_answer(grid, cell) for cell in cells if float(cell.columns["error_profile"]) > 0]
    if not found:
        raise Missing("Not drawn: these results hold no runs with a first wait that never changes.")
    return found


def named_copies(grid: Grid) -> Plot:
    """Shares of replies by what they name, over the ratio of first wait and round trip: a panel per server and loss.

    The numbers are all others too, each with its 95 % interval.
    """
    found = answers(grid)
    return Plot(_rows(found), lambda: _draw(found))


def _draw(found: Sequence[Answer]) -> Figure:
    losses = [loss for loss in SHOWN if loss in {answer.loss for answer in found}] or [found[0].loss]
    servers = list(dict.fromkeys(answer.server for answer in found))
    ratios = sorted({answer.ratio for answer in found})
    places = [(server, loss) for server in servers for loss in losses]
    words, height = ("first wait / round trip", "share of replies (%)"), 2.5 * len(servers) + 1.1
    with marks.panels(height, len(places), len(losses), words, sharex=True, sharey=True) as (figure, panels):
        for panel, (server, loss) in zip(panels, places, strict=True):
            here = {a.ratio: a for a in found if a.server == server and a.loss == loss}
            _stack(panel, [here[ratio] for ratio in ratios if ratio in here], ratios)
            panel.set_title(f"{loss:g} % loss, {SERVERS[server]}", fontsize=9.5)
        keys: list[marks.Key] = [marks.area_key(look, label) for label, look in _LOOKS.values()]
        keys.append(Line2D([], [], color=style.PUBLISHED, marker="_", markersize=13, linestyle="none", label="theory"))
        marks.legend_below(figure, keys, 3)
    return figure


def _rows(found: Sequence[Answer]) -> Rows:
    header = ["server", "loss_percent", "ratio"]
    header += [name for kind in (*KINDS, "naming_error_rtts") for name in (kind, f"{kind}_low", f"{kind}_high")]
    header += ["names_last_rightly_theory"]
    rows = []
    for answer in found:
        told = [answer.shares[kind] for kind in KINDS] + [answer.error]
        values = [value for found in told for value in (found.value, *(found.interval or ("", "")))]
        rows.append((answer.server, answer.loss, answer.ratio, *values, answer.theory))
    return Rows(tuple(header), tuple(rows))


def naming_errors(grid: Grid) -> Plot:
    """By how many round trips a reply is mistaken that names a wrong copy, over the ratio, a line per loss."""
    every = answers(grid)
    found = [answer for answer in every if np.isfinite(answer.error.value)]
    if not found:
        raise Missing("Not drawn: no reply of these runs names a wrong copy.")
    losses = sorted({answer.loss for answer in found})
    looks = [Look(_COLOURS[at % 6], _LINES[at % 6], _MARKERS[at % 6], "") for at in range(len(losses))]
    ratios = sorted({answer.ratio for answer in found})

    def one_wait(panel: Axes, *_: object) -> None:
        panel.plot(ratios, ratios, color=style.INK, linewidth=1.0, linestyle=(0, (1, 2)))
        panel.text(ratios[0], ratios[0], "one first wait ", ha="left", va="bottom", fontsize="small")

    spec = Spec(
        "line",
        "error (round trips)",
        {f"{loss:g}": (f"{loss:g} % loss", look) for loss, look in zip(losses, looks, strict=True)},
        x="first wait / round trip",
        tick=lambda ratio: f"{ratio:g}",
        title=lambda *_: "",
        xs=ratios,
        numeric=True,
        log_x=True,
        upward="log",
        height=3.9,
        further=one_wait,
    )
    points = [Point("", "", one.ratio, f"{one.loss:g}", Spread.around(one.error)) for one in found]
    return Plot(_rows(every), partial(facets.draw, points, spec))


def rightly_named(loss: float, most: int, request_loss: float | None = None) -> float:
    """Of the replies after a retransmission, the share that a server of stored replies names rightly, in theory.

    For a constant round-trip time below every wait, and independent losses. The copies before the last all failed; the
    reply names the last one if none of them arrived, which of a copy that failed is so with probability
    ``up / (up + (1 - up) down)``.

    Args:
        loss: Of responses, and of requests unless `request_loss` is given. Above 0.
        most: Retransmissions that are made at most.
        request_loss: Of requests.
    """
    up = loss if request_loss is None else request_loss
    fails = up + (1 - up) * loss
    weights = [fails**count * (1 - fails) for count in range(1, most + 1)]
    rightly = [weight * (up / fails) ** count for count, weight in enumerate(weights, start=1)]
    return sum(rightly) / sum(weights)


# ----------------------------------------------------------------------------------------------- helpers


def _answer(grid: Grid, cell: Cell) -> Answer:
    loss, ratio = float(cell.columns["error_profile"]), float(cell.columns["ratio"])
    server = str(cell.columns["server"])
    shares = {name: grid.estimated(name, cell) for name in KINDS}
    most = int(cell.scenario["clients"][0]["max_retransmit"])
    knows = server == "stored" and ratio > 1
    theory = rightly_named(loss / 100, most) if knows else np.nan
    return Answer(server, loss, ratio, shares, grid.estimated("naming_error", cell), theory)


def _stack(panel: Axes, found: Sequence[Answer], ratios: Sequence[float]) -> None:
    """Bars of all kinds, one on top of the other, and where theory has the lowest."""
    ground = dict.fromkeys(ratios, 0.0)
    for name, (_, look) in _LOOKS.items():
        bodies = []
        for answer in found:
            height = 100 * answer.shares[name].value
            bodies.append(Rectangle((ratios.index(answer.ratio) - 0.4, ground[answer.ratio]), 0.8, height))
            ground[answer.ratio] += height
        marks.areas(panel, bodies, look)
    known = [answer for answer in found if np.isfinite(answer.theory)]
    panel.plot(
        [ratios.index(answer.ratio) for answer in known],
        [100 * answer.theory for answer in known],
        color=style.PUBLISHED,
        marker="_",
        markersize=15,
        markeredgewidth=1.6,
        linestyle="none",
        zorder=4,
    )
    panel.set_xlim(-0.6, len(ratios) - 0.4)
    panel.set_ylim(0, 100)
    panel.set_xticks(range(len(ratios)), [f"{ratio:g}" for ratio in ratios])
