"""What the diagnosis says of devices that do more than ask for one thing again and again, and of servers that do."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from millpond.diagnose import analysis, truth
from millpond.diagnose.ends import ENDS, End
from millpond.plan import scenario as scenarios
from millpond.run import capture

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
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("way", WAYS)
def test_retransmissions_are_told_as_what_they_were(way: str, path: str, end: End) -> None:
    delay, loss = PATHS[path]
    link = {
        "rate": "30 kbit/s",
        "delay": delay,
        "queue": "200 kB",
        "loss": {"kind": "bernoulli", "rate": loss} if loss else "none",
        "loss_of": "each-client",
    }
    asking, server, run = WAYS[way]
    clients = {"count": 30, "controller": "rfc7252", "token_length": 2, "start_spread": "10 s", **asking}
    if way == "observing":
        del clients["start_spread"]
    tree = {"path": {"uplink": link, "downlink": link}, "clients": [clients], "server": server, "run": run}
    scenario = scenarios.build(tree, way)
    content = capture.of_run(scenario, 1)
    found = analysis.of_capture(content, end)
    labels = found.labels()
    true = truth.of(content, scenarios.in_full(scenario)).labels(end)
    told = Counter(
        "unknown" if labels[seen] == "unknown" else "right" if labels[seen] == word else "wrong"
        for seen, word in true.items()
    )
    if (way, path, end) == ("several open", "loss", "server"):
        assert told["unknown"] == len(true), "which request follows which answer cannot be told"
    else:
        assert told["right"] >= 20
    assert told["wrong"] <= (0.0 if end == "devices" else 0.02) * len(true), told
    assert not [doubt for doubt in found.figures["doubts"] if "no request" in doubt]
