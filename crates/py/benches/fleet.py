"""What a fleet costs: from ten thousand to a million devices of `scenarios/sweeps/fleet.toml`, time and peak memory.

Run by `make bench` in the project's environment, or with numbers of sites: `python crates/py/benches/fleet.py 25 250`.
Figures of one machine at one time: see docs/reports/benchmarks.md.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

from millpond import _engine
from millpond.plan.toml_file import read_tree

PLAN = Path(__file__).parents[3] / "scenarios" / "sweeps" / "fleet.toml"
#: Sites in all; a tenth of them have the power cut.
SITES = (25, 250, 2500)

MEASURED = """
import json, resource, sys, time
import millpond
tree, out = json.loads(sys.argv[1]), sys.argv[2]
began = time.perf_counter()
millpond.sweep(tree, out=out)
print(time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def fleet(sites: int) -> dict[str, object]:
    """The plan with so many sites."""
    tree = read_tree(PLAN)
    cut = max(1, sites // 10)
    steady, struck = tree["matrix"]
    return {**tree, "matrix": [{**steady, "sites": sites - cut}, {**struck, "sites": cut}]}


def measure(sites: int) -> None:
    """One line: the whole program from plan to report, in a process of its own."""
    import json

    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", MEASURED, json.dumps(fleet(sites)), str(Path(folder) / "results")]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, peak = map(float, done.stdout.split())
    devices = 400 * sites
    each = 1e6 * seconds / devices
    print(f"{devices:9,} devices  {seconds:7.1f} s  {each:7.1f} us a device  {peak:6.0f} MiB at the peak")


if __name__ == "__main__":
    print(
        f"\nmillpond {_engine.version()}, Python {platform.python_version()}, {os.cpu_count()} cores: a day of a fleet"
    )
    for number in [int(word) for word in sys.argv[1:]] or SITES:
        measure(number)
