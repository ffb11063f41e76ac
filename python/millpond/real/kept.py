"""Runs of real programs as they lie in a results directory: a file each in `live/`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from millpond.errors import MillpondError
from millpond.given_files import LARGEST_MANIFEST, read_bytes
from millpond.real.description import Setting
from millpond.results.factor import Value
from millpond.results.store import write_json

FOLDER = "live"
_SKIPPED = "skipped.json"


class LiveRun(msgspec.Struct, kw_only=True):
    """One run of real programs."""

    name: str
    #: The cell whose place it takes, by its name, and the factors of that.
    cell: str
    columns: dict[str, Value]
    #: What distinguishes it from other programs of the same cell.
    label: str
    #: Readings of the test bed that it is put beside.
    variants: list[str]
    number: int
    seed: int
    #: `emulate` (namespaces of their own) or `relay`.
    over: str
    #: False if packets were forwarded too late for its figures to be believed; `why` tells of it.
    valid: bool
    why: str
    fct_us: list[int]
    unfinished: int
    #: It was ended after so many seconds; None if it ended by itself.
    limit_s: float | None
    copies: int | None
    exchanges: int | None
    answered: int | None = None
    lateness: dict[str, Any]
    links: list[dict[str, Any]]
    left_out: list[dict[str, Any]]
    hindrances: list[str]
    stated: list[str]
    system: str


class Skipped(msgspec.Struct):
    """A setting of which nothing could be run, and why."""

    columns: dict[str, Value]
    label: str
    why: str


def write(directory: Path, run: LiveRun) -> None:
    """Keep a run, in the place of an earlier one of its name."""
    write_json(directory / FOLDER / f"{run.name}.json", msgspec.to_builtins(run))


def skip(directory: Path, setting: Setting, why: str) -> None:
    """Keep that nothing of a setting was run."""
    told = [entry for entry in skipped(directory) if (entry.columns, entry.label) != _of(setting)]
    told.append(Skipped(dict(setting.cell.columns), setting.label, why))
    write_json(directory / FOLDER / _SKIPPED, msgspec.to_builtins(told))


def read(directory: Path) -> list[LiveRun]:
    """The runs of a results directory, in the order of their names.

    Raises:
        MillpondError: one line, if a file is none of ours.
    """
    files = sorted((directory / FOLDER).glob("*.json"))
    return [_read(file, LiveRun) for file in files if file.name != _SKIPPED]


def skipped(directory: Path) -> list[Skipped]:
    """The settings of which nothing could be run. Errors as for `read`."""
    file = directory / FOLDER / _SKIPPED
    return _read(file, list[Skipped]) if file.is_file() else []


# ----------------------------------------------------------------------------------------------- helpers


def _of(setting: Setting) -> tuple[dict[str, Value], str]:
    return dict(setting.cell.columns), setting.label


def _read(file: Path, kind: Any) -> Any:
    try:
        return msgspec.json.decode(read_bytes(file, LARGEST_MANIFEST), type=kind)
    except (OSError, msgspec.DecodeError) as error:
        raise MillpondError(f"{file}: no run of real programs ({error}): delete it, and resume") from None
