"""One tidy frame of everything that was measured: a row for each cell, replication, group of clients and metric.

Factors are columns, units stand in the schema. A value is a statistic of one run; `Frame.estimates` makes of each
series of runs one number with its interval (`millpond.measure.estimate`), by whatever factors are asked for.

Who never finishes is counted and not invented. A value speaks of the `n` clients (requests, runs) that have one, and
`missing` beside it says how many have none. What asks about all clients says so by its name: of the metrics
`clients_done_*` a run in which so many never are has no value, and a statistic that ends in `-of-all` takes those with
no value as later than everybody, so that it may have no end itself (infinite).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from millpond.errors import UsageError, unknown
from millpond.measure.estimate import CONFIDENCE, Estimate, Range, Taken, taken
from millpond.measure.measures import Measures
from millpond.measure.metric import Metric
from millpond.measure.metrics import METRICS, metric
from millpond.measure.population import Population
from millpond.measure.sample import Sample
from millpond.measure.statistics import known
from millpond.measure.window import OVER_TIME, Window, check_window
from millpond.results.directory import Cell, Results
from millpond.results.factor import Factor, Value
from millpond.results.html_table import html_table

#: A metric by its usual statistic, or a metric and a statistic.
Asked: TypeAlias = "str | tuple[str, str]"
#: The columns beside factors by which series can be distinguished.
OWN = ("algorithm", "partner", "group")


@dataclass(frozen=True)
class Series:
    """A statistic of a metric, run by run, of the clients that are alike in everything that the frame tells apart."""

    #: What they are alike in.
    place: Mapping[str, Value]
    #: Where the runs are from: the cells and, of each, who is meant.
    populations: tuple[tuple[Population, Cell], ...]
    metric: Metric
    statistic: str
    taken: Taken
    #: Of each run how many have a value and how many have none, by the number of its seed.
    counts: Mapping[int, tuple[int, int | None]]

    @property
    def within(self) -> Range:
        """What the statistic can be."""
        return self.metric.within(self.statistic)

    def estimate(self, confidence: float = CONFIDENCE) -> Estimate:
        """The number over all runs, and its interval."""
        return self.taken.estimate(confidence, self.within)

    @property
    def n(self) -> int:
        """How many values there are, in all runs."""
        return sum(there for there, _ in self.counts.values())

    @property
    def missing(self) -> int | None:
        """How many have none; None where that is not known."""
        lacking = [lack for _, lack in self.counts.values() if lack is not None]
        return sum(lacking) if len(lacking) == len(self.counts) else None


@dataclass(frozen=True)
class Frame:
    """Metrics of results, run by run."""

    series: tuple[Series, ...]
    #: The columns that distinguish series, besides metric and statistic.
    by: tuple[str, ...]
    #: How the factors among them are spoken of.
    factors: Mapping[str, Factor]
    #: The seeds of the replications, by their number.
    seeds: Sequence[int]
    #: What the rows are of, for errors.
    origin: str

    def where(self, **only: Value) -> Frame:
        """The series where columns have these values. Raises `UsageError` that names what there is."""
        for name, value in only.items():
            _check_among("column", name, self.by, self.origin)
            there = {str(one.place.get(name, "")): None for one in self.series}
            _check_among(name, str(value), there, self.origin)
        wanted = {name: str(value) for name, value in only.items()}
        kept = (one for one in self.series if all(str(one.place.get(n, "")) == v for n, v in wanted.items()))
        return replace(self, series=tuple(kept))

    def without(self, *names: str) -> Frame:
        """The same without columns. Where series are then alike, a replication has the mean of theirs."""
        for name in names:
            _check_among("column", name, self.by, self.origin)
        return replace(
            self,
            series=tuple(_merged(self.series, [name for name in self.by if name not in names])),
            by=tuple(name for name in self.by if name not in names),
        )

    @cached_property
    def table(self) -> pa.Table:
        """A row for each cell, replication, group and metric. Values are in the unit that the row names."""
        rows = [row for one in self.series for row in _rows(one, self.by, self.seeds)]
        columns = ("cell", "replication", "seed", *self.by, "metric", "statistic", "unit", "value", "n", "missing")
        return self._table(rows, columns)

    def estimates(self, confidence: float = CONFIDENCE) -> pa.Table:
        """A row for each series: its estimate, the ends of its interval, and the runs that it rests on."""
        rows = []
        for one in self.series:
            found = one.estimate(confidence)
            rows.append(
                {
                    **one.place, "metric": one.metric.name, "statistic": one.statistic, "unit": one.metric.unit,
                    "value": _finite(found.value), "low": found.low, "high": found.high, "runs": found.n,
                    "n": one.n, "missing": one.missing,
                }
            )  # fmt: skip
        columns = (*self.by, "metric", "statistic", "unit", "value", "low", "high", "runs", "n", "missing")
        return self._table(rows, columns)

    def wide(self) -> pa.Table:
        """A row for each cell, replication and group, and a column for each metric: its unit is in the schema."""
        rows: dict[tuple[Any, ...], dict[str, Any]] = {}
        for one in self.series:
            name = _column_of(one)
            for row in _rows(one, self.by, self.seeds):
                key = tuple(row.get(key) for key in ("cell", "replication", *self.by))
                there = rows.setdefault(key, {k: row.get(k) for k in ("cell", "replication", "seed", *self.by)})
                there[name] = row["value"]
        units = {_column_of(one): one.metric.unit for one in self.series}
        return self._table(list(rows.values()), ("cell", "replication", "seed", *self.by, *units), units)

    def to_pandas(self) -> Any:
        """The table as a data frame of pandas."""
        return self.table.to_pandas()

    def _repr_html_(self) -> str:
        return html_table(self.estimates(), f"estimates of {self.origin}")

    def _table(
        self, rows: Sequence[Mapping[str, Any]], columns: Iterable[str], units: Mapping[str, str] = {}
    ) -> pa.Table:
        told = {**{name: factor.unit for name, factor in self.factors.items()}, **units}
        arrays, fields = [], []
        for name in columns:
            array = as_array([row.get(name) for row in rows])
            arrays.append(array)
            fields.append(pa.field(name, array.type, metadata={"unit": told[name]} if told.get(name) else None))
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def measure(
    results: Results | Measures,
    metrics: Asked | Sequence[Asked],
    by: Sequence[str] | None = None,
    window: Window | None = None,
) -> Frame:
    """Metrics of results as one frame.

    Args:
        results: What was run.
        metrics: Names of metrics, each by its usual statistic, or pairs of a metric and a statistic.
        by: What series are distinguished by: factors of the plan, `algorithm`, `partner`, `group`. Left out: by all.
        window: Seconds since the start of a run, from and to, for metrics that are kept over time; or a function that
            gives them for the number of a run.

    Raises:
        UsageError: one line that names what there is, for a metric, statistic or factor that there is not, a metric
            that these results did not keep, and a window that no run has.
    """
    measures = results if isinstance(results, Measures) else Measures(results)
    origin = str(measures.results.directory)
    factors = tuple(dict.fromkeys((*measures.constant, *measures.varying)))
    every = (*factors, *OWN)
    for name in by or ():
        _check_among("factor", name, every, origin)
    asked = [_asked(one) for one in _several(metrics)]
    if window is not None:
        check_window(measures, window, [found for found, _ in asked])
    every_one = [one for found, statistic in asked for one in _series(measures, found, statistic, window)]
    chosen = every if by is None else tuple(by)
    return Frame(
        tuple(every_one if by is None else _merged(every_one, chosen)),
        chosen,
        {name: factor for name, factor in measures.results.factors.items() if name in chosen},
        measures.results.manifest.get("seeds", ()),
        origin,
    )


def series(
    measures: Measures, metric: Metric, population: Population, statistic: str = "", window: Window | None = None
) -> Series:
    """A metric of one population, by its usual statistic or another one, run by run."""
    cell, group = measures.cell(population), measures.group(population)
    if window is None:
        sample = measures.sample(metric.name, population)
    else:
        sample = OVER_TIME[metric.name](measures, population, window)
    factors = (*measures.constant, *measures.varying)
    place = {name: population.column(name) or cell.columns.get(name, "") for name in factors}
    place |= {"algorithm": population.algorithm, "partner": population.partner}
    place["group"] = "" if group is None else group.label or group.name or str(group.index)
    name = statistic or metric.usual
    by_run = taken(sample, name, cell.origin, bool(statistic))
    return Series(place, ((population, cell),), metric, name, by_run, _counts(sample, cell))


def as_array(values: list[Any]) -> pa.Array:
    """Values of one column, null where a factor of numbers is lacking; those that are of several kinds as text."""
    kinds = {type(value) for value in values if value is not None and value != ""}
    if len(kinds) > 1 and str in kinds:
        values = [None if value is None else str(value) for value in values]
    elif "" in values and str not in kinds and kinds:
        values = [None if value == "" else value for value in values]
    return pa.array(values)


# ----------------------------------------------------------------------------------------------- helpers


def _several(metrics: Asked | Sequence[Asked]) -> Sequence[Asked]:
    """What was asked for, as a list: a pair of a metric and a statistic is one, a pair of metrics two."""
    if isinstance(metrics, str):
        return [metrics]
    is_pair = isinstance(metrics, tuple) and len(metrics) == 2 and metrics[1] not in METRICS
    return [metrics] if is_pair and isinstance(metrics[1], str) else metrics  # type: ignore[list-item]


def _asked(one: Asked) -> tuple[Metric, str]:
    name, statistic = (one, "") if isinstance(one, str) else one
    found = metric(name)
    if statistic and not known(statistic):
        raise UsageError(f"{name}: unknown statistic {statistic!r}: see docs/appendix/metrics.md")
    return found, statistic


def _series(measures: Measures, asked: Metric, statistic: str, window: Window | None) -> Iterator[Series]:
    found = [series(measures, asked, one, statistic, window) for one in measures.populations()]
    if not any(one.n for one in found) and not any(measures.results.has(table) for table in asked.tables):
        tables = dict.fromkeys(table for one in METRICS.values() for table in one.tables if measures.results.has(table))
        raise UsageError(
            f"{measures.results.directory}: {asked.name}: these results did not keep it: they hold no table "
            f"{' or '.join(asked.tables)}, but {', '.join(tables) or 'none'}"
        )
    yield from found


def _counts(sample: Sample, cell: Cell) -> dict[int, tuple[int, int | None]]:
    """Of every run of a cell how many have a value, and how many have none."""
    size = cell.replications
    there = np.bincount(sample.runs - cell.first_run, weights=sample.weights, minlength=size).astype(np.int64)
    if sample.lacking is None and sample.missing:
        return {cell.first_seed + at: (int(there[at]), None) for at in range(size)}
    lacking = np.empty(0, np.int64) if sample.lacking is None else sample.lacking - cell.first_run
    lack = np.bincount(lacking, minlength=size)
    return {cell.first_seed + at: (int(there[at]), int(lack[at])) for at in range(size)}


def _merged(series: Iterable[Series], by: Sequence[str]) -> Iterator[Series]:
    """Those that are alike in these columns as one: a replication has the mean of theirs."""
    groups: dict[tuple[Any, ...], list[Series]] = {}
    for one in series:
        key = (one.metric.name, one.statistic, *(one.place.get(name, "") for name in by))
        groups.setdefault(key, []).append(one)
    for alike in groups.values():
        first = alike[0]
        place = {name: first.place.get(name, "") for name in by}
        if len(alike) == 1:
            yield replace(first, place=place)
            continue
        by_seed: dict[int, list[float]] = {}
        counts: dict[int, tuple[int, int | None]] = {}
        for one in alike:
            for seed, value in one.taken.by_run.items():
                by_seed.setdefault(seed, []).append(value)
            for seed, (there, lack) in one.counts.items():
                before, lacked = counts.get(seed, (0, 0))
                counts[seed] = (before + there, None if lack is None or lacked is None else lacked + lack)
        means = {seed: float(np.mean(values)) for seed, values in sorted(by_seed.items())}
        populations = tuple(one for part in alike for one in part.populations)
        yield Series(place, populations, first.metric, first.statistic, Taken(means), counts)


def _rows(one: Series, by: Sequence[str], seeds: Sequence[int]) -> Iterator[dict[str, Any]]:
    cell = one.populations[0][1].number if len(one.populations) == 1 else None
    told = {"metric": one.metric.name, "statistic": one.statistic, "unit": one.metric.unit}
    for number, (there, lack) in one.counts.items():
        value = one.taken.by_run.get(number, math.nan)
        yield {
            "cell": cell, "replication": number, "seed": seeds[number] if number < len(seeds) else None,
            **{name: one.place[name] for name in by}, **told,
            "value": None if math.isnan(value) else value, "n": there, "missing": lack,
        }  # fmt: skip


def _column_of(one: Series) -> str:
    return one.metric.name if one.statistic == one.metric.usual else f"{one.metric.name}_{one.statistic}"


def _finite(value: float) -> float | None:
    return None if math.isnan(value) else value


def _check_among(what: str, word: str, there: Iterable[str], origin: str) -> None:
    if word not in there:
        raise UsageError(f"{origin}: {unknown(what, word, there)}")
