"""Checks: a published sentence taken apart into numbers that must lie within bounds.

A check compares, at one or many points, an estimate of one population with a bound (`value`), or with the same
statistic of another population (`relative`: (of - against) / against; `difference`: of - against, in the metric's
unit). A point meets its bounds if its whole 95 % interval over the runs does, misses them if none of it does, and is
within the noise otherwise. Extremes, which speak of every value there is, have no interval.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from millpond.judge import telling
from millpond.judge.values import Number, Pick, number, usual, within
from millpond.judge.words import Bounds, enough
from millpond.measure.estimate import AMOUNT, CONFIDENCE, EXTREMES, LEAST_RUNS, Estimate, Quantity, compared, in_pairs
from millpond.measure.measures import Measures
from millpond.measure.population import Population
from millpond.results.factor import ALGORITHM, PATH

#: Factors and their values.
Place = Mapping[str, Any]

#: What may come of a check or claim: it holds, fails, is within the noise of the runs, or cannot be judged.
Judgement = Literal["holds", "fails", "noise", "unjudged"]


@dataclass(frozen=True)
class Check:
    """One comparison, at every point."""

    metric: str
    points: tuple[tuple[Population, Population | None], ...]
    bounds: Bounds
    quantity: Quantity = "value"
    #: Empty: the usual one of the metric.
    statistics: tuple[str, ...] = ()
    #: How many of the points must lie within the bounds: a word of `words.NEEDED`, or a share.
    needed: str | float = "all"
    pick: Pick = field(default_factory=Pick)
    pick_against: Pick | None = None
    #: Numbers are taken as shares of those of the population with these factors.
    over: Mapping[str, Any] | None = None
    #: What was not run and should have been, in words.
    missing: tuple[str, ...] = ()
    #: Measured and shown beside the verdict, but does not decide it.
    informs: bool = False
    #: The statistic of the baseline, if it is another one.
    statistic_against: str = ""
    #: The bounds in a word of the glossary; empty if they are numbers.
    word: str = ""
    #: How sure all points together are to be.
    sure: float = CONFIDENCE
    #: Its points as they were written, of which `millpond.judge.claims.resolved` makes `points`; and the values that
    #: are meant where they say nothing of a factor.
    places: tuple[tuple[Place, Place | None], ...] = ()
    usual: Place = field(default_factory=dict)

    @property
    def confidence(self) -> float:
        """How sure the interval of one point is: where any one is enough, all together are as sure as one is else."""
        several = len(self.points) * max(1, len(self.statistics))
        return 1 - (1 - self.sure) / several if self.needed == "some" and several else self.sure


@dataclass(frozen=True)
class Point:
    """One comparison made."""

    of: Population
    against: Population | None
    statistic: str
    value: float
    other: float | None
    quantity: float
    #: Where the quantity lies over runs; None for an extreme, and for too few runs.
    interval: Estimate | None
    outcome: Judgement
    #: How far inside the nearer bound the quantity lies; negative outside.
    margin: float
    line: str
    #: Runs that there were of the smaller side.
    runs: int = 0


@dataclass(frozen=True)
class Finding:
    """What a check found."""

    verdict: Judgement
    measured: str
    reason: str
    points: tuple[Point, ...] = ()
    #: What was not run and should have been.
    missing: tuple[str, ...] = ()
    informs: bool = False

    @property
    def decisive(self) -> Point | None:
        """The point that the verdict hangs on: of those that came out like it, the one with the smallest margin."""
        alike = [point for point in self.points if point.outcome == self.verdict] or list(self.points)
        return None if self.informs else min(alike, key=lambda point: point.margin, default=None)


def carry_out(check: Check, measures: Measures) -> Finding:
    """Make the comparison at every point. A check whose points were not all run cannot hold, but it can fail."""
    missing = list(check.missing)
    points: list[Point] = []
    for of, against in check.points:
        named = [p for p in (of, against) if p is not None]
        named += [p.but(**check.over) for p in named] if check.over is not None else []
        gone = [_absent(measures, p) for p in named if not measures.has(p)]
        if gone:
            missing.extend(gone)
        else:
            points.extend(_points(check, measures, of, against))
    empty = [point for point in points if math.isnan(point.quantity)]
    points = [point for point in points if not math.isnan(point.quantity)]
    measured = telling.summary(check, points)
    verdict = _verdict(check, points, len(missing), len(empty))
    gone_words = tuple(dict.fromkeys(missing))
    if check.informs:
        return Finding("holds", measured, "", tuple(points), informs=True)
    return Finding(
        verdict, measured, _reason(check, measures, verdict, points, empty, gone_words), tuple(points), gone_words
    )


# ----------------------------------------------------------------------------------------------- helpers


def _verdict(check: Check, points: Sequence[Point], missing: int, empty: int) -> Judgement:
    every = len(points) + missing
    count = {outcome: sum(p.outcome == outcome for p in points) for outcome in ("holds", "fails", "noise", "unjudged")}
    if points and not enough(check.needed, every - count["fails"], every):
        return "fails"
    if missing or empty or not points:
        return "unjudged"
    if enough(check.needed, count["holds"], every):
        return "holds"
    return "unjudged" if enough(check.needed, count["holds"] + count["unjudged"], every) else "noise"


def _reason(
    check: Check,
    measures: Measures,
    verdict: Judgement,
    points: Sequence[Point],
    empty: Sequence[Point],
    missing: Sequence[str],
) -> str:
    """Why the check does not hold; empty if it does, and where something was not run: that is told once a claim."""
    if verdict == "fails":
        return telling.broken(check, [point for point in points if point.outcome == "fails"], len(points))
    if verdict == "noise":
        return telling.noisy(check, [point for point in points if point.outcome == "noise"], len(points))
    if verdict == "holds" or missing:
        return ""
    if empty or not points:
        where = f" at {len(empty)} of {len(empty) + len(points)} points, such as " if empty else ""
        return f"nothing to measure{where}{_empty(check, empty[0], measures) if empty else ''}"
    return f"so few runs do not tell how much runs differ: it takes at least {LEAST_RUNS}"


def _absent(measures: Measures, population: Population) -> str:
    """Why a population was not run: the first of its factors that no run has, else all of them."""
    run = list(measures.populations())
    for name in dict.fromkeys((*measures.results.factors, *dict(population.factors))):
        value = population.column(name)
        if name not in (ALGORITHM, PATH) and value is not None and value not in measures.values(name):
            return measures.in_words({name: value}) or f"no {name}"
    if population.who not in {p.who for p in run}:
        return population.who
    return f"{population.who}, {measures.place(population)}"


def _empty(check: Check, point: Point, measures: Measures) -> str:
    """Which side of a comparison had no value."""
    side, pick = point.of, check.pick
    if not math.isnan(point.value) and point.against is not None:
        side, pick = point.against, check.pick_against or check.pick
    return f"{side.who}{pick} with {measures.place(side)}"


def _points(check: Check, measures: Measures, of: Population, against: Population | None) -> list[Point]:
    points = []
    # one that no check names is the metric's usual one
    for name in check.statistics or ("",):
        statistic = name or usual(check.metric)
        mine = _number(check, measures, name, of, check.pick)
        theirs, other = None, check.statistic_against or statistic
        if against is not None:
            beside_name = check.statistic_against or name
            theirs = _number(check, measures, beside_name, against, check.pick_against or check.pick)
        limits = within(check.metric, statistic) if check.over is None else AMOUNT
        if theirs is not None:
            of_pairs = in_pairs(mine.taken, theirs.taken)
            mine, theirs = replace(mine, taken=of_pairs[0]), replace(theirs, taken=of_pairs[1])
        sides = (mine.taken, None if theirs is None else theirs.taken)
        found = compared(check.quantity, *sides, check.confidence, limits)
        beside, quantity = None if theirs is None else theirs.value, found.value
        runs = min(len(side.by_run) for side in sides if side is not None)
        exact = statistic in EXTREMES or other in EXTREMES
        span = None if exact or found.interval is None else found
        line = telling.line(check, measures, statistic, of, against, (mine, theirs), quantity)
        points.append(
            Point(
                of,
                against,
                statistic,
                mine.value,
                beside,
                quantity,
                span,
                _outcome(check.bounds, quantity, span, exact or runs >= LEAST_RUNS),
                check.bounds.margin(quantity),
                line,
                runs,
            )
        )
    return points


def _outcome(bounds: Bounds, quantity: float, span: Estimate | None, certain: bool) -> Judgement:
    if math.isnan(quantity) or (span is None and not certain):
        return "unjudged"
    if span is None or span.low is None or span.high is None:
        return "holds" if bounds.met(quantity) else "fails"
    if bounds.met(span.low) and bounds.met(span.high):
        return "holds"
    return "fails" if bounds.apart(span.low, span.high) else "noise"


def _number(check: Check, measures: Measures, statistic: str, population: Population, pick: Pick) -> Number:
    found = number(measures, check.metric, statistic, population, pick)
    if check.over is None:
        return found
    return found.over(number(measures, check.metric, statistic, population.but(**check.over), pick))
