"""What there is to run: every run of a program, and what came of some of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from millpond._engine import Batch, Outcome, Scenario
from millpond.plan.plan import Trace
from millpond.plan.program import Planned, Program
from millpond.results.store import Rows

#: How often somebody who waits for runs looks whether they are still wanted, in s.
POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Job:
    """One run to do. `work` is a rough measure of how long it takes, for the time left."""

    planned: Planned
    run: int
    seed: int
    work: int
    #: Whether its traces are kept.
    traced: bool = False


@dataclass(frozen=True)
class Failure:
    """Why a run failed, in one line, and what a user's controller raised if that is known."""

    run: int
    told: str
    cause: BaseException | None = None


@dataclass(frozen=True)
class Done:
    """Runs that came to their end, with the rows of all of them in each table. One that failed is not among them."""

    runs: Sequence[int]
    tables: Mapping[str, Rows]
    failure: Failure | None = None
    #: Every packet, if that was asked for.
    capture: bytes | None = None


class Place(Protocol):
    """Runs under way. Asking for finished ones drives them."""

    def next(self, timeout: float) -> Done | None:
        """Runs that are finished; None if there are none within so many seconds."""
        ...

    def cancel(self) -> None:
        """Begin nothing more, and end what is under way; what had finished can still be had."""
        ...

    @property
    def done(self) -> bool:
        """Whether no further run will come."""
        ...

    @property
    def workers(self) -> int:
        """Runs at the same time."""
        ...


def finished(place: Place, is_over: Callable[[], bool] = lambda: False) -> Iterator[Done | None]:
    """Runs as they finish; None where none did for a while. They end when the caller stops going through this."""
    try:
        while not place.done and not is_over():
            yield place.next(POLL_SECONDS)
    finally:
        place.cancel()


def jobs_of(program: Program) -> list[Job]:
    """Every run of this shard, the longest first."""
    jobs = []
    for planned in program.cells:
        cell = planned.cell
        clients = planned.scenario.clients
        seeds = program.seeds[cell.first_seed : cell.first_seed + cell.replications]
        for replication, seed in enumerate(seeds):
            if program.has(run := cell.first_run + replication):
                traced = planned.traced and (program.trace.every or replication == 0)
                jobs.append(Job(planned, run, seed, clients, traced))
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


class Here:
    """Runs on the cores of this machine, one batch after the other."""

    def __init__(
        self,
        batches: Iterable[Sequence[tuple[Scenario, int, int]]],
        trace: Trace | None = None,
        *,
        workers: int = 1,
        dropped: Sequence[str] = (),
        wanted: Container[int] | None = None,
        **how: bool,
    ) -> None:
        """Runs `(scenario, seed, run)`.

        Args:
            batches: Runs that are under way together.
            trace: What is traced of each.
            workers: Threads; 0 for one per core.
            dropped: Tables that are not kept.
            wanted: The runs whose rows are; left out: all.
            how: What else the engine is told of a batch.
        """
        self._waiting = deque(batches)
        self._trace, self._asked, self._how = trace or Trace(), workers, how
        self._dropped, self._wanted = dropped, wanted
        self._batch: Batch | None = None
        self.workers = 0

    def next(self, timeout: float) -> Done | None:
        """The next run."""
        batch = self._under_way()
        outcome = None if batch is None else batch.next(timeout=timeout)
        if outcome is None:
            return None
        if outcome.error is not None:
            return Done((), {}, Failure(outcome.run, outcome.error, outcome.cause))
        if self._wanted is not None and outcome.run not in self._wanted:
            return None
        tables = tables_of(outcome, self._trace.flows, self._dropped)
        return Done((outcome.run,), tables, capture=outcome.capture())

    def cancel(self) -> None:
        """Ends runs in the middle."""
        self._waiting.clear()
        if self._batch is not None:
            self._batch.cancel()

    @property
    def done(self) -> bool:
        """Whether no further run will come."""
        return not self._waiting and (self._batch is None or self._batch.done)

    def _under_way(self) -> Batch | None:
        if self._waiting and (self._batch is None or self._batch.done):
            self._batch = Batch(
                self._waiting.popleft(),
                workers=self._asked,
                trace=self._trace.tables,
                trace_step_us=self._trace.step_us,
                **self._how,
            )
            self.workers = max(self.workers, self._batch.workers)
        return self._batch
