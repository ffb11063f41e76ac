"""What the groups of clients of a scenario are called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from millpond import _engine
from millpond.controllers.own import short
from millpond.results.directory import Group


def groups_of(
    tree: Mapping[str, Any], told: Sequence[_engine.Group], algorithms: Sequence[str] = ()
) -> tuple[Group, ...]:
    """What the groups of a scenario in full are called, in the order in which the engine tells them.

    Its algorithm is the plan's, or else what controls its clients; those of one name are distinguished by the settings
    of the controller that differ, or another key, or where they stand in the scenario. A name that the scenario gives
    to a group goes before all that. What the server sends is called after the clients that it is for:
    `meters, commands`.
    """
    tables: list[Mapping[str, Any]] = tree["clients"]
    labels = _told_apart(tables, [one.name for one in told[: len(tables)]])
    groups = []
    for index, one in enumerate(told):
        label = labels[one.table]
        whom = (algorithms[one.table] if algorithms else label, one.name, label)
        by_server = "" if one.traffic == "requests" else f", {one.traffic}"
        algorithm, name, label = (f"{word}{by_server}" if word else "" for word in whom)
        groups.append(Group(index, one.count, algorithm, name, label, told[one.table].transport, one.traffic))
    return tuple(groups)


def told_together(groups: Sequence[Group]) -> str:
    """The algorithms of a cell as one text."""
    return ";".join(dict.fromkeys(group.algorithm for group in groups))


# ----------------------------------------------------------------------------------------------- helpers


def _told_apart(tables: Sequence[Mapping[str, Any]], given: Sequence[str]) -> list[str]:
    labels = [name or _controlled_by(table) for name, table in zip(given, tables, strict=True)]
    for words in (_every_difference, _one_difference):
        found = []
        for table, label in zip(tables, labels, strict=True):
            alike = [other for other, theirs in zip(tables, labels, strict=True) if theirs == label]
            found.append(", ".join([label, *(words(table, alike) if len(alike) > 1 else ())]))
        labels = found
    often = Counter(labels)
    return [f"{label}, group {place}" if often[label] > 1 else label for place, label in enumerate(labels, start=1)]


def _every_difference(clients: Mapping[str, Any], alike: Sequence[Mapping[str, Any]]) -> list[str]:
    """All settings of the controller that another group has otherwise."""
    others = [_settings(other) for other in alike]
    return [f"{key} {value}" for key, value in _settings(clients).items() if any(o.get(key) != value for o in others)]


def _one_difference(clients: Mapping[str, Any], alike: Sequence[Mapping[str, Any]]) -> list[str]:
    """The first other key that each of the groups has otherwise; several would make names that nobody reads."""
    others = [_plain_keys(other) for other in alike]
    for key, value in _plain_keys(clients).items():
        if len({str(other.get(key)) for other in others}) == len(others):
            return [f"{key.replace('_', ' ')} {value}"]
    return []


def _controlled_by(clients: Mapping[str, Any]) -> str:
    if "controller" not in clients:
        return "-".join(filter(None, ["tcp", clients["transport"].get("congestion")]))
    # in bursts only the first request is under the controller: that is not what such a group is about
    if clients.get("transfer", {}).get("kind", "whole") == "bursts":
        return "q-block2"
    controller = clients["controller"]
    if isinstance(controller, Mapping):
        controller = controller["own"] if "own" in controller else controller["preset"]
    return short(str(controller))


def _settings(clients: Mapping[str, Any]) -> dict[str, Any]:
    controller = clients.get("controller")
    if not isinstance(controller, Mapping):
        return {}
    return {key: value for key, value in controller.items() if key not in ("own", "preset")}


def _plain_keys(clients: Mapping[str, Any]) -> dict[str, Any]:
    """What a group has in a word or a number, and of tables their kind."""
    found = {}
    for key, value in clients.items():
        word = value.get("kind") if isinstance(value, Mapping) else value
        if isinstance(word, str | int | float) and key not in ("name", "count", "controller"):
            found[key] = word
    return found
