"""The file of a path, as `millpond emulate` takes it: sections uplink and downlink, or path."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from millpond import _engine
from millpond.errors import UsageError, unknown
from millpond.plan import parts, quantity
from millpond.plan.toml_file import read_tree, where

#: What a file may say about its path besides.
_ABOUT = ("title", "source")


def read(name: str, folder: Path, place: str) -> Mapping[str, Any] | None:
    """The path of a file; None for the name of one that `millpond paths` lists.

    Args:
        name: A name or a file.
        folder: Where the file is looked for.
        place: Who names it, for errors.

    Raises:
        UsageError: one line with the place, if there is neither or the file holds no path.
    """
    named = [profile[0] for profile in _engine.profiles()]
    file = folder / name
    is_file = name.endswith(".toml") or "/" in name or os.sep in name
    if not is_file and (name in named or not file.is_file()):
        if name not in named:
            raise UsageError(f"{place}: {unknown('path', name, named)}; nor is there a file of this name")
        return None
    if not file.is_file():
        raise UsageError(f"{place}: {file}: no such file")
    tree = read_tree(file)
    whole = tree.get("path", {key: value for key, value in tree.items() if key not in _ABOUT})
    parts.check_path(whole, str(file))
    told = {"profile": whole} if isinstance(whole, str) else dict(whole)
    if "header" in told:
        told["header"] = quantity.canonical("size", told["header"], where(file, "header"))
    return told
