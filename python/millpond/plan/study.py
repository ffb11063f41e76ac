"""Studies: a folder with a plan, scenarios, published figures and claims; the plan unfolds into cells.

A *cell* is one point of the plan's matrix (one scenario), run once per replication. The seed of a run depends on the
study and the number of the replication alone, so that every controller meets the same luck.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from millpond.controllers.own import OwnControllers
from millpond.errors import UsageError, unknown
from millpond.plan import plan as plans
from millpond.plan import scenario as scenarios
from millpond.plan.plan import PLAN, TRACES, Matrix, PathVariant, Plan, Reading, Trace
from millpond.results.directory import BASE_COLUMNS, Cell, Group, Value
from millpond.run.engine import Engine, EngineScenario

__all__ = [
    "PLAN", "STUDIES", "TRACES", "Plan", "Planned", "Program", "Reading", "Trace", "find", "load", "seed", "studies",
    "unfold",
]  # fmt: skip

STUDIES = Path(__file__).parent.parent / "scenarios" / "studies"


@dataclass(frozen=True)
class Planned:
    """A cell and the engine's scenario for it."""

    cell: Cell
    scenario: EngineScenario
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
    #: What each path variant is, in words.
    paths: Mapping[str, str] = field(default_factory=dict)
    #: Digests of the source of controllers of one's own, by name and file.
    code: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def runs(self) -> int:
        """Runs in all."""
        return len(self.cells) * len(self.seeds)

    @property
    def hash(self) -> str:
        """Digest of all that the results depend on."""
        told = {
            "kind": self.kind,
            "name": self.name,
            "version": self.version,
            "seeds": self.seeds,
            "trace": [self.trace.tables, self.trace.step_us, self.trace.flows],
            "cells": [[planned.cell.to_json(), planned.traced] for planned in self.cells],
            **({"code": self.code} if self.code else {}),
        }
        return "sha256:" + hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class _Point:
    """One point of a matrix before its scenario is built."""

    matrix: Matrix
    algorithms: tuple[str, ...]
    columns: Mapping[str, Value]
    path: PathVariant

    @property
    def name(self) -> str:
        """What the cell is called: unlike that of any other cell."""
        told = [self.columns["workload"], self.columns["clients"], self.columns["buffer_bytes"]]
        further = [self.columns[name] for name in self.matrix.further]
        return "-".join(["+".join(self.algorithms), *map(str, told), *map(str, further), self.path.name])

    @property
    def crowd(self) -> tuple[int, int]:
        """Clients and buffer."""
        return int(self.columns["clients"]), int(self.columns["buffer_bytes"])

    @property
    def place(self) -> tuple[Value, ...]:
        """The further columns: within one such place the most crowded cells are traced."""
        return tuple(value for name, value in sorted(self.columns.items()) if name not in BASE_COLUMNS)


def studies(root: Path = STUDIES) -> dict[str, Path]:
    """The studies that can be reproduced: name and folder."""
    return {folder.name: folder for folder in sorted(root.iterdir()) if (folder / PLAN).is_file()}


def find(name: str, root: Path = STUDIES) -> Path:
    """The folder of a study. Raises `UsageError` that lists them if there is none of that name."""
    known = studies(root)
    if name not in known:
        raise UsageError(unknown("study", name, known))
    return known[name]


def seed(study: str, replication: int) -> int:
    """The seed of a replication: 53 bits, so that every program that reads JSON keeps it whole."""
    digest = hashlib.sha256(f"{study}/{replication}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 11


def load(folder: Path) -> Plan:
    """Read a study's plan. Raises `UsageError` with one line: file, key and mend."""
    return plans.read(folder)


def unfold(plan: Plan, engine: Engine, own: OwnControllers | None = None) -> Program:
    """All cells of a plan, in a fixed order: path variants inside workloads inside buffers inside clients."""
    own = own or OwnControllers(plan.folder)
    wanted = list({point.name: point for point in (*_points(plan), *_mixed_points(plan))}.values())
    # the largest buffer among the cells with most clients: tuples compare that way
    worst: dict[tuple[Value, ...], tuple[int, int]] = {}
    for point in wanted:
        worst[point.place] = max(worst.get(point.place, (0, 0)), point.crowd)
    cells = []
    for number, point in enumerate(wanted):
        tree, groups = _scenario(plan, point)
        built = scenarios.build(tree, f"{point.matrix.scenario_file} ({point.name})", engine, own)
        cell = Cell(
            number=number,
            id=point.name,
            columns=point.columns,
            groups=groups,
            first_run=number * plan.replications,
            replications=plan.replications,
            scenario=scenarios.in_full(built),
        )
        here = (
            (plan.trace.all or point.crowd == worst[point.place])
            and len(point.algorithms) == 1
            and point.path.name == plan.paths[0].name
            and plan.trace.only.covers(point.columns)
        )
        cells.append(Planned(cell, built, traced=here and bool(plan.trace.tables)))
    return Program(
        kind="study",
        name=plan.name,
        title=plan.title,
        cells=tuple(cells),
        seeds=tuple(seed(plan.name, replication) for replication in range(plan.replications)),
        version=engine.version(),
        trace=plan.trace,
        labels={name: plan.known[name].label for name in plan.known},
        paths={path.name: path.label for path in reversed(plan.paths)},
        code=own.code,
    )


# ----------------------------------------------------------------------------------------------- helpers


def _points(plan: Plan) -> Iterable[_Point]:
    for matrix in plan.matrices:
        # those that every matrix lists come first, in the order in which cells are counted
        for values in itertools.product(*matrix.values.values()):
            chosen = dict(zip(matrix.values, values, strict=True))
            yield from _on_every_path(plan, matrix, (str(chosen["algorithm"]),), chosen)


def _mixed_points(plan: Plan) -> Iterable[_Point]:
    for mix in plan.mixes:
        if not set(mix.algorithms) <= set(plan.algorithms):
            continue
        for clients in (n for n in mix.clients if n in plan.clients):
            for buffer_bytes in (b for b in mix.buffers if b in plan.buffers):
                for workload in (w for w in mix.workloads if w in plan.workloads):
                    chosen: dict[str, Value] = {"clients": clients, "buffer_bytes": buffer_bytes, "workload": workload}
                    yield from list(_on_every_path(plan, plan.matrices[0], mix.algorithms, chosen))[:1]


def _on_every_path(
    plan: Plan, matrix: Matrix, algorithms: tuple[str, ...], chosen: Mapping[str, Value]
) -> Iterable[_Point]:
    columns: dict[str, Value] = {
        "clients": chosen["clients"],
        "buffer_bytes": chosen["buffer_bytes"],
        "workload": chosen["workload"],
        "algorithm": ";".join(algorithms),
    }
    further = {name: value for name, value in chosen.items() if name not in columns}
    covered: set[str] = set()
    for path in plan.paths:
        whole = {**columns, "path": path.name, **plan.columns, **further}
        if path.name not in covered and path.only.covers(whole):
            covered.add(path.name)
            yield _Point(matrix, algorithms, whole, path)


def _scenario(plan: Plan, point: _Point) -> tuple[dict[str, Any], tuple[Group, ...]]:
    changes: dict[str, Any] = {}
    for column, vary in plan.vary.items():
        if column in point.columns:
            changes.update(vary.changes(point.columns[column]))
    tree = scenarios.with_changes(point.matrix.scenario, changes)
    template = {key: value for key, value in tree["clients"][0].items() if key != "controller"}
    if "workload" not in plan.vary:
        template["workload"] = point.columns["workload"]
    clients = int(point.columns["clients"])
    shares = [clients // len(point.algorithms)] * len(point.algorithms)
    shares[0] += clients - sum(shares)
    tables, groups = [], []
    for index, (name, count) in enumerate(zip(point.algorithms, shares, strict=True)):
        algorithm = plan.known[name]
        table = scenarios.laid_over(template, {**algorithm.keys, "count": count})
        if algorithm.controller is not None:
            table["controller"] = algorithm.controller
        # what the path changes of the clients it changes of each group
        tree = _on_path(plan, point, {**tree, "clients": [table]})
        tables.append(tree["clients"][0])
        groups.append(Group(index, count, name))
    return {**tree, "clients": tables}, tuple(groups)


def _on_path(plan: Plan, point: _Point, tree: Mapping[str, Any]) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for place, value in point.path.changes.items():
        try:
            changes[place] = _filled(value, point.columns)
        except (KeyError, ValueError, IndexError):
            where = f"{plan.folder / PLAN}: path {point.path.name}: {place}"
            raise UsageError(f"{where}: {value!r} names no column: known: {', '.join(point.columns)}") from None
    return scenarios.with_changes(tree, changes)


def _filled(value: Any, columns: Mapping[str, Value]) -> Any:
    """The value with `{column}` written out in its texts."""
    if isinstance(value, str):
        return value.format_map(columns)
    if isinstance(value, dict):
        return {key: _filled(entry, columns) for key, entry in value.items()}
    return value
