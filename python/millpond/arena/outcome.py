"""What became of one controller's clients in one cell: the numbers that the arena compares, of all runs or of some.

Every one of them is a metric of the registry, by a statistic over all clients of these runs together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from millpond.measure.measures import Measures
from millpond.measure.population import Population
from millpond.measure.reported import is_loop
from millpond.measure.sample import Ints, Sample


@dataclass(frozen=True)
class Measure:
    """One number of a candidate in a cell. `ratio`: it is told in parts of the best preset's; else as a difference."""

    name: str
    what: str
    unit: str
    less: bool
    ratio: bool


#: In the median the completion time of a client that lost a request is without end. At the 95th percentile that would
#: ask who lost one client in twenty, which `lost` tells already; there it is left out. Where requests come in a rhythm,
#: times are those from birth to answer, and `lost` is the share of requests that were not answered.
MEASURES = (
    Measure("median", "median completion time", "s", less=True, ratio=True),
    Measure("p95", "95th percentile of completion times, of clients that lost nothing", "s", less=True, ratio=True),
    Measure("slowest", "slowest completion of those that lost nothing", "s", less=True, ratio=True),
    Measure("messages", "messages sent for each request", "messages", less=True, ratio=True),
    Measure("lost", "clients that lost a request", "1", less=True, ratio=False),
    Measure("delivery", "requests that reached the application", "1", less=False, ratio=False),
    Measure("in_vain", "copies in vain for each request", "messages", less=True, ratio=False),
    Measure("harm", "neighbours' median, in parts of what they need among themselves", "1", less=True, ratio=False),
    Measure("fairness", "Jain's index of requests answered", "1", less=False, ratio=False),
)
#: The metrics that they are of; times and losses of requests in a rhythm are of two others.
METRICS = (
    "fct_of_complete", "first_copies", "retransmissions_per_client", "unnecessary_retx_per_client", "completed",
    "delivery_ratio", "fairness",
)  # fmt: skip
OF_RHYTHMS = ("answer_delay", "answered_share")


@dataclass(frozen=True)
class Outcome:
    """The samples of a controller in a cell, by metric; runs are counted from 0."""

    samples: Mapping[str, Sample]

    @staticmethod
    def of(measures: Measures, population: Population) -> Outcome:
        """Read from results."""
        cell = measures.cell(population)
        names = METRICS if is_loop(cell) else METRICS + OF_RHYTHMS
        return Outcome({name: _from(measures.sample(name, population), cell.first_run) for name in names})

    @property
    def clients(self) -> int:
        """Clients of all runs."""
        times = self.samples["fct_of_complete"]
        return times.n + times.missing

    def values(self, runs: Ints | None = None) -> dict[str, float]:
        """Every measure but `harm`, over all runs or over these."""
        of = self.samples if runs is None else {name: one.of_runs(runs) for name, one in self.samples.items()}
        first, again, unnecessary, completed = (float(of[name].values.sum()) for name in METRICS[1:5])
        return {
            **_times(of),
            "messages": (first + again) / max(1.0, completed),
            "delivery": of["delivery_ratio"].take("mean"),
            "in_vain": unnecessary / max(1.0, first),
            "fairness": of["fairness"].take("mean"),
        }


# ----------------------------------------------------------------------------------------------- helpers


def _from(sample: Sample, first_run: int) -> Sample:
    lacking = None if sample.lacking is None else sample.lacking - first_run
    return replace(sample, runs=sample.runs - first_run, lacking=lacking)


def _times(of: Mapping[str, Sample]) -> dict[str, float]:
    if "answer_delay" in of:
        # when the last request ends is the rhythm's doing
        delays = of["answer_delay"]
        lost = 1 - of["answered_share"].take("mean")
        return {"median": delays.take("median"), "p95": delays.take("p95"), "slowest": math.nan, "lost": lost}
    times = of["fct_of_complete"]
    if not times.n:
        return {"median": math.inf, "p95": math.inf, "slowest": math.inf, "lost": 1.0}
    return {
        "median": times.take("median-of-all"),
        "p95": times.take("p95"),
        "slowest": times.take("max"),
        "lost": 1 - times.covered,
    }
