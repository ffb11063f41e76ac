"""Checks: a published sentence taken apart into numbers that must lie within bounds.

A check compares, at one or many points, a statistic of one population with a bound (`value`), or with the same
statistic of another population (`relative`: (of - against) / against; `difference`: of - against, in the metric's
unit).
Claims written in `claims.toml` and claims read from a published row both become checks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from millpond.judge.compare import Judgement
from millpond.measure.measures import Measures
from millpond.measure.metrics import ALIASES, METRICS
from millpond.measure.population import VARIANT, Population
from millpond.measure.sample import Sample
from millpond.measure.statistics import take

Quantity = Literal["value", "relative", "difference"]

#: A link is said to have collapsed when more than this share of its bytes completes no exchange: on average more than
#: two needless copies of every message. Two is also where the studied controllers lose sight: CoCoA takes no round-trip
#: sample from an exchange with more than two retransmissions, so beyond it nothing brings a sender back.
COLLAPSE = 2 / 3

_NAMES = {
    "fct": "flow completion time",
    "congestion_collapse": "share of the bottleneck wasted",
    "link_capacity_wasted_on_unnecessary_retx": "share of the bottleneck wasted",
    "unnecessary_retx_per_client": "unnecessary retransmissions per client",
    "unnecessary_retx_per_exchange": "unnecessary retransmissions per exchange",
    "retx_per_exchange": "retransmissions per exchange",
    "share_of_exchanges_without_retx": "share of exchanges without retransmission",
    "fct_spread": "spread of flow completion times",
    "queue": "queue in bytes",
}

#: The metric whose points are shares of exchanges, picked by number of retransmissions and by batch.
SHARE = "share_of_exchanges"
COLLAPSE_METRIC = "congestion_collapse"


@dataclass(frozen=True)
class Bounds:
    """Where a quantity must lie. `above` and `below` are strict."""

    above: float | None = None
    below: float | None = None
    at_least: float | None = None
    at_most: float | None = None

    def met(self, value: float) -> bool:
        """Whether the value lies within; never for one that is not a number."""
        return (
            not math.isnan(value)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
            and (self.at_least is None or value >= self.at_least)
            and (self.at_most is None or value <= self.at_most)
        )


@dataclass(frozen=True)
class Pick:
    """What of a population is looked at."""

    #: `all` clients, only those `with retransmissions`, or only those `without retransmissions`.
    flows: str = "all"
    #: For `share_of_exchanges`: counted are those with so many retransmissions (inclusive).
    retransmissions: tuple[int, int] = (0, 1_000_000)
    #: For `share_of_exchanges`: `any`, the `first` batch of a client or the `later` ones.
    batch: str = "any"


@dataclass(frozen=True)
class Check:
    """One comparison, at every point."""

    metric: str
    points: tuple[tuple[Population, Population | None], ...]
    bounds: Bounds
    quantity: Quantity = "value"
    #: Empty: the usual one of the metric.
    statistics: tuple[str, ...] = ()
    #: Share of the points that must lie within the bounds.
    needed: float = 1.0
    pick: Pick = field(default_factory=Pick)
    pick_against: Pick | None = None
    #: Numbers are taken as shares of those of the population with these columns.
    over: Mapping[str, Any] | None = None
    #: What was not run and should have been, in words.
    missing: tuple[str, ...] = ()
    #: Measured and shown beside the verdict, but does not decide it.
    informs: bool = False
    #: Points whose baseline is smaller are left out: there is nothing to speak of that could be changed.
    least_baseline: float = 0.0
    #: The statistic of the baseline, if it is another one.
    statistic_against: str = ""


@dataclass(frozen=True)
class Point:
    """One comparison made."""

    of: Population
    against: Population | None
    statistic: str
    value: float
    other: float | None
    quantity: float
    met: bool
    line: str


@dataclass(frozen=True)
class Finding:
    """What a check found."""

    verdict: Judgement
    measured: str
    reason: str
    points: tuple[Point, ...] = ()
    #: What was not run and should have been.
    missing: tuple[str, ...] = ()


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
            continue
        found = _points(check, measures, of, against)
        points.extend(point for point in found if point.other is None or point.other >= check.least_baseline)
    empty = [point for point in points if math.isnan(point.quantity)]
    points = [point for point in points if not math.isnan(point.quantity)]
    met = sum(point.met for point in points)
    measured = _summary(check, points)
    if check.informs:
        return Finding("holds", measured, "", tuple(points))
    if points and met + len(missing) < check.needed * (len(points) + len(missing)):
        broken = [point for point in points if not point.met]
        where = "" if len(points) == 1 else f" at {len(broken)} of {len(points)} points"
        told = "" if len(points) <= 3 else ", such as " + "; ".join(point.line for point in broken[:2])
        told = f"not {_expected(check)}{where}{told}"
        return Finding("fails", measured, told, tuple(points), tuple(dict.fromkeys(missing)))
    if missing:
        return Finding("unjudged", measured, "", tuple(points), tuple(dict.fromkeys(missing)))
    if empty or not points:
        where = (
            f" at {len(empty)} of {len(empty) + len(points)} points, such as {_empty(check, empty[0], measures)}"
            if empty
            else ""
        )
        return Finding("unjudged", measured, f"nothing to measure{where}", tuple(points))
    return Finding("holds", measured, "", tuple(points))


def measure(measures: Measures, metric: str, statistic: str, population: Population, pick: Pick) -> float:
    """The statistic of a metric in its base unit; NaN if there is no value. Raises KeyError for an unknown name."""
    name = ALIASES.get(metric, metric)
    if name == SHARE:
        counts = measures.histogram(population, pick.batch)
        total = sum(counts.values())
        low, high = pick.retransmissions
        return sum(n for k, n in counts.items() if low <= k <= high) / total if total else math.nan
    sample = measures.sample(name, population)
    if pick.flows != "all":
        sample = _only(measures, sample, population, pick.flows)
    return take(sample.values, statistic or METRICS[name].usual)


def known(metric: str) -> bool:
    """Whether the metric can be measured."""
    return ALIASES.get(metric, metric) in METRICS or metric == SHARE


def show(metric: str, value: float) -> str:
    """A value with its unit, short."""
    name = ALIASES.get(metric, metric)
    return METRICS["wasted_share" if name == SHARE else name].written(value)


# ----------------------------------------------------------------------------------------------- helpers


def _absent(measures: Measures, population: Population) -> str:
    """Why a population was not run: the first of its columns that no run has, else all of them."""
    run = list(measures.populations())
    for name in (*measures.wording.leading, *(name for name, _ in population.factors if name != VARIANT)):
        value = population.column(name)
        if value is not None and value not in measures.values(name):
            return measures.wording.word(name, value) or f"no {name}"
    if population.who not in {p.who for p in run}:
        return population.who
    return f"{population.who}, {measures.place(population)}"


def _empty(check: Check, point: Point, measures: Measures) -> str:
    """Which side of a comparison had no value."""
    side, pick = point.of, check.pick
    if not math.isnan(point.value) and point.against is not None:
        side, pick = point.against, check.pick_against or check.pick
    return f"{side.who}{_picked(pick)} with {measures.place(side)}"


def _points(check: Check, measures: Measures, of: Population, against: Population | None) -> list[Point]:
    points = []
    for statistic in check.statistics or ("",):
        value = _value(check, measures, statistic, of, check.pick)
        other = None
        if against is not None:
            theirs = check.statistic_against or statistic
            other = _value(check, measures, theirs, against, check.pick_against or check.pick)
        quantity = _quantity(check.quantity, value, other)
        name = f"{statistic} " if statistic and len(check.statistics) > 1 else ""
        change = f" ({quantity:+.1%})" if math.isfinite(quantity) and check.quantity == "relative" else ""
        line = f"{name}{_sides(check, measures, of, against, value, other)}{change} with {measures.place(of)}"
        points.append(Point(of, against, statistic, value, other, quantity, check.bounds.met(quantity), line))
    return points


def _value(check: Check, measures: Measures, statistic: str, population: Population, pick: Pick) -> float:
    value = measure(measures, check.metric, statistic, population, pick)
    if check.over is None:
        return value
    base = measure(measures, check.metric, statistic, population.but(**check.over), pick)
    return value / base if base else math.nan


def _show(check: Check, value: float) -> str:
    if check.over is not None:
        return f"{value:.4g} times"
    if check.statistics == ("variance",):
        return f"{value:.4g}"
    return show(check.metric, value)


def _sides(
    check: Check, measures: Measures, of: Population, against: Population | None, value: float, other: float | None
) -> str:
    beside = f" to {', '.join(map(str, check.over.values()))}" if check.over is not None else ""
    mine = f"{of.who}{beside}{_picked(check.pick)} {_show(check, value)}"
    if against is None or other is None:
        return mine
    theirs = []
    if against.who != of.who:
        theirs.append(against.who)
    if against.factors != of.factors:
        theirs.append(_difference(measures, of, against))
    theirs.append(_picked(check.pick_against or check.pick).strip())
    theirs.append(check.statistic_against)
    return f"{mine} against {' '.join(word for word in theirs if word)} {_show(check, other)}".replace("  ", " ")


def _difference(measures: Measures, of: Population, against: Population) -> str:
    """What of a place is otherwise, in brackets."""
    wording = measures.wording
    others = [name for name, _ in against.factors if name not in (*wording.leading, VARIANT)]
    words = []
    for name in (*wording.leading, *others, VARIANT):
        value = against.column(name)
        if value is not None and of.column(name) != value:
            words.append(wording.word(name, value) or f"{value} {'delay' if name == VARIANT else name}")
    return f"[{', '.join(words)}]"


def _picked(pick: Pick) -> str:
    words = []
    if pick.flows != "all":
        words.append(f"clients {pick.flows}")
    low, high = pick.retransmissions
    if (low, high) != (0, 1_000_000):
        words.append(
            f"{low} retransmissions"
            if low == high
            else f"{low} to {high} retransmissions"
            if high < 1000
            else f"{low} or more retransmissions"
        )
    if pick.batch != "any":
        words.append(f"{pick.batch} batches" if pick.batch == "later" else "first batch")
    return f" ({', '.join(words)})" if words else ""


def _quantity(kind: Quantity, value: float, other: float | None) -> float:
    if kind == "value":
        return value
    if other is None or math.isnan(value) or math.isnan(other):
        return math.nan
    if kind == "difference":
        return value - other
    if other == 0:
        return 0.0 if value == 0 else math.inf
    return (value - other) / other


def _only(measures: Measures, sample: Sample, population: Population, flows: str) -> Sample:
    if sample.missing:
        return Sample(np.empty(0), np.empty(0, dtype=np.int64))
    retransmitted = measures.flow_column(population, "retransmissions").astype(np.int64)
    keep = retransmitted > 0 if flows == "with retransmissions" else retransmitted == 0
    return Sample(sample.values[keep], sample.runs[keep])


def _expected(check: Check) -> str:
    """The bounds in words: `below 0 %`, `0.85 to 1.15`."""

    def told(value: float) -> str:
        return f"{value:+.4g}".replace("+0", "0") if check.quantity == "difference" else _show(check, value)

    def change(value: float) -> str:
        return f"{100 * value:+.3g} %" if value else "0 %"

    word = change if check.quantity == "relative" else told
    bounds = check.bounds
    parts = [
        f"{sign} {word(value)}"
        for sign, value in (
            ("above", bounds.above),
            ("at least", bounds.at_least),
            ("below", bounds.below),
            ("at most", bounds.at_most),
        )
        if value is not None
    ]
    return " and ".join(parts)


def _summary(check: Check, points: Sequence[Point]) -> str:
    if not points:
        return ""
    name = _NAMES.get(check.metric, check.metric.replace("_", " "))
    statistic = check.statistics[0] if len(check.statistics) == 1 else ""
    if not statistic and check.metric in METRICS and not check.statistics:
        statistic = METRICS[check.metric].usual
    title = f"{statistic} {name}".strip()
    if len(points) <= 3:
        return f"{title}: " + "; ".join(point.line for point in points)
    low, high = min(points, key=lambda p: p.quantity), max(points, key=lambda p: p.quantity)

    def told(point: Point) -> str:
        if check.quantity == "relative":
            return f"{point.quantity:+.1%}"
        return _show(check, point.quantity)

    if told(low) == told(high):
        return f"{title}: {told(low)} at all {len(points)} points"
    return f"{title}: from {low.line} to {high.line}, {len(points)} points"
