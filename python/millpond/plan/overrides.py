"""What the command line changes of a scenario: places, numbers of clients, controllers with settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from millpond._engine import Scenario
from millpond.controllers.own import OwnControllers, is_own
from millpond.errors import UsageError
from millpond.plan import scenario as scenarios
from millpond.plan.toml_file import parse


def places(words: Sequence[str], option: str = "--set") -> dict[str, Any]:
    """`path.uplink.queue=20 kB` as a place and a value; a value is TOML, or else a text.

    Raises:
        UsageError: one line that names the option, if a word cannot be read or a place is set twice.
    """
    found: dict[str, Any] = {}
    for word in words:
        place, equals, text = (part.strip() for part in word.partition("="))
        if not equals or not place or not text:
            raise UsageError(f"{option}: {word!r} is no PLACE=VALUE, such as 'path.uplink.queue=20 kB'")
        if place in found:
            raise UsageError(f"{option}: {place} is set twice")
        found[place] = value_of(text, f"{option} {place}")
    return found


def controller(text: str, option: str = "--controller") -> str | dict[str, Any]:
    """A controller as it is written on a command line.

    `rfc7252`, `mine.py:Mine`, with settings `mine.py:Mine?gain=4&max-wait=60 s`, or the table of a scenario,
    `{ preset = "rfc7252", ack-timeout = "20 s" }`.

    Raises:
        UsageError: one line that names the option.
    """
    if text.startswith("{"):
        table = value_of(text, option)
        if not isinstance(table, dict) or not isinstance(table.get("preset", table.get("own")), str):
            raise UsageError(f'{option}: {text}: names no controller: write {{ preset = "..." }} or {{ own = "..." }}')
        return table
    name, asked, settings = text.partition("?")
    if name.endswith(".py"):
        raise UsageError(f"{option}: {name} names no class: write {name}:Mine, as it is called there")
    if not asked:
        return name
    words = [word for word in settings.split("&") if word]
    for word in words:
        if not all(part.strip() for part in word.partition("=")):
            raise UsageError(f"{option} {name}: {word!r} is no SETTING=VALUE, such as 'ack-timeout=3 s'")
    return {"own" if is_own(name) else "preset": name, **places(words, f"{option} {name}")}


def written(controller: str | Mapping[str, Any]) -> str:
    """The reverse of `controller`: its name with its settings, unlike that of any other."""
    if isinstance(controller, str):
        return controller
    name = controller.get("own", controller.get("preset"))
    settings = [f"{key}={value}" for key, value in controller.items() if key not in ("own", "preset")]
    return f"{name}?{'&'.join(settings)}" if settings else str(name)


def listed(text: str, option: str) -> list[str]:
    """The entries of a list with commas between; commas inside braces, brackets or quotes part nothing.

    Raises:
        UsageError: one line that names the option, if an entry is empty or a bracket is left open.
    """
    entries = [entry.strip() for entry in _parted(text, option)]
    if "" in entries:
        raise UsageError(f"{option}: {text!r}: nothing between two commas")
    return entries


def value_of(text: str, option: str) -> Any:
    """A value as TOML writes it, or the text itself. Raises `UsageError` if it begins like TOML and is none."""
    try:
        return parse(f"value = {text}", option)["value"]
    except UsageError:
        if text[0] in "{[\"'":
            raise UsageError(f"{option}: {text}: cannot be read as TOML: is a quote or a bracket missing?") from None
        return text


def changed(
    tree: Mapping[str, Any], changes: Mapping[str, Mapping[str, Any]], own: OwnControllers, origin: str
) -> Scenario:
    """The scenario with changes.

    Args:
        tree: The scenario.
        changes: What each option changes, by the option as it was written.
        own: Where controllers of one's own are found.
        origin: Where the scenario came from.

    Raises:
        UsageError: one line that names the option to blame, or else the scenario.
    """
    if not changes:
        return scenarios.build(tree, origin, own)
    tree = here = _open_counts(tree, [place for places in changes.values() for place in places])
    for option, places in changes.items():
        try:
            # what is typed lies where that is typed
            here = scenarios.with_files(scenarios.with_changes(here, places), Path())
        except UsageError as error:
            raise UsageError(f"{option.split()[0]}: {error}") from None
    try:
        return scenarios.build(here, origin, own)
    except UsageError:
        _blame(tree, changes, own)
        raise


# ----------------------------------------------------------------------------------------------- helpers


def _open_counts(tree: Mapping[str, Any], places: Sequence[str]) -> dict[str, Any]:
    """The scenario without what follows from the nodes of a mesh, if those change."""
    if "mesh" not in tree or not any(scenarios.overlap(place, "mesh") or place.endswith(".at") for place in places):
        return dict(tree)
    groups = [{key: value for key, value in group.items() if key != "count"} for group in tree["clients"]]
    return {**tree, "clients": groups}


def _blame(tree: Mapping[str, Any], changes: Mapping[str, Mapping[str, Any]], own: OwnControllers) -> None:
    """Raises the error of the first option with which the scenario is none."""
    here = dict(tree)
    for option, places in changes.items():
        here = scenarios.with_changes(here, places)
        scenarios.build(here, option, own)


def _parted(text: str, option: str) -> Iterator[str]:
    depth, quote, start = 0, "", 0
    for at, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote and text[at - 1] != "\\" else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "{[":
            depth += 1
        elif letter in "}]":
            depth -= 1
        elif letter == "," and depth == 0:
            yield text[start:at]
            start = at + 1
    if depth or quote:
        raise UsageError(f"{option}: {text}: a quote or a bracket is left open")
    yield text[start:]
