"""Programs: everything that is to be run, as cells, however it was described.

A *cell* is one scenario, run once per replication. The seed of a run depends on the program and the number of the
replication alone, so that every controller gets the same random numbers.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from millpond import _engine
from millpond.controllers.own import OwnControllers, short
from millpond.plan import scenario as scenarios
from millpond.plan.plan import Trace
from millpond.results.directory import Cell, Group
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

    def kept(self, wanted: Callable[[Cell], bool]) -> Program:
        """The same with these cells alone, numbered anew."""
        cells: list[Planned] = []
        first_run = 0
        for planned in self.cells:
            if wanted(planned.cell):
                cells.append(replace(planned, cell=replace(planned.cell, number=len(cells), first_run=first_run)))
                first_run += planned.cell.replications
        return replace(self, cells=tuple(cells))

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


def groups_of(
    tree: Mapping[str, Any], told: Sequence[_engine.Group], algorithms: Sequence[str] = ()
) -> tuple[Group, ...]:
    """What the groups of a scenario in full are called, in the order in which the engine tells them.

    Its algorithm is the plan's, or else what controls its clients; those of one name are distinguished by the settings
    of the controller that differ, or another key, or where they stand in the scenario. A name that the scenario gives
    to a group goes before all that. What the server sends is called after the clients that it is for:
    `meters, commands`.
    """
    tables: list[Mapping[str, Any]] = tree["clients"]
    labels = _told_apart(tables, [one.name for one in told[: len(tables)]])
    groups = []
    for index, one in enumerate(told):
        label = labels[one.table]
        whom = (algorithms[one.table] if algorithms else label, one.name, label)
        by_server = "" if one.traffic == "requests" else f", {one.traffic}"
        algorithm, name, label = (f"{word}{by_server}" if word else "" for word in whom)
        groups.append(Group(index, one.count, algorithm, name, label, told[one.table].transport, one.traffic))
    return tuple(groups)


def told_together(groups: Sequence[Group]) -> str:
    """The algorithms of a cell as one text."""
    return ";".join(dict.fromkeys(group.algorithm for group in groups))


# ----------------------------------------------------------------------------------------------- helpers


def _told_apart(tables: Sequence[Mapping[str, Any]], given: Sequence[str]) -> list[str]:
    labels = [name or _controlled_by(table) for name, table in zip(given, tables, strict=True)]
    for words in (_every_difference, _one_difference):
        found = []
        for table, label in zip(tables, labels, strict=True):
            alike = [other for other, theirs in zip(tables, labels, strict=True) if theirs == label]
            found.append(", ".join([label, *(words(table, alike) if len(alike) > 1 else ())]))
        labels = found
    often = Counter(labels)
    return [f"{label}, group {place}" if often[label] > 1 else label for place, label in enumerate(labels, start=1)]


def _every_difference(clients: Mapping[str, Any], alike: Sequence[Mapping[str, Any]]) -> list[str]:
    """All settings of the controller that another group has otherwise."""
    others = [_settings(other) for other in alike]
    return [f"{key} {value}" for key, value in _settings(clients).items() if any(o.get(key) != value for o in others)]


def _one_difference(clients: Mapping[str, Any], alike: Sequence[Mapping[str, Any]]) -> list[str]:
    """The first other key that each of the groups has otherwise; several would make names that nobody reads."""
    others = [_plain_keys(other) for other in alike]
    for key, value in _plain_keys(clients).items():
        if len({str(other.get(key)) for other in others}) == len(others):
            return [f"{key.replace('_', ' ')} {value}"]
    return []


def _controlled_by(clients: Mapping[str, Any]) -> str:
    if "controller" not in clients:
        return "-".join(filter(None, ["tcp", clients["transport"].get("congestion")]))
    # in bursts only the first request is under the controller: that is not what such a group is about
    if clients.get("transfer", {}).get("kind", "whole") == "bursts":
        return "q-block2"
    controller = clients["controller"]
    if isinstance(controller, Mapping):
        controller = controller["own"] if "own" in controller else controller["preset"]
    return short(str(controller))


def _settings(clients: Mapping[str, Any]) -> dict[str, Any]:
    controller = clients.get("controller")
    if not isinstance(controller, Mapping):
        return {}
    return {key: value for key, value in controller.items() if key not in ("own", "preset")}


def _plain_keys(clients: Mapping[str, Any]) -> dict[str, Any]:
    """What a group has in a word or a number, and of tables their kind."""
    found = {}
    for key, value in clients.items():
        word = value.get("kind") if isinstance(value, Mapping) else value
        if isinstance(word, str | int | float) and key not in ("name", "count", "controller"):
            found[key] = word
    return found
