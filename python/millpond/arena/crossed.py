"""A candidate beside the best preset of a cell, without the selection bias of the best.

Of eight presets that are equally good, the one that comes out first does so by chance: what is beside it in the same
runs looks worse than it is. So the best preset is chosen on one half of a cell's runs and put beside the candidate on
the other half, both ways. How far the outcome may be chance is read off batches of runs, in each of which candidate and
preset met the same random numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from millpond.arena.outcome import Measure
from millpond.measure import estimate
from millpond.measure.sample import Ints

#: A preset counts as the best of a cell only if at most so many more of its clients lost a request than of the one that
#: lost fewest: who gives up is soon done.
AS_SAFE = 0.05
#: What a ratio counts at most, also where a median is without end; one beside nobody else counts its inverse.
MOST = 10.0
#: So many batches a half at most, and so many clients in a batch at least: a percentile of fewer says little.
BATCHES, FEWEST = 5, 20
#: So much wider than the t-interval of independent batches. The halves are a little alike: a preset that is the best of
#: one alone is not the best of the other, where it is the measure. Without this 93 % of equals are covered.
WIDER = 1.1

#: The measures of each controller, over some runs.
Values = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Half:
    """Half of the runs of a cell: who did how well over all of them, and in each of its batches."""

    values: Values
    batches: Sequence[Values]


@dataclass(frozen=True)
class Beside:
    """A candidate beside the best preset."""

    beside: float
    #: Where it lies with a confidence of 95 %; NaN with fewer than two batches.
    low: float
    high: float


def halves(replications: int, clients: float) -> list[list[Ints]]:
    """The runs of either half, in batches; one half with all of them where there are no two.

    `clients` are those of one run.
    """
    every = np.arange(replications)
    parts = [every[0::2], every[1::2]] if replications > 1 else [every]
    return [np.array_split(part, max(1, min(BATCHES, len(part), int(len(part) * clients / FEWEST)))) for part in parts]


def best(measure: Measure, values: Values, rivals: Sequence[str]) -> str | None:
    """Who does best among those that cost hardly more clients a request than whoever costs fewest."""
    fewest = min((values[name]["lost"] for name in rivals), default=0.0)
    safe = [name for name in rivals if values[name]["lost"] <= fewest + AS_SAFE] or list(rivals)
    among = rivals if measure.name == "lost" else safe
    known = [name for name in among if not math.isnan(values[name][measure.name])]
    pick: Callable[..., str] = min if measure.less else max
    return pick(known, key=lambda name: values[name][measure.name]) if known else None


def beside(measure: Measure, name: str, chosen: Sequence[str | None], cell: Sequence[Half]) -> Beside:
    """The candidate beside whom each half chose, on the other half; on the same where there are no two."""
    judged: list[float] = []
    batches: list[float] = []
    for half, rival in zip(cell, reversed(chosen), strict=True):
        if rival is None:
            continue
        judged.append(_apart(measure, half.values[name], half.values[rival]))
        batches.extend(_apart(measure, batch[name], batch[rival]) for batch in half.batches)
    known = [one for one in judged if not math.isnan(one)]
    if not known:
        return Beside(math.nan, math.nan, math.nan)
    middle = float(np.mean(known))
    spread = estimate.mean(np.array(batches), least=2).half if len(cell) > 1 else math.nan
    back = math.exp if measure.ratio else float
    if math.isnan(spread):
        return Beside(back(middle), math.nan, math.nan)
    width = WIDER * spread
    return Beside(back(middle), back(middle - width), back(middle + width))


# ----------------------------------------------------------------------------------------------- helpers


def _apart(measure: Measure, mine: Mapping[str, float], theirs: Mapping[str, float]) -> float:
    """How much worse: the logarithm of a ratio, or a difference; NaN where that says nothing."""
    value, other = mine[measure.name], theirs[measure.name]
    if math.isnan(value) or math.isnan(other):
        return math.nan
    if not measure.ratio:
        return value - other if measure.less else other - value
    if not math.isfinite(other):
        return math.nan if not math.isfinite(value) else -math.log(MOST)
    return min(math.log(MOST), math.log(value / other)) if value > 0 < other else math.nan
