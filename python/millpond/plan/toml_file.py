"""TOML files of ours: read, and checked against the types that their keys are declared with.

A key that is not declared is refused with the nearest one that is; every complaint is one line that names the file and
the dotted place.
"""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from millpond.errors import UsageError, nearest, unknown
from millpond.given_files import read_text, shallow

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

T = TypeVar("T")

#: What the library calls the kinds of values, in the words of our messages.
_KINDS = {
    "str": "text", "int": "a whole number", "float": "a number", "bool": "true or false", "array": "a list",
    "object": "a table",
}  # fmt: skip


class Declared(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A table whose keys are the fields of the type, and no others."""


def read_tree(file: Path) -> dict[str, Any]:
    """A TOML file as a tree. Raises `UsageError` with file and line."""
    return parse(read_text(file), str(file))


def parse(text: str, origin: str) -> dict[str, Any]:
    """TOML text as a tree; `origin` names where it came from. Raises `UsageError` with the line."""
    try:
        with shallow(origin):
            return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{origin}: {error}") from None


def checked(tree: Any, kind: type[T], file: Path | str, place: str = "") -> T:
    """The tree as a value of a type.

    Args:
        tree: What was read, the file's whole or a part of it.
        kind: A `Declared` type, or any other that the library converts to.
        file: Where it came from.
        place: The dotted place of the tree in it.

    Raises:
        UsageError: one line: file, place, what was expected there and what was found.
    """
    try:
        with shallow(where(file, place)):
            return msgspec.convert(tree, kind)
    except msgspec.ValidationError as error:
        told, _, path = str(error).partition(" - at ")
        inner = path.strip("`").removeprefix("$").lstrip(".")
        raise UsageError(_in_our_words(told, tree, kind, inner, lambda key: where(file, place, inner, key))) from None


def where(file: Path | str, *steps: str) -> str:
    """File and dotted place: `plan.toml: matrix[1].payload`."""
    place = ""
    for step in filter(None, steps):
        place += step if not place or step.startswith("[") else f".{step}"
    return f"{file}: {place}" if place else str(file)


# ----------------------------------------------------------------------------------------------- helpers


def _in_our_words(told: str, tree: Any, kind: Any, path: str, place: Any) -> str:
    steps = [int(step) if step.isdigit() else step for step in re.findall(r"[^.\[\]]+", path)]
    if stranger := re.match(r"Object contains unknown field `(.*)`", told):
        known = _fields(kind, steps)
        near = nearest(stranger[1], known)
        hint = f"did you mean {near!r}? " if near else ""
        return f"{place('')}: unknown key {stranger[1]!r}: {hint}known: {', '.join(known)}"
    if missing := re.match(r"Object missing required field `(.*)`", told):
        return f"{place('')}: {missing[1]!r} is missing"
    found = tree
    for step in steps:
        found = found[step] if isinstance(found, dict | list) else found
    if told.startswith("Invalid enum value") and (words := _literals(_at(kind, steps))):
        return f"{place('')}: {unknown('word', str(found), words)}"
    wanted = re.match(r"Expected `([^`]*)`(, got .*)?(.*)", told)
    if wanted is None:
        return f"{place('')}: {told[:1].lower()}{told[1:]}, found {found!r}"
    names = [name for name in wanted[1].split(" | ") if name != "null"]
    if "float" in names:  # which takes whole numbers as well
        names = [name for name in names if name != "int"]
    kinds = " or ".join(_KINDS.get(name, name) for name in names)
    return f"{place('')}: expected {kinds}{wanted[3]}, found {found!r}"


def _fields(kind: Any, steps: list[Any]) -> list[str]:
    """The keys of the declared table at a place."""
    kind = _declared(_at(kind, steps))
    return [field.encode_name for field in msgspec.structs.fields(kind)] if isinstance(kind, type) else []


def _at(kind: Any, steps: list[Any]) -> Any:
    """What a place may hold; entries of a list are of the list's kind."""
    for step in steps:
        if not isinstance(step, int):
            kind = _declared(kind)
            kind = get_type_hints(kind).get(_attribute(kind, step)) if isinstance(kind, type) else None
    return kind


def _attribute(kind: type, key: str) -> str:
    """The attribute behind a key: the same, unless the key is a word of the language."""
    named = {field.encode_name: field.name for field in msgspec.structs.fields(kind)}
    return named.get(key, key)


def _literals(kind: Any) -> list[str]:
    """The words that a place may hold, if it holds one of a few."""
    if get_origin(kind) is Literal:
        return [str(value) for value in get_args(kind)]
    if get_origin(kind) in (Union, types.UnionType, list):
        return [word for part in get_args(kind) for word in _literals(part)]
    return []


def _declared(kind: Any) -> Any:
    """The declared table among what a key may hold, itself or in a list."""
    if isinstance(kind, type) and issubclass(kind, Declared):
        return kind
    if get_origin(kind) in (Union, types.UnionType, list, tuple):
        return next((found for part in get_args(kind) if (found := _declared(part)) is not None), None)
    return None
