"""The file of a path: sections uplink and downlink, or path. It stands wherever the name of a path may stand."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from millpond import _engine
from millpond.controllers.own import OwnControllers
from millpond.errors import UsageError, unknown
from millpond.given_files import read_text
from millpond.plan.toml_file import read_tree, where
from millpond.plan.values import SMALLEST, canonical, plain

LINKS = ("uplink", "downlink")
#: What a file may say about its path besides.
_ABOUT = ("title", "source")


def file_of(word: str, folder: Path) -> Path | None:
    """The file that is meant where a path is named; None for a name.

    A word that ends in `.toml` or has a separator is a file; any other is a name that `millpond paths` lists, or else a
    file. The programs `emulate` and `relay` have the same rule.

    Args:
        word: A name or a file.
        folder: Where the file is looked for.
    """
    file = folder / word
    if word.endswith(".toml") or "/" in word or os.sep in word:
        return file
    return file if word not in names() and file.is_file() else None


def names() -> tuple[str, ...]:
    """The paths that have a name."""
    return tuple(profile[0] for profile in _engine.profiles())


def found(word: str, folder: Path, place: str) -> Path | None:
    """The same; raises `UsageError`, with the place and the nearest name, for what is neither a name nor a file."""
    file = file_of(word, folder)
    if file is None and word not in names():
        raise UsageError(f"{place}: {unknown('path', word, names())}; nor is there a file of this name")
    return file


def keys(file: Path) -> Any:
    """What a file says of its path, unchecked: its keys, or a name. Raises `UsageError` for what is no TOML."""
    tree = read_tree(file)
    return tree.get("path", {key: value for key, value in tree.items() if key not in _ABOUT})


def read(file: Path) -> dict[str, Any]:
    """The keys of the path that a file holds. Raises `UsageError` with one line: the file, the place and the fix."""
    whole = keys(file)
    if not isinstance(whole, str):
        whole = with_rows(whole, file.parent)
    try:
        _engine.Scenario.from_json(
            json.dumps(plain({**SMALLEST, "path": whole}, str(file))), str(file), OwnControllers()
        )
    except ValueError as error:
        raise UsageError(str(error).replace(f"{file}:1: ", f"{file}: ", 1)) from None
    told = {"profile": whole} if isinstance(whole, str) else dict(whole)
    if "header" in told:
        told["header"] = canonical("size", told["header"], where(file, "header"))
    return told


def laid_over(path: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a path with others over them, each direction key by key.

    A key of a direction is replaced whole: half of one loss and half of another is none.
    """
    directions = {link: {**path.get(link, {}), **above[link]} for link in LINKS if isinstance(above.get(link), Mapping)}
    return {**path, **above, **directions}


def traces(links: Mapping[str, Any]) -> tuple[str, ...]:
    """The files that these links name and nobody has read."""
    traces = (_unread(link) for link in links.values())
    return tuple(trace["file"] for trace in traces if trace is not None)


def with_rows(links: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The same links with what their files say. Raises `UsageError` for a file that cannot be read."""
    here = dict(links)
    for name, link in links.items():
        if (trace := _unread(link)) is not None:
            here[name] = {**link, "trace": {**trace, "rows": read_text(folder / trace["file"])}}
    return here


def _unread(link: Any) -> dict[str, Any] | None:
    trace = link.get("trace") if isinstance(link, Mapping) else None
    if isinstance(trace, str):
        trace = {"file": trace}
    if isinstance(trace, Mapping) and isinstance(trace.get("file"), str) and "rows" not in trace:
        return dict(trace)
    return None
