"""Where an answer is kept: the report for people, and the same for programs."""

from __future__ import annotations

import os
from pathlib import Path

from millpond.api import HOME
from millpond.errors import MillpondError, UsageError
from millpond.fleet.answer import Answer
from millpond.results.store import write_text
from millpond.show.plain import as_json

REPORT, NUMBERS = "report.html", "answer.json"


def folder(asked: Path | None, name: str) -> Path:
    """The folder to use: the one asked for, which holds no results yet, or a free one in `results/`.

    Raises:
        MillpondError: one line, if there is something else, or nothing can be written there.
    """
    found = _folder(asked, name)
    there = next(place for place in (found, *found.absolute().parents) if place.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise MillpondError(f"{found}: cannot write results here ({there} is not for writing): choose another --out")
    return found


def write(answer: Answer, to: Path) -> Path:
    """Write both files, each whole or not at all. Gives the report."""
    from millpond.fleet import page

    text = page.render(answer)
    to.mkdir(parents=True, exist_ok=True)
    write_text(to / NUMBERS, as_json(answer.to_json()))
    write_text(to / REPORT, text)
    return to / REPORT


# ----------------------------------------------------------------------------------------------- helpers


def _folder(asked: Path | None, name: str) -> Path:
    if asked is None:
        free, number = HOME / name, 1
        while free.exists():
            number += 1
            free = HOME / f"{name}-{number}"
        return free
    if asked.exists() and not asked.is_dir():
        raise UsageError(f"--out: {asked} is a file: name a folder")
    if asked.is_dir() and {file.name for file in asked.iterdir()} - {REPORT, NUMBERS}:
        raise UsageError(f"--out: {asked} holds something else: name another folder")
    return asked
