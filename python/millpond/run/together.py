"""Sites that share links: all of a fleet are under way at the same time, on the cores of this machine.

What one site sends over a shared link the others feel, so there is no run of a site by itself. The engine lets all of
them go through windows as long as the shortest delay of these links, side by side; results are the same on any number
of cores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from millpond.errors import UsageError
from millpond.plan.program import FLEET, Program
from millpond.results.directory import Cell
from millpond.results.factor import ALGORITHM, PATH
from millpond.run.jobs import Job, jobs_of


def shared(cell: Cell) -> list[str]:
    """The links that a cell's sites share with others."""
    network: dict[str, Any] = cell.scenario.get("network") or {}
    return list(network.get("shared", []))


def is_together(program: Program) -> bool:
    """Whether its runs are sites that share links."""
    return program.kind == FLEET and any(shared(planned.cell) for planned in program.cells)


def check(program: Program, elsewhere: bool) -> None:
    """Refuse what sites that share links cannot be. Raises `UsageError` with one line, before anything is begun."""
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


def most_bytes(program: Program, row_bytes: int) -> int:
    """Memory of the largest fleet of a program, all of whose sites are there at the same time, in bytes."""
    fleets: dict[tuple[object, ...], int] = {}
    for planned in program.cells:
        each = planned.scenario.estimated_bytes() + planned.scenario.clients * row_bytes
        fleet = _fleet(planned.cell)
        fleets[fleet] = fleets.get(fleet, 0) + each * planned.cell.replications
    return max(fleets.values())


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


def _fleet(cell: Cell) -> tuple[object, ...]:
    """What all sites of one fleet have alike."""
    return (cell.columns.get(ALGORITHM), cell.columns.get(PATH))
