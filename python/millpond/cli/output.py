"""What the laboratory's verbs print."""

from __future__ import annotations

import codecs
import io
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from millpond.given_files import printable

if TYPE_CHECKING:
    from millpond.api import Run


#: How signs are written where the terminal, or the file, has no room for them.
_PLAIN = {
    "±": "+/-", "\N{EN DASH}": "-", "\N{MINUS SIGN}": "-", "→": "->", "…": "...", "\N{MULTIPLICATION SIGN}": "x",
    "≥": ">=", "≤": "<=", "✓": "yes", "✗": "no", "≈": "~", "µ": "u", "─": "-", "▇": "#",
    "\N{NO-BREAK SPACE}": " ", "\N{NARROW NO-BREAK SPACE}": " ",
}  # fmt: skip
_ERRORS = "millpond-plain"


def write_plainly() -> None:
    """Never fail over a sign that the encoding of the terminal, or of a file that is written, does not have."""
    codecs.register_error(_ERRORS, _plainly)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not _is_unicode(stream.encoding):
            stream.reconfigure(errors=_ERRORS)


def say(text: str, err: bool = False, nl: bool = True) -> None:
    """Print a line, whatever stands in it: nothing from a file or a name steers the terminal."""
    click.echo(printable(text), err=err, nl=nl)


def print_json(content: Any) -> None:
    """Print JSON and nothing else."""
    from millpond.show.text import as_json

    text = as_json(content)
    if not _is_unicode(getattr(sys.stdout, "encoding", None)):
        text = re.sub(r"[^\x00-\x7f]+", lambda found: json.dumps(found[0])[1:-1], text)
    # JSON has a way of its own to write them
    sys.stdout.write(re.sub("[\x7f-\x9f\u202a-\u202e\u2066-\u2069]", lambda found: f"\\u{ord(found[0]):04x}", text))
    sys.stdout.flush()


def print_run(done: Run, as_json: bool) -> None:
    """Print what a run gave, its tables or as JSON, and where it lies."""
    from millpond.api import Reproduction
    from millpond.show import terminal

    if done.results.manifest["shard"][1] > 1 and len(done.results.folders) == 1:
        number, of = done.results.manifest["shard"]
        say(f"results: {done.directory}   shard {number} of {of}: read it together with the others", err=as_json)
        return
    if as_json:
        print_json(done.to_json() if isinstance(done, Reproduction) else _summary(done))
    else:
        terminal.show(done.tables)
    told = f"results: {done.directory}" + (f"   report: {done.report}" if done.report is not None else "")
    say(told, err=as_json)


def print_files(files: Sequence[Path], as_json: bool) -> None:
    """Say what was written beside the results, a line a folder."""
    folders = {file.parent: [other for other in files if other.parent == file.parent] for file in files}
    for folder, written in folders.items():
        say(f"written: {len(written)} files in {folder}", err=as_json)


# ----------------------------------------------------------------------------------------------- helpers


def _is_unicode(encoding: str | None) -> bool:
    return encoding is None or codecs.lookup(encoding).name.startswith("utf-")


def _plainly(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_PLAIN.get(sign, "?") for sign in error.object[error.start : error.end]), error.end


def _summary(done: Run) -> dict[str, Any]:
    manifest = done.results.manifest
    return {
        "scenario": manifest["name"],
        "title": manifest["title"],
        "version": manifest["version"],
        "seeds": manifest["seeds"],
        "groups": done.summary.to_pylist(),
    }
