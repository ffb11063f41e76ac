"""One setting carried out, and how far its rows lie from the published ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from millpond.calibrate.description import Calibration
from millpond.controllers.own import OwnControllers
from millpond.errors import MillpondError
from millpond.judge import claim_file, claims, figures
from millpond.judge.compare import Figure, Verdict
from millpond.judge.published import Published
from millpond.measure.measures import Measures
from millpond.plan import study
from millpond.plan.factor import Vary
from millpond.plan.plan import Plan, Trace
from millpond.plan.program import Program
from millpond.results.factor import ALGORITHM, PARTNER, Factor, Value
from millpond.run.campaign import Watcher, carry_out

Setting = Mapping[str, Value]

#: A row fits within this share of it: what studies call similar.
FITS = 0.10
#: A row that could not be measured under a setting, because nothing got through, is as far away as one can be.
FARTHEST = 1.0


@dataclass(frozen=True)
class Trial:
    """A setting that was tried."""

    setting: Setting
    #: The root of the mean square of the distances.
    misfit: float
    #: Each row's own number, in the unit of the row.
    ours: Mapping[str, float | None]
    #: Why it could not be run, if it could not.
    refused: str = ""


@dataclass(frozen=True)
class Judged:
    """A setting under which the whole study was run."""

    figures: Mapping[str, Figure]
    claims: tuple[Verdict, ...]


def distance(published: float, ours: float | None, unit: str = "") -> float:
    """How far ours lies from a published number, from 0 to 1: the difference as a share of the sum of both.

    1/3 is twice as much or half as much. Of a percentage the part that is left to 100 counts as well, where it is
    farther.
    """
    if ours is None or math.isnan(ours):
        return FARTHEST
    found = _apart(published, ours)
    if unit == "percent" and 0 <= published <= 100 and 0 <= ours <= 100:
        found = max(found, _apart(100 - published, 100 - ours))
    return min(found, FARTHEST)


def fits(published: float, ours: float | None) -> bool:
    """Whether ours is similar to a published number."""
    return ours is not None and abs(ours - published) <= FITS * abs(published)


def misfit(distances: Sequence[float]) -> float:
    """One number for many distances."""
    return math.sqrt(sum(one * one for one in distances) / len(distances))


def tried(calibration: Calibration, setting: Setting, runs: int = 1) -> Trial:
    """So many runs of each cell under a setting, with random numbers by which nothing is judged. Refusals are told."""
    plan = calibration.plan
    # numbers after those of the study's own replications
    seed = study.seed(plan.name, plan.replications)
    small = replace(_narrowed(plan, calibration.cells), first_seed=seed).replicated(runs)
    try:
        # the rest of the cells would be run for nothing
        rows = (row for row in calibration.published.rows if row.id in calibration.fit)
        mixed = {bool(row[PARTNER]) for row in rows}
        program = _program(calibration, small, setting).kept(lambda cell: cell.mixed in mixed)
        found = _figures(calibration, Measures(carry_out(program, workers=1)), calibration.fit, setting)
    except MillpondError as error:
        if error.exit_code == 130:
            raise
        return Trial(setting, FARTHEST, {}, str(error))
    ours = {name: found[name].ours for name in calibration.fit}
    return Trial(setting, misfit([_distance(found[name]) for name in calibration.fit]), ours)


def judged(
    calibration: Calibration, setting: Setting | None, quick: bool, jobs: int = 0, watcher: Watcher | None = None
) -> Judged:
    """The study's own algorithms in all its cells, and what becomes of its rows and claims.

    Under a setting, or under the reading of the test bed that the plan has first.
    """
    plan = calibration.plan
    small = _narrowed(plan, {**calibration.judged, ALGORITHM: plan.reading.algorithms})
    small = small.quick() if quick else small.replicated(calibration.replications)
    measures = Measures(carry_out(_program(calibration, small, setting), workers=jobs, watcher=watcher))
    found = _figures(calibration, measures, (*calibration.fit, *calibration.test), setting)
    written = claim_file.read(plan.claims, plan.factors, plan.columns).claims if plan.claims is not None else {}
    sure = plan.reading.confidence
    return Judged(found, tuple(claims.judge(claim, measures, False, sure) for claim in written.values()))


# ----------------------------------------------------------------------------------------------- helpers


def _program(calibration: Calibration, plan: Plan, setting: Setting | None) -> Program:
    first = tuple(path for path in plan.paths if path.name == plan.paths[0].name)
    paths = first if setting is None else calibration.paths(setting)
    # factors by which readings are chosen touch nothing else
    vary = {**{name: Vary(Factor(name)) for name in plan.on_paths}, **plan.vary}
    return study.unfold(replace(plan, paths=paths, vary=vary, trace=Trace()), OwnControllers(plan.folder))


def _narrowed(plan: Plan, cells: Mapping[str, tuple[Value, ...]]) -> Plan:
    kept = (matrix.kept(cells) for matrix in plan.matrices)
    return replace(plan, matrices=tuple(matrix for matrix in kept if matrix is not None))


def _figures(
    calibration: Calibration, measures: Measures, names: Sequence[str], setting: Setting | None
) -> dict[str, Figure]:
    plan = calibration.plan
    rows = Published(tuple(row for row in calibration.published.rows if row.id in names), "built in")
    metrics = {} if setting is None else calibration.metrics(setting)
    reading = replace(plan.reading, metrics={**plan.reading.metrics, **metrics})
    return {figure.id: figure for figure in figures.match(rows, measures, reading)}


def _distance(figure: Figure) -> float:
    return distance(figure.published, figure.ours, figure.unit)


def _apart(one: float, other: float) -> float:
    return abs(one - other) / (abs(one) + abs(other)) if one or other else 0.0
