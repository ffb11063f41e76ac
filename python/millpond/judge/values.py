"""The number that a check looks at: a statistic of a metric of one population, pooled and by replication."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from millpond.measure.measures import Measures
from millpond.measure.metrics import ALIASES, METRICS
from millpond.measure.paired import by_replication
from millpond.measure.population import Population
from millpond.measure.sample import Sample

#: The metric whose points are shares of exchanges, picked by number of retransmissions and by batch.
SHARE = "share_of_exchanges"
ANY = 1_000_000


@dataclass(frozen=True)
class Pick:
    """What of a population is looked at."""

    #: `all` clients, only those `with retransmissions`, or only those `without retransmissions`.
    flows: str = "all"
    #: For `share_of_exchanges`: counted are those with so many retransmissions (inclusive).
    retransmissions: tuple[int, int] = (0, ANY)
    #: For `share_of_exchanges`: `any`, the `first` batch of a client or the `later` ones.
    batch: str = "any"

    def __str__(self) -> str:
        words = []
        if self.flows != "all":
            words.append(f"clients {self.flows}")
        low, high = self.retransmissions
        if (low, high) != (0, ANY):
            many = f"{low} or more" if high >= 1000 else f"{low} to {high}" if low < high else f"{low}"
            words.append(f"{many} retransmissions")
        if self.batch != "any":
            words.append("later batches" if self.batch == "later" else "first batch")
        return f" ({', '.join(words)})" if words else ""


@dataclass(frozen=True)
class Number:
    """A number and the same of each run, by replication."""

    value: float
    by_run: Mapping[int, float]
    #: The share of all that it speaks of, as of the clients that finished.
    covered: float = 1.0

    def over(self, base: Number) -> Number:
        """As a share of another one."""
        shares = {run: self.by_run[run] / base.by_run[run] for run in self.by_run if base.by_run.get(run)}
        value = self.value / base.value if base.value else math.nan
        return Number(value, shares, min(self.covered, base.covered))


def known(metric: str) -> bool:
    """Whether the metric can be measured."""
    return ALIASES.get(metric, metric) in METRICS or metric == SHARE


def usual(metric: str) -> str:
    """The statistic that is meant where none is named; none for a share of exchanges."""
    return "" if metric == SHARE else METRICS[ALIASES.get(metric, metric)].usual


def written(metric: str, value: float) -> str:
    """A value with its unit, short."""
    return METRICS["wasted_share" if metric == SHARE else ALIASES.get(metric, metric)].written(value)


def number(measures: Measures, metric: str, statistic: str, population: Population, pick: Pick) -> Number:
    """The statistic of a metric in its base unit; NaN if there is no value. Raises KeyError for an unknown name."""
    cell = measures.cell(population)
    if metric == SHARE:
        shares = {
            replication: _share(measures.histogram(population, pick.batch, cell.first_run + replication), pick)
            for replication in range(cell.replications)
        }
        return Number(_share(measures.histogram(population, pick.batch), pick), shares)
    statistic = statistic or usual(metric)
    sample = measures.sample(metric, population)
    if pick.flows != "all":
        sample = _only(measures, sample, population, pick.flows)
    by_run = by_replication(sample, statistic, cell.origin)
    grain = METRICS[ALIASES.get(metric, metric)].grain
    return Number(sample.take(statistic), by_run, sample.covered if grain == "client" and sample.n else 1.0)


def _share(counts: Mapping[int, int], pick: Pick) -> float:
    total = sum(counts.values())
    low, high = pick.retransmissions
    return sum(n for k, n in counts.items() if low <= k <= high) / total if total else math.nan


def _only(measures: Measures, sample: Sample, population: Population, flows: str) -> Sample:
    if sample.missing:
        return Sample.none(sample.missing)
    retransmitted = measures.flow_column(population, "retransmissions").astype(np.int64) > 0
    keep = retransmitted if flows == "with retransmissions" else ~retransmitted
    return Sample(sample.values[keep], sample.runs[keep])
