"""Runs a program: many runs, on all cores or by workers elsewhere, kept as they finish, stopped and resumed at will."""

from __future__ import annotations

import contextlib
import datetime
import platform
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa

from millpond.errors import MillpondError
from millpond.plan.study import Program
from millpond.results.cells import cells_table, groups_table
from millpond.results.directory import FORMAT, MANIFEST, Results
from millpond.results.provenance import digest, tree_state
from millpond.results.store import Parts, Unwritten, alone_in, claim, write_json, write_pieces, write_text
from millpond.run import chunk, executors
from millpond.run import together as sites
from millpond.run.jobs import Done, Job, Rows, jobs_of, together
from millpond.run.spread import Elsewhere, Here, Place, Workers

#: A part is written when so many client rows wait, or so many seconds have passed since the last one.
PART_ROWS = 200_000
PART_SECONDS = 10.0
#: How often a wish to stop is looked for.
POLL_SECONDS = 0.1
#: Python's own memory for one client's row, from engine to file.
ROW_BYTES = 400


class Interrupted(MillpondError):
    """Stopped by the user; what was done is kept."""

    exit_code = 130


class Watcher:
    """Told how a campaign goes. This one says nothing."""

    def start(self, jobs: Sequence[Job], kept: int) -> None:
        """The jobs that are to be run; `kept` runs were there already."""

    def finished(self, job: Job) -> None:
        """One run is done."""

    def say(self, line: str) -> None:
        """Something the user should know."""

    def end(self) -> None:
        """No further run will come."""


@dataclass
class _Pending:
    """Tables of finished runs that are not in a part yet."""

    runs: list[int] = field(default_factory=list)
    tables: dict[str, list[Rows]] = field(default_factory=dict)
    rows: int = 0
    since: float = field(default_factory=time.monotonic)

    @property
    def ripe(self) -> bool:
        return bool(self.runs) and (self.rows >= PART_ROWS or time.monotonic() - self.since >= PART_SECONDS)


def carry_out(
    program: Program,
    directory: Path,
    *,
    workers: int = 0,
    on: executors.On | None = None,
    resume: bool = False,
    command: Sequence[str] = (),
    watcher: Watcher | None = None,
    extra_files: Mapping[str, Path] | None = None,
) -> Results:
    """Run all of a program that is not there yet, and finish its results directory.

    Args:
        program: What to run.
        directory: Where results go; made if it is not there, refused if it holds other results.
        workers: Threads; 0 for one per core.
        on: Where runs are done instead of on the cores of this machine, see `millpond.run.executors`.
        resume: Go on with the directory if it holds some runs of this very program.
        command: The command line, for the manifest.
        watcher: Told about progress.
        extra_files: Files copied into the directory so that it can be read by itself, by their place in it.

    Raises:
        MillpondError: with one line. `Interrupted` after Ctrl-C; finished runs are then kept for `resume`.
    """
    watcher = watcher or Watcher()
    executors.check(on, workers)
    sites.check(program, elsewhere=on is not None)
    if on is None:
        check_memory(program, workers)
    else:
        chunk.check(program)
    with alone_in(directory):
        return _carry_out(program, directory, workers, on, resume, command, watcher, extra_files or {})


def _carry_out(
    program: Program,
    directory: Path,
    workers: int,
    on: executors.On | None,
    resume: bool,
    command: Sequence[str],
    watcher: Watcher,
    extra_files: Mapping[str, Path],
) -> Results:
    started = time.monotonic()
    there = claim(directory, resume=resume, plan_hash=program.hash, code=program.code, shard=program.shard)
    if there is not None and there["state"] == "complete":
        _copy(extra_files, directory)
        return Results.of(directory, there)
    manifest = there or _manifest(program, command)
    parts = Parts(directory)
    parts.read()
    for line in parts.damaged:
        watcher.say(line)
    jobs = [job for job in jobs_of(program) if job.run not in parts.done]
    watcher.start(jobs, kept=program.runs - len(jobs))
    manifest["workers"] = 0
    is_begun = there is not None
    try:
        # a wish to stop is heard from before the first run until after the last: none is lost between two batches
        with _Signals() as signals, _who(on if jobs else None, workers, program) as who:
            # not before there is somebody to run it: who names a wrong scheduler is left without a trace
            write_json(directory / MANIFEST, manifest)
            is_begun = True
            for traced in (True, False):
                chosen = [job for job in jobs if job.traced is traced]
                if chosen:
                    place = _place(who, chosen, program, workers, traced, watcher)
                    _run(chosen, program, parts, place, watcher, signals)
                    manifest["workers"] = max(int(manifest["workers"]), place.workers)
    finally:
        watcher.end()
        manifest["wall_s"] = round(float(manifest["wall_s"]) + time.monotonic() - started, 3)
        manifest["runs_done"] = len(parts.done)
        # where there is no room, what was said first is what went wrong
        with contextlib.suppress(Unwritten):
            if is_begun:
                write_json(directory / MANIFEST, manifest)
    _finish(program, directory, parts, manifest, extra_files)
    return Results.of(directory, manifest)


def check_memory(program: Program, workers: int) -> None:
    """Refuse a program whose runs would not fit this machine's memory. Raises `MillpondError` with one line."""
    used = workers or psutil.cpu_count() or 1
    available = int(psutil.virtual_memory().available)
    if sites.is_together(program):
        need = sites.most_bytes(program, ROW_BYTES)
        if need > available:
            raise MillpondError(
                f"{program.name}: sites that share links are in memory all at once, which takes about {_bytes(need)}, "
                f"{_bytes(available)} are free: fewer sites or clients"
            )
        return
    for planned in program.cells:
        replications = planned.cell.replications
        need = planned.scenario.estimated_bytes() * min(used, max(1, replications))
        need += planned.scenario.clients * ROW_BYTES * replications
        if need > available:
            raise MillpondError(
                f"{planned.cell.id}: {planned.scenario.clients} clients need about {_bytes(need)} of memory "
                f"with {used} workers, {_bytes(available)} are free: fewer clients, replications or --jobs"
            )


# ----------------------------------------------------------------------------------------------- helpers


@contextlib.contextmanager
def _who(on: executors.On | None, workers: int, program: Program) -> Iterator[Workers | None]:
    if on is None:
        yield None
    else:
        with executors.opened(on, workers, program.version) as who:
            yield who


def _place(
    who: Workers | None,
    jobs: Sequence[Job],
    program: Program,
    workers: int,
    traced: bool,
    watcher: Watcher,
) -> Place:
    if sites.is_together(program):
        return sites.Together(program, jobs, workers)
    if who is None:
        return Here(program, jobs, workers, traced)
    return Elsewhere(program, jobs, who, traced, lambda: watcher.say(f"--on {who.name}: no worker is there yet"))


def _run(
    jobs: Sequence[Job], program: Program, parts: Parts, place: Place, watcher: Watcher, signals: _Signals
) -> None:
    by_run = {job.run: job for job in jobs}
    pending = _Pending()

    def keep(done: Done) -> None:
        _collect(pending, done)
        for run in done.runs:
            watcher.finished(by_run[run])
        if done.failure is not None:
            job = by_run[done.failure.run]
            told = f"run {job.run} ({job.planned.cell.id}, seed {job.seed}): {done.failure.told}"
            raise MillpondError(told) from done.failure.cause

    try:
        while not place.done and not signals.stop:
            done = place.next(timeout=POLL_SECONDS)
            if done is not None:
                keep(done)
            if pending.ripe:
                pending = _flush(pending, parts, program.runs)
    except KeyboardInterrupt:
        signals.stop = True
    except BaseException:
        _stop(place)
        _flush(pending, parts, program.runs)
        raise
    if signals.stop:
        _stop(place, keep)
    _flush(pending, parts, program.runs)
    if signals.stop and len(parts.done) < program.runs:
        where = parts.folder.parent
        raise Interrupted(f"stopped: {len(parts.done)} of {program.runs} runs are kept in {where}: --resume goes on")


class _Signals:
    """Ctrl-C and SIGTERM ask the loop to stop between two runs, never in the middle of a file; twice stops at once."""

    def __init__(self) -> None:
        self.stop = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> _Signals:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._told)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    def _told(self, *_: object) -> None:
        if self.stop:
            raise KeyboardInterrupt
        self.stop = True


def _stop(place: Place, keep: Callable[[Done], None] | None = None) -> None:
    place.cancel()
    while not place.done:
        # what is lost now is run again
        with contextlib.suppress(MillpondError):
            done = place.next(timeout=POLL_SECONDS)
            if keep is not None and done is not None and done.failure is None:
                keep(done)


def _collect(pending: _Pending, done: Done) -> None:
    for name, table in done.tables.items():
        pending.tables.setdefault(name, []).append(table)
        pending.rows += table.num_rows
    pending.runs.extend(done.runs)


def _flush(pending: _Pending, parts: Parts, runs: int) -> _Pending:
    if pending.runs and pending.runs[0] not in parts.done:
        try:
            parts.add(pending.runs, {name: together(tables) for name, tables in pending.tables.items()})
        except Unwritten as error:
            raise MillpondError(
                f"{parts.folder.parent}: cannot be written: {error.why}: {len(parts.done)} of {runs} runs are kept: "
                "make room, then --resume goes on"
            ) from error
    return _Pending()


def _finish(
    program: Program, directory: Path, parts: Parts, manifest: dict[str, Any], extra_files: Mapping[str, Path]
) -> None:
    runs = pa.concat_tables(parts.merged("runs"))
    manifest["engine_s"] = round(float(np.sum(runs.column("wall_us").to_numpy())) * 1e-6, 3)
    manifest["events"] = int(np.sum(runs.column("events").to_numpy()))
    manifest["unfinished_flows"] = int(np.sum(runs.column("unfinished").to_numpy()))
    cells = [planned.cell for planned in program.cells]
    small = {"runs": with_places(runs, program), "cells": cells_table(cells)}
    small["groups"] = groups_table(cells, program.labels)

    def written(name: str) -> tuple[str, dict[str, Any]]:
        file = directory / f"{name}.parquet"
        rows, size = write_pieces(file, [small[name]] if name in small else parts.merged(name))
        return file.name, {"rows": rows, "bytes": size, "sha256": digest(file)}

    # two at a time: each holds some runs' rows
    with ThreadPoolExecutor(2) as threads:
        files = dict(threads.map(written, dict.fromkeys([*parts.tables, *small])))
    _copy({**extra_files, **program.sources}, directory)
    manifest["sources"] = sorted(program.sources)
    traced = [planned.cell.first_run for planned in program.cells if planned.traced]
    manifest["trace"] = {
        "runs": traced,
        "tables": list(program.trace.tables),
        "step_us": program.trace.step_us,
        "flows": program.trace.flows,
    }
    manifest["files"] = files
    manifest["finished"] = _now()
    manifest["state"] = "complete"
    write_json(directory / MANIFEST, manifest)
    parts.remove()


def _copy(files: Mapping[str, Path], directory: Path) -> None:
    for place, source in files.items():
        (directory / place).parent.mkdir(parents=True, exist_ok=True)
        write_text(directory / place, source.read_text(encoding="utf-8"))


def with_places(runs: pa.Table, program: Program) -> pa.Table:
    """The table of runs with cell and replication; without the wall clock, which differs from time to time."""
    number = runs.column("run").to_numpy().astype(np.int64)
    first = np.array([planned.cell.first_run for planned in program.cells], dtype=np.int64)
    cell = np.searchsorted(first, number, side="right") - 1
    table = runs.drop_columns([c for c in ("wall_us", "scenario", "replication", "cell") if c in runs.column_names])
    table = table.add_column(1, "cell", pa.array(cell, pa.uint32()))
    return table.add_column(2, "replication", pa.array(number - first[cell], pa.uint32()))


def _manifest(program: Program, command: Sequence[str]) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "kind": program.kind,
        "name": program.name,
        "title": program.title,
        "state": "running",
        "version": program.version,
        "python": platform.python_version(),
        "pyarrow": pa.__version__,
        "platform": platform.platform(),
        "tree": tree_state(),
        "command": list(command) or sys.argv,
        "started": _now(),
        "finished": None,
        "wall_s": 0.0,
        "workers": 0,
        "plan_hash": program.hash,
        "controllers": {name: dict(files) for name, files in program.code.items()},
        "runs": program.runs,
        "runs_done": 0,
        "replications": len(program.seeds),
        "seeds": list(program.seeds),
        "shard": list(program.shard),
        "labels": dict(program.labels),
        "bottleneck": program.bottleneck,
        "page": program.page,
        "factors": {name: factor.to_json() for name, factor in program.factors.items()},
        "paths": dict(program.paths),
        "cells": [planned.cell.to_json() for planned in program.cells],
        "files": {},
    }


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


def _bytes(number: int) -> str:
    size = float(number)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if size < 1000 or unit == "TB":
            return f"{size:.3g} {unit}" if size < 1000 else f"{size:.0f} {unit}"
        size /= 1000
    raise AssertionError
