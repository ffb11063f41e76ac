"""What can be run: alone, together with others, or elsewhere, and whether this machine has the memory for it.

Sites that share links are all under way at the same time, on the cores of this machine: what one site sends over a
shared link the others feel, so there is no run of a site by itself. The engine lets all of them go through windows as
long as the shortest delay of these links, side by side; results are the same on any number of cores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psutil

from millpond.controllers.own import kept as folder_of
from millpond.errors import MillpondError, UsageError
from millpond.plan.program import FLEET, Program
from millpond.results.directory import Cell
from millpond.results.factor import ALGORITHM, PATH
from millpond.run.jobs import Job, jobs_of

#: Python's own memory for one client's row, from engine to file.
ROW_BYTES = 400
#: The digest of what a class was given beside its source.
GIVEN = "(given)"


def check(program: Program, workers: int, *, elsewhere: bool, kept: bool) -> None:
    """Refuse what cannot be run, before anything is begun.

    Args:
        program: What is to be run.
        workers: Threads; 0 for one per core.
        elsewhere: Whether by workers that are not of this process.
        kept: Whether its results are, with all that they were made by.

    Raises:
        UsageError: one line.
        MillpondError: one line, if there is too little memory.
    """
    _check_together(program, elsewhere)
    if elsewhere:
        _check_sources(program, "--on: workers are sent the source of a controller")
    else:
        _check_memory(program, workers)
    if kept:
        _check_sources(program, "results keep the source of a controller")


def shared(cell: Cell) -> list[str]:
    """The links that a cell's sites share with others."""
    network: dict[str, Any] = cell.scenario.get("network") or {}
    return list(network.get("shared", []))


def is_together(program: Program) -> bool:
    """Whether its runs are sites that share links."""
    return program.kind == FLEET and any(shared(planned.cell) for planned in program.cells)


def refuse_alone(cells: Sequence[Cell], kind: str, what: str) -> None:
    """Raises `UsageError` if runs of these cells cannot be done by themselves. `what` says what is asked of them."""
    if kind == FLEET and any(map(shared, cells)):
        raise UsageError(f"{what}: sites that share links are no runs of their own: sweep the plan again")


def fleets(program: Program, jobs: Sequence[Job]) -> list[list[Job]]:
    """The fleets that some of these runs are of, whole: what one site sends the others feel."""
    wanted = {job.run for job in jobs}
    found: dict[tuple[object, ...], list[Job]] = {}
    for job in sorted(jobs_of(program), key=lambda job: job.run):
        found.setdefault(_fleet(job.planned.cell), []).append(job)
    return [fleet for fleet in found.values() if wanted.intersection(job.run for job in fleet)]


# ----------------------------------------------------------------------------------------------- helpers


def _check_together(program: Program, elsewhere: bool) -> None:
    """Refuse what sites that share links cannot be. Raises `UsageError` with one line."""
    if not is_together(program):
        return
    if elsewhere:
        raise UsageError("--on: sites that share links are run together, by the cores of this machine: leave it out")
    if program.shard != (1, 1):
        raise UsageError("--shard: sites that share links are one fleet, which has no parts: leave it out")
    if program.code:
        name = next(iter(program.code))
        raise UsageError(f"{name}: sites that share links have built-in controllers only")
    if program.trace.tables and any(planned.traced for planned in program.cells):
        raise UsageError("trace: sites that share links have no traces: leave it out")
    kinds: dict[tuple[object, ...], Cell] = {}
    for planned in program.cells:
        cell = planned.cell
        if not shared(cell):
            raise UsageError(
                f"{cell.id}: its sites share no links, as others of the plan do: name them in every matrix"
            )
        other = kinds.setdefault((*_fleet(cell), cell.first_seed), cell)
        if other is not cell:
            raise UsageError(
                f"{cell.id}, {other.id}: which of them share the links? sites of one matrix are alike but for their "
                "algorithm: give each kind a [[matrix]] of its own"
            )


def _check_memory(program: Program, workers: int) -> None:
    """Refuse a program whose runs would not fit this machine's memory. Raises `MillpondError` with one line."""
    used = workers or psutil.cpu_count() or 1
    available = int(psutil.virtual_memory().available)
    if is_together(program):
        need = _most_bytes(program)
        if need > available:
            raise MillpondError(
                f"{program.name}: sites that share links are in memory all at once, which takes about {_bytes(need)}, "
                f"{_bytes(available)} are free: fewer sites or clients"
            )
        return
    for planned in program.cells:
        replications = planned.cell.replications
        need = planned.scenario.estimated_bytes() * min(used, max(1, replications))
        need += planned.scenario.clients * ROW_BYTES * replications
        if need > available:
            raise MillpondError(
                f"{planned.cell.id}: {planned.scenario.clients} clients need about {_bytes(need)} of memory "
                f"with {used} workers, {_bytes(available)} are free: fewer clients, replications or --jobs"
            )


def _most_bytes(program: Program) -> int:
    """Memory of the largest fleet of a program, all of whose sites are there at the same time, in bytes."""
    fleets: dict[tuple[object, ...], int] = {}
    for planned in program.cells:
        each = planned.scenario.estimated_bytes() + planned.scenario.clients * ROW_BYTES
        fleet = _fleet(planned.cell)
        fleets[fleet] = fleets.get(fleet, 0) + each * planned.cell.replications
    return max(fleets.values())


def _check_sources(program: Program, why: str) -> None:
    """Refuse a controller without source. Raises `UsageError` with one line that says why it has to have one."""
    for name, files in program.code.items():
        if any(file != GIVEN and f"{folder_of(name)}/{file}" not in program.sources for file in files):
            raise UsageError(f"{name}: {why}, and this one has no file: write its class into one")


def _fleet(cell: Cell) -> tuple[object, ...]:
    """What all sites of one fleet have alike."""
    return (cell.columns.get(ALGORITHM), cell.columns.get(PATH))


def _bytes(number: int) -> str:
    size = float(number)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if size < 1000 or unit == "TB":
            return f"{size:.3g} {unit}" if size < 1000 else f"{size:.0f} {unit}"
        size /= 1000
    raise AssertionError
