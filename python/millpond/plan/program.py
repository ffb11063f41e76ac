"""Programs: everything that is to be run, as cells, however it was described.

A *cell* is one scenario, run once per replication. The seed of a run depends on the program and the number of the
replication alone, so that every controller gets the same random numbers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from millpond import _engine
from millpond.controllers.own import OwnControllers
from millpond.plan import scenario as scenarios
from millpond.plan.groups import groups_of, told_together
from millpond.plan.plan import Trace
from millpond.results.directory import Cell
from millpond.results.factor import ALGORITHM, Factor, Value

#: The kind of results whose runs are sites of one fleet.
FLEET = "fleet"


@dataclass(frozen=True)
class Point:
    """A scenario that is to be run, as the engine took it."""

    id: str
    scenario: _engine.Scenario
    #: The value of every factor; the algorithm is told by the groups unless it is among them.
    columns: Mapping[str, Value] = field(default_factory=dict)
    #: What controls each group, in the words of the plan; left out: as the scenario has it.
    algorithms: Sequence[str] = ()
    replications: int = 1
    #: The number of the first seed among those of the program.
    first_seed: int = 0
    traced: bool = False


@dataclass(frozen=True)
class Planned:
    """A cell and the engine's scenario for it."""

    cell: Cell
    scenario: _engine.Scenario
    traced: bool = False


@dataclass(frozen=True)
class Program:
    """Everything to run: cells, the seeds of their replications, what is traced. Equal programs have equal `hash`."""

    kind: str
    name: str
    title: str
    cells: tuple[Planned, ...]
    seeds: tuple[int, ...]
    version: str
    trace: Trace = field(default_factory=Trace)
    labels: Mapping[str, str] = field(default_factory=dict)
    #: The link that figures about a link mean; empty: the one that is busy longest.
    bottleneck: str = ""
    #: The study whose page and tables these results have; empty: the one of its name, if any.
    page: str = ""
    #: How the factors are spoken of.
    factors: Mapping[str, Factor] = field(default_factory=dict)
    #: What each path variant is, in words.
    paths: Mapping[str, str] = field(default_factory=dict)
    #: Digests of the source of custom controllers, by name and file.
    code: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    #: That source itself, by the place that a results directory keeps it in.
    sources: Mapping[str, Path] = field(default_factory=dict)
    #: Tables that are not kept: those with a row for each client or second.
    dropped: tuple[str, ...] = ()
    #: Which part of the runs this is, of how many: every n-th run. Shards of one program have equal hashes.
    shard: tuple[int, int] = (1, 1)

    @property
    def runs(self) -> int:
        """Runs of this shard."""
        first = (range(p.cell.first_run, p.cell.first_run + p.cell.replications) for p in self.cells)
        return sum(self.has(run) for runs in first for run in runs)

    def has(self, run: int) -> bool:
        """Whether this shard runs it."""
        number, of = self.shard
        return run % of == number - 1

    @property
    def hash(self) -> str:
        """Digest of all that the results depend on."""
        told = {
            "kind": self.kind,
            "name": self.name,
            "version": self.version,
            "seeds": self.seeds,
            "trace": [self.trace.tables, self.trace.step_us, self.trace.flows, *([True] if self.trace.every else [])],
            "cells": [[planned.cell.to_json(), planned.traced] for planned in self.cells],
            **({"code": self.code} if self.code else {}),
            **({"dropped": self.dropped} if self.dropped else {}),
        }
        return "sha256:" + hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def program(
    points: Iterable[Point],
    own: OwnControllers,
    *,
    kind: str,
    name: str,
    seeds: Sequence[int],
    title: str = "",
    trace: Trace | None = None,
    labels: Mapping[str, str] | None = None,
    **further: Any,
) -> Program:
    """The points as cells, in their order.

    Args:
        points: What is run.
        own: Who found custom controllers that are in them.
        kind: `scenario`, `sweep`, `study` or `FLEET`.
        name: Its name.
        seeds: Those of all replications.
        title: A line for people; left out: what the first scenario says, or the name.
        trace: What is traced of the points that are.
        labels: What algorithms are called; left out: as they are written.
        further: Other fields of `Program`.
    """
    cells: list[Planned] = []
    first_run, trace = 0, trace or Trace()
    for number, point in enumerate(points):
        full = scenarios.in_full(point.scenario)
        groups = groups_of(full, point.scenario.groups(), point.algorithms)
        columns = dict(point.columns)
        columns.setdefault(ALGORITHM, told_together(groups))
        cell = Cell(number, point.id, columns, groups, first_run, point.replications, full, point.first_seed)
        cells.append(Planned(cell, point.scenario, traced=point.traced and bool(trace.tables)))
        first_run += point.replications
    if labels is None:
        labels = {group.algorithm: group.algorithm for planned in cells for group in planned.cell.groups}
    return Program(
        kind=kind,
        name=name,
        title=title or str(cells[0].cell.scenario.get("title") or name),
        cells=tuple(cells),
        seeds=tuple(seeds),
        version=_engine.version(),
        trace=trace,
        labels=labels,
        code=own.code,
        sources=own.sources,
        **further,
    )
