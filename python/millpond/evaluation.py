"""Candidates evaluated in memory, for programs that search for a good controller: a plan in, a table out, no files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from millpond.controllers.own import AnyController, OwnControllers
from millpond.errors import UsageError
from millpond.measure.frame import Frame, measure
from millpond.measure.measures import Measures
from millpond.measure.metrics import USUAL, metric
from millpond.plan import study
from millpond.plan.plan import Algorithm, Plan, Trace
from millpond.plan.program import FLEET, Program
from millpond.plan.values import plain
from millpond.results.factor import ALGORITHM
from millpond.run import possible
from millpond.run.campaign import carry_out


def evaluate(
    plan: Path | str | Mapping[str, Any] | Plan,
    candidates: Mapping[str, AnyController] | Sequence[str],
    seeds: Sequence[int] | Mapping[str, Sequence[int]],
    *,
    metrics: Sequence[str] = USUAL,
    jobs: int = 0,
) -> pa.Table:
    """Runs every candidate on every cell of a plan with every seed, and measures each run.

    All candidates meet the same random numbers: rows of one seed can be compared one by one.

    Args:
        plan: A plan's file or folder, its keys as a tree, or a plan that `millpond.plan.study.load` gave. The
            candidates take the place of its algorithms.
        candidates: Controllers by names of the caller's: presets, tables with settings (`{"preset": "rfc7252",
            "ack-timeout": "3 s"}`), or custom controllers, as a name or as the class itself. A list names presets
            or custom controllers.
        seeds: The seed of each replication; or several such lists by name, such as `training` and `held-out`, which may
            have no seed in common.
        metrics: What is measured: names of metrics, each by its usual statistic over the clients of a run.
        jobs: Runs at the same time; 0 for one per core.

    Returns:
        One row for each candidate, cell and seed: `candidate`, `seeds` (the name of the list), `seed`, a column per
        factor of the plan, and one per metric in its base unit; null where a run has no value.

    Raises:
        UsageError: one line, if a candidate, a seed or a metric makes no sense.
        MillpondError: one line, if a run fails.
    """
    metrics = (metrics,) if isinstance(metrics, str) else metrics
    for name in metrics:
        metric(name)
    lists = _apart(seeds)
    known = plan if isinstance(plan, Plan) else study.load(Path(plan) if isinstance(plan, str) else plan)
    own = OwnControllers(Path(), known.folder)
    program = _program(known, candidates, lists, own)
    cells = [planned.cell for planned in program.cells]
    possible.refuse_alone(cells, FLEET if known.sites else program.kind, known.name)
    measures = Measures(carry_out(replace(program, kind="sweep"), workers=jobs))
    factors = [name for name in dict.fromkeys(key for cell in cells for key in cell.columns) if name != ALGORITHM]
    return pa.Table.from_pylist(list(_rows(measure(measures, metrics), factors, lists)))


# ----------------------------------------------------------------------------------------------- helpers


def _apart(seeds: Sequence[int] | Mapping[str, Sequence[int]]) -> dict[str, tuple[int, ...]]:
    given = dict(seeds) if isinstance(seeds, Mapping) else {"": seeds}
    if not given:
        raise UsageError("seeds: none: name at least one")
    lists: dict[str, tuple[int, ...]] = {}
    home: dict[int, str] = {}
    for name, these in given.items():
        if not isinstance(these, Iterable) or isinstance(these, str):
            raise UsageError(f"seeds: {these!r} is no list: write [{these}], or range({these}) for so many")
        numbers = lists[name] = tuple(plain(list(these), "seeds"))
        if not numbers:
            raise UsageError(f"seeds{f' {name!r}' if name else ''}: none: name at least one")
        for number in numbers:
            if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < 2**53:
                raise UsageError(f"seeds: {number!r} is out of range: whole numbers from 0 to 2^53")
            if number in home:
                where = f"in both {home[number]!r} and {name!r}" if home[number] != name else "there twice"
                raise UsageError(f"seeds: {number} is {where}: lists that are to be apart may not share one")
            home[number] = name
    return lists


def _program(
    plan: Plan,
    candidates: Mapping[str, AnyController] | Sequence[str],
    lists: Mapping[str, Sequence[int]],
    own: OwnControllers,
) -> Program:
    named = dict(candidates) if isinstance(candidates, Mapping) else {str(name): str(name) for name in candidates}
    if not named:
        raise UsageError("candidates: none: name at least one")
    known = {name: Algorithm(name, name, own.written(controller)) for name, controller in named.items()}
    together = tuple(number for numbers in lists.values() for number in numbers)
    ready = replace(
        plan,
        known=known,
        # every candidate meets every seed, on sites as well
        matrices=tuple(replace(matrix.but(ALGORITHM, tuple(known)), sites=False) for matrix in plan.matrices),
        mixes=(),
        trace=Trace(),
    )
    return replace(study.unfold(ready.replicated(len(together)), own), seeds=together)


def _rows(frame: Frame, factors: Iterable[str], lists: Mapping[str, Sequence[int]]) -> Iterator[dict[str, Any]]:
    homes = [name for name, numbers in lists.items() for _ in numbers]
    names = dict.fromkeys(one.metric.name for one in frame.series)
    for row in frame.wide().to_pylist():
        yield {
            "candidate": row["algorithm"],
            "seeds": homes[row["replication"]],
            "seed": row["seed"],
            **{name: row[name] for name in (*factors, *names)},
        }
