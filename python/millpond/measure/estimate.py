"""Estimates: a number and how sure it is. The one way for everything that is shown, compared or judged.

The unit is the run: clients of one run share a bottleneck and are not independent. A statistic is taken of each run by
itself; the estimate is the mean of these over the runs, and its interval is Student's around that mean. Two sides are
compared in pairs of runs of equal seeds, so that what both met alike cancels out: the estimate is then the mean of the
paired differences. Where nothing differs, so many in a hundred intervals miss zero as they should, whatever the runs
look like: counts of small whole numbers, runs that collapse or do not, heavy tails (`tests/test_false_findings.py`).

Where both sides had the same random numbers run by run, runs are paired. Where they had not, as two loads of real
servers, the interval of the difference is Welch's: neither numbers of runs nor spreads need be equal. On request a
difference is told with the probability of one so large where there is none (`Difference.p`), corrected for the number
of comparisons (`holm`), with its size in standard deviations, and beside a margin: no worse than by so much.

An interval ends where its quantity does, a share at 0 and 1, a count or a time at 0: the true value never lies beyond,
so nothing is lost. It takes three runs. Of two that differ by a whole number or by a collapse, both differ alike so
often that one comparison in seven would find a difference where there is none.

Two kinds of statistics are not of a run but of all values together. Extremes are what they are, and have no interval. A
percentile that is asked for by name of runs with one value each is one over the runs; it has the interval of Woodruff
(1952), the percentiles at either end of the interval of the share that lies below.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import stdtr, stdtrit

from millpond.measure.sample import Sample
from millpond.measure.statistics import FRACTIONS, Floats

Quantity = Literal["value", "relative", "difference"]
#: What a quantity can be at least and at most.
Range = tuple[float, float]

CONFIDENCE = 0.95
#: Runs that an interval takes.
LEAST_RUNS = 3
ANYTHING: Range = (-math.inf, math.inf)
#: What cannot be negative.
AMOUNT: Range = (0.0, math.inf)

#: Statistics that speak of every value there is: they are what they are, and have no interval.
EXTREMES = frozenset(("min", "max", "max-min", "spread", "range_low", "range_high", "count"))
_MEDIANS = ("median", "typical")


@dataclass(frozen=True)
class Estimate:
    """A number and the interval that it is the estimate of."""

    #: NaN if no run has what it takes.
    value: float
    #: Where it lies with the confidence asked for; None of an extreme, and of fewer runs than `LEAST_RUNS`.
    low: float | None
    high: float | None
    #: Runs, or pairs of runs, that it rests on.
    n: int

    @property
    def interval(self) -> tuple[float, float] | None:
        """Both ends; None if there are none."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def half(self) -> float:
        """Half the width of the interval; NaN if there is none."""
        return math.nan if self.low is None or self.high is None else (self.high - self.low) / 2

    @property
    def same(self) -> bool:
        """Whether all runs gave the same, so that they tell nothing of how much runs may differ."""
        return self.low is not None and self.low == self.high

    def scaled(self, factor: float) -> Estimate:
        """The same in another unit."""
        if self.low is None or self.high is None:
            return Estimate(factor * self.value, None, None, self.n)
        low, high = sorted((factor * self.low, factor * self.high))
        return Estimate(factor * self.value, low, high, self.n)

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return f"over {self.n} runs"
        if self.same:
            return f"the same in all {self.n} runs"
        return f"{self.low:.4g} to {self.high:.4g} over {self.n} runs"


NOTHING = Estimate(math.nan, None, None, 0)


@dataclass(frozen=True)
class Taken:
    """A statistic taken of a sample."""

    #: That of each run, by the number of its seed.
    by_run: Mapping[int, float]
    #: That of all values together, where that is meant.
    whole: float | None = None
    #: The ends of the interval of the whole at a confidence; None of an extreme.
    ends: Callable[[float], Estimate] | None = None

    @property
    def value(self) -> float:
        """The estimate itself."""
        return self.whole if self.whole is not None else mean(np.array(list(self.by_run.values()))).value

    def estimate(self, confidence: float = CONFIDENCE, within: Range = ANYTHING) -> Estimate:
        """The number and its interval."""
        if self.ends is not None:
            return self.ends(confidence)
        if self.whole is not None:
            return Estimate(self.whole, None, None, len(self.by_run))
        if math.inf in self.by_run.values():
            return Estimate(math.inf, None, None, len(self.by_run))
        return mean(np.array(list(self.by_run.values())), confidence, within)

    def of(self, runs: frozenset[int]) -> Taken:
        """The same of some of its runs; what is of all values together stays so."""
        kept = {run: value for run, value in self.by_run.items() if run in runs}
        return Taken(kept, self.whole, self.ends)

    def over(self, base: Taken) -> Taken:
        """As a share of another one, run by run of equal seeds."""
        shares = {run: self.by_run[run] / base.by_run[run] for run in self.by_run if base.by_run.get(run)}
        if self.whole is None and base.whole is None:
            return Taken(shares)
        return Taken(shares, self.value / base.value if base.value else math.nan)


def mean(values: Floats, confidence: float = CONFIDENCE, within: Range = ANYTHING, least: int = LEAST_RUNS) -> Estimate:
    """The mean of independent values with Student's interval; values that are not numbers are left out.

    `least` values have an interval: two are enough where each is of many runs or clients, and so close to normal.
    """
    values = values[np.isfinite(values)]
    n = len(values)
    if n == 0:
        return NOTHING
    # the mean of equal numbers may be off by a rounding, and would give them a spread
    same = bool(np.all(values == values[0]))
    middle = float(values[0]) if same else float(np.mean(values))
    if n < least:
        return Estimate(middle, None, None, n)
    return _around(middle, 0.0 if same else _half(values, confidence), n, within)


@dataclass(frozen=True)
class Difference:
    """The difference of the means of two sides, one less the other, and what it is measured by."""

    value: float
    #: Its standard error is the one over the other, and has so many degrees of freedom; NaN of too few runs.
    deviation: float
    root: float
    freedom: float
    n: int
    #: The standard deviation of a run, pooled over both sides.
    spread: float

    @staticmethod
    def of(one: Floats, other: Floats, *, paired: bool) -> Difference:
        """Of runs in pairs, or of independent ones."""
        n = min(len(one), len(other))
        if n < LEAST_RUNS:
            value = float(np.mean(one)) - float(np.mean(other)) if n else math.nan
            return Difference(value, math.nan, 1.0, math.nan, n, math.nan)
        variances = [float(np.var(side, ddof=1)) for side in (one, other)]
        degrees = [len(side) - 1 for side in (one, other)]
        spread = math.sqrt(sum(map(float.__mul__, variances, map(float, degrees))) / sum(degrees))
        if paired:
            apart = one - other
            same = bool(np.all(apart == apart[0]))
            value = float(apart[0]) if same else float(np.mean(apart))
            return Difference(value, 0.0 if same else float(np.std(apart, ddof=1)), math.sqrt(n), n - 1, n, spread)
        parts = [variance / len(side) for variance, side in zip(variances, (one, other), strict=True)]
        below = sum(part**2 / degree for part, degree in zip(parts, degrees, strict=True))
        value = float(np.mean(one)) - float(np.mean(other))
        return Difference(value, math.sqrt(sum(parts)), 1.0, sum(parts) ** 2 / below if below else math.inf, n, spread)

    def estimate(self, confidence: float = CONFIDENCE, within: Range = ANYTHING) -> Estimate:
        """It with its interval, Student's or Welch's; `within` is what a value of either side can be."""
        if math.isnan(self.deviation):
            return Estimate(self.value, None, None, self.n)
        sure = float(stdtrit(self.freedom, 0.5 + confidence / 2))
        half = sure * self.deviation / self.root if self.deviation else 0.0
        return _around(self.value, half, self.n, _apart(within))

    @property
    def p(self) -> float:
        """How likely so large a difference is where there is none (two-sided); NaN of too few runs."""
        if not self.deviation:
            return 0.0 if self.value else 1.0
        return 2 * float(stdtr(self.freedom, -abs(self.value) * self.root / self.deviation))

    @property
    def effect(self) -> float:
        """How large it is in standard deviations of a run: Hedges' g (1981). NaN where runs do not differ."""
        degrees = 2 * self.n - 2
        return self.value / self.spread * (1 - 3 / (4 * degrees - 1)) if self.spread > 0 else math.nan


def holm(probabilities: Sequence[float]) -> list[float]:
    """Probabilities of several comparisons, so that any false finding among all is as rare as one was (Holm 1979)."""
    order = sorted((p, at) for at, p in enumerate(probabilities) if not math.isnan(p))
    found, least = [math.nan] * len(probabilities), 0.0
    for done, (p, at) in enumerate(order):
        least = max(least, min(1.0, (len(order) - done) * p))
        found[at] = least
    return found


def taken(sample: Sample, statistic: str, origin: int = 0, named: bool = False) -> Taken:
    """The statistic of each run by the number of its seed, or of all values together; `origin` is the cell's.

    A median that is `named`, of runs with one value each, is that over the runs, as other percentiles are; the usual
    one of a metric is their mean, so that runs can be compared in pairs. A variance of values of which a run has but
    one is parted into what each run adds to it (jackknife pseudo-values).
    """
    found = sample.by_run(statistic)
    single = len(found) == len(sample.values)
    if statistic == "variance" and single and sample.n > 2:
        found = dict(zip(found, _pseudo_variances(sample.values[np.argsort(sample.runs, kind="stable")]), strict=True))
    by_run = {run - origin: value for run, value in found.items()}
    if statistic in EXTREMES:
        return Taken(by_run, sample.take(statistic))
    over_runs = statistic in FRACTIONS and (named or statistic not in _MEDIANS)
    if over_runs and single and len(by_run) > 1 and sample.weights is None:
        return _pooled(sample, FRACTIONS[statistic], by_run)
    return Taken(by_run)


def pooled(sample: Sample, statistic: str) -> Taken:
    """The same as printed figures have it: a percentile is that of all values of all runs together."""
    found = taken(sample, statistic)
    if statistic in EXTREMES or statistic not in FRACTIONS or not found.by_run:
        return found
    return _pooled(sample, FRACTIONS[statistic], found.by_run)


def in_pairs(mine: Taken, theirs: Taken) -> tuple[Taken, Taken]:
    """Both sides with the runs that both have. What is of all values together stays so."""
    both = frozenset(
        run for run, value in mine.by_run.items() if math.isfinite(value + theirs.by_run.get(run, math.nan))
    )
    return mine.of(both), theirs.of(both)


def compared(
    kind: Quantity,
    mine: Taken,
    theirs: Taken | None = None,
    confidence: float = CONFIDENCE,
    within: Range = ANYTHING,
) -> Estimate:
    """What one side comes to, or is beside another; of pairs, the runs that both sides have.

    Args:
        kind: `value` of one side, `difference` of two, or `relative`: their difference over the other side.
        mine: One side.
        theirs: The other.
        confidence: How sure the interval is.
        within: What a value of either side can be.
    """
    if kind == "value" or theirs is None:
        return mine.estimate(confidence, within)
    mine, theirs = in_pairs(mine, theirs)
    if mine.whole is not None or theirs.whole is not None:
        return _of_wholes(kind, mine, theirs, confidence, within)
    if not mine.by_run:
        return NOTHING
    one, other = (np.array([side.by_run[run] for run in sorted(mine.by_run)]) for side in (mine, theirs))
    if kind == "difference":
        return Difference.of(one, other, paired=True).estimate(confidence, within)
    return _ratio(one, other, confidence)


# ----------------------------------------------------------------------------------------------- helpers


def _around(middle: float, half: float, n: int, within: Range) -> Estimate:
    low, high = max(within[0], middle - half), min(within[1], middle + half)
    return Estimate(middle, min(low, middle), max(high, middle), n)


def _ratio(one: Floats, other: Floats, confidence: float) -> Estimate:
    """The mean of one side over that of the other, less 1, with Fieller's interval.

    It holds every ratio r for which the runs do not tell the mean of `one - r * other` from zero, and so finds a change
    just where the differences of the pairs do. Where the other side may well be zero, it has no upper end.
    """
    n, base = len(one), float(np.mean(other))
    if n < LEAST_RUNS or not (np.any(one) or np.any(other)):
        value = float(np.mean(one)) / base - 1 if base else math.inf if np.any(one) else 0.0
        ends = None if n < LEAST_RUNS else 0.0
        return Estimate(value, ends, ends, n)
    above = float(np.mean(one))
    value = above / base - 1 if base else math.inf
    if base and np.all(np.abs(one - above / base * other) <= 1e-12 * np.abs(other)):
        return Estimate(value, value, value, n)
    k = float(stdtrit(n - 1, 0.5 + confidence / 2)) ** 2 / n
    spread = np.cov(one, other)
    # a r^2 - 2 b r + c <= 0
    a, b, c = base**2 - k * spread[1, 1], above * base - k * spread[0, 1], above**2 - k * spread[0, 0]
    root = math.sqrt(max(0.0, b * b - a * c))
    if a > 0:
        return Estimate(value, min(max(-1.0, (b - root) / a - 1), value), max((b + root) / a - 1, value), n)
    # amounts have no ratio below zero: what is left of the two outer parts is the upper one, or all
    if a < 0 and b * b > a * c and (b + root) / a < 0:
        return Estimate(value, max(-1.0, (b - root) / a - 1), math.inf, n)
    # beside runs that all have nothing there is just more, or not
    return Estimate(value, math.inf if a == 0 and c > 0 else -1.0, math.inf, n)


def _half(values: Floats, confidence: float) -> float:
    n = len(values)
    return float(stdtrit(n - 1, 0.5 + confidence / 2)) * float(np.std(values, ddof=1)) / math.sqrt(n)


def _apart(within: Range) -> Range:
    """What two values can differ by."""
    widest = within[1] - within[0]
    return (-widest, widest)


def _of_wholes(kind: Quantity, mine: Taken, theirs: Taken, confidence: float, within: Range) -> Estimate:
    """Two numbers of which one is of all values together: their intervals combined as variances are (Zou, Donner 2008).

    Seeds that both met alike only make it too wide. Ratios are combined as differences of logarithms.
    """
    runs = len(mine.by_run)
    value = _quantity(kind, mine.value, theirs.value)
    if mine.by_run == theirs.by_run and mine.whole == theirs.whole and runs >= LEAST_RUNS:
        return Estimate(value, value, value, runs)
    one, other = (side.estimate(confidence, within) for side in (mine, theirs))
    ends = [end for side in (one, other) for end in (side.value, *(side.interval or (math.nan,)))]
    if any(map(math.isnan, ends)) or (kind == "relative" and min(ends) <= 0):
        return Estimate(value, None, None, runs)
    if kind == "relative":
        ends = [math.log(end) for end in ends]
    a, a_low, a_high, b, b_low, b_high = ends
    low, high = a - b - math.hypot(a - a_low, b_high - b), a - b + math.hypot(a_high - a, b - b_low)
    if kind == "relative":
        low, high = math.expm1(low), math.expm1(high)
    return Estimate(value, low, high, runs)


def _quantity(kind: Quantity, value: float, other: float) -> float:
    if math.isnan(value) or math.isnan(other):
        return math.nan
    if kind == "difference":
        return value - other
    if other == 0:
        return 0.0 if value == 0 else math.inf
    return (value - other) / other


def _pooled(sample: Sample, fraction: float, by_run: Mapping[int, float]) -> Taken:
    value = sample.percentile(fraction)

    def ends(confidence: float) -> Estimate:
        if len(by_run) < LEAST_RUNS or math.isnan(value):
            return Estimate(value, None, None, len(by_run))
        half = _half(sample.shares_up_to(value), confidence)
        low, high = (sample.percentile(p) for p in (max(0.0, fraction - half), min(1.0, fraction + half)))
        return Estimate(value, low, high, len(by_run))

    return Taken(by_run, value, ends)


def _pseudo_variances(values: Floats) -> list[float]:
    n, whole = len(values), float(np.var(values, ddof=1))
    return [n * whole - (n - 1) * float(np.var(np.delete(values, place), ddof=1)) for place in range(n)]
