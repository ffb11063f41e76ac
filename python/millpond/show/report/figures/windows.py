"""One flow from several sides on one time axis: its bytes, its window or timer, and the queue of the bottleneck."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, NullLocator

from millpond.show.document import Plot, Rows
from millpond.show.report import style
from millpond.show.report.figures import marks, sequence
from millpond.show.report.figures.queue import thinned
from millpond.show.report.grid import DOWNLINK, Floats, Grid, rate
from millpond.show.report.transfers import TCP, Transfer

WINDOW, THRESHOLD, IN_FLIGHT, TIMER, SRTT, QUEUE = "#0072B2", "#A33B20", "#9a9a9a", "#A33B20", "#0072B2", "#4d4d4d"
PEAKS = 400
"""The time of a picture is cut into so many parts; of each, the longest queue is drawn."""
BANDS = {
    "recovery": ("repairs after duplicate ACKs", style.RECOVERY, ""),
    "loss": ("repairs after a timeout", style.LOSS, "///"),
    "probe-rtt": ("probes the round trip", style.PROBE, "\\\\\\"),
}
"""States of a connection, and phases of its congestion control, that are drawn as bands: their names and looks."""


@dataclass(frozen=True)
class Sender:
    """The sender of one connection over time: windows in segments, times in s. Missing values are NaN."""

    times: Floats
    window: Floats
    threshold: Floats
    in_flight: Floats
    rto: Floats
    srtt: Floats
    #: Where loss recovery stands; if nothing is known to be lost, the congestion control's own word for its phase.
    states: tuple[str, ...]

    @staticmethod
    def of(grid: Grid, transfer: Transfer) -> Sender | None:
        """The sender of a flow; None if it was not traced."""
        if not grid.has("tcp_trace") or transfer.transport != TCP:
            return None
        columns = ("t_us", "cwnd", "ssthresh", "in_flight", "rto_us", "srtt_us")
        found = grid.rows("tcp_trace", transfer.run, (*columns, "state", "phase"), flow=transfer.flow)
        if not found[0].size:
            return None
        times, window, threshold, in_flight, rto, srtt, states, phases = found
        here = (phase if state == "open" else state for state, phase in zip(states, phases, strict=True))
        return Sender(times, window, threshold, in_flight, rto, srtt, tuple(here))

    def spans(self, state: str, end: float) -> list[tuple[float, float]]:
        """From when to when the sender was in a state."""
        found: list[tuple[float, float]] = []
        ends = [*self.times[1:].tolist(), max(end, float(self.times[-1]))]
        for begin, until, here in zip(self.times.tolist(), ends, self.states, strict=True):
            if here != state:
                continue
            if found and found[-1][1] == begin:
                found[-1] = (found[-1][0], until)
            else:
                found.append((begin, until))
        return found


@dataclass(frozen=True)
class Timers:
    """The waits of a client over UDP: when each copy left and how long it was ready to wait then, in s."""

    times: Floats
    waits: Floats
    copies: Floats

    @staticmethod
    def of(grid: Grid, transfer: Transfer) -> Timers | None:
        """The timers of a flow; None if they were not traced."""
        if not grid.has("rto_trace") or transfer.transport == TCP:
            return None
        found = grid.rows("rto_trace", transfer.run, ("t_us", "wait_us", "copy"), flow=transfer.flow)
        return Timers(*found) if found[0].size else None


def flow_over_time(grid: Grid, transfer: Transfer) -> Plot:
    """Time-sequence graph, windows, timer and queue of one flow, one below the other; the numbers of all but the first.

    Those of the graph are in `sequence`.
    """
    sender, timers, queue = Sender.of(grid, transfer), Timers.of(grid, transfer), _queue(grid, transfer)
    rows: list[tuple[object, ...]] = []

    def add(what: str, unit: str, times: Floats, values: Floats) -> None:
        rows.extend((what, unit, float(t), float(v)) for t, v in zip(times, values, strict=True) if np.isfinite(v))

    if sender is not None:
        add("congestion window", "segments", sender.times, sender.window)
        add("slow-start threshold", "segments", sender.times, sender.threshold)
        add("in flight", "segments", sender.times, sender.in_flight)
        add("retransmission timeout", "s", sender.times, sender.rto)
        add("smoothed round-trip time", "s", sender.times, sender.srtt)
        for state in BANDS:
            for begin, until in sender.spans(state, transfer.end):
                rows += [(f"{state} begins", "", begin, ""), (f"{state} ends", "", until, "")]
    if timers is not None:
        add("wait of the timer", "s", timers.times, timers.waits)
    if queue is not None:
        add("queue", "B", *queue)
    told = Rows(("quantity", "unit", "time_s", "value"), tuple(rows))
    return Plot(told, lambda: _draw(transfer, sender, timers, queue))


def waits(grid: Grid, transfer: Transfer) -> bool:
    """Whether the queue was traced, and a packet waited in it for another."""
    return _queue(grid, transfer) is not None


# ----------------------------------------------------------------------------------------------- helpers


def _draw(
    transfer: Transfer, sender: Sender | None, timers: Timers | None, queue: tuple[Floats, Floats] | None
) -> Figure:
    heights = [3.4]
    heights += [1.7] if sender is not None else []
    heights += [1.3] if sender is not None or timers is not None else []
    heights += [1.3] if queue is not None else []
    words, height = ("time since the start (s)", ""), sum(heights) + 1.5
    with marks.panels(height, len(heights), 1, words, sharex=True, height_ratios=heights) as (figure, panels):
        keys = sequence.keys([transfer])
        rest = iter(panels)
        top = next(rest)
        sequence.paint(top, transfer)
        top.set_title(transfer.name)
        top.set_ylabel("byte sent (kB)")
        top.set_ylim(0, transfer.size * 1.05e-3)
        if sender is not None:
            keys += _bands(panels, sender, transfer.end)
            keys += _windows(next(rest), sender, transfer.end)
            keys += _sender_timer(next(rest), sender, transfer.end)
        elif timers is not None:
            keys += _timers(next(rest), timers)
        if queue is not None:
            _draw_queue(next(rest), transfer, *queue)
        for panel in panels:
            panel.grid(axis="x")
        panels[-1].set_xlim(0, transfer.end * 1.02)
        figure.align_ylabels()
        marks.legend_below(figure, keys, 4)
    return figure


def _bands(panels: Sequence[Axes], sender: Sender, end: float) -> list[marks.Key]:
    keys: list[marks.Key] = []
    for state, (words, colour, hatch) in BANDS.items():
        spans = sender.spans(state, end)
        for panel in panels[:2]:
            for begin, until in spans:
                panel.axvspan(begin, until, facecolor=colour, edgecolor="white", hatch=hatch, linewidth=0, zorder=0)
        if spans:
            keys.append(Patch(facecolor=colour, edgecolor="white", hatch=hatch, linewidth=0, label=words))
    return keys


def _windows(panel: Axes, sender: Sender, end: float) -> list[marks.Key]:
    lines: list[marks.Key] = []
    drawn: list[tuple[Floats, str, style.Dash, float, str]] = [
        (sender.in_flight, IN_FLIGHT, "-", 0.9, "in flight"),
        (sender.threshold, THRESHOLD, (0, (4, 2)), 1.3, "slow-start threshold"),
        (sender.window, WINDOW, "-", 1.5, "congestion window"),
    ]
    for values, colour, dash, width, words in drawn:
        if np.isfinite(values).any():
            _steps(panel, sender.times, values, end, colour, dash, width)
            lines.append(Line2D([], [], color=colour, linestyle=dash, linewidth=width, label=words))
    panel.set_ylabel("segments")
    highest = np.nanmax(np.concatenate((sender.window, sender.in_flight)))
    # the threshold starts out without meaning, far above everything
    panel.set_ylim(0, float(highest) * 1.1)
    return lines


def _sender_timer(panel: Axes, sender: Sender, end: float) -> list[marks.Key]:
    keys: list[marks.Key] = []
    drawn: list[tuple[Floats, str, style.Dash, str]] = [
        (sender.rto, TIMER, "-", "retransmission timeout"),
        (sender.srtt, SRTT, (0, (1.2, 1.6)), "smoothed round trip"),
    ]
    for values, colour, dash, words in drawn:
        if np.isfinite(values).any():
            _steps(panel, sender.times, values, end, colour, dash, 1.4)
            keys.append(Line2D([], [], color=colour, linestyle=dash, linewidth=1.4, label=words))
    _seconds(panel, np.concatenate((sender.rto, sender.srtt)))
    return keys


def _timers(panel: Axes, timers: Timers) -> list[marks.Key]:
    keys: list[marks.Key] = []
    for which, colour, marker, words in (
        (timers.copies == 0, style.SENT, "o", "wait after the first copy"),
        (timers.copies > 0, style.AGAIN, "^", "wait after a retransmission"),
    ):
        if which.any():
            size = 3.0 if marker == "o" else 4.5
            how: dict[str, Any] = {"color": colour, "marker": marker, "markersize": size, "linestyle": "none"}
            panel.plot(timers.times[which], timers.waits[which], **how)
            keys.append(Line2D([], [], label=words, **how))
    _seconds(panel, timers.waits)
    return keys


def _seconds(panel: Axes, values: Floats) -> None:
    """An axis of times, logarithmic if they differ much."""
    panel.set_ylabel("timer (s)")
    finite = values[np.isfinite(values) & (values > 0)]
    if finite.size and finite.max() > 8 * finite.min():
        panel.set_yscale("log")
        panel.yaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
        panel.yaxis.set_minor_locator(NullLocator())
        panel.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        panel.set_ylim(finite.min() / 1.3, finite.max() * 1.3)
    else:
        panel.set_ylim(0, finite.max(initial=1.0) * 1.15)


def _queue(grid: Grid, transfer: Transfer) -> tuple[Floats, Floats] | None:
    """The queue over time; None if it was not traced, or if never a packet had to wait for another."""
    if not grid.has("queue_trace"):
        return None
    times, bytes_, packets = grid.rows("queue_trace", transfer.run, ("t_us", "bytes", "packets"), link=DOWNLINK)
    return (times, bytes_) if packets.max(initial=0.0) > 1 else None


def _draw_queue(panel: Axes, transfer: Transfer, times: Floats, bytes_: Floats) -> None:
    seen = times <= 1.02 * transfer.end
    at, peaks = thinned(times[seen], bytes_[seen], transfer.end / PEAKS)
    panel.plot(at, peaks / 1e3, color=QUEUE, linewidth=1.0)
    panel.fill_between(at, peaks / 1e3, color=QUEUE, alpha=0.18, linewidth=0)
    panel.set_ylabel("queue (kB)")
    highest = max(float(peaks.max(initial=0.0)) / 1e3, 0.3)
    limit = sequence.queue_bytes(transfer.cell) / 1e3
    if 0 < limit < 2.5 * highest:
        panel.axhline(limit, color=style.QUEUE_DROP, linewidth=0.9, linestyle=(0, (4, 2)))
        panel.annotate(
            "full", (1, limit), (-3, -2), xycoords=("axes fraction", "data"), textcoords="offset points",
            ha="right", va="top", fontsize=8.5, color=style.QUEUE_DROP,
        )  # fmt: skip
        highest = max(highest, limit)
    panel.set_ylim(0, highest * 1.12)
    bits = rate(transfer.cell, DOWNLINK)
    if bits is not None:
        factor = 8e3 / bits
        second = panel.secondary_yaxis(
            "right", functions=(partial(np.multiply, factor), partial(np.multiply, 1 / factor))
        )
        second.set_ylabel("waiting (s)")


def _steps(panel: Axes, times: Floats, values: Floats, end: float, colour: str, dash: style.Dash, width: float) -> None:
    # only where it changes: most rows of a trace say what the row before them said
    changed = np.append(True, ~((values[1:] == values[:-1]) | (np.isnan(values[1:]) & np.isnan(values[:-1]))))
    panel.plot(
        np.append(times[changed], max(end, float(times[-1]))),
        np.append(values[changed], values[-1]),
        drawstyle="steps-post",
        color=colour,
        linestyle=dash,
        linewidth=width,
    )
