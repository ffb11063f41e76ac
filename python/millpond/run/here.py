"""Runs on the cores of this machine."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Sequence

from millpond._engine import Batch, Scenario
from millpond.plan.plan import Trace
from millpond.run.jobs import Done, Failure, tables_of


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
