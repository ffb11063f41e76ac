"""A chunk of runs as it travels: JSON to a worker, Arrow streams back, and nothing else.

A worker needs this package alone: scenarios, seeds and the source of custom controllers are in the task. What a
run gives depends on these, so a chunk that is run again elsewhere gives the same bytes.
"""

from __future__ import annotations

import base64
import json
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc

from millpond import _engine
from millpond.controllers.own import OwnControllers, kept
from millpond.errors import MillpondError
from millpond.plan import scenario as scenarios
from millpond.plan.plan import Trace
from millpond.plan.program import Program
from millpond.results.store import Rows, joined
from millpond.run.jobs import Done, Failure, Here, Job, finished
from millpond.run.possible import GIVEN

#: What a worker gives back: what it says of the chunk as JSON, and each table as an Arrow stream.
Answer = tuple[str, dict[str, bytes]]

#: Whether nobody waits for the chunks of this process any more; set where workers are started.
_given_up: Callable[[], bool] | None = None


@dataclass(frozen=True)
class Told:
    """What came of a chunk: its runs, and how long they took together, in s."""

    done: Done
    seconds: float


def stop_when(given_up: Callable[[], bool]) -> None:
    """Chunks of this process end between two runs, and inside of one, once this says so."""
    global _given_up
    _given_up = given_up


# ----------------------------------------------------------------------------------------------- sent and received


def sent(program: Program, jobs: Sequence[Job], traced: bool) -> str:
    """The task of these runs, which are all traced or all not."""
    cells: dict[int, dict[str, Any]] = {}
    for job in jobs:
        cell = job.planned.cell
        entry = cells.setdefault(
            cell.number, {"id": cell.id, "scenario": job.planned.scenario.to_json(), "runs": [], "seeds": []}
        )
        entry["runs"].append(job.run)
        entry["seeds"].append(job.seed)
    return json.dumps(
        {
            "version": program.version,
            "cells": list(cells.values()),
            "dropped": program.dropped,
            "trace": {
                "tables": list(program.trace.tables) if traced else [],
                "step_us": program.trace.step_us,
                "flows": program.trace.flows,
            },
            **({"code": program.code, "sources": _texts(program)} if program.code else {}),
        }
    )


def received(answer: Answer, here: str) -> Told:
    """What a worker gave. Raises `MillpondError` with one line if it is no worker of this version, which is `here`."""
    head, streams = answer
    told = json.loads(head)
    if told["version"] != here:
        raise MillpondError(other_version(told["where"], told["version"], here))
    if told["refused"] is not None:
        raise MillpondError(f"{told['where']}: {told['refused']}")
    failure = None if told["failure"] is None else Failure(int(told["failure"]["run"]), str(told["failure"]["told"]))
    tables = {name: pa.ipc.open_stream(stream).read_all() for name, stream in streams.items()}
    return Told(Done([int(run) for run in told["runs"]], tables, failure), float(told["seconds"]))


def other_version(where: str, there: str, here: str) -> str:
    """The one line about workers with another version of this package."""
    return f"{where}: its millpond is version {there}, this is {here}: install millpond=={here} on the workers"


# ----------------------------------------------------------------------------------------------- at a worker


def work(task: str) -> Answer:
    """Do a chunk of runs, at a worker."""
    told = json.loads(task)
    head: dict[str, Any] = {
        "version": _engine.version(),
        "where": _where(),
        "runs": [],
        "seconds": 0.0,
        "failure": None,
        "refused": None,
    }
    if told["version"] != _engine.version():
        return json.dumps(head), {}
    began, given_up = time.monotonic(), _given_up or _dropped_by_dask()
    try:
        jobs = _jobs(told)
    except MillpondError as error:
        return json.dumps({**head, "refused": str(error)}), {}
    trace = Trace(tuple(told["trace"]["tables"]), told["trace"]["step_us"], told["trace"]["flows"])
    pieces: dict[str, list[Rows]] = {}
    for done in finished(Here([jobs], trace, dropped=told["dropped"]), given_up):
        if done is None:
            continue
        if done.failure is not None:
            head["failure"] = {"run": done.failure.run, "told": done.failure.told}
            break
        for name, table in done.tables.items():
            pieces.setdefault(name, []).append(table)
        head["runs"].extend(done.runs)
    streams = {name: _stream(joined(tables)) for name, tables in pieces.items()}
    return json.dumps({**head, "seconds": time.monotonic() - began}), streams


# ----------------------------------------------------------------------------------------------- helpers


def _texts(program: Program) -> dict[str, str]:
    return {place: base64.b64encode(source.read_bytes()).decode() for place, source in program.sources.items()}


def _jobs(told: Mapping[str, Any]) -> list[tuple[Any, int, int]]:
    code = told.get("code", {})
    own = _own(json.dumps(told.get("sources", {}), sort_keys=True), tuple(code)) if code else OwnControllers()
    jobs = []
    for cell in told["cells"]:
        scenario = scenarios.build(json.loads(cell["scenario"]), str(cell["id"]), own)
        jobs += [(scenario, int(seed), int(run)) for seed, run in zip(cell["seeds"], cell["runs"], strict=True)]
    for name, files in own.code.items():
        if {file: digest for file, digest in code[name].items() if file != GIVEN} != files:
            raise MillpondError(f"{name}: what was sent of it is not all of it: keep it in one folder of its own")
    return jobs


@lru_cache(maxsize=16)
def _own(sources: str, names: tuple[str, ...]) -> OwnControllers:
    """Controllers from source that was sent. Their folder stays: they may import what lies beside them later."""
    home = Path(tempfile.mkdtemp(prefix="millpond-"))
    for place, text in json.loads(sources).items():
        file = home / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(base64.b64decode(text))
    own = OwnControllers(*(home / kept(name) for name in names))
    for name in names:
        own.know(name, home)
    return own


def _stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as stream:
        stream.write_table(table)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def _where() -> str:
    """What to call this worker."""
    worker = _dask_worker()
    return "a worker" if worker is None else f"worker {worker.address}"


def _dask_worker() -> Any:
    """The Dask worker whose task this is; None if it is none's."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.get_worker()
    except (ValueError, AttributeError):
        return None


def _dropped_by_dask() -> Callable[[], bool]:
    """Whether the scheduler has taken this task back: a running one is not told, it has to look."""
    worker = _dask_worker()
    if worker is None:
        return lambda: False
    key = worker.get_current_task()

    def dropped() -> bool:
        task = worker.state.tasks.get(key)
        return task is None or task.state == "cancelled"

    return dropped
