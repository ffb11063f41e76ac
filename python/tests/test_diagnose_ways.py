"""What the diagnosis says of devices that do more than ask for one thing again and again, and of servers that do."""

from __future__ import annotations

from typing import Any

import pytest
from told_beside_truth import path, told

from millpond.diagnose.ends import ENDS, End

#: Keys of clients, of the server, and of the run.
WAYS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "blocks": (
        {"exchanges": 5, "transfer": {"kind": "blocks", "size": "64 B"}},
        {"payload": "600 B"},
        {"until": "3 h"},
    ),
    "several open": ({"nstart": 3, "workload": {"kind": "backlog", "requests": 20}}, {}, {"until": "3 h"}),
    "observing": (
        {
            "notifications": {"workload": {"kind": "periodic", "period": "20 s"}},
            "workload": {"kind": "periodic", "period": "30 s"},
        },
        {"controller": "rfc7252", "token_length": 2},
        {"for": "600 s"},
    ),
    "calm server": ({"exchanges": 20}, {"duplicates": "calm"}, {"until": "3 h"}),
    "calm": ({"exchanges": 20, "controller": "calm"}, {}, {"until": "3 h"}),
    "cocoa-plus": ({"exchanges": 20, "controller": "cocoa-plus"}, {}, {"until": "3 h"}),
}
#: Delay of each direction, and share lost in each. The longer round trip is longer than RFC 7252's first timer.
PATHS = {"loss": ("150 ms", 0.1), "bloat": ("1700 ms", 0.0)}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize("way", WAYS)
def test_retransmissions_are_told_as_what_they_were(way: str, name: str, end: End) -> None:
    delay, loss = PATHS[name]
    asking, server, run = WAYS[way]
    clients = {"count": 30, "controller": "rfc7252", "token_length": 2, "start_spread": "10 s", **asking}
    if way == "observing":
        del clients["start_spread"]
    tree = {"path": path("30 kbit/s", delay, "200 kB", loss), "clients": [clients], "server": server, "run": run}
    found, count = told(tree, 1, end)
    if (way, name, end) == ("several open", "loss", "server"):
        assert count["unknown"] >= 0.5 * count.total(), "which request follows which answer is seldom clear"
    else:
        assert count["right"] >= 20
    assert count["wrong"] <= (0.0 if end == "devices" else 0.02) * count.total(), count
    assert not [doubt for doubt in found.figures["doubts"] if "no request" in doubt]
