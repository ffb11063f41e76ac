"""What of a study is run with real programs: `live.toml` beside its plan.

Each `[[setting]]` names cells of the plan (`where`) and one kind of programs; their path is the cell's own, so that the
links are the simulated ones to the byte. What differs from the study and cannot be helped is `stated`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from millpond.errors import UsageError
from millpond.plan.toml_file import Declared, checked, read_tree
from millpond.real.programs import Clients, Programs, Stack, Tcp
from millpond.results.directory import Cell
from millpond.results.factor import PATH, Value

#: The file's name.
LIVE = "live.toml"


class _Quick(Declared):
    """What `--quick` says instead."""

    runs: int = 1


class _Setting(Declared):
    """Cells, and the programs that take the place of their clients and server."""

    where: dict[str, Value | list[Value]]
    #: What distinguishes it from another setting of the same cells.
    label: str = ""
    #: Whether it is part of `--quick`.
    quick: bool = True
    #: Runs of it, if it is not the file's.
    runs: int = 0
    #: What cannot be as in the study.
    stated: list[str] = msgspec.field(default_factory=list)
    clients: Clients | None = None
    tcp: Tcp | None = None
    stack: Stack | None = None

    @property
    def kinds(self) -> list[Programs]:
        """The kinds of programs that it names; it must be one."""
        return [kind for kind in (self.clients, self.tcp, self.stack) if kind is not None]


class _File(Declared):
    runs: int
    setting: list[_Setting]
    #: Runs at the same time, each over a path of its own.
    at_once: int = 1
    quick: _Quick = msgspec.field(default_factory=_Quick)
    stated: list[str] = msgspec.field(default_factory=list)


@dataclass(frozen=True)
class Setting:
    """One cell with real programs, and how often."""

    cell: Cell
    programs: Programs
    runs: int
    label: str = ""
    stated: tuple[str, ...] = ()
    #: The readings of the test bed that it is put beside, by name.
    variants: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What tells it from all others, fit for a file's name."""
        words = f"{self.cell.id}-{self.label}" if self.label else self.cell.id
        return "".join(letter if letter.isalnum() or letter in "._=" else "-" for letter in words)


@dataclass(frozen=True)
class Description:
    """The settings of a study, and how many runs go on at the same time."""

    settings: tuple[Setting, ...]
    at_once: int
    #: Settings none of whose cells was simulated.
    left_out: tuple[str, ...] = ()


def check(folder: Path) -> _File:
    """The file of a study. Raises `UsageError` as `read` does."""
    file = folder / LIVE
    if not file.is_file():
        raise UsageError(f"--live: {folder.name} does not say what to run with real programs: it has no {LIVE}")
    told = checked(read_tree(file), _File, file)
    if min(told.runs, told.quick.runs, told.at_once) < 1:
        raise UsageError(f"{file}: runs and at_once: at least 1")
    for number, setting in enumerate(told.setting):
        if len(setting.kinds) != 1:
            raise UsageError(f"{file}: setting[{number}]: one of clients, tcp and stack says which programs run")
    return told


def read(folder: Path, cells: Iterable[Cell], *, quick: bool = False, runs: int | None = None) -> Description:
    """The settings of a study among these cells.

    Raises:
        UsageError: one line: the study has none, or the file's place and the fix.
    """
    told = check(folder)
    if runs is not None and runs < 1:
        raise UsageError(f"--live-runs: {runs} makes no sense here: at least 1")
    found: list[Setting] = []
    left_out: list[str] = []
    known = list(cells)
    for setting in told.setting:
        if quick and not setting.quick:
            continue
        often = runs or (told.quick.runs if quick else setting.runs or told.runs)
        variants = _listed(setting.where.get(PATH, ()))
        for wanted in _combinations({k: v for k, v in setting.where.items() if k != PATH}):
            here = [cell for cell in known if not cell.mixed and _is(cell, wanted)]
            if variants:
                here = [cell for cell in here if cell.columns.get(PATH) in variants]
            if not here:
                left_out.append(" ".join(f"{key}={value}" for key, value in wanted.items()))
                continue
            names = variants or (str(here[0].columns.get(PATH, "")),)
            found.append(
                Setting(
                    here[0],
                    setting.kinds[0],
                    often,
                    setting.label,
                    tuple(told.stated + setting.stated),
                    tuple(map(str, names)),
                )
            )
    return Description(tuple(found), told.at_once, tuple(left_out))


# ----------------------------------------------------------------------------------------------- helpers


def _listed(value: Any) -> tuple[Value, ...]:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _combinations(where: Mapping[str, Any]) -> Iterable[dict[str, Value]]:
    values = [_listed(value) for value in where.values()]
    return (dict(zip(where, chosen, strict=True)) for chosen in itertools.product(*values))


def _is(cell: Cell, wanted: Mapping[str, Value]) -> bool:
    return all(str(cell.columns.get(name)) == str(value) for name, value in wanted.items())
