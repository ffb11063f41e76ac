"""A sweep of a user's own: factors under names that nothing in the program knows, small enough to run for real."""

from __future__ import annotations

from pathlib import Path
from typing import Any

PLAN = """\
title = "How long a queue may be"
replications = 2

[matrix]
queue = ["1 kB", "8 kB"]
"clients[0].count" = [2, 12]
algorithm = ["rfc7252", "cocoa-03"]

[vary.queue]
places = ["path.uplink.queue", "path.downlink.queue"]
label = "buffer"

[scenario.path.uplink]
rate = "60 kbit/s"
delay = "100 ms"
queue = "20 kB"
[scenario.path.downlink]
rate = "30 kbit/s"
delay = "100 ms"
queue = "20 kB"
[[scenario.clients]]
controller = "rfc7252"
exchanges = 3
"""


def write(folder: Path, text: str = PLAN) -> Path:
    """The plan as a file."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "queues.toml"
    file.write_text(text)
    return file


def tree(**changes: Any) -> dict[str, Any]:
    """The plan as a tree."""
    from millpond.plan.toml_file import parse

    return {**parse(PLAN, "the plan"), **changes}
