"""Where an answer is kept: the report for people, and the same for programs."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from millpond.errors import MillpondError, UsageError
from millpond.fleet.answer import Answer
from millpond.given_files import read_text
from millpond.results.directory import free_directory
from millpond.results.store import write_text
from millpond.show.text import as_json

REPORT, NUMBERS = "report.html", "answer.json"


def folder(asked: Path, name: str) -> Path:
    """The folder that is meant, which holds no results yet; one whose last part is `*` is a free one.

    Raises:
        MillpondError: one line, if there is something else, or nothing can be written there.
    """
    found = free_directory(asked, name)
    if found.exists() and not found.is_dir():
        raise UsageError(f"--out: {found} is a file: name a folder")
    if found.is_dir() and {file.name for file in found.iterdir()} - {REPORT, NUMBERS, "figures", "tables"}:
        raise UsageError(f"--out: {found} holds something else: name another folder")
    there = next(above for above in (found, *found.absolute().parents) if above.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise MillpondError(f"{found}: cannot write results here ({there} is not for writing): choose another --out")
    return found


def write(answer: Answer, to: Path) -> Path:
    """Write both files, each whole or not at all. Gives the report."""
    from millpond.fleet import page, stored

    text = page.render(answer)
    to.mkdir(parents=True, exist_ok=True)
    write_text(to / NUMBERS, as_json(stored.to_json(answer)))
    write_text(to / REPORT, text)
    return to / REPORT


def export(
    answer: Answer, to: Path, figures: Sequence[str] = (), tables: Sequence[str] = (), width: float = 10.5
) -> list[Path]:
    """Write figures and tables of the report as files of their own into two folders of `to`. Gives the files."""
    from millpond.fleet import page
    from millpond.show import export

    sections = page.sections(answer)
    written = export.figures(sections, to / "figures", figures, width) if figures else []
    return written + (export.tables(sections, to / "tables", tables) if tables else [])


def holds_answer(folder: Path) -> bool:
    """Whether a folder is one that `write` has written."""
    return (folder / NUMBERS).is_file()


def read(folder: Path) -> Answer:
    """The answer that a folder holds. Raises `MillpondError` with one line."""
    from millpond.fleet import stored

    file = folder / NUMBERS
    try:
        found = json.loads(read_text(file))
    except (ValueError, RecursionError):
        raise MillpondError(f"{file}: no JSON: ask again") from None
    return stored.from_json(found, str(file))
