"""The part of a single scenario's page that follows its flows packet by packet."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from millpond.results.directory import Cell
from millpond.show import labels
from millpond.show.document import Picture, Plot, Section
from millpond.show.report import transfers
from millpond.show.report.figures import sequence, windows
from millpond.show.report.grid import Grid
from millpond.show.report.transfers import TCP, Transfer

FLOWS = 8
"""At most so many flows are drawn side by side."""
READING = (
    "A dash stands for a packet of data, at the bytes it carries, when it leaves the server; the line is what the "
    "server knows to have arrived (TCP) or the client has without a gap (UDP). A cross is a packet that found the "
    "queue full, a plus one that the radio lost, a ring a request or an acknowledgement that did not arrive."
)
"""How to read a time-sequence graph."""


def section(grid: Grid) -> Section | None:
    """The time-sequence graphs of run 0, and each group's first flow with its windows; None without transfers."""
    cell = grid.cells[0]
    if not transfers_bodies(cell):
        return None
    run = next((run for _, run in transfers.traced(grid, [cell])), None)
    found = [] if run is None else transfers.of_run(grid, cell, run, FLOWS)
    first = {transfer.group.index: transfer for transfer in reversed(found)}
    pictures = [
        Picture(
            "sequence",
            "What leaves when",
            READING,
            partial(_side_by_side, grid, found),
        )
    ]
    if len(found) > 1 or any(transfer.transport == TCP for transfer in found):
        pictures += [flow_picture(grid, transfer) for _, transfer in sorted(first.items())]
    return Section("packets", "Packet by packet", ("One run: the first replication.",), pictures=tuple(pictures))


def transfers_bodies(cell: Cell) -> bool:
    """Whether some of the clients get bodies in more than one packet."""
    return any(name in table for table in cell.scenario.get("clients", ()) for name in ("transport", "transfer"))


def flow_picture(grid: Grid, transfer: Transfer, name: str = "", title: str = "") -> Picture:
    """One flow's time-sequence graph above its windows or timer and the queue."""
    parts = ["bytes"]
    if windows.Sender.of(grid, transfer) is not None:
        parts.append("congestion window, timer")
    elif windows.Timers.of(grid, transfer) is not None:
        parts.append("timer")
    if windows.waits(grid, transfer):
        parts.append("the longest queue of the bottleneck (right scale: how long a packet waits in it)")
    told = f"From above: {', '.join(parts)}. " if len(parts) > 1 else ""
    if grid.has("queue_trace") and not windows.waits(grid, transfer):
        told += "No sample of the queue shows a packet that waits for another. "
    return Picture(
        name or f"flow-{transfer.flow + 1}",
        title or f"Flow {transfer.flow + 1}, {transfer.name}",
        f"{told}{_counted(transfer)}",
        partial(windows.flow_over_time, grid, transfer),
    )


# ----------------------------------------------------------------------------------------------- helpers


def _counted(transfer: Transfer) -> str:
    """What was sent and lost, in a sentence."""
    told = [
        f"{labels.count(transfer.first[0].size)} data packets left, and {labels.count(transfer.again[0].size)} again"
    ]
    losses = ((transfer.dropped_queue, "found the queue full"), (transfer.dropped_radio, "were lost on the radio"))
    told += [f"{labels.count(times.size)} {words}" for (times, _), words in losses if times.size]
    return f"{'; '.join(told)}."


def _side_by_side(grid: Grid, found: Sequence[Transfer]) -> Plot:
    transfers.needed(grid, grid.cells[:1])
    return sequence.flows_side_by_side(found)
