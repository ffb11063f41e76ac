"""The number that a check looks at: a statistic of a metric of one population, run by run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from millpond.measure.estimate import Range, Taken, taken
from millpond.measure.measures import Measures
from millpond.measure.metrics import METRICS
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
    """A number, and the share of all that it speaks of, as of the clients that finished."""

    taken: Taken
    covered: float = 1.0

    @property
    def value(self) -> float:
        """The number itself; NaN if there is none."""
        return self.taken.value

    def over(self, base: Number) -> Number:
        """As a share of another one."""
        return Number(self.taken.over(base.taken), min(self.covered, base.covered))


def known(metric: str) -> bool:
    """Whether the metric can be measured."""
    return metric in METRICS or metric == SHARE


def usual(metric: str) -> str:
    """The statistic that is meant where none is named; none for a share of exchanges."""
    return "" if metric == SHARE else METRICS[metric].usual


def written(metric: str, value: float) -> str:
    """A value with its unit, short."""
    return METRICS["wasted_share" if metric == SHARE else metric].written(value)


def number(measures: Measures, metric: str, statistic: str, population: Population, pick: Pick) -> Number:
    """The statistic of a metric in its base unit; NaN if there is no value. Raises KeyError for an unknown name."""
    cell = measures.cell(population)
    if metric == SHARE:
        shares = {
            run - cell.origin: _share(measures.histogram(population, pick.batch, run), pick)
            for run in range(cell.first_run, cell.first_run + cell.replications)
        }
        return Number(Taken({run: share for run, share in shares.items() if not math.isnan(share)}))
    named, statistic = bool(statistic), statistic or usual(metric)
    sample = measures.sample(metric, population)
    if pick.flows != "all":
        sample = _only(measures, sample, population, pick.flows)
    per = METRICS[metric].per
    found = taken(sample, statistic, cell.origin, named)
    return Number(found, sample.covered if per == "client" and sample.n else 1.0)


def within(metric: str, statistic: str) -> Range:
    """What the statistic of a metric can be."""
    return (0.0, 1.0) if metric == SHARE else METRICS[metric].within(statistic)


def _share(counts: Mapping[int, int], pick: Pick) -> float:
    total = sum(counts.values())
    low, high = pick.retransmissions
    return sum(n for k, n in counts.items() if low <= k <= high) / total if total else math.nan


def _only(measures: Measures, sample: Sample, population: Population, flows: str) -> Sample:
    if sample.missing:
        return Sample.none(sample.missing)
    retransmitted = measures.sample("retransmissions_per_client", population).values > 0
    keep = retransmitted if flows == "with retransmissions" else ~retransmitted
    return Sample(sample.values[keep], sample.runs[keep])
