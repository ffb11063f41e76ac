"""Two algorithms, or two values of a factor, side by side: paired by seed, so that what both met alike cancels out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from millpond.errors import UsageError, unknown
from millpond.measure.estimate import EXTREMES, LEAST_RUNS, compared, in_pairs, taken
from millpond.measure.measures import Measures
from millpond.measure.metrics import METRICS
from millpond.measure.population import Population
from millpond.plan.factor import ALGORITHM
from millpond.results.directory import Results

#: What is compared unless other metrics are asked for.
USUAL = ("fct", "makespan", "unfinished", "retransmissions_per_client", "unnecessary_retx_per_client")


@dataclass(frozen=True)
class Line:
    """One metric at one place: the means over runs of each run's statistic, and that of the differences in pairs.

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

    def to_json(self) -> dict[str, Any]:
        """The form that programs read."""
        lines = [{**asdict(line), "verdict": line.verdict} for line in self.lines]
        return {"factor": self.factor, "one": self.one, "other": self.other, "lines": lines}


def compare(results: Results, one: str, other: str, metrics: Sequence[str] = ()) -> SideBySide:
    """Puts two algorithms, or two values of a factor, side by side wherever all else is equal.

    Args:
        results: Any results.
        one: An algorithm, or a value of a factor, alone or as `factor=value`.
        other: Another one of the same.
        metrics: Names of metrics, each by its usual statistic; left out: `USUAL`.

    Raises:
        UsageError: one line, if the results hold no such two, or no place where both were run.
    """
    for metric in metrics:
        if metric not in METRICS:
            raise UsageError(f"--metric: {unknown('metric', metric, METRICS)}")
    measures = Measures(results)
    factor, first, second = _factor(measures, one, other)
    values = [value for value in measures.values(factor) if str(value) == second]
    lines: list[Line] = []
    for population in measures.populations():
        if str(population.column(factor)) != first or population.partner:
            continue
        for there in (population.but(**{factor: value}) for value in values):
            if there in measures.populations():
                lines += _lines(measures, population, there, metrics or USUAL, factor)
    if not lines:
        raise UsageError(f"{results.directory}: {one} and {other} were never run at the same place")
    return SideBySide(factor, first, second, tuple(lines))


def line(measures: Measures, metric: str, one: Population, other: Population, place: str = "") -> Line | None:
    """The metric of one beside that of the other, run by run; None if either has no value.

    Where one of them was run more often, only the runs that both have are looked at.
    """
    known = METRICS[metric]
    sides = (taken(measures.sample(metric, those), known.usual, measures.cell(those).origin) for those in (one, other))
    mine, theirs = in_pairs(*sides)
    if not (math.isfinite(mine.value) and math.isfinite(theirs.value)):
        return None
    found = compared("difference", mine, theirs, within=known.within(known.usual))
    runs = len(mine.by_run)
    return Line(
        place, metric, known.usual, known.unit, mine.value, theirs.value, found.value, found.low, found.high, runs
    )


# ----------------------------------------------------------------------------------------------- helpers


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


def _lines(
    measures: Measures, one: Population, other: Population, metrics: Sequence[str], factor: str
) -> Iterator[Line]:
    others = tuple(name for name in measures.varying if name != factor)
    algorithm = "" if factor == ALGORITHM or len(measures.values(ALGORITHM)) == 1 else one.algorithm
    place = ", ".join(filter(None, [measures.wording.place(one, others), algorithm]))
    for metric in metrics:
        found = line(measures, metric, one, other, place)
        if found is not None:
            yield found
