"""Makes results of downloads with packet and window traces without the engine, for tests of what is drawn from them.

A toy sender (slow start, one repair a round trip) behind one drop-tail queue stands for TCP, a client that asks for one
block after another stands for UDP: shapes as they occur, figures of no meaning.
"""

from __future__ import annotations

import bisect
import heapq
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from millpond.results.directory import FORMAT, MANIFEST, Cell, Group, Results
from millpond.results.factor import Value
from millpond.results.store import write_json, write_table

SEGMENT, HEADER, BITS = 256, 40, 30_000
DOWN_US, UP_US = 415_000, 215_000
TCP_ALGORITHMS = ("tcp_newreno", "tcp_bbr", "tcp-new-reno", "tcp-bbr")
Row = dict[str, Any]


def study(
    directory: Path,
    *,
    clients: Sequence[int] = (1,),
    buffers: Sequence[int] = (2500, 14100, 28200, 1410000),
    algorithms: Sequence[str] = ("default", "tcp_newreno", "tcp_bbr"),
    errors: Sequence[str] = ("none", "low"),
    replications: int = 3,
    traces: bool = True,
    packets: int = 400,
) -> Results:
    """Write the results of a study of downloads, and open them. Traced are single clients without errors."""
    cells: list[Cell] = []
    traced: set[int] = set()
    for n in clients:
        for buffer in buffers:
            for error in errors:
                for algorithm in algorithms:
                    columns: dict[str, Value] = {
                        "clients": n, "buffer_bytes": buffer, "workload": "bulk", "algorithm": algorithm,
                        "path": "as-printed", "error_profile": error, "payload": 102400,
                    }  # fmt: skip
                    number = len(cells)
                    group = Group(0, n, algorithm)
                    cells.append(_cell(number, columns, (group,), buffer, replications))
                    if traces and n == 1 and error == "none":
                        traced.add(number)
    labels = {"default": "Default CoAP", "tcp_newreno": "TCP New Reno", "tcp_bbr": "TCP BBR"}
    return _write(directory, "study", "tcp20", "A firmware update", cells, traced, replications, packets, labels)


def single(directory: Path, *, packets: int = 400, loss: float = 0.02, buffer: int = 14100) -> Results:
    """Write the results of one run with a client over TCP and one over UDP, both traced, and open them."""
    columns: dict[str, Value] = {
        "clients": 2, "buffer_bytes": buffer, "workload": "continuous", "algorithm": "tcp-new-reno;rfc7252",
        "path": "fixed",
    }  # fmt: skip
    cell = _cell(0, columns, (Group(0, 1, "tcp-new-reno"), Group(1, 1, "rfc7252")), buffer, 1, loss)
    return _write(directory, "scenario", "firmware", "A firmware update", [cell], {0}, 1, packets, {})


def _cell(
    number: int, columns: dict[str, Value], groups: tuple[Group, ...], buffer: int, replications: int, loss: float = 0
) -> Cell:
    lossy = {"kind": "bernoulli", "rate": 0.02 if columns.get("error_profile") == "low" else loss}
    path = {
        "header": "28 B",
        "uplink": {"rate": "60 kbit/s", "delay": "215 ms", "queue": f"{buffer} B", "loss": lossy},
        "downlink": {"rate": "30 kbit/s", "delay": "415 ms", "queue": f"{buffer} B", "loss": lossy},
    }
    transfers = [
        {"transport": "tcp"} if group.algorithm in TCP_ALGORITHMS else {"transfer": "blocks"} for group in groups
    ]
    name = "-".join(str(value) for value in columns.values())
    scenario = {"title": "made up", "path": path, "clients": transfers}
    return Cell(number, name, columns, groups, number * replications, replications, scenario)


class _Path:
    """One run: a queue towards the clients, radio loss behind it, and what was traced."""

    def __init__(self, run: int, buffer: int, loss: float, seed: int) -> None:
        self.run, self.buffer, self.loss = run, buffer, loss
        self.random = random.Random(seed)
        self.free_at = 0
        self.packets: list[Row] = []
        self.windows: list[Row] = []
        self.timers: list[Row] = []
        self.queue: list[tuple[int, int]] = []
        self.later: list[tuple[int, int, Any]] = []

    def note(self, event: str, link: str, at: int, flow: int, **told: Any) -> None:
        row = {"run": self.run, "t_us": at, "event": event, "link": link, "flow": flow, "exchange": 0, "copy": 0}
        self.packets.append({**row, "bytes": 0, "offset": None, "length": None, "ack": None, "again": False, **told})

    def down(self, at: int, flow: int, size: int, **told: Any) -> int | None:
        """A packet towards the client: when it arrives, if it does."""
        backlog = max(0, self.free_at - at) * BITS // 8_000_000
        if backlog + size > self.buffer:
            self.note("drop_queue", "downlink", at, flow, bytes=size, **told)
            return None
        self.note("enq", "downlink", at, flow, bytes=size, **told)
        self.free_at = max(self.free_at, at) + size * 8_000_000 // BITS
        self.queue.append((at, backlog + size))
        return self._air("downlink", self.free_at + DOWN_US, flow, size, told)

    def up(self, at: int, flow: int, size: int, **told: Any) -> int | None:
        self.note("enq", "uplink", at, flow, bytes=size, **told)
        return self._air("uplink", at + 5_000 + UP_US, flow, size, told)

    def _air(self, link: str, arrives: int, flow: int, size: int, told: dict[str, Any]) -> int | None:
        if self.random.random() < self.loss:
            self.note("drop_radio", link, arrives, flow, bytes=size, **told)
            return None
        self.note("recv", link, arrives, flow, bytes=size, **told)
        return arrives

    def after(self, at: int, call: Any) -> None:
        heapq.heappush(self.later, (at, len(self.later) + self.random.getrandbits(40), call))


class _Tcp:
    def __init__(self, path: _Path, flow: int, total: int, start: int) -> None:
        self.path, self.flow, self.total = path, flow, total
        self.window, self.threshold = 4.0, 10_000.0
        self.acked = self.next = self.dup = self.recover = self.got = 0
        self.state, self.rto, self.timer = "open", 2_000_000, 0
        self.ahead: set[int] = set()
        self.done, self.sent, self.fast, self.timeouts = 0, 0, 0, 0
        path.after(start, self.send)

    def send(self, at: int) -> None:
        while self.next < self.total and self.next - self.acked < int(self.window) + min(self.dup, 20):
            self.packet(at, self.next, again=False)
            self.next += 1
        self.trace(at)

    def packet(self, at: int, number: int, *, again: bool) -> None:
        self.sent += 1
        told = {"offset": number * SEGMENT, "length": SEGMENT, "again": again}
        arrives = self.path.down(at, self.flow, SEGMENT + HEADER, **told)
        if arrives is not None:
            self.path.after(arrives, lambda now: self.receive(now, number))
        self.timer += 1
        mark = self.timer
        self.path.after(at + self.rto, lambda now: self.expire(now, mark))

    def receive(self, at: int, number: int) -> None:
        self.ahead.add(number)
        while self.got in self.ahead:
            self.got += 1
        got = self.got
        arrives = self.path.up(at, self.flow, HEADER, ack=got * SEGMENT)
        if got == self.total and not self.done:
            self.done = at
        if arrives is not None:
            self.path.after(arrives, lambda now: self.acknowledged(now, got))

    def acknowledged(self, at: int, got: int) -> None:
        if got > self.acked:
            grown = got - self.acked
            self.acked, self.rto = got, 2_500_000
            if self.state == "open":
                self.window += grown if self.window < self.threshold else grown / self.window
                self.dup = 0
            elif got >= self.recover:
                self.state, self.window, self.dup = "open", self.threshold, 0
            else:
                self.packet(at, got, again=True)
        elif self.next > self.acked:
            self.dup += 1
            if self.dup == 3 and self.state == "open":
                self.fast += 1
                self.state, self.recover = "recovery", self.next
                self.threshold = self.window = max(2.0, self.window / 2)
                self.packet(at, self.acked, again=True)
        self.send(at)

    def expire(self, at: int, mark: int) -> None:
        if mark != self.timer or self.acked == self.total:
            return
        self.timeouts += 1
        self.state, self.recover, self.window, self.dup = "loss", self.next, 1.0, 0
        self.threshold = max(2.0, self.threshold / 2)
        self.rto = min(2 * self.rto, 120_000_000)
        self.packet(at, self.acked, again=True)
        self.trace(at)

    def trace(self, at: int) -> None:
        threshold = None if self.threshold >= 10_000 else int(self.threshold)
        self.path.windows.append(
            {
                "run": self.path.run,
                "flow": self.flow,
                "t_us": at,
                "cwnd": int(self.window),
                "ssthresh": threshold,
                "in_flight": self.next - self.acked,
                "state": self.state,
                "phase": "",
                "pacing_bps": None,
                "rto_us": self.rto,
                "srtt_us": 900_000 if self.acked else None,
            }
        )


class _Blocks:
    def __init__(self, path: _Path, flow: int, total: int) -> None:
        self.path, self.flow, self.total = path, flow, total
        self.block = self.copy = self.done = self.sent = 0
        self.seen: set[int] = set()
        path.after(0, self.ask)

    def ask(self, at: int) -> None:
        self.sent += 1
        block, copy = self.block, self.copy
        wait = 2_300_000 << copy
        told = {"flow": self.flow, "exchange": block, "copy": copy, "t_us": at, "wait_us": wait, "reason": "initial"}
        self.path.timers.append({"run": self.path.run, **told})
        arrives = self.path.up(at, self.flow, 41, offset=block * SEGMENT, length=0, again=copy > 0)
        if arrives is not None:
            self.path.after(arrives, lambda now: self.answer(now, block))
        self.path.after(at + wait, lambda now: self.expire(now, block, copy))

    def answer(self, at: int, block: int) -> None:
        told = {"offset": block * SEGMENT, "length": SEGMENT, "again": block in self.seen}
        self.seen.add(block)
        arrives = self.path.down(at, self.flow, 293, **told)
        if arrives is not None:
            self.path.after(arrives, lambda now: self.accept(now, block))

    def accept(self, at: int, block: int) -> None:
        if block != self.block or self.done:
            return
        self.block, self.copy = block + 1, 0
        if self.block == self.total:
            self.done = at
        else:
            self.ask(at)

    def expire(self, at: int, block: int, copy: int) -> None:
        if (block, copy) == (self.block, self.copy) and not self.done:
            self.copy += 1
            self.ask(at)


def _write(
    directory: Path, kind: str, name: str, title: str, cells: list[Cell], traced: set[int], replications: int,
    packets: int, labels: dict[str, str],
) -> Results:  # fmt: skip
    directory.mkdir(parents=True, exist_ok=True)
    names = ("runs", "flows", "histogram", "links", "queue_trace", "rto_trace", "packets", "tcp_trace")
    tables: dict[str, list[Row]] = {table: [] for table in names}
    for cell in cells:
        for replication in range(replications):
            run = cell.first_run + replication
            _run(tables, cell, run, replication, packets, cell.number in traced and replication == 0)
    files = {}
    for table, rows in tables.items():
        if rows:
            size = write_table(directory / f"{table}.parquet", pa.Table.from_pylist(rows))
            files[f"{table}.parquet"] = {"rows": len(rows), "bytes": size}
    write_json(
        directory / MANIFEST,
        {
            "format": FORMAT, "kind": kind, "name": name, "title": title, "state": "complete", "version": "0.1.0",
            "python": "3.12.0", "platform": "Linux", "command": ["millpond", "run", f"{name}.toml"],
            "started": "2020-05-04T09:00:00+00:00", "finished": "2020-05-04T09:01:00+00:00", "wall_s": 1.5,
            "engine_s": 1.25, "workers": 2, "events": 1234, "runs": len(cells) * replications,
            "runs_done": len(cells) * replications, "replications": replications, "seeds": list(range(replications)),
            "unfinished_flows": 0, "shard": [1, 1], "labels": labels,
            "cells": [cell.to_json() for cell in cells], "files": files,
        },
    )  # fmt: skip
    return Results.open(directory)


def _run(tables: dict[str, list[Row]], cell: Cell, run: int, replication: int, packets: int, traced: bool) -> None:
    path = _Path(
        run,
        int(cell.columns["buffer_bytes"]),
        float(cell.scenario["path"]["downlink"]["loss"]["rate"]),
        1000 * cell.number + replication,
    )
    ends: list[tuple[Group, _Tcp | _Blocks]] = []
    for group in cell.groups:
        for _ in range(group.count):
            if group.algorithm in TCP_ALGORITHMS:
                ends.append((group, _Tcp(path, len(ends), packets, 600_000 + 300_000 * len(ends))))
            else:
                ends.append((group, _Blocks(path, len(ends), packets)))
    while path.later:
        at, _, call = heapq.heappop(path.later)
        call(at)
    last = 0
    for flow, (group, end) in enumerate(ends):
        last = max(last, end.done)
        over = isinstance(end, _Tcp)
        tables["flows"].append(
            {
                "run": run, "flow": flow, "group": group.index, "controller": group.algorithm, "fct_us": end.done,
                "first_send_us": 0, "completed": 1 if over else packets, "failed": 0, "transmissions": end.sent,
                "retransmissions": 0, "unnecessary": 0, "late_replies": 0, "rtt_first_mean_us": 7e5,
                "rtt_true_mean_us": 7e5, "rtt_strong_mean_us": None, "strong_samples": 0, "batches": 1,
                "transport": "tcp" if over else "udp", "body_bytes": packets * SEGMENT,
                "connections": 1 if over else None, "segments": end.sent if over else None,
                "fast_retransmits": end.fast if isinstance(end, _Tcp) else None,
                "timeouts": end.timeouts if isinstance(end, _Tcp) else None,
                "dropped_queue": 0, "dropped_radio": 0,
            }
        )  # fmt: skip
    for group in cell.groups:
        row = {"run": run, "group": group.index, "first_batch": True, "retransmissions": 0}
        tables["histogram"].append({**row, "exchanges": packets * group.count})
    for link in ("uplink", "downlink"):
        carried = sum(row["bytes"] for row in path.packets if (row["event"], row["link"]) == ("recv", link))
        count = {
            event: sum((row["event"], row["link"]) == (event, link) for row in path.packets)
            for event in ("enq", "recv", "drop_queue", "drop_radio")
        }
        tables["links"].append(
            {
                "run": run, "link": link, "offered_packets": count["enq"] + count["drop_queue"], "offered_bytes": 0,
                "dropped_queue_packets": count["drop_queue"], "dropped_queue_bytes": 0,
                "dropped_radio_packets": count["drop_radio"], "dropped_radio_bytes": 0,
                "delivered_packets": count["recv"], "delivered_bytes": carried, "useful_bytes": carried,
                "busy_us": carried * 8_000_000 // BITS if link == "downlink" else 0, "queue_mean_bytes": 500.0,
                "queue_p95_bytes": 900, "queue_max_bytes": 1000, "queue_mean_packets": 2.0, "queue_max_packets": 5,
            }
        )  # fmt: skip
    tables["runs"].append(
        {
            "run": run, "cell": cell.number, "replication": replication, "seed": replication, "simulated_us": last,
            "events": 100, "makespan_us": last, "flows": len(ends), "unfinished": 0,
        }
    )  # fmt: skip
    if traced:
        tables["packets"] += sorted(path.packets, key=lambda row: row["t_us"])
        tables["tcp_trace"] += path.windows
        tables["rto_trace"] += path.timers
        times = [then for then, _ in path.queue]
        for at in range(0, last, 100_000):
            newest = bisect.bisect_right(times, at) - 1
            then, bytes_ = path.queue[newest] if newest >= 0 else (at, 0)
            left = {"uplink": 0, "downlink": max(0, bytes_ - (at - then) * BITS // 8_000_000)}
            tables["queue_trace"] += [
                {"run": run, "link": link, "t_us": at, "bytes": size, "packets": size // 296}
                for link, size in left.items()
            ]
