"""Transfers of a traced run, packet by packet: what each flow sent, sent again and lost, and what was acknowledged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from millpond.results.directory import Cell, Group
from millpond.show.document import Missing
from millpond.show.report.grid import DOWNLINK, UPLINK, Floats, Grid

TCP, UDP = "tcp", "udp"
PLACED = ("offset", "length", "ack", "again")
"""The columns of the packet trace that say which bytes a packet carries."""
SENT, AT_ONCE, ON_THE_AIR, ARRIVED = "enq", "drop_queue", "drop_radio", "recv"
"""What the packet trace calls what happens to a packet."""

Points = tuple[Floats, Floats]
"""Times in s, and bytes."""


@dataclass(frozen=True)
class Transfer:
    """One flow of one run: the data that the server sends it, and what comes back.

    Points are times in seconds and the first byte carried. A packet that found the queue full is among those sent and
    among those dropped.
    """

    cell: Cell
    run: int
    flow: int
    group: Group
    #: What its controller or congestion control is called.
    name: str
    transport: str
    #: Grid that left for the first time, and how many bytes each packet carries.
    first: Points
    first_lengths: Floats
    #: Grid that left again, and the same.
    again: Points
    again_lengths: Floats
    dropped_queue: Points
    dropped_radio: Points
    #: Up to which byte the client has everything.
    received: Points
    #: Up to which byte the server knows that it does (TCP); over UDP nobody tells it, and this is what is received.
    reached: Points
    #: Acknowledgements (TCP) or requests (UDP) that did not arrive, at what they would have reached or asked for.
    lost_replies: Points

    @property
    def packets(self) -> int:
        """Grid packets sent, copies included."""
        return int(self.first[0].size + self.again[0].size)

    @property
    def end(self) -> float:
        """When the last of it happened."""
        ends = [times[-1] for times, _ in (self.first, self.again, self.received, self.reached) if times.size]
        return float(max(ends, default=0.0))

    @property
    def size(self) -> float:
        """The last byte of all, and one."""
        return float((self.first[1] + self.first_lengths).max(initial=0.0))


def of_run(grid: Grid, cell: Cell, run: int, most: int | None = None) -> list[Transfer]:
    """The transfers of a run in the order of flows, at most so many.

    Left out are flows whose bytes have no place on one axis: those of whole messages in datagrams, and over several
    connections, each of which counts from zero.
    """
    if not grid.has("packets", *PLACED):
        return []
    clients = cell.scenario.get("clients", ())
    placed = {index for index, table in enumerate(clients) if "transport" in table or "transfer" in table}
    flows, groups = (values.astype(np.int64).tolist() for values in grid.rows("flows", run, ("flow", "group")))
    told = grid.rows("flows", run, ("transport",))[0] if grid.has("flows", "transport") else []
    connections = (
        grid.rows("flows", run, ("connections",))[0] if grid.has("flows", "connections") else np.ones(len(flows))
    )
    found: list[Transfer] = []
    for place, (flow, group) in enumerate(zip(flows, groups, strict=True)):
        if most is not None and len(found) == most:
            break
        if group not in placed or connections[place] > 1:
            continue
        transfer = _read(grid, cell, run, flow, cell.groups[group], told[place] if len(told) else UDP)
        if transfer.packets:
            found.append(transfer)
    return found


def traced(grid: Grid, cells: Sequence[Cell]) -> list[tuple[Cell, int]]:
    """Those of the cells that have a run whose packets were traced, with the number of that run."""
    if not grid.has("packets", *PLACED):
        return []
    return grid.traced(cells, "packets")


def needed(grid: Grid, cells: Sequence[Cell]) -> list[tuple[Cell, int]]:
    """The same; raises `Missing` if there are none."""
    found = traced(grid, cells)
    if not found:
        raise Missing("Not drawn: no packets were traced in these runs (--trace packets,tcp,queue does).")
    return found


def _read(grid: Grid, cell: Cell, run: int, flow: int, group: Group, transport: str) -> Transfer:
    columns = ("t_us", *PLACED, "event", "link")
    times, offsets, lengths, acks, again, events, links = grid.rows("packets", run, columns, flow=flow)
    carries = (links == DOWNLINK) & (np.nan_to_num(lengths) > 0) & np.isfinite(offsets)
    leaves = carries & ((events == SENT) | (events == AT_ONCE))
    # a packet that the radio loses before it ever comes to the queue leaves no other trace
    leaves |= carries & (events == ON_THE_AIR) & _unqueued(cell)
    copy = np.nan_to_num(again) > 0
    lost = (links == UPLINK) & ((events == AT_ONCE) | (events == ON_THE_AIR))
    # the first request for blocks names none
    wanted = acks if transport == TCP else np.nan_to_num(offsets)

    def points(which: np.ndarray, what: Floats = offsets) -> Points:
        which = which & np.isfinite(what)
        return times[which], what[which]

    arrived = carries & (events == ARRIVED)
    received = _without_gap(times[arrived], offsets[arrived], lengths[arrived])
    acknowledged = points((links == UPLINK) & (events == ARRIVED), acks)
    return Transfer(
        cell,
        run,
        flow,
        group,
        grid.label(group.algorithm),
        transport,
        points(leaves & ~copy),
        lengths[leaves & ~copy],
        points(leaves & copy),
        lengths[leaves & copy],
        points(carries & (events == AT_ONCE)),
        points(carries & (events == ON_THE_AIR)),
        received,
        _rising(*acknowledged) if transport == TCP else received,
        points(lost, wanted),
    )


def _unqueued(cell: Cell) -> bool:
    return bool(cell.scenario.get("path", {}).get(DOWNLINK, {}).get("loss_at") == "before-rate")


def _rising(times: Floats, values: Floats) -> Points:
    """Only where the value is larger than ever before."""
    if not times.size:
        return times, values
    before = np.concatenate(([-np.inf], np.maximum.accumulate(values)[:-1]))
    new = values > before
    return times[new], values[new]


def _without_gap(times: Floats, offsets: Floats, lengths: Floats) -> Points:
    """Up to which byte everything has arrived, after each arrival that moves it."""
    waiting: dict[float, float] = {}
    reached, at, bytes_ = 0.0, [], []
    for time, offset, length in zip(times.tolist(), offsets.tolist(), lengths.tolist(), strict=True):
        waiting[offset] = max(waiting.get(offset, 0.0), length)
        if offset != reached:
            continue
        while reached in waiting:
            reached += waiting.pop(reached)
        at.append(time)
        bytes_.append(reached)
    return np.array(at, dtype=np.float64), np.array(bytes_, dtype=np.float64)
