"""How long the whole study takes on this machine, and what one run of it costs through the native module.

Run by `make bench` in the project's environment. Figures of one machine at one time: see docs/reports/benchmarks.md.
"""

from __future__ import annotations

import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa

from millpond import _engine

COLLAPSE = """
[path]
profile = "nbiot-anrw18"
uplink.queue = "1410000 B"
downlink.queue = "1410000 B"
[[clients]]
count = 400
controller = { preset = "rfc7252", max-wait = "60 s" }
max_retransmit = 20
[server]
duplicates = "afresh"
"""
REPEATS = 9


def collapse() -> None:
    """Time single runs of the collapse as a worker of the native module sees them, tables included."""
    scenario = _engine.Scenario.from_toml(COLLAPSE, "collapse")
    batch = _engine.Batch([(scenario, seed, seed) for seed in range(REPEATS)], workers=1)
    runs = []
    while not batch.done:
        outcome = batch.next()
        if outcome is not None:
            runs += pa.table(outcome.tables()["runs"]).to_pylist()
    wall = [run["wall_us"] / 1e6 for run in runs]
    rate = [run["events"] / run["wall_us"] for run in runs]
    print(f"collapse, 400 clients, infinite buffer, one core: median of {REPEATS} runs")
    print(f"  wall time            {statistics.median(wall):.3f} s (from {min(wall):.3f} to {max(wall):.3f} s)")
    print(f"  events               {round(statistics.median(run['events'] for run in runs)):,}")
    print(f"  events a second      {statistics.median(rate):.2f} million")


def study(arguments: list[str]) -> None:
    """Time the program from its start to its report."""
    program = Path(sys.executable).with_name("millpond")
    with tempfile.TemporaryDirectory() as folder:
        command = ["reproduce", "anrw18", *arguments]
        began = time.perf_counter()
        subprocess.run([program, *command, "--out", Path(folder) / "results"], check=True, stdout=subprocess.DEVNULL)
        took = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"millpond {' '.join(command)}")
    print(f"  wall time            {took:.1f} s, report included")
    print(f"  peak memory          {peak:.0f} MiB")


if __name__ == "__main__":
    print(f"\nmillpond {_engine.version()}, Python {platform.python_version()}, {os.cpu_count()} cores")
    collapse()
    study(["--quick"])
    study([])
