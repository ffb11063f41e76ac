"""From result tables to metrics: `Measures` turns a population and the name of a metric into a `Sample`.

A sample holds one value per client (or per run, for a metric of a link), and the run of each. Nothing here walks over
rows in Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from millpond.measure.evidence import KINDS, Evidence
from millpond.measure.metrics import ALIASES, FUNCTIONS
from millpond.measure.population import USUAL, Population, Wording
from millpond.measure.sample import Sample
from millpond.measure.statistics import Floats
from millpond.results.directory import Cell, Results, Value


@dataclass(frozen=True)
class _Rows:
    """Rows of a table that belong to one cell: a slice, because rows are in the order of runs."""

    start: int
    stop: int


class Measures:
    """The metrics of one results directory. Tables are read once; cells are slices of them."""

    def __init__(self, results: Results, wording: Wording = USUAL) -> None:
        self.results = results
        self.wording = wording
        self.cells = results.cells
        self._flows = _columns(results.table("flows"))
        self._links = _columns(results.table("links"), strings=("link",))
        self._histogram = _columns(results.table("histogram"))
        self._runs = _columns(results.table("runs"))
        self._flow_rows = _slices(self.cells, self._flows["run"])
        self._link_rows = _slices(self.cells, self._links["run"])
        self._histogram_rows = _slices(self.cells, self._histogram["run"])
        self._run_rows = _slices(self.cells, self._runs["run"])
        #: Every factor of the cells and its values, in the order of cells; empty where a cell lacks one.
        found: dict[str, dict[Value, None]] = {}
        for name in dict.fromkeys(name for cell in self.cells for name in cell.columns if name != "algorithm"):
            found[name] = dict.fromkeys(cell.columns.get(name, "") for cell in self.cells)
        #: The factors that tell cells apart, and the value of each of the others.
        self.varying = tuple(name for name, values in found.items() if len(values) > 1)
        self.constant: dict[str, Value] = {name: next(iter(found[name])) for name in found if name not in self.varying}
        self._places: dict[Population, tuple[Cell, int | None]] = {}
        for cell in self.cells:
            for population, group in _populations(cell, tuple(found)):
                self._places.setdefault(population, (cell, group))
        self._kept: dict[tuple[str, Population], Sample] = {}
        self._evidence = Evidence(results)

    def populations(self) -> Iterable[Population]:
        """Every population the results hold, in the order of cells."""
        return self._places.keys()

    def values(self, name: str) -> tuple[Value, ...]:
        """The values of a factor or of `algorithm`, in the order of cells; none if no cell has it."""
        return tuple(dict.fromkeys(value for value in (p.column(name) for p in self._places) if value is not None))

    def whole(self, population: Population) -> Population:
        """The same with the factors that it leaves out because they are the same in all results."""
        told = dict(population.factors)
        left = {name: value for name, value in self.constant.items() if name not in told}
        return population.but(**left) if left else population

    def place(self, population: Population) -> str:
        """Where these clients are, in words, without their algorithm."""
        return self.wording.place(population, self.varying)

    def has(self, population: Population) -> bool:
        """Whether the results hold this population."""
        return self._known(population) is not None

    def cell(self, population: Population) -> Cell:
        """The cell the population lives in. Raises KeyError if the results do not hold it."""
        return self._place(population)[0]

    def sample(self, metric: str, population: Population) -> Sample:
        """The values of the metric. Raises KeyError for an unknown metric or a population that was not run."""
        name = ALIASES.get(metric, metric)
        key = (name, population)
        if key not in self._kept:
            self._kept[key] = FUNCTIONS[name](self, population)
        return self._kept[key]

    def histogram(self, population: Population, batch: str = "any") -> dict[int, int]:
        """Completed exchanges by number of retransmissions, over all replications.

        `batch`: `first`, `later` (than the first batch of a client) or `any`.
        """
        cell, group = self._place(population)
        rows, table = self._histogram_rows[cell.number], self._histogram
        chosen = slice(rows.start, rows.stop)
        keep = np.ones(rows.stop - rows.start, dtype=bool)
        if group is not None:
            keep &= table["group"][chosen] == group
        if batch != "any":
            keep &= (table["first_batch"][chosen] != 0) == (batch == "first")
        number = table["retransmissions"][chosen][keep].astype(np.int64)
        if len(number) == 0:
            return {}
        counts = np.bincount(number, weights=table["exchanges"][chosen][keep].astype(np.float64))
        return {k: round(float(count)) for k, count in enumerate(counts)}

    def named(self, metric: str, population: Population) -> Sample:
        """A metric of what replies name; runs without such replies have no value."""
        cell, group = self._place(population)
        kind = KINDS.get(metric)
        values = self._evidence.errors(cell, group) if kind is None else self._evidence.shares(cell, kind, group)
        there = np.isfinite(values)
        return Sample(values[there], self._evidence.runs(cell)[there], int(np.count_nonzero(~there)))

    # ----------------------------------------------------------------------------------------------- columns

    def flow_column(self, population: Population, column: str) -> NDArray[np.generic]:
        """A column of the population's rows of the `flows` table, as it stands there (NaN where it is null)."""
        cell, group = self._place(population)
        rows = self._flow_rows[cell.number]
        if column not in self._flows:
            # results of an earlier version: no value is known
            return np.full(len(self.flow_column(population, "run")), np.nan)
        values = self._flows[column][rows.start : rows.stop]
        if group is None:
            return values
        chosen: NDArray[np.generic] = values[self._flows["group"][rows.start : rows.stop] == group]
        return chosen

    def link_column(self, cell: Cell, column: str, link: str) -> Floats:
        """A column of one link's rows of a cell, one value per run."""
        rows = self._link_rows[cell.number]
        here = self._links["link"][rows.start : rows.stop] == link
        chosen: Floats = self._links[column][rows.start : rows.stop][here].astype(np.float64)
        return chosen

    def run_column(self, cell: Cell, column: str) -> NDArray[np.generic]:
        """A column of a cell's rows of the `runs` table."""
        rows = self._run_rows[cell.number]
        return self._runs[column][rows.start : rows.stop]

    def links(self) -> list[str]:
        """The names of the links, in the order of the table."""
        return list(dict.fromkeys(self._links["link"].tolist()))

    # ----------------------------------------------------------------------------------------------- places

    def _known(self, population: Population) -> Population | None:
        """The population as the results name it; None if they do not hold it."""
        if population in self._places:
            return population
        whole = self.whole(population)
        return whole if whole in self._places else None

    def _place(self, population: Population) -> tuple[Cell, int | None]:
        known = self._known(population)
        if known is None:
            raise KeyError(population)
        return self._places[known]


# ----------------------------------------------------------------------------------------------- helpers


def _populations(cell: Cell, names: Sequence[str]) -> Iterable[tuple[Population, int | None]]:
    factors = {name: cell.columns.get(name, "") for name in names}
    for group in cell.groups:
        others = [other.algorithm for other in cell.groups if other.algorithm != group.algorithm]
        several = len(cell.groups) > 1
        yield Population.of(group.algorithm, ";".join(others), **factors), group.index if several else None


def _columns(table: pa.Table, strings: Sequence[str] = ()) -> dict[str, NDArray[np.generic]]:
    columns: dict[str, NDArray[np.generic]] = {}
    for name in table.column_names:
        column = table.column(name)
        if pa.types.is_string(column.type) or pa.types.is_dictionary(column.type):
            if name in strings:
                columns[name] = np.array(column.to_pylist(), dtype=object)
            continue
        columns[name] = column.to_numpy()
    return columns


def _slices(cells: Sequence[Cell], runs: NDArray[np.generic]) -> dict[int, _Rows]:
    first = np.array([cell.first_run for cell in cells], dtype=np.int64)
    last = first + np.array([cell.replications for cell in cells], dtype=np.int64)
    starts = np.searchsorted(runs, first, side="left")
    stops = np.searchsorted(runs, last, side="left")
    return {cell.number: _Rows(int(a), int(b)) for cell, a, b in zip(cells, starts, stops, strict=True)}
