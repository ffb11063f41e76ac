"""The page of the study `anrw18`: the usual one, and what a varying delay changes where the buffer is small."""

from __future__ import annotations

from functools import partial

from millpond.judge.compare import Comparison
from millpond.results.directory import Cell, Results
from millpond.results.factor import PATH
from millpond.show import labels
from millpond.show.document import Missing, Plot, Section
from millpond.show.report import study, tables
from millpond.show.report.figures.facets import Place, Point
from millpond.show.report.figures.matrix import place_of, published_medians
from millpond.show.report.figures.sharing import WHITE, pairs
from millpond.show.report.grid import Facet, Grid, number, only
from millpond.show.report.style import Look


def sections(grid: Grid, comparison: Comparison | None) -> list[Section]:
    """Everything that the study shows."""
    # a varying delay is no view of its own: it stands beside the fixed one
    views = [view for view in grid.views() if view.only.get(PATH) != JITTERED]
    return [
        study.summary(grid, comparison),
        study.reported(grid, views),
        study.over_time(grid),
        study.completion(grid, comparison, views, (tables.by_place(grid),)),
        study.transmissions(grid, comparison),
        study.unnecessary(grid, comparison, views),
        study.sharing(grid, views),
        _phase(grid, comparison),
        *study.beside_published(grid, comparison),
        study.what_was_run(grid, comparison),
    ]


def _phase(grid: Grid, comparison: Comparison | None) -> Section:
    views = grid.parts(grid.whole)
    return Section(
        "phase",
        "Small buffers: fixed delay and jitter",
        (
            "A short queue is full most of the time, and the phase of the packets decides whose is dropped. The same "
            "runs with a fixed delay and with one that varies from packet to packet tell how far a figure depends on "
            "it.",
        ),
        study.each_view(
            grid,
            views,
            "phase",
            "Completion time with the smallest buffer",
            f"{study.BOXES} In each pair the left box (in colour) is the fixed delay, the right one (white) the "
            f"varying one.{study.marked(comparison)}",
            partial(fixed_beside_jittered, grid, comparison=comparison),
        ),
    )


FIXED, JITTERED = "fixed", "jittered"
"""The path variants of the study."""
_FACTORS = ("clients", "buffer_bytes", "workload")


def fixed_beside_jittered(
    results: Results | Grid, view: Facet | None = None, comparison: Comparison | None = None
) -> Plot:
    """Flow completion times with the smallest buffer, once with a fixed delay and once with jitter.

    A panel per number of clients. Raises `Missing` if the jittered path was not run.
    """
    grid = Grid.of(results)
    view = view or grid.whole
    fixed = {_key(cell): cell for cell in grid.plain(view.but(**{PATH: FIXED}))}
    theirs = published_medians(grid, "fct", comparison, view)
    order = {name: rank for rank, name in enumerate(grid.controllers())}
    points: list[Point] = []
    published: dict[Place, float] = {}
    cells = [cell for cell in grid.plain(view.but(**{PATH: JITTERED})) if _key(cell) in fixed]
    cells.sort(key=lambda cell: (number(cell, "clients"), str(cell.columns.get("workload")), order[only(cell)]))
    for jittered in cells:
        steady = fixed[_key(jittered)]
        name = only(jittered)
        where = ("workload",) if "workload" not in view.only else ()
        panel = ", ".join((labels.clients(number(jittered, "clients")), *(str(jittered.columns[n]) for n in where)))
        for side, cell in (("left", steady), ("right", jittered)):
            if (spread := grid.spread("fct", cell)) is None:
                continue
            look = grid.looks[name] if side == "left" else Look(WHITE.colour, "-", grid.looks[name].marker, "")
            told = (*(cell.columns[factor] for factor in _FACTORS), name, cell.columns[PATH])
            points.append(Point("", panel, grid.label(name), side, spread, told, look))
        if (median := theirs.get(place_of(grid, steady))) is not None:
            published["", panel, grid.label(name), "left"] = median
    if not points:
        raise Missing(
            "Fixed delay and jitter are not compared: the path with jitter was not run (the plan says for which "
            "buffers and clients it is)."
        )
    keys = ("left of the pair: fixed delay", "right: 10 to 20 ms, drawn for each packet")
    return pairs(points, (*_FACTORS, "controller", "delay"), keys, zoom=0.999, published=published)


def _key(cell: Cell) -> tuple[object, ...]:
    return (*(cell.columns.get(name) for name in _FACTORS), only(cell))
