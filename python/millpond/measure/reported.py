"""Who is done by when, and what became of every request: told the same way in every table, report and file.

A client is *complete* if every request of it was answered; it *lost* one if a request failed; it is *unfinished* if the
run ended before it. Of its requests some were *answered*, some *failed* and some *never finished*, and nothing else:
arrived = answered + failed + never finished. *Delivered* are those that reached the far side, whatever became of the
answer. A client that lost a request is never done, however many it goes on to send. One that had nothing to ask is none
of these, and is in no share; a group whose work goes on until the run ends is never done, so no time is told of it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from millpond import _engine
from millpond.measure.statistics import Floats
from millpond.results import rows
from millpond.results.directory import Cell, Group, Results

#: The shares of clients whose times every table gives.
SHARES = (0.5, 0.9, 0.99, 1.0)
TABLE = "reported"

#: What is counted: clients of which every request was answered, or requests that were.
What = Literal["clients", "answered"]
_OF: dict[What, str] = {"clients": "clients_of", "answered": "of"}
#: Whose clients: those of a group, of several, or of all groups of a cell.
Asked: TypeAlias = "Group | Sequence[Group] | None"


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
    arrivals: int | None
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
        """Delivered over arrived; None if it was not counted."""
        return self.delivered / self.arrivals if self.delivered is not None and self.arrivals else None


class _Part(NamedTuple):
    """Groups whose times count from one event."""

    groups: tuple[Group, ...]
    event: int
    is_exact: bool


class Reported:
    """Who is done by when in the results of one directory. Columns are read once; cells are slices of them."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self._flows = _Table(results, "flows")
        self._events: dict[tuple[int, tuple[int, ...]], tuple[int, ...]] = {}

    @cached_property
    def _counted(self) -> _Table | None:
        return _Table(self.results, TABLE) if self.results.has(TABLE) else None

    def events(self, cell: Cell, groups: Asked = None) -> tuple[int, ...]:
        """The events that clients report after: 0 is the start of the run, others are those of its timeline."""
        if self._counted is None:
            return (0,)
        asked = _listed(cell, groups)
        key = (cell.number, tuple(group.index for group in asked))
        if key not in self._events:
            found = np.unique(self._counted.of(cell, asked, "event"))
            self._events[key] = tuple(found.astype(np.int64).tolist()) or (0,)
        return self._events[key]

    def ending(self, cell: Cell, group: Group) -> tuple[int, ...]:
        """Those of a group's events with which it can be done: not the start, if work from there on has no end."""
        told = self.events(cell, group)
        return told[1:] if len(told) > 1 and told[0] == 0 and starts_endless(cell, group) else told

    def since(self, cell: Cell, groups: Asked = None) -> frozenset[int]:
        """The events that times of being done count from: of each group the first one with which it can be done."""
        return frozenset(self._by_event(cell, groups, None))

    def course(self, cell: Cell, groups: Asked = None, event: int | None = None) -> Course:
        """Who is done by when after an event, all runs of the cell taken together.

        The event left out: of each group the first one with which it can be done, from which its times count.
        """
        return self._course(cell, self._parts(cell, groups, event), "clients")

    def runs(self, cell: Cell, groups: Asked = None, what: What = "clients") -> Iterator[Course]:
        """The same run by run: of clients that are done, or of requests that were answered."""
        parts = self._parts(cell, groups, None)
        for run in range(cell.first_run, cell.first_run + cell.replications):
            yield self._course(replace(cell, first_run=run, replications=1), parts, what)

    def each_run(self, cell: Cell, groups: Asked, share: float, what: What = "clients") -> Floats:
        """When so large a share of the clients was complete, or of the requests answered, run by run.

        In s since the event; infinite for a run in which it never was, NaN for one of which nothing is told.
        """
        times = (course.by(share) if course.of else math.nan for course in self.runs(cell, groups, what))
        return np.array([math.inf if time is None else time for time in times])

    def outcome(self, cell: Cell, group: Group | None = None) -> Outcome:
        """What became of the clients and of their requests."""
        flows, asked = self._flows, _listed(cell, group)
        if flows.has("arrivals"):
            failed, left = flows.of(cell, asked, "requests_failed"), flows.of(cell, asked, "never_finished")
            answered, arrivals = flows.of(cell, asked, "answered"), flows.of(cell, asked, "arrivals")
            delivered = int(flows.of(cell, asked, "delivered").sum())
            ended = np.isfinite(flows.of(cell, asked, "done_us"))
            silent = ended & (arrivals == 0)
            complete, unfinished = ended & (answered == arrivals) & ~silent, (left > 0) | ~ended
            counts: tuple[int | None, ...] = int(arrivals.sum()), int(left.sum()), delivered
        else:
            failed, answered = flows.of(cell, asked, "failed"), flows.of(cell, asked, "completed")
            ended = np.isfinite(flows.of(cell, asked, "fct_us"))
            complete, unfinished = ended & (failed == 0), ~ended & (failed == 0)
            silent = np.zeros(failed.size, dtype=np.bool_)
            counts = None, None, None
        return Outcome(
            clients=int(failed.size),
            complete=int(complete.sum()),
            lost=int((failed > 0).sum()),
            unfinished=int(unfinished.sum()),
            silent=int(silent.sum()),
            arrivals=counts[0],
            answered=int(np.nansum(answered)),
            failed=int(np.nansum(failed)),
            never_finished=counts[1],
            delivered=counts[2],
        )

    # ----------------------------------------------------------------------------------------------- helpers

    def _by_event(self, cell: Cell, groups: Asked, event: int | None) -> dict[int, list[Group]]:
        """The groups that can be done, by the event that their times count from."""
        found: dict[int, list[Group]] = {}
        for group in _listed(cell, groups):
            if not is_endless(cell, group):
                found.setdefault(self.ending(cell, group)[0] if event is None else event, []).append(group)
        return found

    def _parts(self, cell: Cell, groups: Asked, event: int | None) -> list[_Part]:
        return [
            _Part(tuple(mine), since, self._is_exact(cell, mine, since))
            for since, mine in self._by_event(cell, groups, event).items()
        ]

    def _course(self, cell: Cell, parts: Sequence[_Part], what: What) -> Course:
        """Who is done by when, from the one table or the other: steps up, each at its time."""
        found = []
        for part in parts:
            # to the microsecond where each client's own end says it; what belongs to an event is counted in bins
            if part.is_exact and what == "clients":
                found.append(self._from_clients(cell, part.groups))
            elif self._counted is not None:
                found.append(_summed(self._counted, cell, part.groups, part.event, what))
        return found[0] if len(found) == 1 else Course.together(found)

    def _is_exact(self, cell: Cell, groups: Sequence[Group], event: int) -> bool:
        """Whether each client's own end says it: every request belongs to the start, none to everyday traffic."""
        if self._counted is None:
            return True
        if event != 0 or self.events(cell) != (0,) or not self._flows.has("arrivals"):
            return False
        runs, group, of = (self._counted.of(cell, groups, name) for name in ("run", "group", "of"))
        begun = of[_changes(runs) | _changes(group)].sum()
        return bool(begun == self._flows.of(cell, groups, "arrivals").sum())

    def _from_clients(self, cell: Cell, groups: Sequence[Group]) -> Course:
        """From when each client had everything: never if it lacks an answer; none of those that asked nothing."""
        flows = self._flows
        if flows.has("arrivals"):
            ends, arrivals = flows.of(cell, groups, "done_us"), flows.of(cell, groups, "arrivals")
            whole, silent = flows.of(cell, groups, "answered") == arrivals, np.isfinite(ends) & (arrivals == 0)
        else:
            ends = flows.of(cell, groups, "first_send_us") + flows.of(cell, groups, "fct_us")
            whole, silent = flows.of(cell, groups, "failed") == 0, np.zeros(ends.size, dtype=bool)
        times = np.sort(ends[whole & np.isfinite(ends) & ~silent] * 1e-6)
        return Course(times, np.arange(1.0, times.size + 1), int((~silent).sum()))


def is_endless(cell: Cell, group: Group) -> bool:
    """Whether the group is never done because its work goes on until the run ends; that after an event has an end."""
    told = _told(cell, group)
    return told is not None and told.is_endless


def starts_endless(cell: Cell, group: Group) -> bool:
    """Whether work that the group begins by itself, and not after an event, goes on until the run ends."""
    told = _told(cell, group)
    return told is not None and told.starts_endless


def is_loop(cell: Cell) -> bool:
    """Whether all requests of the clients follow on the ones before, so that a client is done when its work is."""
    return all(told.is_loop for told in _groups(json.dumps(cell.scenario)) if told.traffic == "requests")


def with_an_end(cell: Cell, group: Group | None = None) -> list[Group]:
    """Those of the cell's groups, or of this one, that can be done."""
    return [one for one in (cell.groups if group is None else (group,)) if not is_endless(cell, one)]


# ----------------------------------------------------------------------------------------------- helpers


class _Table:
    """The columns of a table as numbers, NaN where nothing is said."""

    def __init__(self, results: Results, name: str) -> None:
        self._table = rows.of(results, name)

    def has(self, column: str) -> bool:
        return column in self._table.names

    def of(self, cell: Cell, groups: Sequence[Group], column: str) -> Floats:
        """The column's rows of some groups of a cell."""
        found = self._table.of(cell, column).astype(np.float64)
        if len(groups) == len(cell.groups):
            return found
        return found[np.isin(self._table.of(cell, "group"), [group.index for group in groups])]


def _listed(cell: Cell, groups: Asked) -> Sequence[Group]:
    if groups is None:
        return cell.groups
    return (groups,) if isinstance(groups, Group) else groups


def _summed(table: _Table, cell: Cell, groups: Sequence[Group], event: int, what: What) -> Course:
    """The counts of every run and of every group added up."""
    here = table.of(cell, groups, "event") == event
    runs, group, times, clients, of = (
        table.of(cell, groups, name)[here] for name in ("run", "group", "t_us", what, _OF[what])
    )
    order = np.lexsort((times, group, runs))
    runs, group, times, clients, of = (values[order] for values in (runs, group, times, clients, of))
    first = _changes(runs) | _changes(group)
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


def _told(cell: Cell, group: Group) -> _engine.Group | None:
    groups = _groups(json.dumps(cell.scenario))
    return groups[group.index] if group.index < len(groups) else None


@lru_cache(maxsize=4096)
def _groups(scenario: str) -> tuple[_engine.Group, ...]:
    try:
        return tuple(_engine.groups_of(scenario))
    except ValueError:
        # of an earlier version, which told less
        return ()
