"""What the groups of clients of a scenario are called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from millpond.controllers.own import short
from millpond.results.directory import Group

#: The keys of a group for what the server sends to it by itself, in the order of the engine's numbers.
FROM_SERVER = ("commands", "notifications")


def groups_of(tree: Mapping[str, Any], algorithms: Sequence[str] = ()) -> tuple[Group, ...]:
    """One group a `[[clients]]` table of a scenario in full, then one for what the server sends to each by itself.

    Its algorithm is the plan's, or else what controls its clients; those of one name are told apart by the settings
    that differ, or by a number. A name that the scenario gives to a group goes before all that. What the server sends
    is called after the clients that it is for: `meters, commands`.
    """
    tables: list[Mapping[str, Any]] = tree["clients"]
    labels = _told_apart(tables, [str(table.get("name", "")) for table in tables])
    groups = []
    for index, (table, label) in enumerate(zip(tables, labels, strict=True)):
        groups.append(
            Group(
                index,
                int(table["count"]),
                algorithms[index] if algorithms else label,
                str(table.get("name", "")),
                label,
                _transport(table),
            )
        )
    for group, table in zip(tuple(groups), tables, strict=True):
        for traffic in FROM_SERVER:
            if table.get(traffic) is not None:
                algorithm, name, label = (
                    f"{word}, {traffic}" if word else "" for word in (group.algorithm, group.name, group.label)
                )
                told = replace(group, index=len(groups), algorithm=algorithm, name=name, label=label, traffic=traffic)
                groups.append(told)
    return tuple(groups)


def told_together(groups: Sequence[Group]) -> str:
    """The algorithms of a cell as one text."""
    return ";".join(dict.fromkeys(group.algorithm for group in groups))


# ----------------------------------------------------------------------------------------------- helpers


def _told_apart(tables: Sequence[Mapping[str, Any]], given: Sequence[str]) -> list[str]:
    names = [name or _controlled_by(table) for name, table in zip(given, tables, strict=True)]
    often = Counter(names)
    labels = []
    for name, table in zip(names, tables, strict=True):
        alike = [_settings(other) for other, of_it in zip(tables, names, strict=True) if of_it == name]
        settings = _settings(table)
        differing = [f"{key} {value}" for key, value in settings.items() if any(o.get(key) != value for o in alike)]
        labels.append(", ".join([name, *differing]) if often[name] > 1 else name)
    often, seen = Counter(labels), Counter[str]()
    for place, label in enumerate(labels):
        seen[label] += 1
        if often[label] > 1:
            labels[place] = f"{label} #{seen[label]}"
    return labels


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


def _transport(clients: Mapping[str, Any]) -> str:
    transport = clients.get("transport", "udp")
    return str(transport.get("kind", "tcp") if isinstance(transport, Mapping) else transport)
