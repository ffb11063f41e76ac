"""Percentiles and other statistics, as the studies print them.

Percentiles interpolate linearly between order statistics: the p-th of n sorted values stands at rank p (n - 1).
How sure a number is says `millpond.measure.estimate`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

Floats = NDArray[np.float64]

#: Statistics that are percentiles, as fractions.
PERCENTILES = {
    "min": 0.0,
    "p10": 0.10,
    "p25": 0.25,
    "median": 0.50,
    "p75": 0.75,
    "p90": 0.90,
    "p95": 0.95,
    "max": 1.0,
}

#: The same and a further one, which published tables do not have.
FRACTIONS = {**PERCENTILES, "p99": 0.99, "typical": 0.50}

#: Behind a percentile: of all, those without a value being later than everybody.
OF_ALL = "-of-all"

#: Share of the values that an approximate range ("almost all messages 5 to 6 times") must hold.
ALMOST_ALL = 0.80


def percentile(values: Floats, p: float) -> float:
    """The value at rank p (n - 1), 0 <= p <= 1, interpolated linearly; NaN for no values."""
    n = len(values)
    if n == 0:
        return math.nan
    # what numpy's quantile does, which takes longer to look at what it is asked for than to answer
    rank = p * (n - 1)
    below = min(int(rank), n - 1)
    above, share = min(below + 1, n - 1), rank - below
    ordered = np.partition(values, (below, above, n - 1))
    if ordered[n - 1] != ordered[n - 1]:
        return math.nan
    low, high = float(ordered[below]), float(ordered[above])
    if share == 0 or low == high:
        return low
    if math.isinf(high):
        return high
    step = high - low
    return low + step * share if share < 0.5 else high - step * (1 - share)


def take(values: Floats, statistic: str) -> float:
    """The named statistic of the values, in their own unit; NaN for no values.

    `typical` is the median; `max-min` the spread, `spread` the same in
    medians; `variance` that of a sample (n - 1); `count` the number of values, `total` their sum.
    Raises KeyError for another name.
    """
    fraction = FRACTIONS.get(statistic)
    if fraction is not None:
        return percentile(values, fraction)
    try:
        function = _OTHERS[statistic]
    except KeyError:
        raise KeyError(statistic) from None
    return function(values) if len(values) else math.nan


def known(statistic: str) -> bool:
    """Whether there is such a statistic."""
    return statistic.removesuffix(OF_ALL) in FRACTIONS or statistic in _OTHERS


def take_weighted(values: Floats, weights: NDArray[np.int64], statistic: str) -> float:
    """The same of a distribution: values, and how often each was met. NaN if nothing was.

    A percentile is the least value that so many do not exceed: between the bins of a histogram nothing is known.
    Raises KeyError for a statistic that a distribution does not have.
    """
    fractions = {**FRACTIONS, "range_low": 0.0, "range_high": 1.0}
    total = int(weights.sum())
    if statistic in fractions:
        return percentile_weighted(values, weights, fractions[statistic])
    if statistic == "count":
        return float(total)
    if statistic == "mean":
        return float(np.average(values, weights=weights)) if total else math.nan
    if statistic in ("max-min", "spread"):
        high, low, middle = (take_weighted(values, weights, name) for name in ("max", "min", "median"))
        return high - low if statistic == "max-min" else (high - low) / middle
    raise KeyError(statistic)


def percentile_weighted(values: Floats, weights: NDArray[np.int64], p: float) -> float:
    """The least value of a distribution that the share p does not exceed; NaN if nothing was met."""
    total = int(weights.sum())
    if total == 0:
        return math.nan
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return float(values[order][int(np.searchsorted(reached, max(1, math.ceil(p * total))))])


def ratio(top: Floats, bottom: Floats) -> Floats:
    """One over the other, value by value; NaN where the other is not above zero."""
    found: Floats = np.divide(top, bottom, out=np.full(len(top), np.nan), where=bottom > 0)
    return found


def jain(values: Floats) -> float:
    """Jain's index of fairness, from 1/n (one has all) to 1 (all have the same); NaN if nobody has anything."""
    squares = len(values) * float(np.sum(values**2))
    return float(np.sum(values)) ** 2 / squares if squares > 0 else math.nan


def wilson(found: int, of: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval of a probability that showed in `found` of `of` independent runs; 0 to 1 for none."""
    if of == 0:
        return 0.0, 1.0
    z = float(ndtri(0.5 + confidence / 2))
    p, shrunk = found / of, z * z / of
    middle = (p + shrunk / 2) / (1 + shrunk)
    half = z / (1 + shrunk) * math.sqrt(p * (1 - p) / of + shrunk / (4 * of))
    # at either end the interval ends there, but for a rounding
    return (0.0 if found == 0 else middle - half), (1.0 if found == of else middle + half)


#: From so much on one client of a run counts as notably faster or slower than another.
NOTABLY = 0.15


def spread(values: Floats) -> float:
    """The largest less the smallest, in medians; NaN if one is not a number."""
    return float((np.max(values) - np.min(values)) / np.median(values))


def one_ahead(values: Floats) -> float:
    """1 if the smallest is notably smaller than the next, else 0; NaN for fewer than two or one that is no number."""
    return _told(values, lambda ordered: ordered[0] <= (1 - NOTABLY) * ordered[1])


def one_behind(values: Floats) -> float:
    """1 if the largest is notably larger than the next, else 0; NaN for fewer than two or one that is no number."""
    return _told(values, lambda ordered: ordered[-1] >= (1 + NOTABLY) * ordered[-2])


def alike(values: Floats) -> float:
    """1 if the largest is not notably larger than the smallest, else 0; NaN as above."""
    return _told(values, lambda ordered: ordered[-1] <= (1 + NOTABLY) * ordered[0])


def _told(values: Floats, condition: Callable[[Floats], object]) -> float:
    if len(values) < 2 or not np.all(np.isfinite(values)):
        return math.nan
    return float(bool(condition(np.sort(values))))


def bulk(counts: dict[int, int], share: float = ALMOST_ALL) -> tuple[int, int] | None:
    """The shortest run of neighbouring whole numbers that holds at least `share` of all counts; None for no counts.

    Of several equally short ones, the one that holds most.
    """
    total = sum(counts.values())
    if total == 0:
        return None
    low, high = min(counts), max(counts)
    for width in range(high - low + 1):
        held = [(sum(counts.get(k, 0) for k in range(a, a + width + 1)), -a) for a in range(low, high - width + 1)]
        most, start = max(held)
        if most >= share * total:
            return -start, -start + width
    return low, high


def bulk_range(values: Floats, share: float = ALMOST_ALL) -> tuple[float, float]:
    """The shortest interval that holds at least `share` of the values, as (low, high); NaN for no values."""
    n = len(values)
    if n == 0:
        return math.nan, math.nan
    ordered = np.sort(values)
    inside = max(1, math.ceil(share * n))
    widths = ordered[inside - 1 :] - ordered[: n - inside + 1]
    start = int(np.argmin(widths))
    return float(ordered[start]), float(ordered[start + inside - 1])


_OTHERS: dict[str, Callable[[Floats], float]] = {
    "mean": lambda values: float(np.mean(values)),
    "variance": lambda values: float(np.var(values, ddof=1)) if len(values) > 1 else math.nan,
    "count": lambda values: float(len(values)),
    "total": lambda values: float(np.sum(values)),
    "range_low": lambda values: float(np.min(values)),
    "range_high": lambda values: float(np.max(values)),
    "max-min": lambda values: float(np.max(values) - np.min(values)),
    "spread": spread,
}
