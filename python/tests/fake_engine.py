"""A small stand-in for the native engine: plausible tables at once, so that everything around it can be tested.

Completion times follow a simple law of clients, buffer and controller; nothing is simulated.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from millpond.engine import Find, Preset

#: What is counted of TCP, null for clients that ask over UDP.
TCP_COLUMNS = (
    "connections", "segments", "fast_retransmits", "timeout_retransmits", "timeouts", "spurious", "duplicate_acks",
    "longest_rto_us", "request_retransmits", "first_timeout_us",
)  # fmt: skip


class FakeScenario:
    def __init__(self, tree: Mapping[str, Any]) -> None:
        self.tree = dict(tree)
        if self.clients < 1:
            raise ValueError("clients: 0 clients send nothing: write at least 1")

    def to_json(self) -> str:
        return json.dumps(self.tree, sort_keys=True)

    def nodes(self, seed: int) -> list[tuple[str, int, int, str, str | None, int]]:
        assert seed >= 0
        return []

    def estimated_bytes(self) -> int:
        return 3000 * self.clients

    @property
    def clients(self) -> int:
        return sum(int(group["count"]) for group in self.tree["clients"])


@dataclass
class FakeOutcome:
    run: int
    made: dict[str, pa.Table]
    error: str | None = None
    cause: BaseException | None = None

    def tables(self) -> dict[str, pa.Table]:
        return self.made

    def capture(self) -> None:
        return None


@dataclass
class FakeBatch:
    """Every call gives a run at once, so `timeout` is never waited for."""

    jobs: Sequence[tuple[FakeScenario, int, int]]
    trace: Sequence[str]
    workers: int
    before: Callable[[int], None]
    failing: Mapping[int, str]
    position: int = 0
    cancelled: bool = False

    def next(self, timeout: float | None = None) -> FakeOutcome | None:
        assert timeout is not None, "a campaign that cannot be stopped"
        if self.done:
            return None
        scenario, seed, run = self.jobs[self.position]
        self.before(self.position)
        self.position += 1
        if run in self.failing:
            return FakeOutcome(run, {}, self.failing[run])
        return FakeOutcome(run, tables(scenario, seed, run, self.trace))

    def cancel(self) -> None:
        self.cancelled = True

    @property
    def done(self) -> bool:
        return self.cancelled or self.position >= len(self.jobs)


@dataclass
class FakeEngine:
    """`before` is called with the number of runs handed out so far; `failing` gives runs an error."""

    before: Callable[[int], None] = lambda _: None
    failing: Mapping[int, str] = field(default_factory=dict)
    batches: list[FakeBatch] = field(default_factory=list)

    def scenario_from_toml(self, text: str, origin: str, find: Find | None = None) -> FakeScenario:
        raise NotImplementedError("the stand-in reads JSON only")

    def scenario_from_json(self, text: str, origin: str, find: Find | None = None) -> FakeScenario:
        assert origin
        assert callable(find)
        return FakeScenario(json.loads(text))

    def batch(
        self,
        jobs: Sequence[tuple[Any, int, int]],
        *,
        workers: int,
        trace: Sequence[str],
        trace_step_us: int,
        capture: bool = False,
        together: bool = False,
    ) -> FakeBatch:
        assert trace_step_us > 0
        assert not capture, "nothing travels here"
        assert not together, "nothing is shared here"
        made = FakeBatch(jobs, trace, workers or 2, self.before, self.failing)
        self.batches.append(made)
        return made

    def version(self) -> str:
        return "0.0.0-fake"

    def presets(self) -> list[Preset]:
        return [Preset("rfc7252", "RFC 7252", 1, "doubles", [], 20, [])]

    @property
    def handed_out(self) -> list[int]:
        return [run for batch in self.batches for _, _, run in batch.jobs[: batch.position]]


def _name(group: Mapping[str, Any]) -> str:
    if "controller" not in group:
        return f"tcp-{group['transport']['congestion']}"
    controller = group["controller"]
    return str(controller if isinstance(controller, str) else controller["preset"])


def tables(scenario: FakeScenario, seed: int, run: int, trace: Sequence[str]) -> dict[str, pa.Table]:
    chance = np.random.default_rng(seed)
    groups = scenario.tree["clients"]
    count = scenario.clients
    group = np.repeat(np.arange(len(groups)), [g["count"] for g in groups])
    names = [_name(g) for g in groups]
    fct = 33_007_000 + 1_000_000 * count + chance.integers(0, 200_000, count)
    needless = np.array([0 if count < 100 else {"rfc7252": 196, "cocoa-03": 9}.get(name, 60) for name in names])[group]
    flows = pa.table(
        {
            "run": pa.array(np.full(count, run), pa.uint32()),
            "flow": pa.array(np.arange(count), pa.uint32()),
            "group": pa.array(group, pa.uint32()),
            "controller": pa.array([names[g] for g in group]).dictionary_encode(),
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
            "born": pa.array(np.full(count, 50), pa.uint32()),
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
            "link": pa.array(["uplink", "downlink"]).dictionary_encode(),
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
                "reason": pa.array(["initial"] * count).dictionary_encode(),
            }
        )
    return made
