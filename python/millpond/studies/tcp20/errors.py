"""Flow completion times of downloads by error profile, buffer and way of transfer, ours beside the published ones."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from millpond.controllers.own import is_own
from millpond.judge.compare import Comparison
from millpond.results.directory import Cell
from millpond.show import labels
from millpond.show.document import Missing, Plot, Rows
from millpond.show.report import style
from millpond.show.report.figures import facets, marks
from millpond.show.report.figures.facets import Point, Spec
from millpond.show.report.figures.matrix import series_of
from millpond.show.report.grid import Grid, Spread, number, only

PROFILES = {"none": "no errors", "low": "low errors", "medium": "medium errors", "high": "high errors"}
"""The error profiles that are drawn, and what they are called."""
STATISTICS = ("min", "p10", "p25", "median", "p75", "p90", "max")
MARKERS = ("o", "s", "^", "D", "v", "P")
"""Of the buffers, from the smallest on."""
Key = tuple[str, int, str]
"""Error profile, buffer in bytes, preset."""


INFINITE = 1_410_000
"""The buffer that the study calls infinite, in bytes."""
BULK = "bulk"
"""The workload of one download a client."""


@dataclass(frozen=True)
class Scene:
    """Which cells such a picture is about: this workload, so many clients, this path variant (where it matters)."""

    workload: str
    clients: int
    path: str

    def cells(self, grid: Grid) -> list[Cell]:
        """The cells, one for each error profile, buffer and preset; those of this path variant come first."""
        first = grid.paths[0]
        found: dict[Key, Cell] = {}
        for path in (self.path, first):
            for cell in grid.cells:
                said = cell.columns
                here = (said.get("workload"), said.get("clients"), said.get("path")) == (
                    self.workload, self.clients, path,
                )  # fmt: skip
                if here and not cell.mixed and said.get("error_profile", "none") in PROFILES:
                    found.setdefault(_key(cell), cell)
        return list(found.values())


def completion_by_error(grid: Grid, scene: Scene, comparison: Comparison | None) -> Plot:
    """Boxes of the flow completion time: a panel per error profile, a group per buffer, ours beside the published.

    Drawn are the controllers of which figures were published and the reader's own, without any published all. Raises
    `Missing` if no client finished.
    """
    spreads, theirs = _spreads(grid, scene), published(grid, scene, comparison)
    run = {key[2] for key in spreads}
    named = ({key[2] for key in theirs} | {name for name in run if is_own(name)}) if theirs else run
    shown = [key for key in spreads if key[2] in named]
    if not shown:
        raise Missing("Not drawn: none of the controllers of which figures were published was run here.")
    points = [Point("", profile, buffer, name, spreads[profile, buffer, name]) for profile, buffer, name in shown]
    spec = Spec(
        "box",
        "flow completion time (s)",
        series_of(grid),
        x="bottleneck buffer",
        tick=short,
        title=lambda _, profile: PROFILES[profile],
        xs=sorted({point.x for point in points}),
        columns=list(PROFILES),
        wrapped=True,
        upward="stretched",
        height=3.2,
        boxes={("", *key): said for key, said in theirs.items() if key in spreads},
    )
    return Plot(_rows(scene, spreads, theirs), partial(facets.draw, points, spec))


def everyone_by_error(grid: Grid, scene: Scene) -> Plot:
    """The median of every controller, a column per error profile, a row per controller, a marker per buffer.

    Controllers stand in the order of their median over all buffers with the most errors. Raises `Missing` if no client
    finished.
    """
    spreads = _spreads(grid, scene)
    return Plot(_rows(scene, spreads, {}), lambda: _draw_everyone(grid, spreads))


def _draw_everyone(grid: Grid, spreads: Mapping[Key, Spread]) -> Figure:
    profiles = [name for name in PROFILES if name in {key[0] for key in spreads}]
    buffers = sorted({key[1] for key in spreads})
    controllers = _by_speed(spreads, profiles)
    often = {name: sum(any(key[1:] == (size, name) for key in spreads) for size in buffers) for name in controllers}
    offsets = np.linspace(-0.27, 0.27, len(buffers)) if len(buffers) > 1 else np.zeros(1)
    greys = [f"{shade:.2f}" for shade in np.linspace(0.85, 0.15, len(buffers))]
    abreast, height = len(profiles), 0.36 * len(controllers) + 1.5
    with marks.panels(height, abreast, abreast, sharex=True, sharey=True) as (figure, panels):
        for panel, profile in zip(panels, profiles, strict=True):
            for b, size in enumerate(buffers):
                here = [
                    (row + (offsets[b] if often[name] > 1 else 0.0), spreads[profile, size, name])
                    for row, name in enumerate(controllers)
                    if (profile, size, name) in spreads
                ]
                for y, spread in here:
                    panel.plot([spread.p10, spread.p90], [y, y], color=style.INK, linewidth=0.8, zorder=2)
                panel.plot(
                    [spread.median for _, spread in here],
                    [y for y, _ in here],
                    linestyle="none",
                    marker=MARKERS[b % len(MARKERS)],
                    markersize=4.5,
                    markerfacecolor=greys[b],
                    markeredgecolor=style.INK,
                    markeredgewidth=0.7,
                    zorder=3,
                )
            panel.set_title(PROFILES[profile], fontsize=10)
            panel.set_xlabel("completion time (s)", fontsize=9.5)
            panel.grid(axis="x")
            panel.grid(visible=False, axis="y")
            for row in range(1, len(controllers)):
                panel.axhline(row - 0.5, color=style.GRID, linewidth=0.6, zorder=0)
            panel.set_ylim(len(controllers) - 0.5, -0.5)
            panel.tick_params(axis="y", length=0)
            panel.tick_params(axis="x", labelsize=8.5)
        facets.scaled(panels[0].xaxis, [value for s in spreads.values() for value in (s.p10, s.p90)])
        panels[0].set_yticks(range(len(controllers)), [grid.label(name) for name in controllers], fontsize=9)
        keys: list[marks.Key] = [
            Line2D(
                [], [], linestyle="none", marker=MARKERS[b % len(MARKERS)], markersize=5.5, markerfacecolor=greys[b],
                markeredgecolor=style.INK, markeredgewidth=0.7, label=f"buffer {labels.size(size)}",
            )
            for b, size in enumerate(buffers)
        ]  # fmt: skip
        marks.legend_below(figure, keys, 4)
    return figure


def published(grid: Grid, scene: Scene, comparison: Comparison | None) -> dict[Key, dict[str, float]]:
    """Published percentiles of the flow completion time, by the cell they belong to."""
    found: dict[Key, dict[str, float]] = {}
    cells = {_key(cell): cell for cell in scene.cells(grid)}
    told = comparison.figures if comparison is not None else []
    # what stands in a table goes before what the text says about it
    for figure in sorted(told, key=lambda figure: bool(figure.qualifier)):
        said = figure.scenario
        if figure.metric != "fct" or figure.statistic not in STATISTICS or figure.bin:
            continue
        if figure.qualifier not in ("", "approx"):
            continue
        for key, cell in cells.items():
            wanted = {**cell.columns, "path": said.get("path")}
            needed = ("clients", "buffer_bytes", "workload", "algorithm")
            further = (name for name in ("error_profile",) if name in said)
            if all(str(said.get(name)) == str(wanted.get(name)) for name in (*needed, *further)):
                found.setdefault(key, {}).setdefault(figure.statistic, figure.published)
    return found


def counts(grid: Grid) -> list[int]:
    """The numbers of clients that downloads were run with."""
    return sorted({int(number(cell, "clients")) for cell in grid.cells if cell.columns.get("workload") == BULK})


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
    theirs = published(grid, scene, comparison)
    spec = Spec(
        "median",
        "flow completion time (s)",
        series_of(grid),
        x="bad state lasts",
        tick=_plain if len(dwells) > ABREAST else words_of,
        title=lambda profile, buffer: f"{PROFILES[profile]}, {short(buffer)}",
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


def _key(cell: Cell) -> Key:
    return str(cell.columns.get("error_profile", "none")), int(number(cell, "buffer_bytes")), only(cell)


def _spreads(grid: Grid, scene: Scene) -> dict[Key, Spread]:
    found = {_key(cell): grid.spread("fct", cell) for cell in scene.cells(grid)}
    spreads = {key: spread for key, spread in found.items() if spread is not None}
    if not spreads:
        raise Missing(f"Not drawn: no client finished with {labels.clients(scene.clients)} in these runs.")
    return spreads


def _rows(scene: Scene, spreads: Mapping[Key, Spread], theirs: Mapping[Key, Mapping[str, float]]) -> Rows:
    """The percentiles that such pictures draw, in seconds, and the published ones where there are any."""
    rows = []
    for key, spread in spreads.items():
        said = theirs.get(key, {})
        rows.append((scene.clients, *key, *spread.row(), *(said.get(name, "") for name in STATISTICS)))
    header = ("clients", "error_profile", "buffer_bytes", "controller", *Spread.HEADER)
    return Rows((*header, *(f"published_{name}" for name in STATISTICS)), tuple(rows))


def _by_speed(spreads: Mapping[Key, Spread], profiles: Sequence[str]) -> list[str]:
    """Controllers by the geometric mean of their medians over all buffers, with the most errors each was run with."""
    names = dict.fromkeys(key[2] for key in spreads)

    def speed(name: str) -> tuple[int, float]:
        worst = next(p for p in reversed(profiles) if any(key[0] == p and key[2] == name for key in spreads))
        medians = [s.median for (profile, _, other), s in spreads.items() if (profile, other) == (worst, name)]
        return -profiles.index(worst), float(np.mean(np.log(medians)))

    return sorted(names, key=speed)


def short(size: int) -> str:
    """A buffer as the tick of an axis."""
    return "infinite" if size == INFINITE else labels.size(size)


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
