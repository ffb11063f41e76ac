"""The pictures of a diagnosis: loop time, answers and their use, retransmissions, the queue, devices, one exchange."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from millpond.diagnose.analysis import Diagnosis
from millpond.errors import UsageError, unknown
from millpond.show.document import Missing, Plot, Rows
from millpond.show.report import style
from millpond.show.report.figures import marks

Floats = npt.NDArray[np.float64]

#: How retransmissions are drawn by their verdict.
COLOURS = {"first": style.INK, "spurious": "#D55E00", "needed": "#0072B2", "unknown": "#8A8A8A"}
MARKERS = {"first": ".", "spurious": "x", "needed": "o", "unknown": "+"}
WORDS = {"first": "first", "spurious": "spurious", "needed": "needed", "unknown": "cannot tell"}
BAND, RATE, USEFUL = "#f6e9c6", "#C8321E", "#009E73"

#: Parts of the time that are distinguished, and devices and points that are drawn.
WINDOWS, DEVICES, POINTS = 120, 24, 4000


def loop_time(found: Diagnosis) -> Plot:
    """How long after an answer the next request of its device follows, over the band of the first timer."""
    requests = found.requests
    accepted, following = (_seconds(found, requests, name) for name in ("accepted_us", "next_us"))
    known = ~(np.isnan(accepted) | np.isnan(following)) & (following > accepted)
    if known.sum() < 2:
        raise Missing("No device asks again after an answer: there is no loop whose time could be drawn.")
    at, time = accepted[known], (following - accepted)[known]
    order = np.argsort(at)
    at, time = at[order], time[order]
    shown = slice(None, None, max(1, len(at) // POINTS))
    low, factor = (found.figure(place).value for place in ("timers.ack_timeout_s", "timers.random_factor"))

    def draw() -> Figure:
        figure, axes = _axes("time (s)", "from an answer to\nthe next request (s)")
        keys: list[marks.Key] = [Line2D([], [], color=style.SENT, marker=".", linestyle="none", label="one exchange")]
        if low is not None:
            axes.axhspan(low, low * (factor or 1.5), color=BAND, linewidth=0)
            keys.append(Patch(color=BAND, label="first timer of the devices"))
        axes.plot(at[shown], time[shown], linestyle="none", marker=".", markersize=2.5, color=style.SENT, alpha=0.6)
        middle_at, middle = _running_median(at, time)
        axes.plot(middle_at, middle, color=style.INK, linewidth=1.4)
        keys.append(Line2D([], [], color=style.INK, label="median"))
        axes.set_ylim(0, max(1.15 * float(np.quantile(time, 0.98)), 1.2 * (low or 0) * (factor or 1.5)))
        marks.legend_below(figure, keys, len(keys))
        return figure

    return Plot(_rows(("answer_s", "next_request_after_s"), at, time), draw)


def answers(found: Diagnosis) -> Plot:
    """What answers take of the downlink, what of it was of use, and its rate."""
    edges, width = _windows(found)
    at, size = _answers(found, found.exchanges, "answered_us")
    used_at, used = _answers(found, found.requests, "accepted_us")
    if not len(at):
        raise Missing("No answer was captured.")
    total, useful = (np.histogram(t, edges, weights=8e-3 * s)[0] / width for t, s in ((at, size), (used_at, used)))
    rate = found.figure("path.downlink.rate_bps")

    def draw() -> Figure:
        figure, axes = _axes("time (s)", "answers (kbit/s)")
        axes.stairs(total, edges, color=style.INK, linewidth=1.1)
        axes.stairs(useful, edges, fill=True, color=USEFUL, alpha=0.5)
        keys: list[marks.Key] = [
            Line2D([], [], color=style.INK, label="all"), Patch(color=USEFUL, alpha=0.5, label="first to be taken"),
        ]  # fmt: skip
        if rate.value is not None and rate.grade != "at-least":
            axes.axhline(1e-3 * rate.value, color=RATE, linewidth=1.2, linestyle=(0, (6, 2)))
            keys.append(Line2D([], [], color=RATE, linestyle=(0, (6, 2)), label="rate of the downlink"))
        axes.set_ylim(bottom=0)
        marks.legend_below(figure, keys, len(keys))
        return figure

    return Plot(_rows(("from_s", "answers_kbit_s", "useful_kbit_s"), edges[:-1], total, useful), draw)


def retransmissions(found: Diagnosis) -> Plot:
    """Retransmissions over time, by their verdict."""
    edges, width = _windows(found)
    at, verdict = _seconds(found, found.exchanges, "t_us"), found.column("verdict")
    counts = {word: np.histogram(at[verdict == word], edges)[0] / width for word in ("needed", "spurious", "unknown")}
    if not any(count.any() for count in counts.values()):
        raise Missing("Nothing was sent again.")

    def draw() -> Figure:
        figure, axes = _axes("time (s)", "retransmissions\na second")
        below = np.zeros(len(edges) - 1)
        for word, count in counts.items():
            axes.stairs(below + count, edges, baseline=below, fill=True, color=COLOURS[word], alpha=0.75, linewidth=0)
            below = below + count
        axes.set_ylim(bottom=0)
        keys: list[marks.Key] = [Patch(color=COLOURS[word], alpha=0.75, label=WORDS[word]) for word in counts]
        marks.legend_below(figure, keys, len(keys))
        return figure

    return Plot(_rows(("from_s", *counts), edges[:-1], *counts.values()), draw)


def queue(found: Diagnosis) -> Plot:
    """What must have waited for the downlink: all answers that were seen, through its rate and buffer."""
    rate, buffer = found.figure("path.downlink.rate_bps"), found.figure("path.downlink.buffer_bytes")
    if found.figures["side"] == "devices":
        raise Missing("Captured behind the downlink: what waited for it is not visible.")
    if rate.value is None or rate.grade == "at-least":
        raise Missing("The rate of the downlink is not known well enough to say what waited for it.")
    at, size = _answers(found, found.exchanges, "answered_us")
    if not len(at):
        raise Missing("No answer was captured.")
    limit = None if buffer.grade == "at-least" else buffer.value
    waiting = _replayed(at, size, rate.value / 8, limit)
    edges, _ = _windows(found)
    place = np.clip(np.searchsorted(edges, at, side="right") - 1, 0, len(edges) - 2)
    most = np.zeros(len(edges) - 1)
    np.maximum.at(most, place, waiting)

    def draw() -> Figure:
        figure, axes = _axes("time (s)", "longest queue of\nthe downlink (kB)")
        axes.stairs(1e-3 * most, edges, fill=True, color=style.SENT, alpha=0.5)
        if limit is not None:
            axes.axhline(1e-3 * limit, color=RATE, linewidth=1.2, linestyle=(0, (6, 2)))
            keys: list[marks.Key] = [Line2D([], [], color=RATE, linestyle=(0, (6, 2)), label="buffer")]
            marks.legend_below(figure, keys, 1)
        axes.set_ylim(bottom=0)
        return figure

    return Plot(_rows(("from_s", "longest_queue_bytes"), edges[:-1], most), draw)


def devices(found: Diagnosis) -> Plot:
    """The transmissions of the devices that sent most again, each on a panel of its own."""
    table = found.devices
    again = table.column("transmissions").to_numpy() - table.column("requests").to_numpy()
    chosen = np.argsort(-again, kind="stable")[:DEVICES]
    names = [str(table.column("peer")[int(row)]) for row in chosen]
    at, peers = _seconds(found, found.exchanges, "t_us"), found.column("peer")
    number, verdict = found.column("transmission"), found.column("verdict")
    of = {name: peers == name for name in names}
    rows = [
        (name, float(t), int(n), str(v))
        for name, these in of.items()
        for t, n, v in zip(at[these], number[these], verdict[these], strict=True)
    ]

    def draw() -> Figure:
        across = min(4, len(names))
        down = -(-len(names) // across)
        height = 0.6 + 1.15 * down
        with marks.panels(height, len(names), across, ("time (s)", ""), sharex=True, sharey=True) as (figure, panels):
            for axes, name in zip(panels, names, strict=True):
                for word, colour in COLOURS.items():
                    these = of[name] & (verdict == word)
                    axes.plot(
                        at[these], number[these], linestyle="none", marker=MARKERS[word], markersize=3.0, color=colour
                    )
                axes.set_title(name, fontsize=8.5, loc="left")
                axes.tick_params(labelsize=8)
            panels[0].set_ylim(0.5, 1.5 + max((n for _, _, n, _ in rows), default=1))
            figure.supylabel("transmission", fontsize=10)
            marks.legend_below(figure, _keys(), len(COLOURS))
        return figure

    return Plot(Rows(("peer", "t_s", "transmission", "verdict"), tuple(rows)), draw)


def one(found: Diagnosis, name: str | None) -> Plot:
    """An exchange on a time-sequence diagram.

    Args:
        found: The diagnosis.
        name: `PEER/MESSAGE_ID`; None for the exchange with the most transmissions.

    Raises:
        UsageError: one line, if there is no such exchange.
    """
    chosen = exchange(found, name)
    peer, message_id, token = (chosen[key] for key in ("peer", "message_id", "token"))
    rows = [
        row
        for row in found.exchanges.to_pylist()
        if (row["peer"], row["message_id"], row["token"]) == (peer, message_id, token)
        and chosen["first_us"] <= row["t_us"] <= chosen["last_us"]
    ]
    begin = rows[0]["t_us"]
    told = tuple(
        (row["transmission"], (row["t_us"] - begin) / 1e6, row["verdict"],
         None if row["answered_us"] is None else (row["answered_us"] - begin) / 1e6)
        for row in rows
    )  # fmt: skip
    half = (found.figure("path.base_rtt_s").value or 0.0) / 2
    at_server = found.figures["side"] != "devices"
    accepted = None if chosen["accepted_us"] is None else (chosen["accepted_us"] - begin) / 1e6

    def draw() -> Figure:
        with marks.panels(2.9, words=("time since its first transmission was seen (s)", "")) as (figure, (axes,)):
            server, device = 0.0, 1.0
            for line in (server, device):
                axes.axhline(line, color=style.INK, linewidth=1.2)
            for number, sent, verdict, answered in told:
                ends = (sent - half, sent) if at_server else (sent, sent + half)
                _arrow(axes, (ends[0], device), (ends[1], server), COLOURS[verdict])
                axes.annotate(
                    str(number), (ends[0], device), (0, 3), textcoords="offset points", ha="center", fontsize=9.5,
                    color=COLOURS[verdict],
                )  # fmt: skip
                if answered is not None:
                    back = (answered, answered + half) if at_server else (answered - half, answered)
                    _arrow(axes, (back[0], server), (back[1], device), USEFUL if answered == accepted else "#b0b0b0")
            axes.set_yticks([server, device], ["server", "device"])
            axes.set_ylim(-0.15, 1.3)
            axes.margins(x=0.04)
            axes.grid(visible=False)
            lines: list[marks.Key] = [Line2D([], [], color=COLOURS[word], label=WORDS[word]) for word in COLOURS]
            lines += [Line2D([], [], color=USEFUL, label="answer that was taken"),
                      Line2D([], [], color="#b0b0b0", label="other answer")]  # fmt: skip
            marks.legend_below(figure, lines, 6)
        return figure

    return Plot(Rows(("transmission", "t_s", "verdict", "answered_s"), told), draw)


def exchange(found: Diagnosis, name: str | None) -> dict[str, Any]:
    """The row of `Diagnosis.requests` that is meant. Raises `UsageError` with one line if there is none."""
    rows = found.requests.to_pylist()
    if name is None:
        return max(rows, key=lambda row: row["transmissions"])
    peer, slash, number = name.rpartition("/")
    if not slash or not number.isdigit():
        raise UsageError(
            f"--exchange: {name!r} is no PEER/MESSAGE_ID, such as {rows[0]['peer']}/{rows[0]['message_id']}"
        )
    known = dict.fromkeys(row["peer"] for row in rows)
    if peer not in known:
        raise UsageError(f"--exchange: {unknown('peer', peer, list(known)[:20])}")
    chosen = [row for row in rows if row["peer"] == peer and row["message_id"] == int(number)]
    if not chosen:
        raise UsageError(f"--exchange: {peer} has no exchange with message ID {number}")
    return max(chosen, key=lambda row: row["transmissions"])


# ----------------------------------------------------------------------------------------------- helpers


def _seconds(found: Diagnosis, table: Any, name: str) -> Floats:
    """Times since the first transmission, in s; NaN where there is none."""
    times: Floats = table.column(name).to_numpy(zero_copy_only=False).astype(np.float64)
    begin = found.exchanges.column("t_us")[0].as_py() if found.exchanges.num_rows else 0
    return (times - begin) / 1e6


def _answers(found: Diagnosis, table: Any, name: str) -> tuple[Floats, Floats]:
    """Times and sizes of answers, in the order of time."""
    at = _seconds(found, table, name)
    size: Floats = table.column("answer_bytes").to_numpy(zero_copy_only=False).astype(np.float64)
    known = ~np.isnan(at)
    order = np.argsort(at[known], kind="stable")
    return at[known][order], np.nan_to_num(size[known][order])


def _windows(found: Diagnosis) -> tuple[Floats, float]:
    at = _seconds(found, found.exchanges, "t_us")
    end = max(float(at.max(initial=0.0)), 1e-3)
    return np.linspace(0, end * (1 + 1e-9), WINDOWS + 1), end / WINDOWS


def _replayed(at: Floats, size: Floats, rate: float, limit: float | None) -> Floats:
    """Bytes that wait, each packet included, when it comes; one that finds no room is dropped."""
    waiting, left, before = np.zeros(len(at)), 0.0, 0.0
    for number, (now, length) in enumerate(zip(at.tolist(), size.tolist(), strict=True)):
        left = max(0.0, left - (now - before) * rate)
        before = now
        if limit is None or left + length <= limit:
            left += length
        waiting[number] = left
    return waiting


def _running_median(at: Floats, values: Floats) -> tuple[Floats, Floats]:
    groups = np.array_split(np.arange(len(at)), min(60, max(1, len(at) // 8)))
    middle = [(float(np.median(at[group])), float(np.median(values[group]))) for group in groups if len(group)]
    return np.array([t for t, _ in middle]), np.array([v for _, v in middle])


def _axes(across: str, up: str) -> tuple[Figure, Axes]:
    with marks.panels(2.9, words=(across, up)) as (figure, (axes,)):
        return figure, axes


def _keys() -> list[marks.Key]:
    return [
        Line2D([], [], color=colour, marker=MARKERS[word], linestyle="none", label=WORDS[word])
        for word, colour in COLOURS.items()
    ]


def _arrow(axes: Axes, begin: tuple[float, float], end: tuple[float, float], colour: str) -> None:
    axes.add_collection(LineCollection([[begin, end]], colors=[colour], linewidths=1.2))
    axes.annotate("", end, begin, arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 0, "shrinkA": 0,
                                              "shrinkB": 0})  # fmt: skip


def _rows(header: tuple[str, ...], *columns: Floats) -> Rows:
    return Rows(header, tuple(tuple(map(float, row)) for row in zip(*columns, strict=True)))
