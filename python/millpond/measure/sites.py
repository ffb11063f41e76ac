"""The sites of a fleet, such as radio cells: every number of each, from tables without a row of a client."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from millpond.measure.measures import Measures
from millpond.measure.metrics import METRICS
from millpond.measure.population import Population
from millpond.measure.statistics import Floats, take
from millpond.results.directory import Cell


@dataclass(frozen=True)
class Number:
    """What is told of every site: a metric, by a statistic over what the site has of it."""

    metric: str
    statistic: str
    #: Whether sites are called worse by it.
    judges: bool = True

    @property
    def name(self) -> str:
        """The column of the table."""
        usual = METRICS[self.metric].usual
        return self.metric if self.statistic == usual else f"{self.metric}_{self.statistic}"

    @property
    def title(self) -> str:
        """What it is called."""
        title, usual = METRICS[self.metric].title, METRICS[self.metric].usual
        return title if self.statistic == usual else f"{title}, {self.statistic}"

    @property
    def better(self) -> str:
        """In which direction it is better; empty if that is no question of a single site."""
        return METRICS[self.metric].better if self.judges else ""

    def written(self, value: float) -> str:
        """A value, or a dash where a site has none."""
        return "-" if math.isnan(value) else METRICS[self.metric].written(value)


#: What is told, the first first: by the same order sites are called worse.
NUMBERS = (
    Number("requests_answered", "mean"),
    Number("requests_delivered", "mean"),
    Number("answer_delay", "p99"),
    Number("answer_delay", "median"),
    Number("answer_delay", "max"),
    Number("utilisation", "mean", judges=False),
    Number("wasted_share", "median"),
    Number("loss_rate", "mean"),
)


@dataclass(frozen=True)
class Kind:
    """Sites that are alike: those of one setting of the plan."""

    population: Population
    cell: Cell
    #: The seed of each.
    seeds: tuple[int, ...]
    #: A value of each for every number, NaN where it has none.
    values: dict[str, Floats]

    @property
    def devices(self) -> int:
        """Clients of all of them, what the server sends by itself apart."""
        return self.cell.replications * sum(group.count for group in self.cell.groups if group.traffic == "requests")

    def take(self, number: Number, statistic: str) -> float:
        """A statistic over sites; `worst` is the end that is worse."""
        found = self.values[number.name]
        found = found[np.isfinite(found)]
        if statistic == "worst":
            statistic = "min" if number.better == "more" else "max"
        return take(found, statistic)


@dataclass(frozen=True)
class Site:
    """One site: its kind, which run of that it is."""

    kind: Kind
    place: int

    @property
    def seed(self) -> int:
        """Its seed."""
        return self.kind.seeds[self.place]

    def value(self, number: Number) -> float:
        """Its value."""
        return float(self.kind.values[number.name][self.place])


class Sites:
    """All sites of a fleet."""

    def __init__(self, measures: Measures) -> None:
        self.measures = measures

    @cached_property
    def kinds(self) -> list[Kind]:
        """The sites by what they are, in the order of the plan."""
        return [self._kind(population) for population in self.measures.populations()]

    @cached_property
    def numbers(self) -> tuple[Number, ...]:
        """What any site has a value of."""
        there = [number for number in NUMBERS if any(np.isfinite(k.values[number.name]).any() for k in self.kinds)]
        return tuple(there)

    def worst(self, most: int) -> list[Site]:
        """So many sites, the worst first: by the first number that tells them apart, then the next."""
        sites = [Site(kind, place) for kind in self.kinds for place in range(len(kind.seeds))]
        return sorted(sites, key=self._badness)[:most]

    def place_in_words(self, kind: Kind) -> str:
        """What a kind is, in words, its controller included."""
        where = self.measures.place(kind.population)
        return f"{kind.population.algorithm}, {where}" if where else kind.population.algorithm

    def to_table(self) -> pa.Table:
        """A row for each site: the number of its run, its seed, the factors, every number in its base unit."""
        columns: dict[str, list[Any]] = {"run": [], "seed": []}
        factors = list(dict.fromkeys(name for kind in self.kinds for name in kind.cell.columns))
        columns.update({name: [] for name in (*factors, *(number.name for number in self.numbers))})
        for kind in self.kinds:
            many = len(kind.seeds)
            columns["run"] += range(kind.cell.first_run, kind.cell.first_run + many)
            columns["seed"] += kind.seeds
            for name in factors:
                columns[name] += [kind.cell.columns.get(name)] * many
            for number in self.numbers:
                columns[number.name] += [v if math.isfinite(v) else None for v in kind.values[number.name].tolist()]
        return pa.table(columns)

    # ----------------------------------------------------------------------------------------------- helpers

    def _kind(self, population: Population) -> Kind:
        cell = self.measures.cell(population)
        runs = range(cell.first_run, cell.first_run + cell.replications)
        seeds: Sequence[int] = self.measures.results.manifest["seeds"]
        values = {}
        for number in NUMBERS:
            found = self.measures.sample(number.metric, population).by_run(number.statistic)
            values[number.name] = np.array([found.get(run, math.nan) for run in runs])
        own = tuple(int(seed) for seed in seeds[cell.first_seed : cell.first_seed + cell.replications])
        return Kind(population, cell, own, values)

    def _badness(self, site: Site) -> tuple[float, ...]:
        found = []
        for number in self.numbers:
            value = site.value(number)
            # a site without a value has nothing to complain of
            good = 0.0 if math.isnan(value) else value if number.better == "more" else -value
            found.append(good if number.better else 0.0)
        return tuple(found)
