"""Checks and what they found, in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from millpond.judge.values import Number, written
from millpond.judge.words import word
from millpond.measure.links import COLLAPSE, OTHER_THRESHOLDS
from millpond.measure.measures import Measures
from millpond.measure.metrics import METRICS
from millpond.measure.population import Population
from millpond.results.factor import ALGORITHM

if TYPE_CHECKING:
    from millpond.judge.checks import Check, Point


def line(
    check: Check,
    measures: Measures,
    statistic: str,
    of: Population,
    against: Population | None,
    numbers: tuple[Number, Number | None],
    quantity: float,
) -> str:
    """One comparison: whose number beside whose, and where; of how many clients, if not all have one."""
    name = f"{statistic} " if len(check.statistics) > 1 else ""
    change = f" ({quantity:+.1%})" if math.isfinite(quantity) and check.quantity == "relative" else ""
    return f"{name}{_sides(check, measures, of, against, numbers)}{change} with {measures.place(of)}"


def summary(check: Check, points: Sequence[Point]) -> str:
    """What was found at all points: each of them if they are few, else the ends."""
    if not points:
        return ""
    metric = METRICS.known(check.metric)
    name = "share of exchanges" if metric is None else metric.title
    statistic = check.statistics[0] if len(check.statistics) == 1 else ""
    if not check.statistics and metric is not None and check.metric == metric.name:
        statistic = metric.usual
    title = f"{statistic} {name}".strip()
    return f"{title}: {_found(check, points)}{_other_thresholds(check, points)}"


def _found(check: Check, points: Sequence[Point]) -> str:
    if len(points) <= 3:
        return "; ".join(point.line for point in points)
    low, high = min(points, key=lambda p: p.quantity), max(points, key=lambda p: p.quantity)

    def told(point: Point) -> str:
        return f"{point.quantity:+.1%}" if check.quantity == "relative" else _shown(check, point.quantity)

    if told(low) == told(high):
        return f"{told(low)} at all {len(points)} points"
    return f"from {low.line} to {high.line}, {len(points)} points"


def _other_thresholds(check: Check, points: Sequence[Point]) -> str:
    """For a verdict on collapse: at how many points it would be one if the line were drawn elsewhere."""
    if check.word not in ("collapsed", "not collapsed"):
        return ""
    told = [
        f"{sum(point.quantity > at for point in points)} above {100 * at:.0f} %"
        for at in sorted((COLLAPSE, *OTHER_THRESHOLDS))
    ]
    return f" (of {len(points)} points {', '.join(told)})"


def broken(check: Check, points: Sequence[Point], of: int) -> str:
    """Why a check fails."""
    return f"not {expected(check)}{_at(points, of)}{_such_as(points, of)}"


def noisy(check: Check, points: Sequence[Point], of: int) -> str:
    """Why a check is within the noise: what its interval reaches across."""
    first = min(points, key=lambda point: point.margin)
    span = first.interval
    ends = None if span is None else span.interval
    reach = "" if ends is None else f": {' to '.join(_change(check, end) for end in ends)} over {first.runs} runs"
    where = "" if of == 1 else f", {first.line}"
    return f"{expected(check)} or not, the runs do not tell{_at(points, of)}{reach}{where}"


def expected(check: Check) -> str:
    """The bounds in words: `clearly lower (at most -15 %)`, `at least 5`."""
    bounds = check.bounds
    parts = [
        f"{sign} {_change(check, value)}"
        for sign, value in (
            ("above", bounds.above),
            ("at least", bounds.at_least),
            ("below", bounds.below),
            ("at most", bounds.at_most),
        )
        if value is not None
    ]
    told = " and ".join(parts)
    return f"'{check.word}' ({told})" if check.word and word(check.word) is not None else told


# ----------------------------------------------------------------------------------------------- helpers


def _at(points: Sequence[Point], of: int) -> str:
    return "" if of == 1 else f" at {len(points)} of {of} points"


def _such_as(points: Sequence[Point], of: int) -> str:
    return "" if of <= 3 else ", such as " + "; ".join(point.line for point in points[:2])


def _change(check: Check, value: float) -> str:
    if math.isinf(value):
        return "without end"
    if check.quantity == "relative":
        return f"{100 * value:+.3g} %" if value else "0 %"
    if check.quantity == "difference":
        return f"{value:+.4g}".replace("+0", "0")
    return _shown(check, value)


def _shown(check: Check, value: float) -> str:
    if check.over is not None:
        return f"{value:.4g} times"
    if check.statistics == ("variance",):
        return f"{value:.4g}"
    return written(check.metric, value)


def _number(check: Check, found: Number) -> str:
    covered = "" if found.covered == 1 else f" (of {100 * found.covered:.3g} % of the clients)"
    return f"{_shown(check, found.value)}{covered}"


def _sides(
    check: Check,
    measures: Measures,
    of: Population,
    against: Population | None,
    numbers: tuple[Number, Number | None],
) -> str:
    beside = f" to {', '.join(map(str, check.over.values()))}" if check.over is not None else ""
    mine = f"{of.who}{beside}{check.pick} {_number(check, numbers[0])}"
    other = numbers[1]
    if against is None or other is None:
        return mine
    theirs = []
    if against.who != of.who:
        theirs.append(against.who)
    if against.factors != of.factors:
        theirs.append(_difference(measures, of, against))
    theirs.append(str(check.pick_against or check.pick).strip())
    theirs.append(check.statistic_against)
    return f"{mine} against {' '.join(word for word in theirs if word)} {_number(check, other)}".replace("  ", " ")


def _difference(measures: Measures, of: Population, against: Population) -> str:
    """What of a place is otherwise, in brackets."""
    there = ((name, against.column(name)) for name in measures.results.factors if name != ALGORITHM)
    other = {name: value for name, value in there if value is not None and of.column(name) != value}
    return f"[{measures.in_words(other) or ', '.join(map(str, other.values()))}]"
