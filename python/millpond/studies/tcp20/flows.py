"""Single runs of the study `tcp20`: what leaves when, with what window, and who gets how much of the bottleneck."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from millpond.results.directory import Cell
from millpond.show import labels
from millpond.show.document import Missing, Picture, Plot, Section
from millpond.show.report import packets, transfers
from millpond.show.report.figures import sequence
from millpond.show.report.grid import Grid, number, only
from millpond.show.report.transfers import TCP, Transfer
from millpond.studies.tcp20.errors import BULK, PROFILES, Scene, counts

FLOWS = 4
"""So many flows of a run are drawn in one panel."""
CLOSELY: tuple[tuple[str, int, str], ...] = (
    ("tcp_newreno", 28200, "none"),
    ("tcp_newreno", 2500, "none"),
    ("tcp_bbr", 28200, "none"),
    ("tcp_bbr", 2500, "none"),
    ("default", 2500, "low"),
)
"""The flows that are followed closely: controller, buffer, error profile."""


def sections(grid: Grid) -> list[Section]:
    """The runs that were traced."""
    return [_sequences(grid), _closely(grid), *_together(grid)]


def _sequences(grid: Grid) -> Section:
    pictures = []
    for profile, words in PROFILES.items():
        cells = [cell for cell in _bulk(grid) if cell.columns.get("error_profile", "none") == profile]
        if not transfers.traced(grid, cells) and profile != "none":
            continue
        pictures.append(
            Picture(
                f"sequence-{profile}",
                f"What leaves when, one client, {words}",
                f"{packets.READING} Each row has a time axis of its own.",
                partial(_grid, grid, cells),
            )
        )
    return Section(
        "sequence",
        "Packet by packet",
        (
            "One run (the first replication) of a single client, a row for each way to transfer, a column for each "
            "buffer.",
        ),
        tuple(pictures),
    )


def _closely(grid: Grid) -> Section:
    pictures = []
    for name, buffer, profile in CLOSELY:
        for transfer in _flows(grid, [cell for cell in _bulk(grid) if _is(cell, name, buffer, profile)]):
            title = f"{grid.label(name)}, buffer {labels.size(buffer)}, {PROFILES[profile]}"
            pictures.append(packets.flow_picture(grid, transfer, f"flow-{name}-{buffer}-{profile}", title))
    told = ("The same runs, some of them closely: window, timer and queue stand below the bytes, on one time axis.",)
    if not pictures:
        told = ("Not drawn: the packets of these runs were not traced.",)
    return Section("closely", "Windows, timers and the queue", told, tuple(pictures))


def _together(grid: Grid) -> list[Section]:
    """Four clients of one kind on one bottleneck, if they were traced."""
    several = [n for n in counts(grid) if n > 1]
    pictures = []
    for clients in several:
        cells = Scene(BULK, clients, grid.paths[0]).cells(grid)
        for name in ("tcp_newreno", "tcp_bbr"):
            here = [cell for cell in cells if only(cell) == name and cell.columns.get("error_profile") == "none"]
            found = [
                one for cell, run in transfers.traced(grid, here) for one in transfers.of_run(grid, cell, run, FLOWS)
            ]
            if found:
                pictures.append(
                    Picture(
                        f"together-{name}",
                        f"{grid.label(name)}, {labels.clients(clients)}, no errors",
                        "A line is what one client has received without a gap, by buffer; crosses are that client's "
                        "packets that found the queue full.",
                        partial(sequence.together, found),
                    )
                )
    if not pictures:
        return []
    told = "One run (the first replication): who gets how much of the bottleneck, and when."
    return [Section("together", "Several clients on one bottleneck", (told,), tuple(pictures))]


def _bulk(grid: Grid) -> list[Cell]:
    """The cells with one client that downloads, on the first path variant."""
    return Scene(BULK, 1, grid.paths[0]).cells(grid)


def _is(cell: Cell, name: str, buffer: int, profile: str) -> bool:
    here = only(cell), int(number(cell, "buffer_bytes")), cell.columns.get("error_profile", "none")
    return here == (name, buffer, profile)


def _flows(grid: Grid, cells: Sequence[Cell]) -> list[Transfer]:
    """The first flow of each traced run, UDP first."""
    found = [
        transfer for cell, run in transfers.traced(grid, cells) for transfer in transfers.of_run(grid, cell, run, 1)
    ]
    order = grid.controllers()
    return sorted(found, key=lambda one: (one.transport == TCP, order.index(only(one.cell))))


def _grid(grid: Grid, cells: Sequence[Cell]) -> Plot:
    found = _flows(grid, cells)
    if not found:
        raise Missing("Not drawn: no packets were traced in these runs.")
    return sequence.grid(found)
