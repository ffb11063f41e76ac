"""The arena held: cells and candidates run, compared, and written down."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from millpond import _engine
from millpond.arena import cells, page
from millpond.arena.verdict import Score, Summary, scores, summaries
from millpond.controllers.own import AnyController, OwnControllers
from millpond.engine import presets
from millpond.errors import UsageError, unknown
from millpond.plan import scenario as scenarios
from millpond.plan.factor import none_twice
from millpond.plan.overrides import written
from millpond.results.directory import Results, free_directory
from millpond.run.campaign import Watcher, carry_out
from millpond.show.document import Document

#: A controller that fits here fits any cell.
_ANY_PATH = "nbiot-anrw18"


@dataclass(frozen=True)
class Contest:
    """What came out."""

    results: Results
    scores: Sequence[Score]
    summaries: Sequence[Summary]
    document: Document
    #: None if nothing was to be written.
    page: Path | None

    @property
    def directory(self) -> Path:
        """The results directory."""
        return self.results.directory


def hold(
    candidates: Mapping[str, AnyController] | Sequence[AnyController],
    *,
    against: Sequence[str] = (),
    cells_of: str = "drawn",
    seeds: str = "training",
    drawn: int | str = 120,
    runs: int = 16,
    readings: str = "first",
    families: Sequence[str] = (),
    changes: Mapping[str, Any] | None = None,
    out: Path | str | None = None,
    resume: bool = False,
    jobs: int = 0,
    watcher: Watcher | None = None,
) -> Contest:
    """Puts candidates beside published presets, on many paths.

    Args:
        candidates: Who is judged: presets, tables with settings, or custom controllers; by names of the caller's,
            or a list.
        against: The presets that the best of each cell is looked for among; left out: one of each family.
        cells_of: `studies`, `drawn` or `all`.
        seeds: `training` or `held-out`: cells and random numbers are drawn from what the other has no part in.
        drawn: How many cells are drawn; `401..800` for those with these numbers.
        runs: Runs of a cell, at most; four, or as many more as it takes for 200 clients over all of them.
        readings: Of which readings of studies' test beds there are cells: `first`, or `all`.
        families: Of which families cells are drawn, in turn; left out: as docs/arena.md says.
        changes: What is otherwise in every cell, by its place: `{"clients[0].naming": "none"}`.
        out: The results directory; `results/*` is a free name in `results/`. Left out: nothing is written.
        resume: Keep the runs that are there.
        jobs: Runs at the same time; 0 for one per core.
        watcher: Told about progress.

    Raises:
        MillpondError: one line that says what is wrong and how to fix it.
    """
    known = [preset.name for preset in presets()]
    rivals = tuple(against) or cells.AGAINST
    none_twice(rivals, "--against")
    none_twice(families, "--families")
    for name in rivals:
        if name not in known:
            raise UsageError(f"--against: {unknown('preset', name, known)}")
    if jobs < 0:
        raise UsageError(f"--jobs: {jobs} makes no sense here: at least 1, or 0 for one per core")
    own = OwnControllers(Path())
    named = dict(candidates) if isinstance(candidates, Mapping) else _named(candidates, own)
    if not named:
        raise UsageError("--candidate: none: name at least one")
    for name in (cells.ALONE, cells.NEIGHBOUR):
        if name in named:
            raise UsageError(f"--candidate: {name!r} is the arena's own name: choose another")
    for name, controller in named.items():
        fits(own.written(controller), f"--candidate {name}", own)
    spots = cells.places(cells_of, seeds, numbers(drawn), runs, own, readings, families)
    if changes:
        spots = [replace(spot, scenario=scenarios.with_changes(spot.scenario, changes)) for spot in spots]
    program = cells.program(named, rivals, spots, seeds, own)
    directory = None
    if out is not None:
        name = f"arena-{cells_of}-{seeds}"
        directory = free_directory(out, name, plan_hash=program.hash, resume=resume)
    results = carry_out(
        program,
        directory,
        workers=jobs,
        resume=resume,
        watcher=watcher,
    )
    found = scores(results, [name for name in rivals if name in program.labels])
    told = summaries(found)
    shown = page.document(found, told, list(named), _engine.version())
    where = None if directory is None else page.write(directory, found, told, shown)
    return Contest(results, found, told, shown, where)


def fits(controller: Any, who: str, own: OwnControllers | None = None) -> None:
    """Whether this is a controller. Raises `UsageError` with one line that begins with who named it."""
    scenarios.build({"path": _ANY_PATH, "clients": [{"count": 1, "controller": controller}]}, who, own)


def numbers(drawn: int | str) -> range:
    """Which cells are drawn, from 0 on, of `120` or `401..800`. Raises `UsageError` with one line."""
    told = re.fullmatch(r"(?:(\d+)\.\.)?(\d+)", str(drawn).strip())
    if told is None:
        raise UsageError(f"--drawn: {drawn!r} is no number of cells: write '120', or '401..800' for those alone")
    first, last = int(told[1] or 1), int(told[2])
    if not 1 <= first <= last:
        raise UsageError(f"--drawn: {drawn}: at least 1" if told[1] is None else f"--drawn: {drawn}: no cells")
    return range(first - 1, last)


# ----------------------------------------------------------------------------------------------- helpers


def _named(candidates: Sequence[AnyController], own: OwnControllers) -> dict[str, AnyController]:
    """By their names with their settings; a class by the name that it is known under."""
    found: dict[str, AnyController] = {}
    for candidate in candidates:
        of_text = isinstance(candidate, str | Mapping)
        name = written(candidate) if isinstance(candidate, str | Mapping) else own.add(candidate)
        none_twice((*found, name), "--candidate")
        found[name] = candidate if of_text else name
    return found
