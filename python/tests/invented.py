"""Invented results: tables of a simple law at once, where what is judged or drawn of them is tested, not the engine.

Completion times follow clients, buffer and controller; nothing is simulated. Runs of these tables are kept, resumed and
read as any others, since they come from an executor as those of a cluster do.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond import _engine
from millpond.run import chunk

#: What is counted of TCP, null for clients that ask over UDP.
TCP_COLUMNS = (
    "connections", "segments", "fast_retransmits", "timeout_retransmits", "timeouts", "spurious", "duplicate_acks",
    "longest_rto_us", "request_retransmits", "first_timeout_us",
)  # fmt: skip


class Invented(Executor):
    """Who is handed runs and gives their tables: for `on`."""

    def submit(self, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        assert work is chunk.work
        assert not kwargs
        done: Future[Any] = Future()
        done.set_result(_answer(json.loads(args[0])))
        return done


def _answer(task: Mapping[str, Any]) -> chunk.Answer:
    runs: list[int] = []
    pieces: dict[str, list[pa.Table]] = {}
    for cell in task["cells"]:
        scenario = json.loads(cell["scenario"])
        for run, seed in zip(cell["runs"], cell["seeds"], strict=True):
            runs.append(run)
            for name, table in tables(scenario, seed, run, task["trace"]["tables"]).items():
                pieces.setdefault(name, []).append(table)
    if "rto_trace" in pieces:
        first = task["trace"]["flows"]
        pieces["rto_trace"] = [table.filter(pc.less(table.column("flow"), first)) for table in pieces["rto_trace"]]
    head = {
        "version": _engine.version(), "where": "here", "runs": runs, "seconds": 1e-3, "failure": None, "refused": None,
    }  # fmt: skip
    return json.dumps(head), {name: _stream(pa.concat_tables(made)) for name, made in pieces.items()}


def _stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def _name(group: Mapping[str, Any]) -> str:
    if "controller" not in group:
        return f"tcp-{group['transport']['congestion']}"
    controller = group["controller"]
    return str(controller if isinstance(controller, str) else controller["preset"])


def tables(scenario: Mapping[str, Any], seed: int, run: int, trace: Sequence[str]) -> dict[str, pa.Table]:
    chance = np.random.default_rng(seed)
    groups = scenario["clients"]
    count = sum(int(group["count"]) for group in groups)
    group = np.repeat(np.arange(len(groups)), [g["count"] for g in groups])
    names = [_name(g) for g in groups]
    fct = 33_007_000 + 1_000_000 * count + chance.integers(0, 200_000, count)
    needless = np.array([0 if count < 100 else {"rfc7252": 196, "cocoa-03": 9}.get(name, 60) for name in names])[group]
    flows = pa.table(
        {
            "run": pa.array(np.full(count, run), pa.uint32()),
            "flow": pa.array(np.arange(count), pa.uint32()),
            "group": pa.array(group, pa.uint32()),
            "controller": pa.array([names[g] for g in group]),
            "fct_us": pa.array(fct, pa.uint64()),
            "first_send_us": pa.array(np.zeros(count), pa.uint64()),
            "completed": pa.array(np.full(count, 50), pa.uint32()),
            "exchanges_failed": pa.array(np.zeros(count), pa.uint32()),
            "transmissions": pa.array(50 + needless, pa.uint32()),
            "retransmissions": pa.array(needless, pa.uint32()),
            "unnecessary": pa.array(needless, pa.uint32()),
            "late_replies": pa.array(needless, pa.uint32()),
            "rtt_first_mean_us": pa.array(fct / 50, pa.float64()),
            "rtt_true_mean_us": pa.array(fct / 50, pa.float64()),
            "rtt_strong_mean_us": pa.array(fct / 50, pa.float64()),
            "strong_samples": pa.array(np.where(needless > 0, 5, 50), pa.uint32()),
            "batches": pa.array(np.ones(count), pa.uint32()),
            # 50 requests, of which the last one fails every other client
            "arrivals": pa.array(np.full(count, 50), pa.uint32()),
            "answered": pa.array(50 - np.arange(count) % 2, pa.uint32()),
            "requests_failed": pa.array(np.arange(count) % 2, pa.uint32()),
            "never_finished": pa.array(np.zeros(count), pa.uint32()),
            "delivered": pa.array(np.full(count, 50), pa.uint32()),
            "done_us": pa.array(fct, pa.uint64()),
        }
    )
    over_tcp = np.array(["controller" not in g for g in groups])[group]
    for name in TCP_COLUMNS:
        value = 405 if not name.endswith("_us") else 45_000_000
        flows = flows.append_column(name, pa.array(np.full(count, value), pa.uint64(), mask=~over_tcp))
    for name in ("body_bytes", "dropped_queue", "dropped_radio"):
        flows = flows.append_column(name, pa.array(np.full(count, 3), pa.uint64()))
    shares = [(g, k) for g in range(len(groups)) for k in (0, 4)]
    histogram = pa.table(
        {
            "run": pa.array([run] * len(shares), pa.uint32()),
            "group": pa.array([g for g, _ in shares], pa.uint32()),
            "first_batch": pa.array([True] * len(shares)),
            "retransmissions": pa.array([k for _, k in shares], pa.uint32()),
            "exchanges": pa.array([int(groups[g]["count"]) * (5 if k == 0 else 45) for g, k in shares], pa.uint64()),
        }
    )
    carried = 94 * 50 * count + 94 * int(needless.sum())
    zero = [0, 0]
    links = pa.table(
        {
            "run": pa.array([run, run], pa.uint32()),
            "link": pa.array(["uplink", "downlink"]),
            **{name: pa.array(zero, pa.uint64()) for name in ("dropped_queue_packets", "dropped_queue_bytes")},
            **{name: pa.array(zero, pa.uint64()) for name in ("dropped_radio_packets", "dropped_radio_bytes")},
            "offered_packets": pa.array([carried // 94] * 2, pa.uint64()),
            "delivered_bytes": pa.array([carried] * 2, pa.uint64()),
            "useful_bytes": pa.array([94 * 50 * count] * 2, pa.uint64()),
            "busy_us": pa.array([int(fct.max())] * 2, pa.uint64()),
            "queue_mean_bytes": pa.array([100.0, 94.0 * count]),
            "queue_max_bytes": pa.array([200, 94 * count], pa.uint64()),
        }
    )
    runs = pa.table(
        {
            "run": pa.array([run], pa.uint32()),
            "seed": pa.array([seed], pa.uint64()),
            "simulated_us": pa.array([int(fct.max())], pa.uint64()),
            "wall_us": pa.array([time.monotonic_ns() % 10_000], pa.uint64()),
            "events": pa.array([1000 * count], pa.uint64()),
            "makespan_us": pa.array([int(fct.max())], pa.uint64()),
            "flows": pa.array([count], pa.uint32()),
            "unfinished": pa.array([0], pa.uint32()),
        }
    )
    made = {"runs": runs, "flows": flows, "histogram": histogram, "links": links}
    if "rto" in trace:
        made["rto_trace"] = pa.table(
            {
                "run": pa.array(np.full(count, run), pa.uint32()),
                "flow": pa.array(np.arange(count), pa.uint32()),
                "wait_us": pa.array(np.full(count, 2_500_000), pa.uint64()),
                "reason": pa.array(["initial"] * count),
            }
        )
    return made
