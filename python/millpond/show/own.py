"""What a study has for itself: modules of `millpond.studies`, found by the name that its results give."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

from millpond.results.directory import Results


def part(results: Results, name: str) -> ModuleType | None:
    """The module `millpond.studies.<study>.<name>` of these results, `page` or `terminal`; None if there is none.

    A plan names the study whose page it wants (`page = "..."`); else it is the one of the same name.
    """
    study = str(results.manifest.get("page") or results.study or "")
    if not study.isidentifier() or importlib.util.find_spec(f"millpond.studies.{study}") is None:
        return None
    place = f"millpond.studies.{study}.{name}"
    return importlib.import_module(place) if importlib.util.find_spec(place) is not None else None
