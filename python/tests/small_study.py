"""A study of two set-ups, two payloads and two readings of the path, small enough to be run whole."""

from __future__ import annotations

from pathlib import Path

from invented import Invented
from published_rows import MakeRows

from millpond.plan import study
from millpond.results.directory import Results
from millpond.run import campaign
from millpond.studies import reproduction

SCENARIO = """
[path.uplink]
rate = "60 kbit/s"
delay = "200 ms"
queue = "2000 B"
[path.downlink]
rate = "30 kbit/s"
delay = "400 ms"
queue = "2000 B"
[[clients]]
count = 1
controller = "rfc7252"
[server]
payload = "1 B"
"""

PLAN = """
name = "small"
title = "A small study"
source = "nobody"
scenario = "scenario.toml"
published = "published.csv"
claims = "claims.toml"
replications = 3

[[matrix]]
clients = [10]
buffer_bytes = [2500, 28200]
workload = ["continuous"]
config = ["two-host"]
algorithm = ["default", "cocoa"]
[[matrix]]
scenario = "other.toml"
clients = [10, 400]
buffer_bytes = [2500, 28200]
workload = ["continuous", "random"]
config = ["four-host"]
payload = [68, 176]
algorithm = ["default", "cocoa"]

[columns]
payload = 68

[vary.clients]
places = ["clients[0].count"]
[vary.workload]
places = ["clients[0].workload"]
[vary.payload]
places = ["server.payload"]
write = "{} B"
[vary.config.set.two-host]
"path.downlink.rate" = "240 kbit/s"
[vary.config.set.four-host]

[algorithms.default]
label = "Default CoAP"
controller = "rfc7252"
[algorithms.cocoa]
label = "CoCoA"
controller = "cocoa-03"

[[path]]
name = "as-typed"
label = "in packets"
[path.set]
"path.downlink.queue" = "{buffer_bytes} packets"
[[path]]
name = "as-meant"
label = "in bytes"
only = { config = ["four-host"] }
[path.set]
"path.downlink.queue" = "{buffer_bytes} B"

[quick]
replications = 1
buffer_bytes = [28200]
config = ["four-host"]

[trace]
tables = ["rto"]
largest = ["clients", "buffer_bytes"]
only = { payload = [176] }

[reading]
apart = true
[reading.metrics]
fct = "makespan"
"""

CLAIMS = """
[[claim]]
id = "small-c1"
says = "More clients take longer, with four hosts."
[[claim.check]]
metric = "makespan"
statistic = "mean"
each = { config = "four-host", payload = [68, 176], buffer_bytes = 2500, workload = "random", algorithm = "cocoa" }
of = { clients = 400 }
against = { clients = 10 }
is = "higher"

[[claim]]
id = "small-c2"
says = "CoCoA makes more unnecessary retransmissions than Default CoAP."
[[claim.check]]
metric = "unnecessary_retx_per_client"
each = { config = "four-host", payload = 176, clients = 400, buffer_bytes = [2500, 28200], workload = "random" }
of = { algorithm = "cocoa" }
against = { algorithm = "default" }
is = "higher"
"""

ROWS = (
    {"kind": "claim", "claim_id": "small-c1", "config": "four-host", "metric": "fct"},
    {"kind": "claim", "claim_id": "small-c2", "config": "four-host", "metric": "fct"},
    {
        "config": "four-host", "payload": "176", "clients": "400", "buffer_bytes": "2500", "workload": "random",
        "algorithm": "cocoa", "metric": "fct", "statistic": "mean", "value": "400", "unit": "s",
    },
)  # fmt: skip


def write(folder: Path, plan: str = PLAN, claims: str = CLAIMS) -> Path:
    """The study's files."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "scenario.toml").write_text(SCENARIO)
    (folder / "other.toml").write_text(SCENARIO.replace('"2000 B"', '"3000 B"'))
    (folder / "plan.toml").write_text(plan)
    (folder / "claims.toml").write_text(claims)
    MakeRows(folder / "published.csv")(*ROWS)
    return folder


def run(directory: Path, plan: study.Plan) -> Results:
    """Invented results of the study."""
    files = reproduction.kept_files(plan)
    return campaign.carry_out(study.unfold(plan), directory, on=Invented(), extra_files=files)
