"""What the diagnosis says of the retransmissions of a run, beside what they were."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from millpond.diagnose import analysis, truth
from millpond.diagnose.analysis import Diagnosis
from millpond.diagnose.ends import End
from millpond.plan import scenario as scenarios
from millpond.run import capture


def path(rate: str, delay: str, queue: str, loss: float) -> dict[str, Any]:
    """A path whose directions are alike."""
    link = {
        "rate": rate,
        "delay": delay,
        "queue": queue,
        "loss": {"kind": "bernoulli", "rate": loss} if loss else "none",
        "loss_of": "each-client",
    }
    return {"uplink": link, "downlink": link}


def told(tree: Mapping[str, Any], seed: int, end: End) -> tuple[Diagnosis, Counter[str]]:
    """The diagnosis of a run at one end, and how many retransmissions it tells *right*, *wrong*, and *unknown*."""
    scenario = scenarios.build(tree, "told")
    content = capture.of_run(scenario, seed)
    found = analysis.of_capture(content, end)
    labels = found.labels()
    true = truth.of(content, scenarios.in_full(scenario)).labels(end)
    return found, Counter(
        "unknown" if labels[seen] == "unknown" else "right" if labels[seen] == word else "wrong"
        for seen, word in true.items()
    )
