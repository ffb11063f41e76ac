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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from millpond.errors import MillpondError
from millpond.plan.program import Program
from millpond.results.directory import FORMAT, MANIFEST, Cell, Results
from millpond.results.factor import Value
from millpond.results.provenance import digest, engine_digest, tree_state
from millpond.results.store import Parts, Unwritten, alone_in, claim, write_bytes, write_json, write_pieces
from millpond.run import earlier, executors, possible
from millpond.run.jobs import POLL_SECONDS, Done, Here, Job, Place, finished, jobs_of
from millpond.run.spread import Elsewhere, Workers

#: Where a results directory keeps the plan that it is of.
KEPT_PLAN = "study/plan.toml"


class Interrupted(MillpondError):
    """Stopped by the user; what was done is kept."""

    exit_code = 130


class Watcher:
    """Told how one campaign goes, or several that are steps of one. This one says nothing."""

    def step(self, what: str) -> None:
        """The campaign that follows is one of several; this is what it is about."""

    def start(self, jobs: Sequence[Job], kept: int) -> None:
        """The jobs that are to be run; `kept` runs were there already."""

    def finished(self, job: Job) -> None:
        """One run is done."""

    def say(self, line: str) -> None:
        """Something the user should know."""

    def end(self) -> None:
        """No further run of this campaign will come."""

    def close(self) -> None:
        """No further step will come."""


def carry_out(
    program: Program,
    directory: Path | None = None,
    *,
    workers: int = 0,
    on: executors.On | None = None,
    resume: bool = False,
    reuse: Results | None = None,
    watcher: Watcher | None = None,
    extra_files: Mapping[str, Path] | None = None,
) -> Results:
    """Run all of a program that is not there yet, and finish its results directory.

    Args:
        program: What to run.
        directory: Where results go; made if it is not there, refused if it holds other results. None: nothing is
            written, and the results are in memory.
        workers: Threads; 0 for one per core.
        on: Where runs are done instead of on the cores of this machine, see `millpond.run.executors`.
        resume: Go on with the directory if it holds some runs of this very program.
        reuse: Earlier results, whose runs of equal scenario and seed are taken instead of run again.
        watcher: Told about progress.
        extra_files: Files copied into the directory so that it can be read by itself, by their place in it.

    Raises:
        MillpondError: with one line. `Interrupted` after Ctrl-C; finished runs are then kept for `resume`.
    """
    watcher = watcher or Watcher()
    executors.check(on, workers)
    possible.check(program, workers, elsewhere=on is not None, kept=directory is not None)
    if reuse is not None:
        earlier.check(reuse)
    campaign = _Campaign(program, directory, workers, on, watcher)
    with contextlib.nullcontext() if directory is None else alone_in(directory):
        return campaign.carry_out(resume, reuse, extra_files or {})


def cells_table(cells: Sequence[Cell]) -> pa.Table:
    """`cell`, `id`, `first_run`, `replications`, then each factor under its own name: whole numbers, numbers or texts.

    A cell without a factor has null there.
    """
    names = dict.fromkeys(name for cell in cells for name in cell.columns)
    return pa.table(
        {
            "cell": pa.array([cell.number for cell in cells], pa.uint32()),
            "id": pa.array([cell.id for cell in cells], pa.string()),
            "first_run": pa.array([cell.first_run for cell in cells], pa.uint32()),
            "replications": pa.array([cell.replications for cell in cells], pa.uint32()),
            **{name: _typed([cell.columns.get(name) for cell in cells]) for name in names},
        }
    )


def groups_table(cells: Sequence[Cell], labels: Mapping[str, str]) -> pa.Table:
    """`cell`, `group`, `name`, `label`, `algorithm`, `clients` (how many), `transport`, `traffic` (who asks).

    Args:
        cells: The cells.
        labels: What algorithms are called in figures.
    """
    rows = [(cell, group) for cell in cells for group in cell.groups]
    columns: dict[str, tuple[list[Any], pa.DataType]] = {
        "cell": ([cell.number for cell, _ in rows], pa.uint32()),
        "group": ([group.index for _, group in rows], pa.uint32()),
        "name": ([group.name for _, group in rows], pa.string()),
        "label": ([labels.get(group.algorithm, group.label) for _, group in rows], pa.string()),
        "algorithm": ([group.algorithm for _, group in rows], pa.string()),
        "clients": ([group.count for _, group in rows], pa.uint32()),
        "transport": ([group.transport for _, group in rows], pa.string()),
        "traffic": ([group.traffic for _, group in rows], pa.string()),
    }
    return pa.table({name: pa.array(values, kind) for name, (values, kind) in columns.items()})


def _typed(values: Sequence[Value | None]) -> pa.Array:
    there = [value for value in values if value is not None]
    if all(isinstance(value, int) for value in there):
        return pa.array(values, pa.int64())
    if all(isinstance(value, int | float) for value in there):
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    return pa.array([None if value is None else str(value) for value in values], pa.string())


# ----------------------------------------------------------------------------------------------- helpers


@dataclass(frozen=True)
class _Campaign:
    program: Program
    directory: Path | None
    workers: int
    on: executors.On | None
    watcher: Watcher

    def carry_out(self, resume: bool, reuse: Results | None, extra_files: Mapping[str, Path]) -> Results:
        started, program = time.monotonic(), self.program
        there = None
        if self.directory is not None:
            there = claim(self.directory, resume=resume, plan_hash=program.hash, code=program.code, shard=program.shard)
            if there is not None and there["state"] == "complete":
                _copy(extra_files, self.directory)
                return Results.of(self.directory, there)
        manifest = there or _manifest(program)
        parts = Parts(self.directory)
        parts.read()
        for line in parts.damaged:
            self.watcher.say(line)
        jobs = [job for job in jobs_of(program) if job.run not in parts.kept]
        if reuse is not None and (taken := earlier.taken(program, jobs, reuse)).runs:
            parts.add(taken.runs, taken.tables)
            self.watcher.say(f"{len(taken.runs)} runs are taken from {reuse.directory}")
            jobs = [job for job in jobs if job.run not in set(taken.runs)]
        self.watcher.start(jobs, kept=program.runs - len(jobs))
        manifest["workers"] = 0
        is_begun = there is not None
        try:
            # a wish to stop is heard from before the first run until after the last: none is lost between two batches
            with _Signals() as signals, self._who(jobs) as who:
                # not before there is somebody to run it: who names a wrong scheduler is left without a trace
                self._write(manifest)
                is_begun = True
                for traced in (True, False):
                    chosen = [job for job in jobs if job.traced is traced]
                    if chosen:
                        place = self._place(who, chosen, traced)
                        self._run(chosen, parts, place, signals)
                        manifest["workers"] = max(int(manifest["workers"]), place.workers)
        finally:
            self.watcher.end()
            manifest["wall_s"] = round(float(manifest["wall_s"]) + time.monotonic() - started, 3)
            manifest["runs_done"] = len(parts.done)
            # where there is no room, what was said first is what went wrong
            with contextlib.suppress(Unwritten):
                if is_begun:
                    self._write(manifest)
        return _finish(program, self.directory, parts, manifest, extra_files)

    def _write(self, manifest: Mapping[str, Any]) -> None:
        if self.directory is not None:
            write_json(self.directory / MANIFEST, manifest)

    @contextlib.contextmanager
    def _who(self, jobs: Sequence[Job]) -> Iterator[Workers | None]:
        if self.on is None or not jobs:
            yield None
        else:
            with executors.opened(self.on, self.workers, self.program.version) as who:
                yield who

    def _place(self, who: Workers | None, jobs: Sequence[Job], traced: bool) -> Place:
        program = self.program
        if who is not None:
            alone = f"--on {who.name}: no worker is there yet"
            return Elsewhere(program, jobs, who, traced, lambda: self.watcher.say(alone))
        together = possible.is_together(program)
        batches = possible.fleets(program, jobs) if together else [jobs]
        return Here(
            ([(job.planned.scenario, job.seed, job.run) for job in batch] for batch in batches),
            program.trace if traced else replace(program.trace, tables=()),
            workers=self.workers,
            dropped=program.dropped,
            wanted={job.run for job in jobs},
            together=together,
        )

    def _run(self, jobs: Sequence[Job], parts: Parts, place: Place, signals: _Signals) -> None:
        by_run = {job.run: job for job in jobs}

        def take(done: Done | None) -> None:
            if done is None:
                return
            parts.add(done.runs, done.tables)
            for run in done.runs:
                self.watcher.finished(by_run[run])
            if done.failure is not None:
                job = by_run[done.failure.run]
                told = f"run {job.run} ({job.planned.cell.id}, seed {job.seed}): {done.failure.told}"
                raise MillpondError(told) from done.failure.cause

        try:
            for done in finished(place, lambda: signals.stop):
                take(done)
                if parts.is_ripe:
                    self._keep(parts)
        except KeyboardInterrupt:
            signals.stop = True
        except BaseException:
            _drain(place)
            self._keep(parts)
            raise
        if not signals.stop:
            return
        _drain(place, take)
        self._keep(parts)
        if len(parts.done) < self.program.runs:
            if parts.folder is None:
                raise Interrupted(f"stopped: {len(parts.done)} of {self.program.runs} runs were done, none is kept")
            where = parts.folder.parent
            raise Interrupted(
                f"stopped: {len(parts.done)} of {self.program.runs} runs are kept in {where}: --resume goes on"
            )

    def _keep(self, parts: Parts) -> None:
        try:
            parts.write()
        except Unwritten as error:
            raise MillpondError(
                f"{self.directory}: cannot be written: {error.why}: {len(parts.kept)} of {self.program.runs} runs are "
                "kept: make room, then --resume goes on"
            ) from error


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


def _drain(place: Place, take: Callable[[Done], None] | None = None) -> None:
    """End what is under way, and take what had finished; what is lost now is run again."""
    place.cancel()
    while not place.done:
        with contextlib.suppress(MillpondError):
            done = place.next(timeout=POLL_SECONDS)
            if take is not None and done is not None and done.failure is None:
                take(done)


def _finish(
    program: Program, directory: Path | None, parts: Parts, manifest: dict[str, Any], extra_files: Mapping[str, Path]
) -> Results:
    runs = pa.concat_tables(parts.merged("runs"), promote_options="default")
    manifest["engine_s"] = round(_total(runs, "wall_us") * 1e-6, 3)
    manifest["events"] = int(_total(runs, "events"))
    manifest["unfinished_flows"] = int(_total(runs, "unfinished"))
    cells = [planned.cell for planned in program.cells]
    small = {"runs": with_places(runs, program), "cells": cells_table(cells)}
    small["groups"] = groups_table(cells, program.labels)
    names = tuple(dict.fromkeys([*parts.tables, *small]))

    def pieces(name: str) -> Iterator[pa.Table]:
        return iter([small[name]]) if name in small else parts.merged(name)

    manifest["trace"] = {
        "runs": [job.run for job in sorted(jobs_of(replace(program, shard=(1, 1))), key=_by_run) if job.traced],
        "tables": list(program.trace.tables),
        "step_us": program.trace.step_us,
        "flows": program.trace.flows,
    }
    manifest["sources"] = sorted(program.sources)
    manifest["finished"] = _now()
    manifest["state"] = "complete"
    if directory is None:
        tables = {name: pa.concat_tables(pieces(name)).combine_chunks() for name in names}
        return Results.in_memory(manifest, tables, extra_files.get(KEPT_PLAN))
    held: dict[str, pa.Table] = {}

    def written(name: str) -> tuple[str, dict[str, Any]]:
        file = directory / f"{name}.parquet"
        rows, size, only = write_pieces(file, pieces(name))
        if only is not None:
            held[name] = only
        return file.name, {"rows": rows, "bytes": size, "sha256": digest(file)}

    # two at a time: each holds some runs' rows
    with ThreadPoolExecutor(2) as threads:
        manifest["files"] = dict(threads.map(written, names))
    _copy({**extra_files, **program.sources}, directory)
    write_json(directory / MANIFEST, manifest)
    parts.remove()
    return Results.of(directory, manifest, held)


def _by_run(job: Job) -> int:
    return job.run


def _total(runs: pa.Table, name: str) -> float:
    return float(np.nansum(runs.column(name).to_numpy())) if name in runs.column_names else 0.0


def _copy(files: Mapping[str, Path], directory: Path) -> None:
    for place, source in files.items():
        (directory / place).parent.mkdir(parents=True, exist_ok=True)
        write_bytes(directory / place, source.read_bytes())


def with_places(runs: pa.Table, program: Program) -> pa.Table:
    """The table of runs with cell and replication; without the wall clock, which differs from time to time."""
    number = runs.column("run").to_numpy().astype(np.int64)
    first = np.array([planned.cell.first_run for planned in program.cells], dtype=np.int64)
    cell = np.searchsorted(first, number, side="right") - 1
    table = runs.drop_columns([c for c in ("wall_us", "scenario", "replication", "cell") if c in runs.column_names])
    table = table.add_column(1, "cell", pa.array(cell, pa.uint32()))
    return table.add_column(2, "replication", pa.array(number - first[cell], pa.uint32()))


def _manifest(program: Program) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "kind": program.kind,
        "name": program.name,
        "title": program.title,
        "state": "running",
        "version": program.version,
        "engine": engine_digest(),
        "python": platform.python_version(),
        "pyarrow": pa.__version__,
        "platform": platform.platform(),
        "tree": tree_state(),
        "command": list(sys.argv),
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
