"""What became of one controller's clients in one cell: the numbers that the arena compares, of all runs or of some."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from millpond.measure.measures import Measures
from millpond.measure.population import Population
from millpond.measure.sample import Ints, Sample
from millpond.measure.statistics import Floats, percentile


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


@dataclass(frozen=True)
class Outcome:
    """Every client of a controller in a cell, and the run that it is of, counted from 0."""

    runs: Ints
    #: How long a client took, in s; without end where it lost a request.
    took: Floats
    #: Sums over these are taken: messages sent, copies among them, those in vain, requests answered.
    counts: NDArray[np.float64]
    delivery: Sample
    fairness: Sample
    #: From birth to answer, and the share of requests answered, where requests come in a rhythm.
    delays: Sample | None = None
    answered: Sample | None = None

    @staticmethod
    def of(measures: Measures, population: Population) -> Outcome:
        """Read from the tables of results."""
        cell = measures.cell(population)

        def column(name: str) -> Floats:
            values: Floats = measures.flow_column(population, name).astype(np.float64)
            return values

        def sample(name: str) -> Sample:
            found = measures.sample(name, population)
            return replace(found, runs=found.runs - cell.first_run)

        took = column("fct_us") * 1e-6
        whole = np.isfinite(took) & ~(column("requests_failed") > 0)
        names = ("transmissions", "retransmissions", "unnecessary", "completed")
        loop = _is_loop(cell.scenario)
        return Outcome(
            measures.flow_column(population, "run").astype(np.int64) - cell.first_run,
            np.where(whole, took, np.inf),
            np.array([column(name) for name in names]),
            sample("delivery_ratio"),
            sample("fairness"),
            None if loop else sample("answer_delay"),
            None if loop else sample("answered_share"),
        )

    def values(self, runs: Ints | None = None) -> dict[str, float]:
        """Every measure but `harm`, over all runs or over these."""
        took, counts = self.took, self.counts
        if runs is not None:
            chosen = np.isin(self.runs, runs)
            took, counts = took[chosen], counts[:, chosen]
        sent, copies, vain, completed = counts.sum(axis=1)
        return {
            **self._times(took, runs),
            "messages": sent / max(1.0, completed),
            "delivery": _of(self.delivery, runs).take("mean"),
            "in_vain": vain / max(1.0, sent - copies),
            "fairness": _of(self.fairness, runs).take("mean"),
        }

    def _times(self, took: Floats, runs: Ints | None) -> dict[str, float]:
        if self.delays is not None and self.answered is not None:
            # when the last request ends is the rhythm's doing
            delays = _of(self.delays, runs)
            return {
                "median": delays.take("median"),
                "p95": delays.take("p95"),
                "slowest": math.nan,
                "lost": 1 - _of(self.answered, runs).take("mean"),
            }
        whole = took[np.isfinite(took)]
        return {
            "median": _at(took, 0.5),
            "p95": percentile(whole, 0.95) if len(whole) else math.inf,
            "slowest": float(whole.max()) if len(whole) else math.inf,
            "lost": 1 - len(whole) / max(1, len(took)),
        }


# ----------------------------------------------------------------------------------------------- helpers


def _of(sample: Sample, runs: Ints | None) -> Sample:
    return sample if runs is None else sample.of_runs(runs)


def _is_loop(scenario: Mapping[str, Any]) -> bool:
    """Whether all requests of the clients follow on the ones before, so that a client is done when its work is."""
    kinds = [
        one if isinstance(one, str) else one["kind"]
        for group in scenario["clients"]
        for workload in [group["workload"]]
        for one in (workload if isinstance(workload, list) else [workload])
    ]
    return all(kind in ("continuous", "random", "fresh-batches", "backlog") for kind in kinds)


def _at(values: Floats, share: float) -> float:
    """A percentile where some values are without end; without end for no values."""
    if len(values) == 0:
        return math.inf
    ordered = np.sort(values)
    rank = share * (len(ordered) - 1)
    if not np.isfinite(ordered[math.ceil(rank)]):
        return math.inf
    return percentile(ordered[np.isfinite(ordered)], rank / max(1, int(np.isfinite(ordered).sum()) - 1))
