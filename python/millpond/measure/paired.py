"""How sure a number is: 95 % intervals over runs. Runs of equal seeds meet the same luck, so comparisons are paired.

The number itself is taken of all values together, pooled over the runs; how far it may lie from what infinitely many
runs would give is read off the same statistic of each run by itself. Of a comparison the two sides of a run are taken
together: what both met alike cancels out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import stdtrit

from millpond.measure.sample import Sample
from millpond.measure.statistics import Floats

Quantity = Literal["value", "relative", "difference"]

CONFIDENCE = 0.95

#: Statistics that speak of every value there is: they are what they are, and have no interval.
EXTREMES = frozenset(("min", "max", "max-min", "range_low", "range_high", "count"))


@dataclass(frozen=True)
class Interval:
    """Where a number lies with a confidence of 95 %."""

    low: float
    high: float
    #: Runs that it rests on.
    n: int

    def __str__(self) -> str:
        return f"{self.low:.4g} to {self.high:.4g} over {self.n} runs"


def by_replication(sample: Sample, statistic: str, origin: int) -> dict[int, float]:
    """The statistic of each run, by the number of its seed; `origin` is the cell's.

    A variance of values of which a run has but one is parted into what each run adds to it (jackknife pseudo-values).
    """
    found = sample.by_run(statistic)
    if statistic == "variance" and len(found) == sample.n > 2:
        found = dict(zip(found, _pseudo_variances(sample.values[np.argsort(sample.runs, kind="stable")]), strict=True))
    return {run - origin: value for run, value in found.items()}


def interval(
    kind: Quantity,
    estimate: float,
    mine: Mapping[int, float],
    theirs: Mapping[int, float] | None = None,
    confidence: float = CONFIDENCE,
) -> Interval | None:
    """The t-interval around an estimate; None if fewer than two runs have what it takes.

    Args:
        kind: `value` of one side, `difference` of two, or `relative`: their difference over the other side.
        estimate: The number itself, from all runs together.
        mine: The statistic of each run, by replication.
        theirs: The same of the other side.
        confidence: How sure the interval is.
    """
    runs = sorted(run for run in mine if theirs is None or run in theirs)
    one = np.array([mine[run] for run in runs])
    other = np.zeros(len(runs)) if theirs is None else np.array([theirs[run] for run in runs])
    usable = np.isfinite(one) & np.isfinite(other)
    one, other = one[usable], other[usable]
    n = len(one)
    if n < 2 or not math.isfinite(estimate):
        return None
    if kind != "relative":
        spread = _half(one - other, confidence)
    else:
        base = float(np.mean(other))
        if base == 0:
            return None
        # a ratio of two means: what each run departs from it, over the mean of what it is relative to
        spread = _half(one - float(np.mean(one)) / base * other, confidence) / abs(base)
    return Interval(estimate - spread, estimate + spread, n)


def _half(values: Floats, confidence: float) -> float:
    n = len(values)
    return float(stdtrit(n - 1, 0.5 + confidence / 2)) * float(np.std(values, ddof=1)) / math.sqrt(n)


def _pseudo_variances(values: Floats) -> list[float]:
    n, whole = len(values), float(np.var(values, ddof=1))
    return [n * whole - (n - 1) * float(np.var(np.delete(values, place), ddof=1)) for place in range(n)]
