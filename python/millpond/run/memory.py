"""A program run without files: its tables, as the engine gives them."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from millpond import _engine
from millpond.errors import MillpondError
from millpond.plan.study import Program
from millpond.results.directory import in_order
from millpond.run.campaign import POLL_SECONDS, check_memory, with_places
from millpond.run.jobs import Rows, jobs_of, together


def tables_of(program: Program, workers: int = 0, finished: Callable[[], None] = lambda: None) -> dict[str, pa.Table]:
    """Every table of all runs, rows in the order of runs, and what the program traces of every one.

    `finished` is called after each run. Raises `MillpondError` with one line if a run fails.
    """
    check_memory(program, workers)
    jobs = {job.run: job for job in jobs_of(program)}
    batch = _engine.Batch(
        [(job.planned.scenario, job.seed, job.run) for job in jobs.values()],
        workers=workers,
        trace=program.trace.tables,
        trace_step_us=program.trace.step_us,
    )
    pieces: dict[str, list[Rows]] = {}
    try:
        while not batch.done:
            outcome = batch.next(timeout=POLL_SECONDS)
            if outcome is None:
                continue
            if outcome.error is not None:
                job = jobs[outcome.run]
                raise MillpondError(f"{job.planned.cell.id}, seed {job.seed}: {outcome.error}") from outcome.cause
            for name, rows in outcome.tables().items():
                pieces.setdefault(name, []).append(rows)
            finished()
    finally:
        batch.cancel()
    tables = {name: in_order([together(found)]) for name, found in pieces.items()}
    return {**tables, "runs": with_places(tables["runs"], program)}
