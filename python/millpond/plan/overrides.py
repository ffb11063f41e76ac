"""What is written on a command line: places and their values, lists, controllers with settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from millpond.controllers.own import is_own
from millpond.errors import UsageError
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


# ----------------------------------------------------------------------------------------------- helpers


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
