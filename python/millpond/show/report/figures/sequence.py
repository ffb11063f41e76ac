"""Time-sequence graphs: which byte leaves when, what leaves again, what is lost and where, and what is acknowledged."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from millpond.results.directory import Cell
from millpond.show.document import Missing, Plot, Rows
from millpond.show.report import style
from millpond.show.report.figures import marks
from millpond.show.report.grid import DOWNLINK, Floats, links_of
from millpond.show.report.transfers import TCP, Points, Transfer

MANY = 900
"""A flow of more packets than this is drawn with finer marks."""
COLUMNS = 4
"""Entries of the legend side by side."""
FLOWS: tuple[tuple[str, style.Dash], ...] = (
    ("#0072B2", "-"),
    ("#D55E00", (0, (6, 2))),
    ("#009E73", (0, (1.2, 1.6))),
    ("#CC79A7", (0, (6, 2, 1.2, 2))),
)
"""How flows of one kind are told apart."""

_DROPS: dict[str, dict[str, Any]] = {
    "queue": {"marker": "x", "color": style.QUEUE_DROP, "markeredgewidth": 1.1},
    "radio": {"marker": "+", "color": style.RADIO_DROP, "markeredgewidth": 1.5},
    "uplink": {"marker": "o", "color": style.RADIO_DROP, "markeredgewidth": 1.0, "fillstyle": "none"},
}
_SIZES = {"queue": 5.0, "radio": 6.5, "uplink": 4.0}
_WORDS = {"queue": "dropped: queue full", "radio": "lost on the radio", "uplink": "lost on the uplink"}


def paint(panel: Axes, transfer: Transfer, scale: float = 1.0) -> None:
    """One flow's graph; `scale` makes its marks smaller where the panel is."""
    fine = scale * (0.75 if transfer.packets > MANY else 1.0)
    times, bytes_ = transfer.reached
    panel.plot(
        np.append(times, transfer.end),
        np.append(bytes_, bytes_[-1:]) / 1e3 if bytes_.size else [np.nan] * (times.size + 1),
        drawstyle="steps-post",
        color=style.REACHED,
        linewidth=1.0 * max(scale, 0.7),
        zorder=2,
    )
    _dashes(panel, transfer.first, transfer.first_lengths, style.SENT, 2.6 * fine, 3)
    _dashes(panel, transfer.again, transfer.again_lengths, style.AGAIN, 3.4 * fine, 4)
    for kind, (at, where) in _dropped(transfer):
        if at.size:
            panel.plot(at, where / 1e3, linestyle="none", markersize=_SIZES[kind] * fine, zorder=5, **_DROPS[kind])


def keys(drawn: Iterable[Transfer]) -> list[marks.Key]:
    """The legend of such graphs: what appears in these."""
    drawn = list(drawn)
    found: list[marks.Key] = [_dash_key(style.SENT, 3.0, "sent")]
    if any(transfer.again[0].size for transfer in drawn):
        found.append(_dash_key(style.AGAIN, 3.8, "sent again"))
    words = {"acknowledged (TCP)" if transfer.transport == TCP else "received (UDP)" for transfer in drawn}
    found.append(Line2D([], [], color=style.REACHED, linewidth=1.2, label=", ".join(sorted(words))))
    kinds = {kind for transfer in drawn for kind, (times, _) in _dropped(transfer) if times.size}
    found += [
        Line2D([], [], linestyle="none", markersize=_SIZES[kind], label=_WORDS[kind], **_DROPS[kind])
        for kind in _DROPS
        if kind in kinds
    ]
    return found


def flows_side_by_side(found: Sequence[Transfer]) -> Plot:
    """A panel per flow of one run, on common axes. Raises `Missing` if there is no flow."""
    if not found:
        raise Missing("Not drawn: no flow of this run carries a body in blocks or all that it gets on one connection.")
    return Plot(_rows(found, SENT), lambda: _side_by_side(found))


def _side_by_side(found: Sequence[Transfer]) -> Figure:
    columns = 1 if len(found) == 1 else 2
    rows = -(-len(found) // columns)
    height = (3.9 if rows == 1 else 2.7 * rows) + 0.7
    words = "time since the start (s)", "byte sent (kB)"
    with marks.panels(height, len(found), columns, words, sharey=True, sharex=True) as (figure, panels):
        for panel, transfer in zip(panels, found, strict=True):
            paint(panel, transfer, 1.0 if columns == 1 else 0.8)
            panel.set_title(transfer.name if len(found) == 1 else f"flow {transfer.flow + 1}, {transfer.name}")
            panel.set_xlim(0, max(one.end for one in found) * 1.02)
            panel.set_ylim(0, max(one.size for one in found) * 1.05e-3)
            panel.grid(axis="x")
        marks.legend_below(figure, keys(found), COLUMNS)
    return figure


def grid(found: Sequence[Transfer]) -> Plot:
    """A row per controller, a column per buffer: the first flow of each. Every row has a time axis of its own."""
    return Plot(_rows(found, SENT), lambda: _grid(found))


def _grid(found: Sequence[Transfer]) -> Figure:
    rows = list(dict.fromkeys(transfer.name for transfer in found))
    columns = sorted({_queue(transfer.cell) for transfer in found}, key=_size)
    shape = len(rows) * len(columns), len(columns)
    with marks.panels(2.25 * len(rows) + 0.9, *shape, sharey=True, sharex="row") as (figure, panels):
        for panel in panels:
            panel.set_visible(False)
        for transfer in found:
            row, column = rows.index(transfer.name), columns.index(_queue(transfer.cell))
            panel = panels[row * len(columns) + column]
            panel.set_visible(True)
            paint(panel, transfer, 0.62)
            panel.set_title(f"{transfer.name}, {columns[column]}", fontsize=9)
            panel.grid(axis="x")
            panel.set_ylim(0, max(one.size for one in found) * 1.05e-3)
            panel.set_xlim(0, max(one.end for one in found if one.name == transfer.name) * 1.03)
            panel.tick_params(labelsize=8.5)
            if column == 0:
                panel.set_ylabel("byte sent (kB)", fontsize=9.5)
            if row == len(rows) - 1:
                panel.set_xlabel("time (s)", fontsize=9.5)
        marks.legend_below(figure, keys(found), COLUMNS)
    return figure


def together(found: Sequence[Transfer]) -> Plot:
    """What each client of a run has received without a gap, all in one panel, and what it lost: a panel per buffer."""
    return Plot(_rows(found, ("received", *_LOST)), lambda: _together(found))


def _together(found: Sequence[Transfer]) -> Figure:
    buffers = sorted({_queue(transfer.cell) for transfer in found}, key=_size)
    columns = min(2, len(buffers))
    height = 2.7 * -(-len(buffers) // columns) + 0.9
    most = max(len([one for one in found if _queue(one.cell) == buffer]) for buffer in buffers)
    words = "time since the start (s)", "byte (kB)"
    with marks.panels(height, len(buffers), columns, words, sharey=True) as (figure, panels):
        for panel, buffer in zip(panels, buffers, strict=True):
            here = [transfer for transfer in found if _queue(transfer.cell) == buffer]
            for place, transfer in enumerate(here):
                colour, dash = FLOWS[place % len(FLOWS)]
                times, bytes_ = transfer.received
                panel.plot(times, bytes_ / 1e3, drawstyle="steps-post", color=colour, linestyle=dash, linewidth=1.4)
                for kind, (at, where) in _dropped(transfer):
                    if at.size and kind != "uplink":
                        how = {**_DROPS[kind], "color": colour}
                        panel.plot(at, where / 1e3, linestyle="none", markersize=_SIZES[kind] * 0.7, zorder=1, **how)
            panel.set_title(f"queue of {buffer}", fontsize=10)
            panel.set_xlim(left=0)
            panel.set_ylim(0, max(one.size for one in found) * 1.05e-3)
            panel.grid(axis="x")
        drawn: list[marks.Key] = [
            Line2D([], [], color=colour, linestyle=dash, linewidth=1.4, label=f"flow {place + 1}")
            for place, (colour, dash) in enumerate(FLOWS[:most])
        ]
        kinds = {kind for transfer in found for kind, (times, _) in _dropped(transfer) if times.size}
        drawn += [
            Line2D(
                [], [], linestyle="none", markersize=_SIZES[kind], label=_WORDS[kind],
                **{**_DROPS[kind], "color": style.INK},
            )
            for kind in ("queue", "radio")
            if kind in kinds
        ]  # fmt: skip
        marks.legend_below(figure, drawn, 4)
    return figure


# ----------------------------------------------------------------------------------------------- helpers


_LOST = ("dropped by the queue", "lost on the radio", "lost on the uplink")
SENT = ("sent", "sent again", "acknowledged", *_LOST)


def _rows(found: Sequence[Transfer], wanted: Sequence[str]) -> Rows:
    rows: list[tuple[object, ...]] = []
    for transfer in found:
        what = {
            "sent": transfer.first,
            "sent again": transfer.again,
            "acknowledged": transfer.reached,
            "received": transfer.received,
            "dropped by the queue": transfer.dropped_queue,
            "lost on the radio": transfer.dropped_radio,
            "lost on the uplink": transfer.lost_replies,
        }
        for name in wanted:
            told = "received" if name == "acknowledged" and transfer.transport != TCP else name
            rows += [
                (_queue(transfer.cell), transfer.flow, transfer.group.algorithm, told, float(t), int(b))
                for t, b in zip(*what[name], strict=True)
            ]
    return Rows(("queue", "flow", "controller", "what", "time_s", "byte"), tuple(rows))


def _dropped(transfer: Transfer) -> list[tuple[str, Points]]:
    return [
        ("queue", transfer.dropped_queue),
        ("radio", transfer.dropped_radio),
        ("uplink", transfer.lost_replies),
    ]


def _dashes(panel: Axes, points: Points, lengths: Floats, colour: str, width: float, layer: int) -> None:
    """An upright dash a packet, from its first byte to its last, all in one path so that thousands stay small."""
    times, bytes_ = points
    if not times.size:
        return
    corners = np.empty((2 * times.size, 2))
    corners[0::2] = np.column_stack((times, bytes_ / 1e3))
    corners[1::2] = np.column_stack((times, (bytes_ + lengths) / 1e3))
    codes = np.tile(np.array([Path.MOVETO, Path.LINETO], dtype=np.uint8), times.size)
    path = Path(corners, codes)
    path.should_simplify = False
    panel.add_patch(PathPatch(path, fill=False, edgecolor=colour, linewidth=width, capstyle="round", zorder=layer))


def _dash_key(colour: str, size: float, label: str) -> Line2D:
    return Line2D([], [], linestyle="none", marker="o", markersize=size, color=colour, label=label)


def _queue(cell: Cell) -> str:
    """The queue in front of the data, as the scenario says it."""
    return str(links_of(cell).get(DOWNLINK, {}).get("queue", ""))


def queue_bytes(cell: Cell) -> float:
    """The same as a number; 0 if it is counted otherwise."""
    return _size(_queue(cell)) if _queue(cell).endswith(" B") else 0.0


def _size(queue: str) -> float:
    """Of which queues are put in order."""
    number = re.match(r"[\d.]+", queue)
    return float(number[0]) if number else 0.0
