"""What the columns of a published row say: where it was observed, and of a sentence with a number what beside what.

Only what stands in a column of its own is read: `comparator` is what the sentence is about and `baseline` what it is
compared with, each a list of algorithms, or of conditions such as `clients=1` or `buffer_bytes>=14100`;
`relative_change` says by how much. Words are not guessed at: what is written otherwise is left out, and said so.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from millpond.judge.checks import Check, Place
from millpond.judge.published import Condition, Row
from millpond.judge.values import known
from millpond.judge.words import Bounds
from millpond.measure.measures import Measures
from millpond.measure.population import Population
from millpond.measure.statistics import known as known_statistic
from millpond.plan.study import Reading
from millpond.results.factor import ALGORITHM, PARTNER, PATH, Factor

#: Its `bin` is a number of retransmissions, not a condition.
HISTOGRAM = "exchanges_by_retransmissions"
#: A statistic that says of how many points a row speaks.
MAJORITY = "majority"


class UnreadableError(Exception):
    """A row says something that this program cannot select or measure. The message says what."""


def changes(row: Row, measures: Measures, reading: Reading) -> list[Check]:
    """The comparisons that a row with a relative change is about, one for each metric; nothing is asked of them.

    Raises:
        UnreadableError: if it cannot be read.
    """
    # so many of the points are not a statistic of any
    statistics = tuple(statistic for statistic in row.list("statistic") if statistic != MAJORITY)
    for statistic in statistics:
        if not known_statistic(statistic):
            raise UnreadableError(f"statistic {statistic!r} is not one this program takes")
    if not row["baseline"]:
        raise UnreadableError("a change needs a baseline")
    made = []
    for metric in map(reading.metric, row.list("metric")):
        if not known(metric):
            raise UnreadableError(f"metric {metric!r} is not measured by these runs")
        places, missing = _places(row, measures, reading)
        made.append(Check(metric, (), Bounds(), "relative", statistics, places=places, missing=missing))
    return made


def conditions_of(row: Row, measures: Measures, reading: Reading) -> tuple[Condition, ...]:
    """The conditions of a row's scenario columns and its `bin`. Raises `UnreadableError` for one of another kind."""
    found = []
    for column in row.places:
        if not row[column] or column == ALGORITHM:
            continue
        if not measures.values(column):
            raise UnreadableError(f"{column}={row[column]} is no part of this study's plan")
        values = (row[column],) if column == PARTNER else row.list(column)  # several are one mix
        found.append(Condition(column, "=", values))
    text = row["bin"]
    if text in reading.bins:
        named = reading.bins[text]
        found += [Condition(name, "=", tuple(map(str, values))) for name, values in named.values.items()]
        for name, (low, high) in named.within.items():
            found += [Condition(name, ">=", (str(low),)), Condition(name, "<=", (str(high),))]
    elif text and row["metric"] != HISTOGRAM and not text.isdecimal():
        condition = Condition.parse(text, measures.results.factors)
        if condition is None:
            raise UnreadableError(f"condition {text!r} is not one this program can select by")
        found.append(condition)
    return tuple(found)


def select(
    measures: Measures, conditions: Collection[Condition], algorithm: str
) -> tuple[list[Population], tuple[str, ...]]:
    """Those with the algorithm that meet all conditions, and what was not run.

    They are of the first reading, and in no mix unless a condition names one.
    """
    first = next(iter(measures.values(PATH)), None)
    of_mix = any(condition.column == PARTNER for condition in conditions)
    here = [p for p in measures.populations() if p.column(PATH) == first and p.algorithm == algorithm]
    here = [p for p in here if of_mix or not p.partner]
    missing = [] if here else [algorithm]
    for condition in conditions:
        if condition.sign == "=":
            ran = {str(p.column(condition.column)) for p in here}
            missing += [f"{condition.column}={v}" for v in condition.values if v not in ran and here]
        here = [p for p in here if condition.met(p.column(condition.column))]
    if not here and not missing:
        missing.append(" and ".join(str(condition) for condition in conditions))
    return here, tuple(missing)


def change_of(row: Row) -> float | None:
    """The relative change a claim row states; None if it states none."""
    if row.change is not None:
        return row.change
    if row.value is not None and row["unit"] == "percent" and row["direction"] in ("higher", "lower"):
        return row.value / 100 * (1 if row["direction"] == "higher" else -1)
    return None


# ----------------------------------------------------------------------------------------------- sides


def _places(
    row: Row, measures: Measures, reading: Reading
) -> tuple[tuple[tuple[Place, Place | None], ...], tuple[str, ...]]:
    """What is compared with what, and what of it was not run."""
    names = list(dict.fromkeys(population.algorithm for population in measures.populations()))
    usual = row.list("algorithm") or tuple(name for name in reading.algorithms if name in names)
    of = _side(row, "comparator", names, measures) or [{}]
    against = _side(row, "baseline", names, measures)
    for name in usual:
        if name not in names:
            raise UnreadableError(f"algorithm {name!r} was not run")
    points: dict[tuple[Population, Population], None] = {}
    missing: dict[str, None] = {}
    for left in of:
        for algorithm in [left["algorithm"]] if isinstance(left.get("algorithm"), str) else usual:
            column = left.get("condition")
            others = {column.column} if isinstance(column, Condition) else set()
            conditions = [c for c in conditions_of(row, measures, reading) if c.column not in others]
            conditions += [column] if isinstance(column, Condition) else []
            here, gone = select(measures, conditions, algorithm)
            missing.update(dict.fromkeys(gone))
            pairs = ((mine, theirs) for mine in here for right in against for theirs in _others(mine, right, measures))
            points.update(dict.fromkeys(pair for pair in pairs if pair[0] != pair[1]))
    told = ((_told(mine), _told(theirs)) for mine, theirs in points)
    return tuple(told), tuple(missing)


def _side(row: Row, column: str, names: Sequence[str], measures: Measures) -> list[Mapping[str, Any]]:
    """A side as algorithms and conditions; anything else cannot be read."""
    sides: list[Mapping[str, Any]] = []
    for word in _split(row[column], names, measures.results.factors):
        condition = Condition.parse(word, measures.results.factors)
        if condition is not None:
            sides.append({"condition": condition})
        elif word in names:
            sides.append({"algorithm": word})
        elif re.fullmatch(r"[a-z][a-z0-9_]*", word):
            raise UnreadableError(f"{column}: {word} was not run")
        else:
            raise UnreadableError(f"{column}: {word!r} is neither an algorithm nor a condition such as clients=1")
    return sides


def _others(mine: Population, right: Mapping[str, Any], measures: Measures) -> list[Population]:
    """What the baseline means for one population of the comparator."""
    if "algorithm" in right:
        # the other half of a mix has the first one beside it
        swapped = {PARTNER: mine.algorithm} if mine.partner == right["algorithm"] else {}
        return [mine.but(algorithm=right["algorithm"], **swapped)]
    condition: Condition = right["condition"]
    ran = {str(value): value for value in measures.values(condition.column)}
    if condition.sign == "=":
        # one that was not run is kept as it is told, so that it is said to be missing
        return [mine.but(**{condition.column: ran.get(value, value)}) for value in condition.values]
    return [mine.but(**{condition.column: value}) for value in ran.values() if condition.met(value)]


def _told(population: Population) -> Place:
    """A population as a check tells of it: on whatever reading of the test bed."""
    factors = {name: value for name, value in population.factors if name != PATH}
    return {ALGORITHM: population.algorithm, PARTNER: population.partner, **factors}


def _split(text: str, names: Sequence[str], factors: Mapping[str, Factor]) -> list[str]:
    """The entries of a list; further values of a condition (`clients=200;400`) stay with it."""
    words: list[str] = []
    for word in (part.strip() for part in text.split(";") if part.strip()):
        further = word not in names and Condition.parse(word, factors) is None
        if further and words and Condition.parse(words[-1], factors) is not None:
            words[-1] += f";{word}"
        else:
            words.append(word)
    return words
