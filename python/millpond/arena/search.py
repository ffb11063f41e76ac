"""A search for settings: many are drawn, few cells sort out most of them, more cells the rest (successive halving).

Only training cells are looked at. What comes out is one candidate more, to be judged on the held-out split by
`millpond arena`, once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from millpond.arena.contest import fits, hold
from millpond.arena.drawn import Draws
from millpond.arena.verdict import Summary
from millpond.errors import UsageError
from millpond.plan.overrides import written
from millpond.run.campaign import Watcher

RUNGS = ((8, 4), (24, 8), (80, 16))
"""Cells that are drawn and runs of each at most, of one rung after the other."""
KEPT = 3
"""Of so many candidates of a rung one goes on."""
JUDGED = ("median", "p95")
_RANGE = re.compile(r"(?P<name>[a-z-]+)=(?P<low>[0-9.]+) ?s\.\.(?P<high>[0-9.]+) ?s")


@dataclass(frozen=True)
class Found:
    """How settings came out in the last rung that they took part in."""

    candidate: str
    settings: str
    rung: int
    worst: float
    mean: float


def ranges(words: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Ranges of settings in seconds, as `patience=1 s..60 s`. Raises `UsageError` with one line."""
    found = {}
    for word in words:
        told = _RANGE.fullmatch(word.strip())
        if told is None or not 0 < float(told["low"]) < float(told["high"]):
            raise UsageError(f"--search: {word!r} is no range of a setting: write it as 'patience=1 s..60 s'")
        if told["name"] in found:
            raise UsageError(f"--search: {told['name']} has two ranges: give one")
        found[told["name"]] = (float(told["low"]), float(told["high"]))
    return found


def draw(preset: str, within: Mapping[str, tuple[float, float]], count: int) -> list[dict[str, Any]]:
    """So many settings of a preset, every doubling as likely as any other; the same every time."""
    draws = Draws(f"millpond arena search {preset} {sorted(within.items())}")
    return [
        {"preset": preset, **{name: f"{round(1000 * draws.log(low, high))} ms" for name, (low, high) in within.items()}}
        for _ in range(count)
    ]


def search(
    preset: str,
    within: Mapping[str, tuple[float, float]],
    count: int,
    out: Path,
    *,
    rungs: Sequence[tuple[int, int]] = RUNGS,
    against: Sequence[str] = (),
    jobs: int = 0,
    watcher: Watcher | None = None,
) -> list[Found]:
    """Runs every rung into its own directory in `out`, and gives the best first; what is there already is kept.

    The preset as it is takes part in every rung. Raises `MillpondError` with one line.
    """
    if count < 1:
        raise UsageError(f"--draws: {count} makes no sense here: at least 1")
    left = {f"{preset}-{number}": settings for number, settings in enumerate(draw(preset, within, count), start=1)}
    fits(preset, f"--candidate {preset}")
    for settings in left.values():
        fits(settings, "--search")
    told = {preset: preset, **{name: written(settings) for name, settings in left.items()}}
    found: list[Found] = []
    for rung, (cells, runs) in enumerate(rungs, start=1):
        place = out / f"rung-{rung}"
        done = hold(
            {preset: preset, **left},
            against=against,
            drawn=cells,
            runs=runs,
            out=place,
            resume=place.exists(),
            jobs=jobs,
            watcher=watcher,
        )
        everybody = [judged(name, told[name], rung, done.summaries) for name in (preset, *left)]
        order = sorted(everybody, key=lambda one: (one.worst, one.mean))
        going_on = [one for one in order if one.candidate != preset][: max(1, len(left) // KEPT)]
        last = rung == len(rungs)
        found = [one for one in order if last or (one not in going_on and one.candidate != preset)] + found
        left = {one.candidate: left[one.candidate] for one in going_on}
    return found


def judged(candidate: str, settings: str, rung: int, summaries: Sequence[Summary]) -> Found:
    """The worst cell of median and 95th percentile, and their mean: the first decides, then the second."""
    mine = [one for one in summaries if one.candidate == candidate and one.measure in JUDGED]
    return Found(candidate, settings, rung, max(one.worst for one in mine), sum(one.mean for one in mine) / len(mine))
