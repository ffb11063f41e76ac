"""Numbers of the study by place and controller, with what the runs scatter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from millpond.judge.compare import Comparison
from millpond.measure.estimate import Estimate
from millpond.measure.population import Population
from millpond.results.factor import PATH, Value
from millpond.show import labels
from millpond.show.report.grid import Grid

TOPOLOGIES = {"grid-6x6": "6x6 grid", "grid-7x7": "7x7 grid", "chain": "chain of 17", "dumbbell": "dumbbell of 21"}
LINKS = {"100": "all", "lossy": "75 to 100 %"}
#: The controllers of the paper, in its order.
PAPER = ("default", "cocoa", "cocoa_plus")
#: What came later, and the paper's own with gains as it prints them.
LATER = ("cocoa_swapped", "cocoa_plus_swapped", "cocoa_03", "cocoa_fb2", "default_fb2", "fasor", "linux_rto")


@dataclass(frozen=True)
class Point:
    """A metric of one population over its runs."""

    estimate: Estimate
    #: The standard deviation of the runs.
    deviation: float

    @property
    def mean(self) -> float:
        """The mean over the runs."""
        return self.estimate.value

    def __str__(self) -> str:
        told = labels.number(self.mean, 3)
        ends = self.estimate.interval
        return told if ends is None else f"{told} ({' to '.join(labels.number(end, 3) for end in ends)})"


def populations(grid: Grid, **factors: Value) -> list[Population]:
    """The populations in cells with these factors, on the first reading of the test bed unless one is named."""
    wanted = {PATH: grid.first, **factors}
    return [
        population
        for population in grid.measures.populations()
        if all(str(population.column(name)) == str(value) for name, value in wanted.items() if value is not None)
    ]


def point(grid: Grid, metric: str, population: Population) -> Point | None:
    """The mean of a metric over runs, in its base unit; None if these results do not hold it."""
    found = grid.measures.estimate(metric, population, "mean")
    if not found.n:
        return None
    values = list(grid.measures.sample(metric, population).by_run("mean").values())
    return Point(found, float(np.std(values, ddof=1)) if found.n > 1 else 0.0)


def scaled(found: Point | None, factor: float) -> Point | None:
    """The same in another unit."""
    return None if found is None else Point(found.estimate.scaled(factor), found.deviation * factor)


def at(grid: Grid, metric: str, algorithm: str, **factors: Value) -> Point | None:
    """The metric of one algorithm in the one cell with these factors."""
    found = [population for population in populations(grid, **factors) if population.algorithm == algorithm]
    return point(grid, metric, found[0]) if len(found) == 1 else None


def names(grid: Grid, found: Iterable[Population]) -> list[str]:
    """Their algorithms, in the order of the legend."""
    there = {population.algorithm for population in found}
    return [name for name in (*PAPER, *LATER) if name in there and name in grid.looks]


def published(comparison: Comparison | None, metric: str) -> Mapping[tuple[str, str, str], float]:
    """Printed means in the metric's base unit, by topology, links and algorithm."""
    found: dict[tuple[str, str, str], float] = {}
    for figure in () if comparison is None else comparison.figures:
        told = figure.scenario
        if figure.metric != metric or "topology" not in told or figure.statistic != "mean":
            continue
        scale = {"ms": 1e-3, "percent": 1e-2}.get(figure.unit, 1.0)
        key = str(told["topology"]), str(told.get("ldr", "")), str(told.get("algorithm", ""))
        found.setdefault(key, figure.published * scale)
    return found
