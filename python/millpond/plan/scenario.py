"""Scenario files: read, changed in places, and handed to the engine, which checks every key, unit and range."""

from __future__ import annotations

import contextlib
import copy
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from millpond import _engine
from millpond._engine import Scenario
from millpond.controllers.own import OwnControllers
from millpond.errors import UsageError
from millpond.given_files import read_text
from millpond.plan import path_files
from millpond.plan.toml_file import parse, read_tree
from millpond.plan.values import SMALLEST, plain

#: What a scenario has any number of.
LISTS = ("clients", "relays", "proxies", "cross_traffic", "timeline")
#: Where a text may name a file.
_FILE = re.compile(r"\b(file|path|profile|trace)\b")
_PLAN = re.compile(r"^\s*(\[+matrix\b|matrix\s*=)", re.MULTILINE)
_STEPS = re.compile(r"[^.\[\]]+")


def load(file: Path | str | Mapping[str, Any], own: OwnControllers | None = None) -> Scenario:
    """Read and check a scenario file, or its keys as a tree. Raises `UsageError` with one line: the place and the fix.

    Files of custom controllers are looked for beside it, unless `own` says where.
    """
    if not isinstance(file, Path | str):
        return build(file, "scenario", own)
    path = Path(file)
    own = own or OwnControllers(path.parent)
    text = read_text(path)
    tree: dict[str, Any] = {}
    if _FILE.search(text):
        with contextlib.suppress(UsageError):  # what is no TOML at all is told by the engine
            tree = parse(text, str(path))
    if named_files(tree, path.parent):
        return build(with_files(tree, path.parent), str(path), own)
    try:
        return _engine.Scenario.from_toml(text, str(path), own)
    except ValueError as error:
        if _PLAN.search(text) and "clients" not in parse(text, str(path)):
            raise UsageError(f"{path}: a plan of many runs, which `millpond sweep` takes") from None
        with contextlib.suppress(UsageError):
            tree = parse(text, str(path))
        _several(tree, str(path), "write [[{0}]], with two brackets")
        raise UsageError(str(error)) from error.__cause__


def load_tree(file: Path) -> dict[str, Any]:
    """A scenario file as a plain tree, unchecked: a template for `with_changes` and `build`."""
    return with_files(read_tree(file), file.parent)


def named_files(tree: Mapping[str, Any], folder: Path) -> tuple[str, ...]:
    """The files that a scenario names and nobody has read: a mesh's topology, its path, and traces of links."""
    topology = _topology_file(tree)
    path = _path_file(tree, folder)
    traces = [name for links in _links(tree).values() for name in path_files.traces(links)]
    if path is not None:
        keys = path_files.keys(folder / path)
        beside = path_files.traces(keys) if isinstance(keys, Mapping) else ()
        traces += [str(Path(path).parent / name) for name in beside]
    return (*(str(file) for file in (topology, path) if file is not None), *traces)


def with_files(tree: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The tree with what its files say, which are looked for from `folder` on. Raises `UsageError` without them."""
    here = copy.deepcopy(dict(tree))
    if (topology := _topology_file(tree)) is not None:
        here["mesh"]["topology"]["nodes"] = read_text(folder / topology)
    if (path := _path_file(tree, folder)) is not None:
        above = {} if isinstance(tree["path"], str) else {k: v for k, v in tree["path"].items() if k != "profile"}
        here["path"] = path_files.laid_over(path_files.read(folder / path), above)
    for place, links in _links(here).items():
        read = path_files.with_rows(links, folder)
        here |= {"path": read} if place == "path" else {"network": {**here["network"], "links": read}}
    return here


def with_changes(tree: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of the tree with values set at dotted places, such as `path.uplink.queue`.

    Tables on the way are made; an entry of a list is told by its number, as in `clients[0].count`. Below a path that is
    a profile's name, the place is laid over that profile.

    Raises:
        UsageError: one line, if a place leads through something that is no table, or to an entry that is not there.
    """
    changed = copy.deepcopy(dict(tree))
    for place, value in changes.items():
        *way, last = _STEPS.findall(place) or [place]
        spot: Any = changed
        for step in way:
            spot = spot[_entry(place, spot, step)] if isinstance(spot, list) else _below(spot, step)
            if not isinstance(spot, dict | list):
                raise UsageError(f"{place}: {step} is {spot!r}, no table")
        spot[_entry(place, spot, last) if isinstance(spot, list) else last] = copy.deepcopy(value)
        if last == "file" and isinstance(spot, dict):  # what the one before said
            for content in ("nodes", "rows"):
                spot.pop(content, None)
    return changed


def overlap(one: str, other: str) -> bool:
    """Whether one of two places is, or lies within, the other."""
    ours, theirs = _STEPS.findall(one), _STEPS.findall(other)
    common = min(len(ours), len(theirs))
    return ours[:common] == theirs[:common]


def lies_in(place: str, other: str) -> bool:
    """Whether a place is another one, or lies within it."""
    return overlap(place, other) and len(_STEPS.findall(place)) >= len(_STEPS.findall(other))


def laid_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """The tables of both as one: where both have a table it is merged, elsewhere the upper value counts."""
    merged = copy.deepcopy(dict(below))
    for key, value in above.items():
        under = merged.get(key)
        if isinstance(under, Mapping) and isinstance(value, Mapping):
            merged[key] = laid_over(under, value)
        else:
            merged[key] = copy.deepcopy(value)
    return merged


def build(tree: Mapping[str, Any], origin: str, own: OwnControllers | None = None) -> Scenario:
    """Check a tree. Raises `UsageError`; `origin` names where it came from."""
    if not isinstance(tree, Mapping):
        raise UsageError(f"{origin}: {type(tree).__name__} is no scenario: name a file, or write its keys as a table")
    tree = plain(with_files(tree, Path()), origin)
    _several(tree, origin, "write a list of tables, [{{...}}]")
    try:
        return _engine.Scenario.from_json(json.dumps(tree), origin, own or OwnControllers())
    except ValueError as error:
        # a tree has no lines
        raise UsageError(str(error).replace(f"{origin}:1: ", f"{origin}: ", 1)) from error.__cause__


def changed(
    tree: Mapping[str, Any], changes: Mapping[str, Mapping[str, Any]], own: OwnControllers, origin: str
) -> Scenario:
    """The scenario with changes.

    Args:
        tree: The scenario.
        changes: What each option changes, by the option as it was written.
        own: Where custom controllers are found.
        origin: Where the scenario came from.

    Raises:
        UsageError: one line that names the option to blame, or else the scenario.
    """
    if not changes:
        return build(tree, origin, own)
    tree = here = _open_counts(tree, [place for places in changes.values() for place in places])
    for option, places in changes.items():
        try:
            # what is typed lies where that is typed
            here = with_files(with_changes(here, places), Path())
        except UsageError as error:
            raise UsageError(f"{option.split()[0]}: {error}") from None
    try:
        return build(here, origin, own)
    except UsageError:
        _blame(tree, changes, own)
        raise


def in_full(scenario: Scenario) -> dict[str, Any]:
    """The scenario with every default written out."""
    tree: dict[str, Any] = json.loads(scenario.to_json())
    return tree


def check_arrival(written: Any, place: str) -> None:
    """When requests of an event arrive."""
    asking = [{"count": 1, "controller": "rfc7252", "workload": {"kind": "after-event", "arrival": written}}]
    timeline = [{"kind": "alarm", "at": "1 s"}]
    build({**SMALLEST, "clients": asking, "timeline": timeline, "run": {"for": "1 h"}}, place)


def check_controller(written: Any, place: str, own: OwnControllers) -> None:
    """A controller of clients."""
    build({**SMALLEST, "clients": [{"count": 1, "controller": written}]}, place, own)


# ----------------------------------------------------------------------------------------------- helpers


def _several(tree: Mapping[str, Any], origin: str, remedy: str) -> None:
    """Refuse a single table where there may be many."""
    for name in LISTS:
        if isinstance(tree.get(name), Mapping):
            raise UsageError(f"{origin}: {name}: a single table, where there may be several: {remedy.format(name)}")


def _open_counts(tree: Mapping[str, Any], places: Sequence[str]) -> dict[str, Any]:
    """The scenario without what follows from the nodes of a mesh, if those change."""
    if "mesh" not in tree or not any(overlap(place, "mesh") or place.endswith(".at") for place in places):
        return dict(tree)
    groups = [{key: value for key, value in group.items() if key != "count"} for group in tree["clients"]]
    return {**tree, "clients": groups}


def _blame(tree: Mapping[str, Any], changes: Mapping[str, Mapping[str, Any]], own: OwnControllers) -> None:
    """Raises the error of the first option with which the scenario is none."""
    here = dict(tree)
    for option, places in changes.items():
        here = with_changes(here, places)
        build(here, option, own)


def _topology_file(tree: Mapping[str, Any]) -> str | None:
    mesh = tree.get("mesh")
    topology = mesh.get("topology") if isinstance(mesh, Mapping) else None
    file = topology.get("file") if isinstance(topology, Mapping) and "nodes" not in topology else None
    return file if isinstance(file, str) else None


def _path_file(tree: Mapping[str, Any], folder: Path) -> str | None:
    path = tree.get("path")
    word = path.get("profile") if isinstance(path, Mapping) else path
    return word if isinstance(word, str) and path_files.file_of(word, folder) is not None else None


def _links(tree: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Where links are described one by one, and the links by name."""
    path, network = tree.get("path"), tree.get("network")
    links = network.get("links") if isinstance(network, Mapping) else None
    tables = {"path": path, "network": links}
    return {place: links for place, links in tables.items() if isinstance(links, Mapping)}


def _below(table: dict[str, Any], step: str) -> Any:
    if step == "path" and isinstance(name := table.get(step), str):
        table[step] = {"profile": name}
    return table.setdefault(step, {})


def _entry(place: str, entries: list[Any], step: str) -> int:
    if not step.isdigit() or int(step) >= len(entries):
        known = f"0 to {len(entries) - 1}" if len(entries) > 1 else "0" if entries else "none"
        raise UsageError(f"{place}: no entry {step!r} there: known: {known}")
    return int(step)
