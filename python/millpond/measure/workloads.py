"""Whether what clients have to do has an end, as the scenario of a cell says it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from millpond.results.directory import Cell, Group

#: Kinds of births that go on as long as the run, unless `requests` or `for` ends them.
ENDLESS = frozenset({"backlog", "periodic", "poisson", "ramp", "tr45820-reporting"})
AFTER_EVENT = "after-event"
REQUESTS = "requests"
_FROM_SERVER = ("commands", "notifications")


def is_endless(cell: Cell, group: Group) -> bool:
    """Whether the group is never done because its work goes on until the run ends; that after an event has an end."""
    return starts_endless(cell, group) and not any(_waits(one) for one in _workloads(cell, group))


def starts_endless(cell: Cell, group: Group) -> bool:
    """Whether work that the group begins by itself, and not after an event, goes on until the run ends."""
    return any(_goes_on(one) for one in _workloads(cell, group) if not _waits(one))


def with_an_end(cell: Cell, group: Group | None = None) -> list[Group]:
    """Those of the cell's groups, or of this one, that can be done."""
    return [one for one in (cell.groups if group is None else (group,)) if not is_endless(cell, one)]


# ----------------------------------------------------------------------------------------------- helpers


def _workloads(cell: Cell, group: Group) -> list[Any]:
    return [one for said in _said(cell, group) for one in (said if isinstance(said, list) else [said])]


def _waits(workload: Any) -> bool:
    return (workload if isinstance(workload, str) else workload.get("kind")) == AFTER_EVENT


def _goes_on(workload: Any) -> bool:
    if isinstance(workload, str):
        return workload in ENDLESS
    ended = workload.get("requests") is not None or workload.get("for") is not None
    return not ended and workload.get("kind") in ENDLESS


def _said(cell: Cell, group: Group) -> Iterator[Any]:
    """What the scenario says of the group's work; nothing where it says none, as in results of earlier versions."""
    tables: list[Mapping[str, Any]] = cell.scenario.get("clients", [])
    if group.traffic == REQUESTS:
        if group.index < len(tables) and "workload" in tables[group.index]:
            yield tables[group.index]["workload"]
        return
    # behind the groups of clients, in their order: what the server sends to each
    order = [said[kind] for said in tables for kind in _FROM_SERVER if kind in said]
    place = group.index - len(tables)
    if 0 <= place < len(order):
        yield order[place]["workload"]
