"""What a controller written in Python costs: the congestion collapse with the same timer built in and in Python.

Run by `make bench` in the project's environment. Figures of one machine at one time: see docs/reports/benchmarks.md.
"""

from __future__ import annotations

import gc
import os
import platform
import statistics
import time

import pyarrow as pa

from millpond import _engine
from millpond.controller import AnyWait, Controller, Cx, Exchange, Sample
from millpond.controllers import own

COLLAPSE = """
[path]
profile = "nbiot-anrw18"
uplink.queue = "1410000 B"
downlink.queue = "1410000 B"
[[clients]]
count = 400
controller = {controller}
max_retransmit = 20
[server]
duplicates = "afresh"
"""
REPEATS = 9
CAP_US = 60_000_000


class Standard(Controller):
    """The timer of RFC 7252 with a cap of 60 s."""

    def on_start(self, exchange: Exchange, length: int, cx: Cx) -> AnyWait:  # noqa: ARG002
        """A dithered two seconds."""
        return cx.between(2_000_000, 3_000_000)

    def on_timeout(self, exchange: Exchange, cx: Cx) -> AnyWait:  # noqa: ARG002
        """Twice as long, up to the cap."""
        return min(2 * exchange.current_us, CAP_US)

    def on_reply(self, exchange: Exchange, sample: Sample, cx: Cx) -> None:
        """Learns nothing."""


def runs(controller: str, known: own.OwnControllers, workers: int) -> tuple[float, list[dict[str, int]]]:
    """Wall time of all runs, and what the engine says of each."""
    scenario = _engine.Scenario.from_toml(COLLAPSE.format(controller=controller), "collapse", known)
    gc.collect()
    began = time.perf_counter()
    batch = _engine.Batch([(scenario, seed, seed) for seed in range(REPEATS)], workers=workers)
    found: list[dict[str, int]] = []
    while not batch.done:
        outcome = batch.next()
        if outcome is not None:
            assert outcome.error is None, outcome.error
            tables = {name: pa.table(table) for name, table in outcome.tables().items()}
            (run,) = tables["runs"].to_pylist()
            # the controller is asked for every copy, and told every end
            flows = tables["flows"]
            calls = sum(sum(flows[name].to_pylist()) for name in ("transmissions", "completed", "failed"))
            found.append({**run, "calls": calls})
    return time.perf_counter() - began, sorted(found, key=lambda run: run["seed"])


def main() -> None:
    """Print the comparison."""
    known = own.OwnControllers()
    kinds = {
        "built in": '{ preset = "rfc7252", max-wait = "60 s" }',
        "in Python": f'"{known.add(Standard)}"',
    }
    print(f"\nmillpond {_engine.version()}, Python {platform.python_version()}, {os.cpu_count()} cores")
    print(f"collapse, 400 clients, infinite buffer: median of {REPEATS} runs")
    alone: dict[str, float] = {}
    same: dict[str, list[tuple[int, int]]] = {}
    calls = 0.0
    for kind, controller in kinds.items():
        _, found = runs(controller, known, 1)
        wall = [run["wall_us"] / 1e6 for run in found]
        alone[kind] = statistics.median(wall)
        same[kind] = [(run["events"], run["calls"]) for run in found]
        calls = statistics.median(run["calls"] for run in found)
        print(f"  {kind:10} {alone[kind]:.3f} s (from {min(wall):.3f} to {max(wall):.3f} s)")
    assert same["built in"] == same["in Python"], "not the same algorithm"
    more = alone["in Python"] - alone["built in"]
    print(f"  in Python it takes {alone['in Python'] / alone['built in']:.1f} times as long")
    print(f"  a call costs {more / calls * 1e6:.2f} us more ({round(calls):,} calls a run)")
    for kind, controller in kinds.items():
        one, two = (runs(controller, known, workers)[0] for workers in (1, 2))
        print(f"  {kind:10} all runs on one thread {one:.2f} s, on two {two:.2f} s")


if __name__ == "__main__":
    main()
