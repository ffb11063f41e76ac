"""What there is to run: every run of a program, and what came of some of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from millpond._engine import Outcome, Table
from millpond.plan.study import Planned, Program

#: Rows of runs, the engine's own until somebody needs them here: each table that comes over tells all its columns.
Rows: TypeAlias = pa.Table | Table


@dataclass(frozen=True)
class Job:
    """One run to do. `work` is a rough measure of how long it takes, for the time left."""

    planned: Planned
    run: int
    seed: int
    work: int

    @property
    def traced(self) -> bool:
        """Whether its traces are kept: replication 0 of a traced cell."""
        return self.planned.traced and self.run == self.planned.cell.first_run


@dataclass(frozen=True)
class Failure:
    """Why a run failed, in one line, and what a controller of one's own raised if that is known."""

    run: int
    told: str
    cause: BaseException | None = None


@dataclass(frozen=True)
class Done:
    """Runs that came to their end, with the rows of all of them in each table. One that failed is not among them."""

    runs: Sequence[int]
    tables: Mapping[str, Rows]
    failure: Failure | None = None


def jobs_of(program: Program) -> list[Job]:
    """Every run of this shard, the longest first."""
    jobs = []
    for planned in program.cells:
        cell = planned.cell
        clients = planned.scenario.clients
        seeds = program.seeds[cell.first_seed : cell.first_seed + cell.replications]
        for replication, seed in enumerate(seeds):
            if program.has(run := cell.first_run + replication):
                jobs.append(Job(planned, run, seed, clients))
    # the longest first, so that no core is left alone with one at the end
    jobs.sort(key=lambda job: (-job.work, job.run))
    return jobs


def tables_of(outcome: Outcome, traced_flows: int, dropped: Sequence[str] = ()) -> dict[str, Rows]:
    """The tables of a run as they are kept: without some, and of the trace of timers only the first clients."""
    tables: dict[str, Rows] = {name: rows for name, rows in outcome.tables().items() if name not in dropped}
    if "rto_trace" in tables:
        trace = pa.table(tables["rto_trace"])
        tables["rto_trace"] = trace.filter(pc.less(trace.column("flow"), traced_flows))
    return tables


def together(tables: Sequence[Rows]) -> pa.Table:
    """The rows of several runs as one table, as it is kept."""
    first, *others = tables
    whole = pa.concat_tables(tables) if isinstance(first, pa.Table) else pa.table(first.followed_by(others))
    return plain(whole)


def plain(table: pa.Table) -> pa.Table:
    """Dictionaries become strings: each run has its own, and Parquet makes one of all."""
    for position, column in enumerate(table.schema):
        if pa.types.is_dictionary(column.type):
            table = table.set_column(position, column.name, table.column(position).cast(column.type.value_type))
    return table
