"""Files that others wrote: read as regular files, up to a size, and told in the terminal without steering it.

Whatever is read here may come from anybody. A device or a pipe never ends and is refused before a byte is read, what is
larger than its kind ever is as well; what is nested deeper than a reader can follow is one line, as any other fault.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from millpond.errors import MillpondError, UsageError

#: Scenarios, plans, claims and figures have some kilobytes; a manifest holds a scenario for each of its cells.
LARGEST_TEXT = 16 << 20
LARGEST_MANIFEST = 512 << 20
#: Values of a table that are read at once: 8 bytes each, in memory. A file of repeated values may hold far more.
MOST_VALUES = 1 << 30

#: What does something to a terminal rather than stand in it: control characters, and those that turn the direction of
#: what follows (Unicode Standard Annex #9, sections 2.1, 2.2 and 2.4.2).
_STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    r"""The text with every character that would steer a terminal shown by its number, as `\u{1b}`."""
    return _STEERS.sub(lambda found: f"\\u{{{ord(found[0]):x}}}", text)


def read_bytes(file: Path, most: int = LARGEST_TEXT) -> bytes:
    """The content of a regular file. Raises `UsageError` if there is none, or more than `most` bytes of it."""
    try:
        # looked at once it is open, so that nothing else can take its place; a pipe that nobody writes to opens too
        with os.fdopen(os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as opened:
            told = os.fstat(opened.fileno())
            if stat.S_ISDIR(told.st_mode):
                raise UsageError(f"{file}: a folder, not a file")
            if not stat.S_ISREG(told.st_mode):
                raise UsageError(f"{file}: a device or a pipe, not a regular file")
            content = opened.read(most + 1)
    except FileNotFoundError:
        raise UsageError(f"{file}: no such file") from None
    except IsADirectoryError:
        raise UsageError(f"{file}: a folder, not a file") from None
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror or error}") from None
    if len(content) > most:
        raise UsageError(f"{file}: more than {most >> 20} MiB: no such file has so much")
    return content


def read_text(file: Path, most: int = LARGEST_TEXT) -> str:
    """The same as text in UTF-8, line ends as they are written here. Errors as for `read_bytes`."""
    try:
        return read_bytes(file, most).decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise UsageError(f"{file}: not UTF-8 text") from None


def read_json(file: Path, most: int = LARGEST_TEXT) -> Any:
    """The same as JSON. Raises `UsageError` as `read_text` does, and `ValueError` for what is no JSON."""
    text = read_text(file, most)
    with shallow(file):
        return json.loads(text)


@contextmanager
def shallow(origin: object) -> Iterator[None]:
    """What is nested deeper than a reader can follow is one line. Raises `UsageError`."""
    try:
        yield
    except RecursionError:
        raise UsageError(f"{origin}: nested too deep") from None


def check_values(file: Path, rows: int, columns: int) -> None:
    """Raises `MillpondError` for a table of which more would be read at once than fits."""
    if rows * columns > MOST_VALUES:
        raise MillpondError(f"{file}: {rows} rows of {columns} columns: more than is read at once")
