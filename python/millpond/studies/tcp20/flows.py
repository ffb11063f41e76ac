"""Single runs of the study `tcp20`: what leaves when, with what window, and who gets how much of the bottleneck."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from millpond.results.directory import Cell
from millpond.show import labels
from millpond.show.document import Missing, Picture, Plot, Section
from millpond.show.report import packets, transfers
from millpond.show.report.data import Data, number, only
from millpond.show.report.figures import sequence
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


def sections(data: Data) -> list[Section]:
    """The runs that were traced."""
    return [_sequences(data), _closely(data), *_together(data)]


def _sequences(data: Data) -> Section:
    pictures = []
    for profile, words in PROFILES.items():
        cells = [cell for cell in _bulk(data) if cell.columns.get("error_profile", "none") == profile]
        if not transfers.traced(data, cells) and profile != "none":
            continue
        pictures.append(
            Picture(
                f"sequence-{profile}",
                f"What leaves when, one client, {words}",
                f"{packets.READING} Each row has a time axis of its own.",
                partial(_grid, data, cells),
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


def _closely(data: Data) -> Section:
    pictures = []
    for name, buffer, profile in CLOSELY:
        for transfer in _flows(data, [cell for cell in _bulk(data) if _is(cell, name, buffer, profile)]):
            title = f"{data.label(name)}, buffer {labels.size(buffer)}, {PROFILES[profile]}"
            pictures.append(packets.flow_picture(data, transfer, f"flow-{name}-{buffer}-{profile}", title))
    told = ("The same runs, some of them closely: window, timer and queue stand below the bytes, on one time axis.",)
    if not pictures:
        told = ("Not drawn: the packets of these runs were not traced.",)
    return Section("closely", "Windows, timers and the queue", told, tuple(pictures))


def _together(data: Data) -> list[Section]:
    """Four clients of one kind on one bottleneck, if they were traced."""
    several = [n for n in counts(data) if n > 1]
    pictures = []
    for clients in several:
        cells = Scene(BULK, clients, data.paths[0]).cells(data)
        for name in ("tcp_newreno", "tcp_bbr"):
            here = [cell for cell in cells if only(cell) == name and cell.columns.get("error_profile") == "none"]
            found = [
                one for cell, run in transfers.traced(data, here) for one in transfers.of_run(data, cell, run, FLOWS)
            ]
            if found:
                pictures.append(
                    Picture(
                        f"together-{name}",
                        f"{data.label(name)}, {labels.clients(clients)}, no errors",
                        "A line is what one client has received without a gap, by buffer; crosses are that client's "
                        "packets that found the queue full.",
                        partial(sequence.together, found),
                    )
                )
    if not pictures:
        return []
    told = "One run (the first replication): who gets how much of the bottleneck, and when."
    return [Section("together", "Several clients on one bottleneck", (told,), tuple(pictures))]


def _bulk(data: Data) -> list[Cell]:
    """The cells with one client that downloads, on the first path variant."""
    return Scene(BULK, 1, data.paths[0]).cells(data)


def _is(cell: Cell, name: str, buffer: int, profile: str) -> bool:
    here = only(cell), int(number(cell, "buffer_bytes")), cell.columns.get("error_profile", "none")
    return here == (name, buffer, profile)


def _flows(data: Data, cells: Sequence[Cell]) -> list[Transfer]:
    """The first flow of each traced run, UDP first."""
    found = [
        transfer for cell, run in transfers.traced(data, cells) for transfer in transfers.of_run(data, cell, run, 1)
    ]
    order = data.controllers()
    return sorted(found, key=lambda one: (one.transport == TCP, order.index(only(one.cell))))


def _grid(data: Data, cells: Sequence[Cell]) -> Plot:
    found = _flows(data, cells)
    if not found:
        raise Missing("Not drawn: no packets were traced in these runs.")
    return sequence.grid(found)
