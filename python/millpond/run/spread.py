"""Runs done in chunks by workers elsewhere."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from typing import Protocol

from millpond.errors import MillpondError
from millpond.plan.program import Program
from millpond.run import chunk
from millpond.run.jobs import Done, Job

#: A chunk should take at least so long, so that sending it costs little beside it.
CHUNK_SECONDS = 1.0
#: A chunk has at most so many times the runs of the longest one before it: the first runs may be unlike the others.
GROWTH = 8
#: Chunks for each worker that wait beside the one that it is at.
AHEAD = 1
#: A chunk is given to so many workers that die before it is taken for what kills them.
ATTEMPTS = 3
#: How often the number of workers is asked for, in s.
COUNTED_EVERY = 2.0


class Workers(Protocol):
    """Who does chunks, see `millpond.run.executors`."""

    #: How it is called in what is said of it.
    name: str

    def executor(self) -> Executor:
        """Who takes chunks now."""
        ...

    def slots(self) -> int:
        """Chunks that it does at the same time."""
        ...

    def renew(self) -> bool:
        """Begin afresh after a worker died and took the executor with it; False if that cannot be."""
        ...

    def stop(self) -> None:
        """Nobody waits for chunks that are under way."""
        ...


class Elsewhere:
    """Chunks of runs done by workers of any executor."""

    def __init__(
        self, program: Program, jobs: Sequence[Job], workers: Workers, traced: bool, alone: Callable[[], None]
    ) -> None:
        """`alone` is called when there is nobody who could take the first chunk."""
        self._program, self._workers, self._traced, self._alone = program, workers, traced, alone
        self._waiting = deque(jobs)
        #: Chunks that were lost with their worker, each with how often.
        self._again: deque[tuple[Sequence[Job], int]] = deque()
        self._open: dict[Future[chunk.Answer], tuple[Sequence[Job], int]] = {}
        #: Mean time of a run by cell, and of the last chunk the time for each measure of work, in s.
        self._by_cell: dict[int, float] = {}
        self._pace: float | None = None
        self._longest = 1
        self._slots, self._counted, self.workers = 0, 0.0, 0
        self._cancelled = False

    def next(self, timeout: float) -> Done | None:
        """The runs of a chunk. Raises `MillpondError` with one line if there is nobody left to do them."""
        self._fill()
        finished, _ = wait(self._open, timeout=timeout, return_when=FIRST_COMPLETED)
        for future in finished:
            jobs, attempt = self._open.pop(future)
            if self._cancelled and future.cancelled():
                continue
            try:
                told = chunk.received(future.result(), self._program.version)
            except BrokenExecutor as error:
                self._broken([(jobs, attempt)], error)
            except CancelledError:
                raise MillpondError(f"--on {self._workers.name}: it took the runs back, or is gone") from None
            except MillpondError as error:
                raise MillpondError(f"--on {self._workers.name}: {error}") from None
            except Exception as error:  # whatever a worker, or the way to it, raised
                raise MillpondError(f"--on {self._workers.name}: {_in_short(error)}") from error
            else:
                self._learn(jobs, told)
                lacking = set(told.done.runs).symmetric_difference(job.run for job in jobs)
                if lacking and told.done.failure is None and not self._cancelled:
                    self._put_back([job for job in jobs if job.run in lacking], attempt)
                return told.done
        return None

    def cancel(self) -> None:
        """Takes back what no worker has begun; workers end the others between two runs or sooner."""
        self._cancelled = True
        self._waiting.clear()
        self._again.clear()
        finished = {future for future in self._open if future.done()}
        for future in list(self._open):
            if future not in finished:
                future.cancel()
                del self._open[future]
        self._workers.stop()

    @property
    def done(self) -> bool:
        """Whether no further chunk will come."""
        return not (self._waiting or self._again or self._open)

    # ----------------------------------------------------------------------------------------------- helpers

    def _fill(self) -> None:
        """Keeps every worker busy, and few chunks more: what is sent too early cannot be taken back for certain."""
        if not (self._waiting or self._again):
            return
        if time.monotonic() - self._counted >= COUNTED_EVERY or not self._slots:
            self._slots, self._counted = self._workers.slots(), time.monotonic()
            self.workers = max(self.workers, self._slots)
            if not self._slots and not self._open:
                self._alone()
        # until something is known of how long runs take, nobody gets more than one
        wanted = max(1, self._slots) * (1 if self._pace is None else 1 + AHEAD)
        while len(self._open) < wanted and (self._waiting or self._again):
            jobs, attempt = self._again.popleft() if self._again else (self._next_chunk(), 1)
            task = chunk.sent(self._program, jobs, self._traced)
            try:
                future = self._workers.executor().submit(chunk.work, task)
            except BrokenExecutor as error:
                self._broken([(jobs, attempt - 1)], error)
                return
            self._open[future] = (jobs, attempt)

    def _next_chunk(self) -> list[Job]:
        jobs, seconds = [self._waiting.popleft()], 0.0
        if self._pace is None:
            return jobs
        seconds = self._estimate(jobs[0])
        while self._waiting and seconds < CHUNK_SECONDS and len(jobs) < GROWTH * self._longest:
            jobs.append(self._waiting.popleft())
            seconds += self._estimate(jobs[-1])
        return jobs

    def _estimate(self, job: Job) -> float:
        known = self._by_cell.get(job.planned.cell.number)
        return known if known is not None else (self._pace or 0.0) * (1 + job.work)

    def _learn(self, jobs: Sequence[Job], told: chunk.Told) -> None:
        done = len(told.done.runs)
        if not done:
            return
        self._longest = max(self._longest, done)
        self._pace = told.seconds / sum(1 + job.work for job in jobs)
        for number in {job.planned.cell.number for job in jobs}:
            self._by_cell[number] = told.seconds / done

    def _broken(self, lost: Sequence[tuple[Sequence[Job], int]], error: BrokenExecutor) -> None:
        """A worker died and took the executor with it: whatever it had is run again by another."""
        whole = {f for f in self._open if f.done() and not f.cancelled() and f.exception() is None}
        lost = [*lost, *(entry for future, entry in self._open.items() if future not in whole)]
        self._open = {future: entry for future, entry in self._open.items() if future in whole}
        if not self._workers.renew():
            raise MillpondError(f"--on {self._workers.name}: a worker died, and the others with it") from error
        for jobs, attempt in lost:
            self._put_back(jobs, attempt)

    def _put_back(self, jobs: Sequence[Job], attempt: int) -> None:
        if attempt >= ATTEMPTS:
            raise MillpondError(
                f"--on {self._workers.name}: {attempt} workers died that had run {jobs[0].run} "
                f"({jobs[0].planned.cell.id}) or one beside it: give them more memory"
            )
        self._again.append((jobs, attempt + 1))


def _in_short(error: BaseException) -> str:
    told = (str(error).splitlines() or [""])[0]
    if type(error).__name__ == "KilledWorker":
        return f"all workers died that had these runs: give them more memory ({told})"
    if isinstance(error, ImportError | AttributeError):
        return f"a worker cannot read what it is sent ({told}): install this version of millpond on all of them"
    return f"{type(error).__name__}: {told}"
