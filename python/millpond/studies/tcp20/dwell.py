"""How far completion times depend on how long a state of the radio lasts: the same share of losses in other turns."""

from __future__ import annotations

import re

from millpond.judge.compare import Comparison
from millpond.show.document import Missing, Plot
from millpond.show.report.figures import facets
from millpond.show.report.figures.facets import Point, Spec
from millpond.show.report.figures.matrix import series_of
from millpond.show.report.grid import Grid, number, only
from millpond.studies.tcp20 import errors
from millpond.studies.tcp20.errors import PROFILES, Scene

USUAL = "100 ms"
"""How long a bad state lasts where the profile's name does not say it."""
MEMORYLESS = "memory-\nless"
ABREAST = 5
"""With more lengths than this their names stand upright."""


def completion_by_dwell(grid: Grid, scene: Scene, comparison: Comparison | None) -> Plot:
    """Median completion time over the length of a bad state, the share of losses being the same.

    A row per error profile, a column per buffer; dotted lines are the published medians. Raises `Missing` if it was not
    varied.
    """
    points: list[Point] = []
    varied = set()
    for cell in grid.cells:
        said = cell.columns
        here = (said.get("workload"), said.get("clients"), said.get("path"))
        if here != (scene.workload, scene.clients, scene.path) or cell.mixed:
            continue
        profile, _, dwell = str(said.get("error_profile", "none")).partition("-")
        spread = grid.spread("fct", cell)
        if profile in PROFILES and spread is not None:
            buffer, name = int(number(cell, "buffer_bytes")), only(cell)
            varied |= {(profile, buffer, name)} if dwell else set()
            points.append(Point(profile, buffer, dwell, name, spread, (profile, _plain(dwell), buffer, name)))
    points = [point for point in points if (point.row, point.column, point.series) in varied]
    if not points:
        raise Missing("Not drawn: how long a bad state of the radio lasts was not varied in these runs.")
    dwells = sorted({point.x for point in points}, key=length)
    theirs = errors.published(grid, scene, comparison)
    spec = Spec(
        "median",
        "flow completion time (s)",
        series_of(grid),
        x="bad state lasts",
        tick=_plain if len(dwells) > ABREAST else words_of,
        title=lambda profile, buffer: f"{PROFILES[profile]}, {errors.short(buffer)}",
        xs=dwells,
        rows=list(PROFILES),
        columns=sorted({point.column for point in points}),
        upward="stretched",
        shared=True,
        joined=True,
        upright=len(dwells) > ABREAST,
        height=2.7,
        lines={key: said["median"] for key, said in theirs.items() if "median" in said},
    )
    return facets.plot(points, spec, ("error_profile", "bad_state", "buffer_bytes", "controller"))


# ----------------------------------------------------------------------------------------------- helpers


def _plain(dwell: str) -> str:
    return words_of(dwell).replace("-\n", "").replace("\n", " ")


def words_of(dwell: str) -> str:
    """How long a bad state lasts, as the tick of an axis; empty: the usual length."""
    if not dwell:
        return USUAL
    told = re.fullmatch(r"([\d.]+)(ms|s|packets)", dwell)
    if told is None:
        return MEMORYLESS
    return f"{told[1]}\npackets" if told[2] == "packets" else f"{told[1]} {told[2]}"


def length(dwell: str) -> tuple[int, float]:
    """Where a length belongs: in time from the shortest on, then in packets."""
    told = re.fullmatch(r"([\d.]+)\s*(ms|s|packets)", words_of(dwell))
    if told is None:
        return 0, 0.0
    return int(told[2] == "packets"), float(told[1]) * {"ms": 1e-3}.get(told[2], 1.0)
