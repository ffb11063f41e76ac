"""Who is done by when, and what became of every request: told the same way in every table, report and file.

A client is *complete* if every request of it was answered; it *lost* one if a request failed; it is *unfinished* if the
run ended before it. Of its requests some were *answered*, some *failed* and some *never finished*, and nothing else:
arrived = answered + failed + never finished. *Delivered* are those that reached the far side, whatever became of the
answer. A client that lost a request is never done, however many it goes on to send. One that had nothing to ask is none
of these, and is in no share; a group whose work goes on until the run ends is never done, so no time is told of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from millpond.measure.statistics import Floats
from millpond.measure.workloads import starts_endless, with_an_end
from millpond.results import rows
from millpond.results.directory import Cell, Group, Results

#: The shares of clients whose times every table gives.
SHARES = (0.5, 0.9, 0.99, 1.0)
TABLE = "reported"

#: What is counted: clients of which every request was answered, or requests that were.
What = Literal["clients", "answered"]
_OF: dict[What, str] = {"clients": "clients_of", "answered": "of"}


@dataclass(frozen=True)
class Course:
    """How many are done by when, over all runs of a cell: steps up, each at a time in s since the start or event."""

    times: Floats
    #: Clients that are done by then.
    done: Floats
    #: Clients that asked something, those that are never done among them; 0 where nobody can be done.
    of: int

    @staticmethod
    def none() -> Course:
        """That of clients of whom nothing is told."""
        return Course(np.empty(0), np.empty(0), 0)

    @staticmethod
    def together(parts: Sequence[Course]) -> Course:
        """Those of several groups."""
        times = np.concatenate([np.empty(0), *(part.times for part in parts)])
        steps = np.concatenate([np.empty(0), *(np.diff(part.done, prepend=0.0) for part in parts)])
        order = np.argsort(times, kind="stable")
        return Course(times[order], np.cumsum(steps[order]), sum(part.of for part in parts))

    @property
    def share(self) -> Floats:
        """The share of all clients that is done by each of the times."""
        return self.done / self.of if self.of else np.zeros(self.times.size)

    @property
    def end(self) -> float:
        """The share that is done at last; 0 without clients."""
        return float(self.done[-1]) / self.of if self.done.size and self.of else 0.0

    def by(self, share: float) -> float | None:
        """When so large a share of all clients is done, in s; None if it never is."""
        place = int(np.searchsorted(self.done, _needed(share, self.of)))
        return float(self.times[place]) if self.of and place < self.times.size else None

    @property
    def points(self) -> dict[float, float | None]:
        """When the shares of `SHARES` are done."""
        return {share: self.by(share) for share in SHARES}


@dataclass(frozen=True)
class Outcome:
    """What became of the clients of a cell or group and of their requests, over all runs.

    None: results of an earlier version, which did not count it.
    """

    clients: int
    complete: int
    #: Clients of whose requests at least one failed.
    lost: int
    #: Clients that the end of the run cut off.
    unfinished: int
    #: Clients that had nothing to ask: none of the above.
    silent: int
    born: int | None
    answered: int
    failed: int
    never_finished: int | None
    delivered: int | None

    @property
    def is_silent(self) -> bool:
        """Whether nobody asked anything, so that nobody can be done with it either."""
        return self.silent == self.clients

    @property
    def delivery_ratio(self) -> float | None:
        """Delivered over born; None if it was not counted."""
        return self.delivered / self.born if self.delivered is not None and self.born else None


class Reported:
    """Who is done by when in the results of one directory. Columns are read once; cells are slices of them."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self._flows = _Table(results, "flows")
        self._events: dict[tuple[int, int | None], tuple[int, ...]] = {}

    @cached_property
    def _counted(self) -> _Table | None:
        return _Table(self.results, TABLE) if self.results.has(TABLE) else None

    def events(self, cell: Cell, group: Group | None = None) -> tuple[int, ...]:
        """The events that clients report after: 0 is the start of the run, others are those of its timeline."""
        if self._counted is None:
            return (0,)
        key = (cell.number, None if group is None else group.index)
        if key not in self._events:
            found = np.unique(self._counted.of(cell, group, "event"))
            self._events[key] = tuple(found.astype(np.int64).tolist()) or (0,)
        return self._events[key]

    def ending(self, cell: Cell, group: Group) -> tuple[int, ...]:
        """Those of a group's events with which it can be done: not the start, if work from there on has no end."""
        told = self.events(cell, group)
        return told[1:] if len(told) > 1 and told[0] == 0 and starts_endless(cell, group) else told

    def since(self, cell: Cell, group: Group | None = None) -> frozenset[int]:
        """The events that times of being done count from: of each group the first one with which it can be done."""
        return frozenset(self.ending(cell, one)[0] for one in with_an_end(cell, group))

    def course(self, cell: Cell, group: Group | None = None, event: int | None = None) -> Course:
        """Who is done by when after an event, all runs of the cell taken together.

        The event left out: of each group the first one with which it can be done, from which its times count.
        """
        ended = with_an_end(cell, group)
        apart = event is None and len(self.since(cell)) > 1
        if group is None and ended and (apart or len(ended) < len(cell.groups)):
            return Course.together([self.course(cell, one, event) for one in ended])
        if not ended:
            return Course.none()
        if event is None:
            event = min(self.since(cell, group))
        # to the microsecond where each client's own end says it; what belongs to an event is counted in bins
        if self._counted is None or self._is_exact(cell, group, event):
            return self._from_clients(cell, group)
        return _summed(self._counted, cell, group, event)

    def each_run(self, cell: Cell, group: Group | None, share: float, event: int = 0, what: What = "clients") -> Floats:
        """When so large a share of the clients was complete, or of the requests answered, run by run.

        In s since the event; infinite for a run in which it never was, NaN for one of which nothing is told.
        """
        runs = np.arange(cell.first_run, cell.first_run + cell.replications)
        found = np.full(runs.size, np.nan)
        if not with_an_end(cell, group):
            return found
        if what == "clients" and self._is_exact(cell, group, event):
            times, of_run = self._done(cell, group), self._flows.of(cell, group, "run")
            for place, run in enumerate(runs):
                ends = np.sort(times[(of_run == run) & ~np.isnan(times)])
                if ends.size:
                    found[place] = ends[max(0, _needed(share, ends.size) - 1)]
        elif self._counted is not None:
            for place, run in enumerate(runs):
                course = _summed(self._counted, cell, group, event, what, int(run))
                if course.of:
                    by = course.by(share)
                    found[place] = np.inf if by is None else by
        return found

    def after_events(self, cell: Cell, groups: Sequence[Group], run: int) -> Course:
        """How many clients of several groups together are done by when in a run: each group after its own event.

        For groups that the same instant concerns, whatever the timeline calls it. Empty if nothing is reported of them.
        """
        if self._counted is None:
            return Course.none()
        found = [
            _summed(self._counted, cell, group, event, run=run)
            for group in groups
            for event in self.events(cell, group)
            if event != 0
        ]
        return Course.together(found)

    def outcome(self, cell: Cell, group: Group | None = None) -> Outcome:
        """What became of the clients and of their requests."""
        flows = self._flows
        if flows.has("born"):
            failed, left = flows.of(cell, group, "requests_failed"), flows.of(cell, group, "never_finished")
            answered, born = flows.of(cell, group, "answered"), flows.of(cell, group, "born")
            delivered = int(flows.of(cell, group, "delivered").sum())
            ended = np.isfinite(flows.of(cell, group, "done_us"))
            silent = ended & (born == 0)
            complete, unfinished = ended & (answered == born) & ~silent, (left > 0) | ~ended
            counts: tuple[int | None, ...] = int(born.sum()), int(left.sum()), delivered
        else:
            failed, answered = flows.of(cell, group, "failed"), flows.of(cell, group, "completed")
            ended = np.isfinite(flows.of(cell, group, "fct_us"))
            complete, unfinished = ended & (failed == 0), ~ended & (failed == 0)
            silent = np.zeros(failed.size, dtype=np.bool_)
            counts = None, None, None
        return Outcome(
            clients=int(failed.size),
            complete=int(complete.sum()),
            lost=int((failed > 0).sum()),
            unfinished=int(unfinished.sum()),
            silent=int(silent.sum()),
            born=counts[0],
            answered=int(np.nansum(answered)),
            failed=int(np.nansum(failed)),
            never_finished=counts[1],
            delivered=counts[2],
        )

    # ----------------------------------------------------------------------------------------------- helpers

    def _is_exact(self, cell: Cell, group: Group | None, event: int) -> bool:
        """Whether each client's own end says it: every request belongs to the start, none to everyday traffic."""
        if self._counted is None:
            return True
        if event != 0 or self.events(cell) != (0,) or not self._flows.has("born"):
            return False
        runs, groups, of = (self._counted.of(cell, group, name) for name in ("run", "group", "of"))
        begun = of[_changes(runs) | _changes(groups)].sum()
        return bool(begun == self._flows.of(cell, group, "born").sum())

    def _from_clients(self, cell: Cell, group: Group | None) -> Course:
        times = self._done(cell, group)
        ends = np.sort(times[np.isfinite(times)])
        return Course(ends, np.arange(1.0, ends.size + 1), int((~np.isnan(times)).sum()))

    def _done(self, cell: Cell, group: Group | None) -> Floats:
        """When each client had everything, in s since the start: infinite if it never had, NaN if it asked nothing."""
        flows = self._flows
        if flows.has("born"):
            ends = flows.of(cell, group, "done_us")
            whole = flows.of(cell, group, "answered") == flows.of(cell, group, "born")
        else:
            ends = flows.of(cell, group, "first_send_us") + flows.of(cell, group, "fct_us")
            whole = flows.of(cell, group, "failed") == 0
        found = np.where(whole & np.isfinite(ends), ends * 1e-6, np.inf)
        if flows.has("born"):
            found[np.isfinite(ends) & (flows.of(cell, group, "born") == 0)] = np.nan
        return found


class _Table:
    """The columns of a table as numbers, NaN where nothing is said."""

    def __init__(self, results: Results, name: str) -> None:
        self._table = rows.of(results, name)

    def has(self, column: str) -> bool:
        return column in self._table.names

    def of(self, cell: Cell, group: Group | None, column: str) -> Floats:
        """The column's rows of a cell, or of one of its groups."""
        return self._table.of(cell, column, None if group is None else group.index).astype(np.float64)


def _summed(
    table: _Table, cell: Cell, group: Group | None, event: int, what: What = "clients", run: int | None = None
) -> Course:
    """The counts of every run, or of one, and of every group added up."""
    if run is not None:
        cell = replace(cell, first_run=run, replications=1)
    here = table.of(cell, group, "event") == event
    runs, groups, times, clients, of = (
        table.of(cell, group, name)[here] for name in ("run", "group", "t_us", what, _OF[what])
    )
    order = np.lexsort((times, groups, runs))
    runs, groups, times, clients, of = (values[order] for values in (runs, groups, times, clients, of))
    first = _changes(runs) | _changes(groups)
    steps = clients - np.where(first, 0.0, np.concatenate(([0.0], clients[:-1])))
    ordered = np.argsort(times, kind="stable")
    done = np.cumsum(steps[ordered])
    whole = int(of[first].sum())
    rises = steps[ordered] > 0
    return Course(times[ordered][rises] * 1e-6, done[rises], whole)


def _needed(share: float, of: int) -> int:
    """How many that share is; a count is whole, the product may be a hair above it."""
    return int(np.ceil(share * of - 1e-9))


def _changes(values: Floats) -> NDArray[np.bool_]:
    found = np.ones(values.size, dtype=bool)
    found[1:] = values[1:] != values[:-1]
    return found
