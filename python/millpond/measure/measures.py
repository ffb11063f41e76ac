"""From result tables to metrics: `Measures` turns a population and the name of a metric into a `Sample`.

A sample holds one value per client (or per run, for a metric of a link), and the run of each. Nothing here walks over
rows in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, KeysView, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from millpond.measure.estimate import Estimate, taken
from millpond.measure.metric import Metric
from millpond.measure.metrics import METRICS
from millpond.measure.population import Population
from millpond.measure.reported import Reported
from millpond.measure.sample import Sample
from millpond.measure.statistics import Floats
from millpond.plan.values import in_units
from millpond.results import rows
from millpond.results.directory import Cell, Group, Results
from millpond.results.factor import PATH, Factor, Value
from millpond.results.rows import TableRows

#: So many values of samples are kept for those who ask again.
KEPT_VALUES = 4_000_000


class Measures:
    """The metrics of one results directory. Tables are read once; cells are slices of them."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self.cells = results.cells
        #: Every factor of the cells and its values, in the order of cells; empty where a cell lacks one.
        found: dict[str, dict[Value, None]] = {}
        for name in dict.fromkeys(name for cell in self.cells for name in cell.columns if name != "algorithm"):
            found[name] = dict.fromkeys(cell.columns.get(name, "") for cell in self.cells)
        #: The factors that distinguish cells, and the value of each of the others.
        self.varying = tuple(name for name, values in found.items() if len(values) > 1)
        self.constant: dict[str, Value] = {name: next(iter(found[name])) for name in found if name not in self.varying}
        lacking = {name: "" for name in self.varying if "" in found[name]}
        #: What is meant where nothing is said: the one value of a factor, or cells that lack it.
        self.usual_values: dict[str, Value] = {**self.constant, **lacking}
        self._places: dict[Population, tuple[Cell, int | None]] = {}
        self._parts: dict[Population, tuple[Cell, int | None]] = {}
        self._of_cells: dict[int, list[Population]] = {}
        for cell in self.cells:
            for population, group in _populations(cell, tuple(found)):
                self._places.setdefault(population, (cell, group))
                self._of_cells.setdefault(cell.number, []).append(population)
        self._kept: dict[tuple[str, Population], Sample] = {}
        self._held = 0
        self._bottlenecks: dict[int, str] = {}
        self._values: dict[str, tuple[Value, ...]] = {}

    def populations(self) -> KeysView[Population]:
        """Every population the results hold, in the order of cells."""
        return self._places.keys()

    def values(self, name: str) -> tuple[Value, ...]:
        """The values of a factor or of `algorithm`, in the order of cells; none if no cell has it."""
        if name not in self._values:
            found = (population.column(name) for population in self._places)
            self._values[name] = tuple(dict.fromkeys(value for value in found if value is not None))
        return self._values[name]

    def whole(self, population: Population) -> Population:
        """The same with the factors that it leaves out: they are the same in all results, or its cell lacks them."""
        told = dict(population.factors)
        left = {name: value for name, value in self.usual_values.items() if name not in told}
        return population.but(**left) if left else population

    def place(self, population: Population) -> str:
        """Where these clients are, in words, without their algorithm: by the factors that differ between cells."""
        return self.in_words({name: population.column(name) for name in self.varying})

    def in_words(self, factors: Mapping[str, Value | None]) -> str:
        """Values of factors as a place: the reading of the test bed at its end; nothing of those that have none."""
        ordered = sorted(factors.items(), key=lambda item: item[0] == PATH)
        words = (self.results.factors.get(n, Factor(n)).say(value) for n, value in ordered if value is not None)
        # for terminals and programs
        return ", ".join(word for word in words if word).replace("\N{NARROW NO-BREAK SPACE}", " ")

    def has(self, population: Population) -> bool:
        """Whether the results hold this population."""
        return self._known(population) is not None

    def of(self, cell: Cell, group: Group | None = None) -> Population:
        """All clients of a cell, or those of one of its groups, whatever algorithms the others have."""
        at = None if group is None else group.index
        there = self._of_cells[cell.number]
        for population in there:
            if self._places[population] == (cell, at) or len(cell.groups) == 1:
                return population
        who = "" if group is None else group.algorithm
        found = replace(there[0], algorithm=who, partner="", part="all" if group is None else f"group {at}")
        self._parts[found] = cell, at
        return found

    def cell(self, population: Population) -> Cell:
        """The cell the population lives in. Raises KeyError if the results do not hold it."""
        return self._place(population)[0]

    def group(self, population: Population) -> Group | None:
        """Its group of the cell; None where that is all of its clients. Raises KeyError as `cell` does."""
        cell, group = self._place(population)
        return None if group is None else cell.groups[group]

    @cached_property
    def reported(self) -> Reported:
        """Who is done by when."""
        return Reported(self.results)

    def sample(self, metric: str, population: Population) -> Sample:
        """The values of the metric. Raises KeyError for an unknown metric or a population that was not run."""
        known = METRICS[metric]
        key = (known.name, population)
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = self._sampled(known, population)
            self._held += len(found.values)
            while self._held > KEPT_VALUES and len(self._kept) > 1:
                oldest = next(iter(self._kept))
                self._held -= len(self._kept.pop(oldest).values)
        return found

    def usual(self, metric: str, population: Population) -> float:
        """The metric's usual statistic, as it is shown: `estimate` without its interval."""
        return self.estimate(metric, population).value

    def estimate(self, metric: str, population: Population, statistic: str = "") -> Estimate:
        """The metric's usual statistic or another one, in its base unit, and how sure it is. Errors as for `sample`."""
        known = METRICS[metric]
        named, statistic = bool(statistic), statistic or known.usual
        found = taken(self.sample(metric, population), statistic, self.cell(population).origin, named)
        return found.estimate(within=known.within(statistic))

    def histogram(self, population: Population, batch: str = "any", run: int | None = None) -> dict[int, int]:
        """Completed exchanges by number of retransmissions, over all replications or in one run.

        `batch`: `first`, `later` (than the first batch of a client) or `any`.
        """
        number, exchanges, first, runs = (
            self.rows("histogram", population, name) for name in ("retransmissions", "exchanges", "first_batch", "run")
        )
        keep = np.ones(len(number), dtype=bool)
        if batch != "any":
            keep &= (first != 0) == (batch == "first")
        if run is not None:
            keep &= runs == run
        if not np.any(keep):
            return {}
        counts = np.bincount(number[keep].astype(np.int64), weights=exchanges[keep].astype(np.float64))
        return {k: round(float(count)) for k, count in enumerate(counts)}

    # ----------------------------------------------------------------------------------------------- columns

    def table(self, name: str) -> TableRows:
        """A table of the results, cut by cell; without rows if they do not hold it."""
        return rows.of(self.results, name)

    def rows(self, table: str, population: Population, column: str) -> NDArray[np.generic]:
        """A column of the population's rows of a table that tells groups apart (NaN where it is null or not kept)."""
        cell, group = self._place(population)
        return self.table(table).of(cell, column, group)

    def flow_column(self, population: Population, column: str) -> NDArray[np.generic]:
        """A column of the population's rows of the `flows` table, as it stands there (NaN where it is null)."""
        return self.rows("flows", population, column)

    def link_column(self, cell: Cell, column: str, link: str) -> Floats:
        """A column of one link's rows of a cell, one value per run."""
        here = self.table("links").of(cell, "link") == link
        chosen: Floats = self.table("links").of(cell, column)[here].astype(np.float64)
        return chosen

    def run_column(self, cell: Cell, column: str) -> NDArray[np.generic]:
        """A column of a cell's rows of the `runs` table."""
        return self.table("runs").of(cell, column)

    def of_each(self, table: str, cell: Cell, *names: str) -> dict[tuple[str, ...], Callable[[str], Floats]]:
        """Of a table with a row for each of some things a run, such as links: by their names what reads a column."""
        rows = self.table(table)
        told = list(zip(*(rows.of(cell, name).tolist() for name in names), strict=True))

        def reader(key: tuple[Any, ...]) -> Callable[[str], Floats]:
            mine = np.array([one == key for one in told], dtype=bool)
            return lambda column: rows.of(cell, column)[mine].astype(np.float64)

        return {tuple(map(str, key)): reader(key) for key in dict.fromkeys(told)}

    def each_run(self, table: str, cell: Cell, columns: Sequence[str], *, most: bool = False) -> Floats:
        """Columns of a table with several rows a run, added up in each run, or the largest; empty without it."""
        rows = self.table(table)
        runs = rows.of(cell, "run").astype(np.int64) - cell.first_run
        found = np.zeros(cell.replications if len(runs) else 0)
        for column in columns:
            (np.maximum if most else np.add).at(found, runs, rows.of(cell, column).astype(np.float64))
        return found

    def counted_us(self, cell: Cell) -> Floats:
        """For how long the links of a cell counted, in µs, one value per run: all of it but the warm-up."""
        whole: Floats = self.run_column(cell, "simulated_us").astype(np.float64)
        return whole - warm_up_us(cell)

    def links(self, cell: Cell) -> list[str]:
        """The names of the cell's links, in the order of the table."""
        return list(dict.fromkeys(self.table("links").of(cell, "link").tolist()))

    def bottleneck(self, cell: Cell) -> str:
        """The link that the plan calls the bottleneck, or else the one that is busy longest, over all of its runs.

        Empty if the cell has no links.
        """
        if cell.number not in self._bottlenecks:
            names = self.links(cell)
            told = str(self.results.manifest.get("bottleneck", ""))
            busy = {name: float(self.link_column(cell, "busy_us", name).sum()) for name in names}
            self._bottlenecks[cell.number] = (
                told if told in names else max(names, key=lambda name: busy[name], default="")
            )
        return self._bottlenecks[cell.number]

    # ----------------------------------------------------------------------------------------------- places

    def _sampled(self, metric: Metric, population: Population) -> Sample:
        """What is computed of a metric as a sample: of clients one value each, else of runs; none of an empty list."""
        found, cell = metric.compute(self, population), self.cell(population)
        if isinstance(found, Sample):
            return found
        if metric.per == "client":
            return Sample.of(found, self.flow_column(population, "run"))
        runs = cell.first_run + np.arange(cell.replications)
        return Sample.of(found, runs) if len(found) else Sample.none(cell.replications)

    def _known(self, population: Population) -> Population | None:
        """The population as the results name it; None if they do not hold it."""
        if population in self._places:
            return population
        whole = self.whole(population)
        return whole if whole in self._places else None

    def _place(self, population: Population) -> tuple[Cell, int | None]:
        if population.part:
            return self._parts[population]
        known = self._known(population)
        if known is None:
            raise KeyError(population)
        return self._places[known]


# ----------------------------------------------------------------------------------------------- helpers


def warm_up_us(cell: Cell) -> float:
    """For how long the links of a cell did not count yet, in µs."""
    return 1e6 * in_units(str(cell.scenario.get("run", {}).get("warm_up", "0 s")))


def _populations(cell: Cell, names: Sequence[str]) -> Iterable[tuple[Population, int | None]]:
    factors = {name: cell.columns.get(name, "") for name in names}
    if len({(group.algorithm, group.traffic) for group in cell.groups}) == 1:
        # whatever they ask for, they are the clients with this algorithm
        yield Population.of(cell.groups[0].algorithm, "", **factors), None
        return
    for group in cell.groups:
        others = [other.algorithm for other in cell.groups if other.algorithm != group.algorithm]
        several = len(cell.groups) > 1
        yield Population.of(group.algorithm, ";".join(others), **factors), group.index if several else None
