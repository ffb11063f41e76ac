"""Claims judged from their own columns: for rows of a `--published` file that `claims.toml` knows nothing about.

`comparator` is what the sentence is about, `baseline` what it is compared with (see `millpond.judge.sides`);
`direction` says how the comparator's metric stands to the baseline's, `relative_change` by how much. What cannot be
read is left unjudged, and said so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from millpond.judge.checks import COLLAPSE, COLLAPSE_METRIC, SHARE, Bounds, Check, Finding, Quantity, carry_out, known
from millpond.judge.claims import conclude, on_each_path, on_every_path
from millpond.judge.compare import Verdict
from millpond.judge.published import SCENARIO_COLUMNS, Condition, Row
from millpond.judge.sides import Reader, UnreadableError, mixed_words
from millpond.measure.measures import Measures
from millpond.measure.metrics import ALIASES, METRICS
from millpond.measure.population import VARIANT, Population
from millpond.measure.statistics import known as known_statistic
from millpond.plan.study import Reading

#: Its `bin` is a number of retransmissions, not a condition.
HISTOGRAM = "exchanges_by_retransmissions"

#: A relative change holds within so many points of the published one.
POINTS = 0.05
#: "similar", "not higher": medians under congestion are equal within 5 %.
SIMILAR = 0.05
#: "equal": as exact rows must be, and then some.
EQUAL = 0.001
#: "few": at most one message of ten (of 50).
FEW_PER_CLIENT = 5.0
FEW_PER_EXCHANGE = 0.1
#: "about 1", "approx": 15 %.
ABOUT = 0.15


def judge(name: str, rows: Sequence[Row], measures: Measures, reading: Reading) -> Verdict:
    """Judge a claim from its rows: it holds if each row does."""
    says = "; ".join(dict.fromkeys(row["raw"] for row in rows))
    reason = out_of_scope(rows)
    if reason:
        return Verdict(name, says, "unjudged", "", reason)

    def findings(path: str) -> list[Finding]:
        found: list[Finding] = []
        for row in (row for row in rows if not row.suspect):
            try:
                found.extend(carry_out(check, measures) for check in checks(row, measures, reading, path))
            except UnreadableError as error:
                found.append(Finding("unjudged", "", f"{row.id}: {error}"))
        return found

    def verdict(found: Iterable[Finding]) -> Verdict:
        return conclude(name, says, found)

    return on_each_path(measures, findings, verdict) if reading.apart else verdict(findings(""))


def out_of_scope(rows: Sequence[Row]) -> str:
    """Why no run can decide these rows; empty if one can."""
    if all(row["category"] == "cited" for row in rows):
        return "about evaluations by others, which are reported here, not rerun"
    if all(row["category"] != "result" for row in rows):
        return f"about the {rows[0]['category']}, not a result of a run"
    if all(row.suspect for row in rows):
        return f"marked as suspect in the published figures: {rows[0]['note'] or 'no check'}"
    return ""


def checks(row: Row, measures: Measures, reading: Reading, path: str = "") -> list[Check]:
    """The checks a claim row comes down to, on every path variant or on one.

    Raises:
        UnreadableError: if it cannot be read.
    """
    direction = row["direction"]
    metrics = tuple(reading.metric(name) for name in row.list("metric"))
    if direction in ("collapse", "no_collapse"):
        metrics = (COLLAPSE_METRIC,)
    statistics = row.list("statistic")
    for statistic in statistics:
        if not known_statistic(statistic):
            raise UnreadableError(f"statistic {statistic!r} is not one this program takes")
    for metric in metrics:
        if not known(metric):
            raise UnreadableError(f"metric {metric!r} is not measured by these runs")
    made = []
    reader = Reader(measures)
    for of, against in reader.pairs(row, reading.algorithms):
        conditions = tuple(c for c in conditions_of(row, measures) if c.column not in of.changes) + of.conditions
        populations, missing = select(measures, conditions, of.changes)
        for metric in metrics:
            quantity, bounds = _bounds(row, metric, against is not None)
            points: list[tuple[Population, Population | None]] = []
            for population in populations:
                for other in reader.others(population, against):
                    points.extend(on_every_path(measures, population.but(**{VARIANT: ""}), other, path))
            if against is None or quantity == "value":
                points = [(p, None) for pair in points for p in (pair[0],)]
            made.append(
                Check(
                    metric=metric,
                    points=tuple(dict.fromkeys(points)),
                    bounds=bounds,
                    quantity=quantity,
                    statistics=("max",) if direction == "zero" else statistics,
                    pick=of.pick,
                    pick_against=against.pick if against is not None else None,
                    missing=missing,
                    least_baseline=FEW_PER_CLIENT if metric.endswith("_per_client") and _shrinks(row) else 0.0,
                    needed=_needed(row, len(points)),
                )
            )
    if row["qualifier"] == "up_to" and row.change is not None:
        # the largest of all must come near the figure, no one may pass it
        made.append(_reached(made, row.change))
    return made


def conditions_of(row: Row, measures: Measures) -> tuple[Condition, ...]:
    """The conditions of a row's scenario columns and its `bin`. Raises `UnreadableError` for one of another kind."""
    found = []
    for column in SCENARIO_COLUMNS:
        if not row[column] or column == "algorithm":
            continue
        wanted = Condition(column, "=", row.list(column))
        if column in (*measures.varying, *measures.constant):
            found.append(wanted)
        elif column in ("error_profile", "payload"):
            raise UnreadableError(f"not run: {wanted}")
        elif not mixed_words(row[column]):
            raise UnreadableError(f"{column}={row[column]} is no part of this study's plan")
    text = row["bin"]
    if text and row["metric"] != HISTOGRAM and not text.isdecimal() and not mixed_words(text):
        condition = Condition.parse(text)
        if condition is None:
            raise UnreadableError(f"condition {text!r} is not one this program can select by")
        found.append(condition)
    return tuple(found)


def select(
    measures: Measures, conditions: Iterable[Condition], changes: Mapping[str, Any]
) -> tuple[list[Population], tuple[str, ...]]:
    """The populations (on the first path) that meet all conditions, and what was asked for by name but not run."""
    everyone = list(measures.populations())
    first = everyone[0].column(VARIANT) if everyone else ""
    here = [p for p in everyone if p.column(VARIANT) == first and all(p.column(k) == v for k, v in changes.items())]
    if "partner" not in changes:
        here = [p for p in here if not p.partner]
    missing = [] if here else [f"{changes.get('algorithm', 'any')}{' in a mix' if changes.get('partner') else ''}"]
    for condition in conditions:
        if condition.sign == "=":
            ran = {str(p.column(condition.column)) for p in here}
            missing += [f"{condition.column}={v}" for v in condition.values if v not in ran and here]
        here = [p for p in here if _meets(p, condition)]
    if not here and not missing:
        missing.append(" and ".join(str(condition) for condition in conditions))
    return here, tuple(missing)


def _meets(population: Population, condition: Condition) -> bool:
    value = population.column(condition.column)
    return value is None or condition.met(value)


# ----------------------------------------------------------------------------------------------- bounds


def _bounds(row: Row, metric: str, two_sided: bool) -> tuple[Quantity, Bounds]:
    direction, qualifier = row["direction"], row["qualifier"]
    change = change_of(row)
    if two_sided and change is not None:
        return "relative", _around(change, qualifier)
    if direction == "collapse":
        return "value", Bounds(above=COLLAPSE)
    if direction == "no_collapse":
        return "value", Bounds(at_most=COLLAPSE)
    if direction == "zero":
        return "value", Bounds(at_most=0.0)
    if direction == "few":
        per_exchange = metric.endswith("per_exchange")
        return "value", Bounds(at_most=FEW_PER_EXCHANGE if per_exchange else FEW_PER_CLIENT)
    if direction == "majority":
        return "value", Bounds(above=0.5)
    about = re.fullmatch(r"about ([\d.]+)", direction)
    if about is not None:
        number = float(about[1])
        return "value", Bounds(at_least=number * (1 - ABOUT), at_most=number * (1 + ABOUT))
    if not two_sided:
        raise UnreadableError(f"'{direction}' needs a baseline")
    if direction in ("better", "worse", "not_worse"):
        name = ALIASES.get(metric, metric)
        better = "less" if metric == SHARE else METRICS[name].better
        if better == "more":
            direction = {"better": "higher", "worse": "lower", "not_worse": "not_lower"}[direction]
        elif better == "less":
            direction = {"better": "lower", "worse": "higher", "not_worse": "not_higher"}[direction]
        else:
            raise UnreadableError(f"whether more or less of {metric} is better is not settled")
    by_words = {
        "higher": Bounds(above=0.0),
        "lower": Bounds(below=0.0),
        "equal": Bounds(at_least=-EQUAL, at_most=EQUAL),
        "similar": Bounds(at_least=-SIMILAR, at_most=SIMILAR),
        "not_higher": Bounds(at_most=SIMILAR),
        "not_lower": Bounds(at_least=-SIMILAR),
    }
    if direction not in by_words:
        raise UnreadableError(f"direction {direction!r} is not one this program can judge")
    return "relative", by_words[direction]


def _shrinks(row: Row) -> bool:
    """Whether the row says that something becomes less: where there are only few, that cannot be told."""
    change = change_of(row)
    return change < 0 if change is not None else row["direction"] == "lower"


def _needed(row: Row, points: int) -> float:
    """The share of points that must meet the bounds: all, but one is enough for a collapse that is placed nowhere."""
    somewhere = row["direction"] == "collapse" and not any(row[c] for c in ("clients", "buffer_bytes", "bin"))
    return 1 / max(1, points) if somewhere else 1.0


def change_of(row: Row) -> float | None:
    """The relative change a claim row states; None if it states none."""
    if row.change is not None:
        return row.change
    if row.value is not None and row["unit"] == "percent" and row["direction"] in ("higher", "lower"):
        return row.value / 100 * (1 if row["direction"] == "higher" else -1)
    return None


def _around(change: float, qualifier: str) -> Bounds:
    """Bounds of a relative change: within 5 points, unless the text is less exact."""
    sign = -1.0 if change < 0 else 1.0
    size = abs(change)
    low, high = {
        "approx": (size - 2 * POINTS, size + 2 * POINTS),
        "nearly": (size - 4 * POINTS, size + POINTS),
        "up_to": (-POINTS, size + POINTS),
        "gt": (size, None),
        "ge": (size, None),
        "lt": (0.0, size),
        "le": (0.0, size),
    }.get(qualifier, (size - POINTS, size + POINTS))
    if sign > 0:
        return Bounds(at_least=low, at_most=high)
    return Bounds(at_least=None if high is None else -high, at_most=-low)


def _reached(made: Sequence[Check], change: float) -> Check:
    first = made[0]
    bounds = Bounds(at_most=change + POINTS) if change < 0 else Bounds(at_least=change - POINTS)
    points = tuple(point for check in made for point in check.points)
    return replace(first, points=points, bounds=bounds, needed=1 / max(1, len(points)))
