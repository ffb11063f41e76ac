"""The engine in a page gives what the native one gives, to the byte."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from millpond import _engine

HERE = Path(__file__).parent
SCENARIOS = HERE.parents[2] / "python" / "millpond" / "scenarios"

#: Losses in time, jitter that reorders, CoAP over TCP beside UDP, blocks and bursts.
MIXED = """
[path]
[path.uplink]
rate = "60 kbit/s"
delay = "215 ms"
queue = "14100 B"
jitter = { from = "0 ms", to = "10 ms", order = "free" }
loss = { kind = "markov", good_loss = 0.0, bad_loss = 0.5, good_dwell = "20 s", bad_dwell = "2 s" }
[path.downlink]
rate = "30 kbit/s"
delay = "415 ms"
queue = "14100 B"
loss = { kind = "bernoulli", rate = 0.02 }
loss_of = "each-client"
[[clients]]
count = 20
controller = "cocoa-03"
workload = { kind = "poisson", interval = "20 s" }
[[clients]]
count = 5
transport = "tcp"
exchanges = 10
[[clients]]
count = 5
controller = "fasor-token"
exchanges = 3
transfer = { kind = "blocks", size = "64 B" }
[[clients]]
count = 2
controller = "rfc7252"
exchanges = 2
token_length = 1
transfer = { kind = "bursts", size = "64 B" }
[server]
payload = "400 B"
[run]
for = "600 s"
"""

MESH = """
[mesh]
topology = "grid-6x6"
delivery = [0.75, 1.0]
[[clients]]
controller = "cocoa-plus"
workload = { kind = "periodic", period = { together = "512 ms" } }
[run]
for = "60 s"
"""

#: A collapse that the server ends: its answers are held back by what it knows of times and paths.
CALM = """
[path]
profile = "nbiot-anrw18"
uplink.queue = "1410000 B"
downlink.queue = "1410000 B"
[[clients]]
count = 200
controller = "rfc7252"
exchanges = 10
[server]
duplicates = "calm"
"""

CASES = {"mixed": MIXED, "mesh": MESH, "calm": CALM} | {
    name: (SCENARIOS / f"{name}.toml").read_text("utf-8") for name in ("first", "chain", "star", "commands")
}


def _native(file: Path, seed: int, step_us: int) -> dict[str, Any]:
    scenario = _engine.Scenario.from_toml(file.read_text("utf-8"), str(file))
    batch = _engine.Batch([(scenario, seed, 0)], trace=["queue", "share"], trace_step_us=step_us)
    outcome = batch.next()
    assert outcome is not None
    assert outcome.error is None
    return {name: pa.table(table).to_pydict() for name, table in outcome.tables().items()}


@pytest.mark.parametrize("seed", [1, 4_294_967_295])
@pytest.mark.parametrize("name", CASES)
def test_every_table_is_the_same_as_the_native_one(name: str, seed: int, site: str, tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node.js is not installed")
    file = tmp_path / f"{name}.toml"
    file.write_text(CASES[name], "utf-8")
    told = subprocess.run(
        [node, str(HERE / "same.mjs"), site, str(file), str(seed)], check=True, capture_output=True, text=True
    )
    theirs = json.loads(told.stdout)
    step = theirs["queue_trace"]["t_us"]
    distinct = sorted(set(step))
    ours = _native(file, seed, distinct[1] - distinct[0])
    # A page has no clock that would be worth a column.
    del theirs["runs"]["wall_us"], ours["runs"]["wall_us"]
    assert set(theirs) == set(ours)
    for table, columns in ours.items():
        assert theirs[table] == columns, table
    assert ours["runs"]["events"][0] > 1000
