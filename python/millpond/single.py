"""A single scenario as a program of one cell, so that it runs, is kept and is resumed like a study."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from millpond import scenario as scenarios
from millpond.engine import Engine
from millpond.errors import UsageError, unknown
from millpond.own import AnyController, OwnControllers, short
from millpond.results import Cell, Group, Value
from millpond.study import TRACES, Planned, Program, Trace

#: What the report of a run draws over time; it costs next to nothing.
USUAL_TRACES = ("queue", "share")
#: Traces nothing.
NO_TRACES = ("none",)
#: A scenario's timers are kept for all its clients.
_EVERY_FLOW = 2**32


def program(
    file: Path,
    engine: Engine,
    *,
    controllers: Sequence[AnyController] = (),
    replications: int = 1,
    seed: int = 1,
    trace: Sequence[str] = USUAL_TRACES,
) -> Program:
    """The scenario of a file, run once per replication with the seeds `seed`, `seed + 1`, ...

    Its client groups get other `controllers` if some are given: one for all, or as many as there are groups.

    Raises:
        UsageError: one line, if the file or a number makes no sense.
    """
    if replications < 1:
        raise UsageError(f"--replications: {replications} makes no sense here: at least 1")
    if not 0 <= seed < 2**53 - replications:
        raise UsageError(f"--seed: {seed} is out of range: 0 to 2^53")
    tables = () if tuple(trace) == NO_TRACES else tuple(trace)
    for name in tables:
        if name not in TRACES:
            raise UsageError(f"--trace: {unknown('trace', name, (*TRACES, *NO_TRACES))}")
    own = OwnControllers(file.parent)
    scenario = scenarios.load(file, engine, own)
    tree = scenarios.in_full(scenario)
    if controllers:
        own = OwnControllers()
        scenario = scenarios.build(_with_controllers(tree, controllers, own), str(file), engine, own)
        tree = scenarios.in_full(scenario)
    groups = _groups(tree)
    cell = Cell(
        number=0,
        id=file.stem,
        columns=_columns(tree, groups),
        groups=groups,
        first_run=0,
        replications=replications,
        scenario=tree,
    )
    return Program(
        kind="scenario",
        name=file.stem,
        title=str(tree.get("title") or file.stem),
        cells=(Planned(cell, scenario, traced=bool(tables)),),
        seeds=tuple(range(seed, seed + replications)),
        version=engine.version(),
        trace=Trace(tables, flows=_EVERY_FLOW),
        labels={group.algorithm: group.algorithm for group in groups},
        code=own.code,
    )


def _with_controllers(
    tree: Mapping[str, Any], controllers: Sequence[AnyController], own: OwnControllers
) -> dict[str, Any]:
    groups = len(tree["clients"])
    if len(controllers) not in (1, groups):
        wanted = "one" if groups == 1 else f"one, or {groups}"
        raise UsageError(f"--controller: {len(controllers)} for {groups} group(s) of clients: give {wanted}")
    written = [own.written(controller) for controller in controllers]
    changes = {f"clients.{group}.controller": written[group % len(written)] for group in range(groups)}
    return scenarios.with_changes(tree, changes)


def _groups(tree: Mapping[str, Any]) -> tuple[Group, ...]:
    """One group a `[[clients]]` table, named after its controller; a number tells two of one controller apart."""
    names = [_name(table["controller"]) for table in tree["clients"]]
    often, seen = Counter(names), Counter[str]()
    groups = []
    for index, (name, table) in enumerate(zip(names, tree["clients"], strict=True)):
        seen[name] += 1
        label = f"{name} #{seen[name]}" if often[name] > 1 else name
        groups.append(Group(index, int(table["count"]), label))
    return tuple(groups)


def _name(controller: Any) -> str:
    if isinstance(controller, Mapping):
        controller = controller["own"] if "own" in controller else controller["preset"]
    return short(str(controller))


def _columns(tree: Mapping[str, Any], groups: Sequence[Group]) -> dict[str, Value]:
    workloads = dict.fromkeys(str(table["workload"]) for table in tree["clients"])
    queue = str(tree["path"]["downlink"]["queue"])
    size = re.fullmatch(r"(\d+) B", queue)
    columns: dict[str, Value] = {
        "clients": sum(group.count for group in groups),
        "buffer_bytes": int(size[1]) if size else 0,
        "workload": ";".join(workloads),
        "algorithm": ";".join(group.algorithm for group in groups),
        "path": "fixed",
        "queue": queue,
    }
    return columns
