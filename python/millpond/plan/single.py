"""A single scenario as a program of one cell, so that it runs, is kept and is resumed like a study."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from millpond.controllers.own import AnyController, OwnControllers
from millpond.errors import UsageError, unknown
from millpond.plan import scenario as scenarios
from millpond.plan.groups import groups_of
from millpond.plan.study import TRACES, Planned, Program, Trace
from millpond.results.directory import Cell, Group, Value
from millpond.run.engine import Engine

#: What the report of a run draws over time; it costs next to nothing.
USUAL_TRACES = ("queue", "share")
#: The same where few clients transfer bodies: their packets are drawn one by one.
TRANSFER_TRACES = (*USUAL_TRACES, "rto", "packets", "tcp")
#: More clients than this are not drawn one by one.
FEW = 8
#: How often queues are looked at: where packets are drawn one by one, and else.
FINE_STEP_US, STEP_US = 100_000, 1_000_000
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
    trace: Sequence[str] | None = None,
) -> Program:
    """The scenario of a file, run once per replication with the seeds `seed`, `seed + 1`, ...

    Its client groups get other `controllers` if some are given: one for all, or as many as there are groups. Left out,
    `trace` is what the report draws: `USUAL_TRACES`, or `TRANSFER_TRACES` where few clients transfer bodies.

    Raises:
        UsageError: one line, if the file or a number makes no sense.
    """
    if replications < 1:
        raise UsageError(f"--replications: {replications} makes no sense here: at least 1")
    if not 0 <= seed < 2**53 - replications:
        raise UsageError(f"--seed: {seed} is out of range: 0 to 2^53")
    tables = None if trace is None else () if tuple(trace) == NO_TRACES else tuple(trace)
    for name in tables or ():
        if name not in TRACES:
            raise UsageError(f"--trace: {unknown('trace', name, (*TRACES, *NO_TRACES))}")
    own = OwnControllers(file.parent)
    scenario = scenarios.load(file, engine, own)
    tree = scenarios.in_full(scenario)
    if controllers:
        own = OwnControllers()
        scenario = scenarios.build(_with_controllers(tree, controllers, own), str(file), engine, own)
        tree = scenarios.in_full(scenario)
    transfers = _transfers(tree)
    if tables is None:
        tables = TRANSFER_TRACES if transfers else USUAL_TRACES
    groups = groups_of(tree)
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
        trace=Trace(tables, FINE_STEP_US if transfers else STEP_US, flows=_EVERY_FLOW),
        labels={group.algorithm: group.algorithm for group in groups},
        code=own.code,
    )


def _with_controllers(
    tree: Mapping[str, Any], controllers: Sequence[AnyController], own: OwnControllers
) -> dict[str, Any]:
    # clients that ask over TCP have none
    having = [place for place, table in enumerate(tree["clients"]) if "controller" in table]
    if not having:
        raise UsageError("--controller: all clients ask over TCP, which brings its own congestion control")
    if len(controllers) not in (1, len(having)):
        wanted = "one" if len(having) == 1 else f"one, or {len(having)}"
        raise UsageError(f"--controller: {len(controllers)} for {len(having)} group(s) of clients: give {wanted}")
    written = [own.written(controller) for controller in controllers]
    changes = {f"clients[{group}].controller": written[place % len(written)] for place, group in enumerate(having)}
    return scenarios.with_changes(tree, changes)


def _transfers(tree: Mapping[str, Any]) -> bool:
    """Whether these are few clients, and some of them transfer bodies in more than one packet."""
    few = sum(int(table["count"]) for table in tree["clients"]) <= FEW
    return few and any(name in table for table in tree["clients"] for name in ("transport", "transfer"))


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
