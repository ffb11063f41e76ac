"""Whether what clients have to do has an end, as the engine tells it of the scenario of a cell."""

from __future__ import annotations

import json
from functools import lru_cache

from millpond import _engine
from millpond.results.directory import Cell, Group


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
