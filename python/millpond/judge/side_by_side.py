"""Two sides of results beside each other, place by place: two algorithms, two values of a factor, two directories.

Runs of equal seeds are paired, so that what both met alike cancels out. Results of other seeds are compared as
independent runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from millpond.errors import UsageError, unknown
from millpond.measure.estimate import EXTREMES, LEAST_RUNS, Difference, compared, holm, in_pairs
from millpond.measure.frame import Frame, Series, measure, series
from millpond.measure.measures import Measures
from millpond.measure.metrics import METRICS, USUAL
from millpond.measure.population import Population
from millpond.measure.statistics import Floats
from millpond.results.directory import Results
from millpond.results.factor import ALGORITHM
from millpond.results.html_table import html_table


@dataclass(frozen=True)
class Line:
    """One metric at one place: the means over runs of each run's statistic, and that of the differences.

    `low` to `high` is the 95 % interval of the difference; None of an extreme, and of too few runs.
    """

    place: str
    metric: str
    statistic: str
    unit: str
    one: float
    other: float
    difference: float
    low: float | None
    high: float | None
    runs: int
    #: How likely so large a difference is where there is none, and the same corrected for all lines (Holm).
    p: float = math.nan
    p_holm: float = math.nan
    #: The difference in standard deviations of a run (Hedges' g).
    effect: float = math.nan
    #: Whether `one` is no worse than `other` by more than a margin; empty where none was named.
    beside_margin: str = ""

    @property
    def is_equal(self) -> bool:
        """Whether no pair of runs differs."""
        return self.difference == 0 and self.low is not None and self.low == self.high

    @property
    def verdict(self) -> str:
        """Whether the difference is more than the noise of seeds."""
        if self.low is None or self.high is None:
            if self.statistic in EXTREMES:
                return "an extreme"
            return "one run only" if self.runs == 1 else f"fewer than {LEAST_RUNS} runs"
        if self.is_equal:
            return "equal"
        return "within the noise" if self.low <= 0 <= self.high else "less" if self.high < 0 else "more"


@dataclass(frozen=True)
class SideBySide:
    """What `one` has more or less than `other`, place by place."""

    factor: str
    one: str
    other: str
    lines: tuple[Line, ...]
    #: Whether runs of equal seeds are in pairs.
    is_paired: bool = True
    #: By how much `one` may be worse and count as no worse: a share of `other`, of shares so many points.
    margin: float | None = None

    @property
    def table(self) -> pa.Table:
        """A row for each line, with its verdict."""
        return pa.Table.from_pylist(self.to_json()["lines"])

    def to_pandas(self) -> Any:
        """The same as a data frame of pandas."""
        return self.table.to_pandas()

    def _repr_html_(self) -> str:
        return html_table(self.table, f"{self.one} beside {self.other}, {self.pairing}")

    @property
    def pairing(self) -> str:
        """How runs stand beside each other, in words."""
        return "runs of equal seeds in pairs" if self.is_paired else "runs of different seeds"

    def to_json(self) -> dict[str, Any]:
        """The form that programs read."""
        lines = [
            {**{key: _plain(value) for key, value in vars(line).items()}, "verdict": line.verdict}
            for line in self.lines
        ]
        told = {"factor": self.factor, "one": self.one, "other": self.other, "paired": self.is_paired}
        return {**told, "margin": self.margin, "lines": lines}


def compare(
    results: Results, one: str, other: str, metrics: Sequence[str] = (), margin: float | None = None
) -> SideBySide:
    """Puts two algorithms, or two values of a factor, side by side wherever all else is equal.

    Args:
        results: Any results.
        one: An algorithm, or a value of a factor, alone or as `factor=value`.
        other: Another one of the same.
        metrics: Names of metrics, each by its usual statistic; left out: `USUAL`.
        margin: By how much `one` may be worse and count as no worse.

    Raises:
        UsageError: one line, if the results hold no such two, or no place where both were run.
    """
    measures = Measures(results)
    frame = _frame(measures, metrics)
    factor, first, second = _factor(measures, one, other)
    sides = (
        replace(
            frame, series=tuple(s for s in frame.series if str(s.place[factor]) == value and not s.place["partner"])
        )
        for value in (first, second)
    )
    mine, theirs = (side.without(factor) for side in sides)
    others = tuple(name for name in measures.varying if name != factor)
    shows = factor != ALGORITHM and len(measures.values(ALGORITHM)) > 1

    def words(series: Series) -> str:
        population = series.populations[0][0]
        return ", ".join(
            filter(
                None,
                [measures.in_words({name: population.column(name) for name in others}), population.algorithm * shows],
            )
        )

    lines = _lines(mine, theirs, words, paired=True, margin=margin)
    if not lines:
        raise UsageError(f"{results.directory}: {one} and {other} were never run at the same place")
    return SideBySide(factor, first, second, lines, margin=margin)


def compare_results(
    one: Results, other: Results, metrics: Sequence[str] = (), margin: float | None = None
) -> SideBySide:
    """Puts two results of one plan side by side wherever both were run, as of two versions.

    Raises:
        UsageError: one line, if they are of plans with other factors, or have no place in common.
    """
    sides = [Measures(results) for results in (one, other)]
    mine, theirs = (_frame(measures, metrics) for measures in sides)
    names = [str(results.directory) for results in (one, other)]
    if set(mine.by) != set(theirs.by):
        told = (", ".join(measures.constant | dict.fromkeys(measures.varying)) or "no factor" for measures in sides)
        raise UsageError("{} and {}: results of different plans: {} here, {} there".format(*names, *told))
    paired = bool(set(mine.seeds) & set(theirs.seeds))
    if paired:
        mine, theirs = (_by_seed(frame) for frame in (mine, theirs))

    def words(series: Series) -> str:
        population = series.populations[0][0]
        return ", ".join(filter(None, [sides[0].place(population), population.who]))

    lines = _lines(mine, theirs, words, paired=paired, margin=margin)
    short = [results.directory.name for results in (one, other)]
    if not lines:
        raise UsageError("{} and {}: results of different plans: no place was run in both".format(*names))
    first, second = names if short[0] == short[1] else short
    return SideBySide("results", first, second, lines, paired, margin)


def line(measures: Measures, metric: str, one: Population, other: Population, place: str = "") -> Line | None:
    """The metric of one beside that of the other, run by run of equal seeds; None if either has no value."""
    known = METRICS[metric]
    return beside(series(measures, known, one), series(measures, known, other), place)


def beside(
    one: Series, other: Series, place: str = "", *, paired: bool = True, margin: float | None = None
) -> Line | None:
    """A series of runs beside another of the same metric; None if either has no value.

    Of pairs only the runs that both have are looked at.
    """
    sides = in_pairs(one.taken, other.taken) if paired else (one.taken, other.taken)
    mine, theirs = sides
    if not (math.isfinite(mine.value) and math.isfinite(theirs.value)):
        return None
    values, against = (_values(side.by_run) for side in sides)
    runs = min(len(values), len(against))
    if mine.whole is not None or theirs.whole is not None:
        found = compared("difference", mine, theirs, within=one.within)
        p = effect = math.nan
        if one.statistic in EXTREMES:
            found = replace(found, low=None, high=None)
    else:
        difference = Difference.of(values, against, paired=paired)
        found, p, effect = difference.estimate(within=one.within), difference.p, difference.effect
    told = Line(
        place, one.metric.name, one.statistic, one.metric.unit, mine.value, theirs.value, found.value, found.low,
        found.high, runs, p, effect=effect,
    )  # fmt: skip
    if margin is None or math.isnan(p):
        return told
    return replace(told, beside_margin=_beside_margin(one, values, against, paired=paired, margin=margin))


# ----------------------------------------------------------------------------------------------- helpers


def _frame(measures: Measures, metrics: Sequence[str]) -> Frame:
    for name in metrics:
        if name not in METRICS:
            raise UsageError(f"--metric: {unknown('metric', name, METRICS)}")
    kept = [name for name in USUAL if any(map(measures.results.has, METRICS[name].tables))]
    return measure(measures, metrics or kept)


def _lines(
    mine: Frame, theirs: Frame, words: Callable[[Series], str], *, paired: bool, margin: float | None
) -> tuple[Line, ...]:
    """A line for each place and metric that both have; probabilities are corrected for all of them."""
    there = {_key(one): one for one in theirs.series}
    places: dict[tuple[Any, ...], list[Line]] = {}
    for one in mine.series:
        other = there.get(_key(one))
        found = None if other is None else beside(one, other, words(one), paired=paired, margin=margin)
        if found is not None:
            places.setdefault(_key(one)[2:], []).append(found)
    lines = [one for here in places.values() for one in here]
    return tuple(replace(one, p_holm=p) for one, p in zip(lines, holm([one.p for one in lines]), strict=True))


def _key(series: Series) -> tuple[Any, ...]:
    return (series.metric.name, series.statistic, *sorted(series.place.items()))


def _by_seed(frame: Frame) -> Frame:
    """The same with runs called by their seed, not by its number in the plan."""

    def called(series: Series) -> Series:
        by_run = {frame.seeds[number]: value for number, value in series.taken.by_run.items()}
        return replace(series, taken=replace(series.taken, by_run=by_run))

    return replace(frame, series=tuple(map(called, frame.series)))


def _values(by_run: Mapping[int, float]) -> Floats:
    found = np.array([by_run[run] for run in sorted(by_run)], dtype=np.float64)
    there: Floats = found[np.isfinite(found)]
    return there


def _beside_margin(series: Series, one: Floats, other: Floats, *, paired: bool, margin: float) -> str:
    """Whether a metric is no worse by more than a margin; of one that is not better in any direction, whether alike.

    What is asked is whether the whole interval lies on the right side of the margin: that of the difference to the
    other side and the margin of it.
    """

    def apart(sign: int) -> tuple[float, float]:
        base, further = (other, sign * margin) if series.metric.unit == "1" else ((1 + sign * margin) * other, 0.0)
        found = Difference.of(one, base + further, paired=paired).estimate()
        return found.interval or (-math.inf, math.inf)

    above, below = apart(1), apart(-1)
    if series.metric.better == "less":
        return "no worse" if above[1] <= 0 else "worse" if above[0] > 0 else "inconclusive"
    if series.metric.better == "more":
        return "no worse" if below[0] >= 0 else "worse" if below[1] < 0 else "inconclusive"
    if above[1] <= 0 <= below[0]:
        return "equivalent"
    return "different" if above[0] > 0 or below[1] < 0 else "inconclusive"


def _factor(measures: Measures, one: str, other: str) -> tuple[str, str, str]:
    """The factor that both are values of, and the values."""
    names = [ALGORITHM, *(name for name in measures.varying if name != ALGORITHM)]
    told = [word.partition("=") for word in (one, other)]
    if all(equals and name in names for name, equals, _ in told):
        if told[0][0] != told[1][0]:
            raise UsageError(f"{one} and {other}: values of two factors: compare two values of one")
        names, one, other = [told[0][0]], told[0][2], told[1][2]
    values = {name: [str(value) for value in measures.values(name)] for name in names}
    if names[0] == ALGORITHM:
        one, other = (_algorithm(measures, word) for word in (one, other))
    if one == other:
        raise UsageError(f"{one} and {other}: the same: compare two of {', '.join(values[names[0]])}")
    found = [name for name in names if one in values[name] and other in values[name]]
    if len(found) == 1:
        return found[0], one, other
    if found:
        raise UsageError(f"{one} and {other}: values of {' and '.join(found)}: write {found[0]}={one}")
    known = dict.fromkeys(value for name in names for value in values[name])
    for name, equals, value in told:
        if equals and name not in names and value in known:
            raise UsageError(f"{name}={value}: {unknown('factor', name, names)}")
    for word in (one, other):
        if word not in known:
            raise UsageError(unknown("algorithm or value", word, known))
    raise UsageError(f"{one} and {other}: no values of one factor: compare two of {', '.join(values[names[0]])}")


def _algorithm(measures: Measures, word: str) -> str:
    """The algorithm of this name, or the one that stands for the preset of this name; else the word as it is."""
    if any(word in map(str, measures.values(name)) for name in measures.varying) or word in measures.values(ALGORITHM):
        return word
    found = {group.algorithm for cell in measures.cells for group in cell.groups if cell.preset(group) == word}
    return found.pop() if len(found) == 1 else word


def _plain(value: object) -> object:
    return None if isinstance(value, float) and math.isnan(value) else value
