"""Claims judged from their own columns: for rows of a file of your own that `claims.toml` knows nothing about.

Only what stands in a column of its own is read: `comparator` is what the sentence is about and `baseline` what it is
compared with, each a list of algorithms, or of conditions such as `clients=1` or `buffer_bytes>=14100`; `direction`
says how the comparator's metric stands to the baseline's, `relative_change` by how much. Words are not guessed at: what
is written otherwise is left unjudged, and said so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from millpond.judge import claims
from millpond.judge.checks import Check, Finding, Place
from millpond.judge.claim_file import Claim
from millpond.judge.compare import Verdict
from millpond.judge.published import Condition, Row
from millpond.judge.values import SHARE, known
from millpond.judge.words import CLOSENESS, PRINTED_POINTS, STATES, Bounds, printed
from millpond.measure.estimate import Quantity
from millpond.measure.measures import Measures
from millpond.measure.metrics import ALIASES, METRICS
from millpond.measure.population import Population
from millpond.measure.statistics import known as known_statistic
from millpond.plan.study import Reading
from millpond.results.factor import ALGORITHM, PATH, Factor

#: Its `bin` is a number of retransmissions, not a condition.
HISTOGRAM = "exchanges_by_retransmissions"

#: Its statistic says of how many points it speaks.
MAJORITY = "majority"

#: What a direction of one side alone means, in a word of the glossary.
_STATES = {
    "collapse": "collapsed", "no_collapse": "not collapsed", "zero": "none", "few": "few", "many": "many",
    "majority": "most",
}  # fmt: skip
#: What a direction of one side against another means.
_CHANGES = {
    "higher": "higher", "lower": "lower", "equal": "equal", "similar": "similar", "not_higher": "not higher",
    "not_lower": "not lower",
}  # fmt: skip
#: How good is told as how much, by which direction is better.
_GOODNESS = {
    "better": {"more": "higher", "less": "lower"},
    "worse": {"more": "lower", "less": "higher"},
    "not_worse": {"more": "not_lower", "less": "not_higher"},
}
_PER_EXCHANGE = {
    "retransmissions_per_client": "retx_per_exchange",
    "unnecessary_retx_per_client": "unnecessary_retx_per_exchange",
}


class UnreadableError(Exception):
    """A row says something that this program cannot select or measure. The message says what."""


def judge(name: str, rows: Sequence[Row], measures: Measures, reading: Reading) -> Verdict:
    """Judge a claim from its rows: it holds if each row does."""
    texts: list[Check] = []
    unread: list[Finding] = []
    for row in (row for row in rows if not row.suspect and not out_of_scope(rows)):
        try:
            texts += checks(row, measures, reading)
        except UnreadableError as error:
            unread.append(Finding("unjudged", "", f"{row.id}: {error}"))
    says = "; ".join(dict.fromkeys(row["raw"] for row in rows))
    claim = Claim(name, says, tuple(texts), unjudged=out_of_scope(rows))
    return claims.judge(claim, measures, reading.apart, reading.confidence, unread)


def out_of_scope(rows: Sequence[Row]) -> str:
    """Why no run can decide these rows; empty if one can."""
    if all(row["category"] == "cited" for row in rows):
        return "about evaluations by others, which are reported here, not rerun"
    if all(row["category"] != "result" for row in rows):
        return f"about the {rows[0]['category']}, not a result of a run"
    if all(row.suspect for row in rows):
        return f"marked as suspect in the published figures: {rows[0]['note'] or 'no check'}"
    return ""


def checks(row: Row, measures: Measures, reading: Reading) -> list[Check]:
    """The checks a claim row comes down to, as `claims.toml` would have them.

    Raises:
        UnreadableError: if it cannot be read.
    """
    metrics = tuple(reading.metric(name) for name in row.list("metric"))
    if row["direction"] in ("collapse", "no_collapse"):
        metrics = ("congestion_collapse",)
    for metric in metrics:
        if not known(metric):
            raise UnreadableError(f"metric {metric!r} is not measured by these runs")
    # so many of the points are not a statistic of any
    statistics = tuple(statistic for statistic in row.list("statistic") if statistic != MAJORITY)
    usual_needed = "most" if MAJORITY in row.list("statistic") else "all"
    for statistic in statistics:
        if not known_statistic(statistic):
            raise UnreadableError(f"statistic {statistic!r} is not one this program takes")
    two_sided = row["baseline"] != ""
    made = []
    for metric in metrics:
        quantity, bounds, word = _bounds(row, metric, two_sided)
        measured = _PER_EXCHANGE.get(metric, metric) if word in ("few", "many") else metric
        places, missing = _places(row, measures, reading, two_sided and quantity == "relative")
        made.append(
            Check(
                metric=measured,
                points=(),
                places=places,
                bounds=bounds,
                quantity=quantity,
                statistics=("max",) if word == "none" else statistics,
                missing=missing,
                word=word,
                # a collapse that is placed nowhere is one that happens somewhere
                needed="some" if word == "collapsed" and not _placed(row, measures) else usual_needed,
            )
        )
    if row["qualifier"] == "up_to" and row.change is not None:
        # the largest of all must come near the figure, no one may pass it
        made.append(_reached(made, row.change))
    return made


def conditions_of(row: Row, measures: Measures, reading: Reading) -> tuple[Condition, ...]:
    """The conditions of a row's scenario columns and its `bin`. Raises `UnreadableError` for one of another kind."""
    found = []
    for column in row.places:
        if not row[column] or column == ALGORITHM:
            continue
        if not measures.values(column):
            raise UnreadableError(f"{column}={row[column]} is no part of this study's plan")
        found.append(Condition(column, "=", row.list(column)))
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
    measures: Measures, conditions: Iterable[Condition], algorithm: str
) -> tuple[list[Population], tuple[str, ...]]:
    """Those with the algorithm (on the first reading, in no mix) that meet all conditions, and what was not run."""
    first = next(iter(measures.values(PATH)), None)
    here = [p for p in measures.populations() if p.column(PATH) == first and p.algorithm == algorithm and not p.partner]
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
    row: Row, measures: Measures, reading: Reading, two_sided: bool
) -> tuple[tuple[tuple[Place, Place | None], ...], tuple[str, ...]]:
    """What is compared with what, and what of it was not run."""
    names = list(dict.fromkeys(population.algorithm for population in measures.populations()))
    usual = row.list("algorithm") or tuple(name for name in reading.algorithms if name in names)
    of = _side(row, "comparator", names, measures) or [{}]
    against = _side(row, "baseline", names, measures) if two_sided else [None]
    for name in usual:
        if name not in names:
            raise UnreadableError(f"algorithm {name!r} was not run")
    points: dict[tuple[Population, Population | None], None] = {}
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
    told = ((_told(mine), None if theirs is None else _told(theirs)) for mine, theirs in points)
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


def _others(mine: Population, right: Mapping[str, Any] | None, measures: Measures) -> list[Population | None]:
    """What the baseline means for one population of the comparator."""
    if right is None:
        return [None]
    if "algorithm" in right:
        return [mine.but(algorithm=right["algorithm"])]
    condition: Condition = right["condition"]
    ran = {str(value): value for value in measures.values(condition.column)}
    if condition.sign == "=":
        # one that was not run is kept as it is told, so that it is said to be missing
        return [mine.but(**{condition.column: ran.get(value, value)}) for value in condition.values]
    return [mine.but(**{condition.column: value}) for value in ran.values() if condition.met(value)]


def _told(population: Population) -> Place:
    """A population as a check tells of it: on whatever reading of the test bed."""
    factors = {name: value for name, value in population.factors if name != PATH}
    return {"algorithm": population.algorithm, **factors}


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


def _placed(row: Row, measures: Measures) -> bool:
    """Whether it says for which value of a number that was varied it holds."""
    numbers = (name for name in measures.varying if not isinstance(measures.values(name)[0], str))
    return bool(row["bin"]) or any(row.cells.get(name) for name in numbers)


# ----------------------------------------------------------------------------------------------- bounds


def _bounds(row: Row, metric: str, two_sided: bool) -> tuple[Quantity, Bounds, str]:
    direction = row["direction"]
    change = change_of(row)
    if two_sided and change is not None:
        return "relative", _around(change, row["qualifier"]), ""
    if direction in _STATES:
        word = _STATES[direction]
        return "value", STATES[word].bounds, word
    about = re.fullmatch(r"about ([\d.]+)", direction)
    if about is not None:
        near = CLOSENESS["not far apart"].bounds
        return "value", Bounds(above=float(about[1]) * (1 + near.low), below=float(about[1]) * (1 + near.high)), ""
    if not two_sided:
        raise UnreadableError(f"'{direction}' needs a baseline")
    if direction in _GOODNESS:
        better = "less" if metric == SHARE else METRICS[ALIASES.get(metric, metric)].better
        if not better:
            raise UnreadableError(f"whether more or less of {metric} is better is not settled")
        direction = _GOODNESS[direction][better]
    word = _CHANGES.get(direction, "")
    if not word:
        raise UnreadableError(f"direction {direction!r} is not one this program can judge")
    return "relative", (CLOSENESS.get(word) or STATES[word]).bounds, word


def _around(change: float, qualifier: str) -> Bounds:
    """Bounds of a relative change: as printed, unless the text is less exact."""
    sign = -1.0 if change < 0 else 1.0
    size = abs(change)
    exact = printed(size, change=True)
    low, high = {
        "approx": (size - 2 * PRINTED_POINTS, size + 2 * PRINTED_POINTS),
        "nearly": (size - 4 * PRINTED_POINTS, size + PRINTED_POINTS),
        "up_to": (-PRINTED_POINTS, size + PRINTED_POINTS),
        "gt": (size, None),
        "ge": (size, None),
        "lt": (0.0, size),
        "le": (0.0, size),
    }.get(qualifier, (exact.at_least, exact.at_most))
    if sign > 0:
        return Bounds(at_least=low, at_most=high)
    return Bounds(at_least=None if high is None else -high, at_most=None if low is None else -low)


def _reached(made: Sequence[Check], change: float) -> Check:
    first = made[0]
    bounds = Bounds(at_most=change + PRINTED_POINTS) if change < 0 else Bounds(at_least=change - PRINTED_POINTS)
    places = tuple(place for check in made for place in check.places)
    return replace(first, places=places, bounds=bounds, needed="some")
