"""Makes results directories of plausible shape without running anything, for tests of what is drawn from them.

The shapes follow the published ones: with many clients and a large buffer the plain controllers collapse (a queue of
hundreds of kB, a fifth of the bytes useful), the Full Backoff variants do not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from millpond.judge.compare import Comparison, Figure, Verdict
from millpond.results.directory import FORMAT, MANIFEST, Cell, Group, Results
from millpond.results.factor import Value
from millpond.results.store import write_json, write_table

ALGORITHMS = ("default", "default_fb1", "default_fb2", "cocoa", "cocoa_fb1", "cocoa_fb2")
PRESETS = {"default": "rfc7252", "cocoa": "cocoa-03"}
LABELS = {
    "default": "Default CoAP", "default_fb1": "Default FB1", "default_fb2": "Default FB2",
    "cocoa": "CoCoA", "cocoa_fb1": "CoCoA FB1", "cocoa_fb2": "CoCoA FB2",
}  # fmt: skip
FACTORS = {
    "clients": {"label": "clients", "unit": "clients", "scale": "log", "words": {"1": "1 client"}},
    "buffer_bytes": {"label": "buffer", "unit": "B", "scale": "log", "words": {"1410000": "infinite"}},
    "path": {"words": {"fixed": "", "jittered": "jittered delay"}},
}
EXCHANGES = 50
DOWNLINK_BITS = 30_000
RESPONSE = 94
STEP_S = 5.0

_AT_WORST = {
    ("default", "continuous"): 4, ("default", "random"): 4, ("cocoa", "continuous"): 0.3, ("cocoa", "random"): 5.3,
    ("default_fb1", "continuous"): 1.2, ("default_fb1", "random"): 1.4, ("default_fb2", "continuous"): 0.6,
    ("default_fb2", "random"): 1.1, ("cocoa_fb1", "continuous"): 0.25, ("cocoa_fb1", "random"): 1.3,
    ("cocoa_fb2", "continuous"): 0.2, ("cocoa_fb2", "random"): 0.9,
}  # fmt: skip


def study(
    directory: Path,
    *,
    clients: Sequence[int] = (1, 10, 50, 100, 200, 400),
    buffers: Sequence[int] = (2500, 14100, 28200, 1410000),
    workloads: Sequence[str] = ("continuous", "random"),
    algorithms: Sequence[str] = ALGORITHMS,
    replications: int = 3,
    traces: bool = True,
    mixes: bool = True,
    jitter: bool = True,
) -> Results:
    """Write the results of a study as it might come out, and open them."""
    wanted: list[tuple[tuple[str, ...], int, int, str, str]] = []
    for algorithm in algorithms:
        for n in clients:
            for buffer in buffers:
                for workload in workloads:
                    wanted.append(((algorithm,), n, buffer, workload, "fixed"))
                    if jitter and buffer == min(buffers) and n >= 100:
                        wanted.append(((algorithm,), n, buffer, workload, "jittered"))
    for base in ("default", "cocoa") if mixes else ():
        for variant in ("fb1", "fb2"):
            pair = (base, f"{base}_{variant}")
            if set(pair) <= set(algorithms):
                for n in (n for n in (200, 400) if n in clients):
                    for buffer in (b for b in (28200, 1410000) if b in buffers):
                        wanted += [(pair, n, buffer, workload, "fixed") for workload in workloads]
    cells = []
    for number, (names, n, buffer, workload, path) in enumerate(wanted):
        share = n // len(names)
        cells.append(
            Cell(
                number=number,
                id=f"{'+'.join(names)}-{workload}-{n}-{buffer}-{path}",
                columns={
                    "clients": n,
                    "buffer_bytes": buffer,
                    "workload": workload,
                    "algorithm": ";".join(names),
                    "path": path,
                    "error_profile": "none",
                    "payload": 60,
                },
                groups=tuple(Group(index, share, name) for index, name in enumerate(names)),
                first_run=number * replications,
                replications=replications,
                scenario=_scenario(buffer, *names),
            )
        )
    worst = (max(clients), max(buffers))
    traced = [
        cell
        for cell in cells
        if traces and not cell.mixed and (cell.columns["clients"], cell.columns["buffer_bytes"]) == worst
    ]
    return _write(directory, "study", "anrw18", "Is CoAP Congestion Safe?", cells, traced, replications)


def single(directory: Path, *, traces: bool = True, unfinished: bool = False) -> Results:
    """Write the results of one scenario with two groups of clients, and open them."""
    cell = Cell(
        number=0,
        id="scenario",
        columns={
            "clients": 20,
            "buffer_bytes": 4000,
            "workload": "continuous",
            "algorithm": "rfc7252;cocoa-03",
            "path": "fixed",
        },
        groups=(Group(0, 10, "rfc7252"), Group(1, 10, "cocoa-03")),
        first_run=0,
        replications=1,
        scenario=_scenario(4000, "rfc7252", "cocoa-03"),
    )
    title = "20 sensors behind one narrow cell"
    return _write(directory, "scenario", "first", title, [cell], [cell] if traces else [], 1, unfinished)


def comparison(results: Results) -> Comparison:
    """Published figures near the synthetic ones, and one claim of each verdict."""
    figures = []
    where: dict[str, Value]
    for place, (algorithm, workload, theirs, ours) in enumerate(
        [
            ("default", "continuous", 2425.0, 2426.1),
            ("default", "random", 2425.0, 2431.0),
            ("cocoa", "random", 2898.0, None),
        ]
    ):
        where = {"clients": 400, "buffer_bytes": 1410000, "workload": workload, "algorithm": algorithm, "path": "fixed"}
        figures.append(Figure(f"made-r{place}", where, "fct", "median", "", "approx", "s", theirs, ours, n=800))
    for k, count in enumerate([1474, 3984, 4793, 7795, 381954, 0]):
        where = {"clients": 400, "buffer_bytes": 1410000, "workload": "continuous", "algorithm": "default"}
        metric = "exchanges_by_retransmissions"
        figures.append(Figure(f"made-h{k}", where, metric, "count", str(k), "", "exchanges", count, count * 1.01, n=20))
    where = {"clients": 100, "buffer_bytes": 2500, "workload": "continuous", "algorithm": "default", "path": "jittered"}
    figures.append(
        Figure("made-j", where, "fct", "median", "", "approx", "s", 102.0, 101.0, 200, (99.0, 103.0), "a <note>")
    )
    claims = [
        Verdict("made-c1", "Default CoAP with 400 clients is in congestion collapse.", "holds", "4 copies", ""),
        Verdict(
            "made-c2", "A bigger buffer & more clients help.", "fails", "median 12 s < 14 s", "the other way round"
        ),
        Verdict("made-c3", "Earlier evaluations agree.", "unjudged", "", "cites other work", ("one", "two")),
    ]
    assert results.study is not None
    return Comparison(results.study, "0.1.0", figures, claims)


def _scenario(buffer: int, *names: str) -> dict[str, Any]:
    return {
        "title": "made up",
        "clients": [{"controller": PRESETS.get(name, name.replace("_", "-"))} for name in names],
        "path": {
            "header": "28 B",
            "uplink": {"rate": "60 kbit/s", "delay": "215 ms", "queue": f"{buffer} B"},
            "downlink": {"rate": "30 kbit/s", "delay": "415 ms", "queue": f"{buffer} B"},
        },
    }


def _copies(clients: int, buffer: int, workload: str, algorithm: str) -> float:
    """Mean unnecessary retransmissions of an exchange."""
    room = math.pow(min(1.0, buffer / 400_000), 0.35)
    load = max(0.0, clients - 60) / 340
    name = {"rfc7252": "default", "cocoa-03": "cocoa"}.get(algorithm, algorithm)
    return float(_AT_WORST.get((name, workload), 1.0)) * room * load


def _write(
    directory: Path,
    kind: str,
    name: str,
    title: str,
    cells: list[Cell],
    traced: list[Cell],
    replications: int,
    unfinished: bool = False,
) -> Results:
    directory.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(7)
    tables: dict[str, list[dict[str, Any]]] = {"runs": [], "flows": [], "histogram": [], "links": []}
    for cell in cells:
        for replication in range(replications):
            _run(tables, cell, cell.first_run + replication, replication, rng, unfinished)
    for cell in traced:
        _trace(tables, cell, cell.first_run)
    files = {}
    for table, rows in tables.items():
        size = write_table(directory / f"{table}.parquet", pa.Table.from_pylist(rows))
        files[f"{table}.parquet"] = {"rows": len(rows), "bytes": size}
    write_json(
        directory / MANIFEST,
        {
            "format": FORMAT,
            "shard": [1, 1],
            "kind": kind,
            "name": name,
            "title": title,
            "state": "complete",
            "version": "0.1.0",
            "python": "3.12.0",
            "platform": "Linux",
            "command": ["millpond", "reproduce", name],
            "started": "2018-07-16T09:00:00+00:00",
            "finished": "2018-07-16T09:01:00+00:00",
            "wall_s": 41.5,
            "engine_s": 80.25,
            "workers": 2,
            "events": 123456,
            "runs": len(cells) * replications,
            "runs_done": len(cells) * replications,
            "replications": replications,
            "seeds": list(range(replications)),
            "unfinished_flows": sum(row["fct_us"] is None for row in tables["flows"]),
            "labels": LABELS if kind == "study" else {},
            "factors": FACTORS if kind == "study" else {},
            "cells": [cell.to_json() for cell in cells],
            "files": files,
        },
    )
    return Results.open(directory)


def _run(
    tables: dict[str, list[dict[str, Any]]],
    cell: Cell,
    run: int,
    replication: int,
    rng: np.random.Generator,
    unfinished: bool,
) -> None:
    clients, buffer = int(cell.columns["clients"]), int(cell.columns["buffer_bytes"])
    workload = str(cell.columns["workload"])
    copies = [_copies(clients, buffer, workload, group.algorithm) for group in cell.groups]
    mean = sum(c * g.count for c, g in zip(copies, cell.groups, strict=True)) / clients
    serial = RESPONSE * 8 / DOWNLINK_BITS
    whole = max(33.007, clients * EXCHANGES * (1 + mean) * serial)
    flow = 0
    for group, extra in zip(cell.groups, copies, strict=True):
        # a queue that holds everything is fair; a short one locks some clients out
        spread = 0.012 if buffer > 10_000 else 0.05 * min(1.0, clients / 100)
        jitter = 1.04 if cell.columns.get("path") == "jittered" else 1.0
        times = whole * jitter * (1 - np.abs(rng.normal(0, spread, group.count)))
        extras = rng.poisson(EXCHANGES * extra, group.count)
        for time, unnecessary in zip(times, extras, strict=True):
            done = not (unfinished and flow % 5 == 0)
            tables["flows"].append(
                {
                    "run": run,
                    "flow": flow,
                    "group": group.index,
                    "controller": group.algorithm,
                    "fct_us": int(time * 1e6) if done else None,
                    "first_send_us": 0,
                    "done_us": int(time * 1e6) if done else None,
                    "completed": EXCHANGES if done else EXCHANGES - 3,
                    "failed": 0,
                    "transmissions": EXCHANGES + int(unnecessary),
                    "retransmissions": int(unnecessary),
                    "unnecessary": int(unnecessary),
                    "late_replies": int(unnecessary),
                    "rtt_first_mean_us": 2.0e6,
                    "rtt_true_mean_us": 2.0e6,
                    "rtt_strong_mean_us": None,
                    "strong_samples": 0,
                    "clean": 3,
                    "batches": 1,
                }
            )
            flow += 1
        weights = [extra**k / math.factorial(k) for k in range(8)]
        for k, weight in enumerate(weights):
            exchanges = int(group.count * EXCHANGES * weight / sum(weights))
            if exchanges:
                row = {"run": run, "group": group.index, "first_batch": True, "retransmissions": k}
                tables["histogram"].append({**row, "exchanges": exchanges})
    for link, size, bits in (("uplink", 38, 60_000), ("downlink", RESPONSE, DOWNLINK_BITS)):
        packets = int(clients * EXCHANGES * (1 + mean))
        busy = min(whole, packets * size * 8 / bits)
        tables["links"].append(
            {
                "run": run,
                "link": link,
                "offered_packets": packets,
                "offered_bytes": packets * size,
                "dropped_queue_packets": packets // 50 if buffer < 10_000 and clients > 40 else 0,
                "dropped_queue_bytes": 0,
                "dropped_radio_packets": 0,
                "dropped_radio_bytes": 0,
                "delivered_packets": packets,
                "delivered_bytes": packets * size,
                "useful_bytes": clients * EXCHANGES * size,
                "busy_us": int(busy * 1e6),
                "queue_mean_bytes": min(buffer, 700.0 * clients) * (0.8 if link == "downlink" else 0.01),
                "queue_p95_bytes": min(buffer, 750 * clients),
                "queue_max_bytes": min(buffer, 800 * clients),
                "queue_mean_packets": 12.0,
                "queue_max_packets": 99,
            }
        )
    summary = {"run": run, "cell": cell.number, "replication": replication, "seed": replication}
    ended = {"simulated_us": int(whole * 1e6), "events": 1000 * clients, "makespan_us": int(whole * 1e6)}
    tables["runs"].append({**summary, **ended, "flows": clients, "unfinished": 0})


def _trace(tables: dict[str, list[dict[str, Any]]], cell: Cell, run: int) -> None:
    clients, buffer = int(cell.columns["clients"]), int(cell.columns["buffer_bytes"])
    extra = _copies(clients, buffer, str(cell.columns["workload"]), cell.groups[0].algorithm)
    end = max(33.007, clients * EXCHANGES * (1 + extra) * RESPONSE * 8 / DOWNLINK_BITS)
    top = min(float(buffer), clients * RESPONSE * (1 + 1.6 * extra))
    queue = tables.setdefault("queue_trace", [])
    share = tables.setdefault("share_trace", [])
    for t in np.arange(0.0, end, STEP_S):
        rise = 1 - math.exp(-t / 60)
        fall = min(1.0, (end - t) / (0.1 * end))
        useful = 1 / (1 + extra * rise)
        for link, size, bits in (("uplink", 1500.0, 12_000), ("downlink", top * rise * fall, DOWNLINK_BITS)):
            carried = int(bits / 8 * STEP_S)
            at = {"run": run, "link": link, "t_us": int(t * 1e6)}
            queue.append({**at, "bytes": int(size), "packets": int(size / RESPONSE)})
            share.append({**at, "carried_bytes": carried, "useful_bytes": int(carried * useful)})
