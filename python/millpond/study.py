"""Studies: a folder with a plan, a scenario, published figures and claims; the plan unfolds into cells.

A *cell* is one point of the plan's matrix (one scenario), run once per replication. The seed of a run depends on the
study and the number of the replication alone, so that every controller meets the same luck.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from millpond import scenario as scenarios
from millpond.engine import Engine, EngineScenario
from millpond.errors import UsageError, unknown
from millpond.results import Cell, Group, Value
from millpond.toml_tree import Table, read_tree

#: What a run can trace.
TRACES = ("queue", "share", "rto", "packets", "exchanges")
STUDIES = Path(__file__).parent / "scenarios" / "studies"
PLAN = "plan.toml"


@dataclass(frozen=True)
class Algorithm:
    """A name that the study's figures use, and the controller it stands for."""

    name: str
    label: str
    controller: Any


@dataclass(frozen=True)
class PathVariant:
    """One reading of the test bed's path. `only` limits it to some cells."""

    name: str
    label: str
    changes: Mapping[str, Any]
    buffers: tuple[int, ...] = ()
    clients_from: int = 0

    def covers(self, clients: int, buffer_bytes: int) -> bool:
        """Whether the variant is run for such a cell."""
        return clients >= self.clients_from and (not self.buffers or buffer_bytes in self.buffers)


@dataclass(frozen=True)
class Mix:
    """Populations of several controllers, in equal parts, on one bottleneck."""

    algorithms: tuple[str, ...]
    clients: tuple[int, ...]
    buffers: tuple[int, ...]
    workloads: tuple[str, ...]


@dataclass(frozen=True)
class Trace:
    """What is traced in the cells with most clients and the largest buffer, replication 0."""

    tables: tuple[str, ...] = ()
    step_us: int = 1_000_000
    flows: int = 8


@dataclass(frozen=True)
class Reading:
    """How published rows that leave something out are read."""

    replications: int
    algorithms: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """A study's plan, as read from `plan.toml`."""

    name: str
    title: str
    source: str
    folder: Path
    published: Path
    claims: Path
    scenario: Mapping[str, Any]
    scenario_file: Path
    replications: int
    clients: tuple[int, ...]
    buffers: tuple[int, ...]
    workloads: tuple[str, ...]
    algorithms: tuple[str, ...]
    known: Mapping[str, Algorithm]
    columns: Mapping[str, Value]
    buffer_places: tuple[str, ...]
    buffer_text: str
    mixes: tuple[Mix, ...]
    paths: tuple[PathVariant, ...]
    quick_replications: int
    quick_clients: tuple[int, ...]
    trace: Trace
    reading: Reading

    def quick(self) -> Plan:
        """The small version: fewer replications and client counts."""
        return replace(self, replications=self.quick_replications, clients=self.quick_clients)

    def narrowed(
        self,
        *,
        controllers: Sequence[str] = (),
        clients: Sequence[int] = (),
        buffers: Sequence[int] = (),
        replications: int | None = None,
    ) -> Plan:
        """The same plan with other values where some are given. Raises `UsageError` for one that makes no sense."""
        plan = self
        if controllers:
            plan = replace(plan, algorithms=tuple(self._algorithm(name) for name in dict.fromkeys(controllers)))
        if clients:
            plan = replace(plan, clients=_counts("clients", clients))
        if buffers:
            plan = replace(plan, buffers=_counts("buffers", buffers))
        if replications is not None:
            plan = replace(plan, replications=_counts("replications", [replications])[0])
        return plan

    def _algorithm(self, name: str) -> str:
        if name in self.known:
            return name
        presets = {_preset(algorithm.controller): algorithm.name for algorithm in self.known.values()}
        if name in presets:
            return presets[name]
        raise UsageError(unknown("controller", name, self.known))


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
        }
        return "sha256:" + hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


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
    file = folder / PLAN
    top = Table(read_tree(file), file)
    known = {
        name: _read_algorithm(name, top.table("algorithms").table(name)) for name in top.table("algorithms").names()
    }
    matrix, vary, quick, trace, reading = (top.table(k) for k in ("matrix", "vary", "quick", "trace", "reading"))
    buffer = vary.table("buffer_bytes")
    scenario_file = folder / top.get("scenario", str)
    replications = top.get("replications", int)
    clients = tuple(matrix.items("clients", int))
    workloads = tuple(matrix.items("workload", str))
    algorithms = tuple(matrix.items("algorithm", str))
    plan = Plan(
        name=top.get("name", str),
        title=top.get("title", str),
        source=top.get("source", str),
        folder=folder,
        published=folder / top.get("published", str),
        claims=folder / top.get("claims", str),
        scenario=scenarios.load_tree(scenario_file),
        scenario_file=scenario_file,
        replications=replications,
        clients=clients,
        buffers=tuple(matrix.items("buffer_bytes", int)),
        workloads=workloads,
        algorithms=algorithms,
        known=known,
        columns=top.table("columns").raw(),
        buffer_places=tuple(buffer.items("places", str)),
        buffer_text=buffer.get("write", str),
        mixes=tuple(_read_mix(entry, workloads) for entry in top.tables("mix")),
        paths=tuple(_read_path(entry) for entry in top.tables("path")) or (PathVariant("fixed", "as given", {}),),
        quick_replications=quick.get("replications", int, replications),
        quick_clients=tuple(quick.items("clients", int, clients)),
        trace=Trace(
            tuple(trace.items("tables", str, [])),
            round(trace.get("step", float, 1.0) * 1e6),
            trace.get("flows", int, Trace.flows),
        ),
        reading=Reading(
            reading.get("replications", int, replications), tuple(reading.items("algorithms", str, algorithms))
        ),
    )
    for table in (matrix, vary, quick, trace, reading, buffer, top):
        table.done()
    for table_name in plan.trace.tables:
        if table_name not in TRACES:
            raise UsageError(f"{trace.where('tables')}: {unknown('trace', table_name, TRACES)}")
    named = [*algorithms, *plan.reading.algorithms, *(name for mix in plan.mixes for name in mix.algorithms)]
    for name in named:
        if name not in known:
            raise UsageError(f"{file}: {unknown('algorithm', name, known)}")
    return plan


def unfold(plan: Plan, engine: Engine) -> Program:
    """All cells of a plan, in a fixed order: path variants inside workloads inside buffers inside clients."""
    wanted: list[tuple[tuple[str, ...], int, int, str, PathVariant]] = []
    for algorithm in plan.algorithms:
        for clients in plan.clients:
            for buffer_bytes in plan.buffers:
                for workload in plan.workloads:
                    for path in plan.paths:
                        if path.covers(clients, buffer_bytes):
                            wanted.append(((algorithm,), clients, buffer_bytes, workload, path))
    for mix in plan.mixes:
        if not set(mix.algorithms) <= set(plan.algorithms):
            continue
        for clients in (n for n in mix.clients if n in plan.clients):
            for buffer_bytes in (b for b in mix.buffers if b in plan.buffers):
                for workload in (w for w in mix.workloads if w in plan.workloads):
                    wanted.append((mix.algorithms, clients, buffer_bytes, workload, plan.paths[0]))
    most = max((clients for _, clients, *_ in wanted), default=0)
    largest = max((buffer_bytes for _, clients, buffer_bytes, *_ in wanted if clients == most), default=0)
    cells = []
    for number, (algorithms, clients, buffer_bytes, workload, path) in enumerate(wanted):
        tree, groups = _scenario(plan, algorithms, clients, buffer_bytes, workload, path)
        name = f"{'+'.join(algorithms)}-{workload}-{clients}-{buffer_bytes}-{path.name}"
        built = scenarios.build(tree, f"{plan.scenario_file} ({name})", engine)
        cell = Cell(
            number=number,
            id=name,
            columns={
                "clients": clients,
                "buffer_bytes": buffer_bytes,
                "workload": workload,
                "algorithm": ";".join(algorithms),
                "path": path.name,
                **plan.columns,
            },
            groups=groups,
            first_run=number * plan.replications,
            replications=plan.replications,
            scenario=scenarios.in_full(built),
        )
        here = clients == most and buffer_bytes == largest and len(algorithms) == 1 and path == plan.paths[0]
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
    )


# ----------------------------------------------------------------------------------------------- helpers


def _scenario(
    plan: Plan, algorithms: Sequence[str], clients: int, buffer_bytes: int, workload: str, path: PathVariant
) -> tuple[dict[str, Any], tuple[Group, ...]]:
    changes: dict[str, Any] = {place: plan.buffer_text.format(buffer_bytes) for place in plan.buffer_places}
    changes.update(path.changes)
    template = plan.scenario["clients"][0]
    shares = [clients // len(algorithms)] * len(algorithms)
    shares[0] += clients - sum(shares)
    tables, groups = [], []
    for index, (algorithm, count) in enumerate(zip(algorithms, shares, strict=True)):
        controller = plan.known[algorithm].controller
        tables.append({**template, "count": count, "controller": controller, "workload": workload})
        groups.append(Group(index, count, algorithm))
    changes["clients"] = tables
    return scenarios.with_changes(plan.scenario, changes), tuple(groups)


def _read_algorithm(name: str, table: Table) -> Algorithm:
    controller = table.raw().get("controller")
    algorithm = Algorithm(name, table.get("label", str, name), controller)
    if not isinstance(controller, str | dict):
        raise UsageError(f"{table.where('controller')}: expected the name of a preset or a table")
    return algorithm


def _read_mix(table: Table, workloads: Sequence[str]) -> Mix:
    mix = Mix(
        tuple(table.items("algorithms", str)),
        tuple(table.items("clients", int)),
        tuple(table.items("buffer_bytes", int)),
        tuple(table.items("workload", str, workloads)),
    )
    table.done()
    return mix


def _read_path(table: Table) -> PathVariant:
    only = table.table("only")
    variant = PathVariant(
        name=table.get("name", str),
        label=table.get("label", str, ""),
        changes=table.table("set").raw(),
        buffers=tuple(only.items("buffer_bytes", int, [])),
        clients_from=only.get("clients_from", int, 0),
    )
    only.done()
    table.done()
    return variant


def _preset(controller: Any) -> str:
    return str(controller.get("preset", "")) if isinstance(controller, dict) else str(controller)


def _counts(what: str, values: Sequence[int]) -> tuple[int, ...]:
    for value in values:
        if value < 1:
            raise UsageError(f"--{what}: {value} makes no sense here: at least 1")
    return tuple(dict.fromkeys(values))
