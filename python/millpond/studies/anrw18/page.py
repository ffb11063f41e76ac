"""The page of the study `anrw18`: the usual one, and what a varying delay changes where the buffer is small."""

from __future__ import annotations

from functools import partial

from millpond.judge.compare import Comparison
from millpond.results.factor import PATH
from millpond.show.document import Section
from millpond.show.report import study, tables
from millpond.show.report.grid import Grid
from millpond.studies.anrw18 import phase
from millpond.studies.anrw18.phase import JITTERED


def sections(grid: Grid, comparison: Comparison | None) -> list[Section]:
    """Everything that the study shows."""
    # a varying delay is no view of its own: it stands beside the fixed one
    views = [view for view in grid.views() if view.only.get(PATH) != JITTERED]
    return [
        study.summary(grid, comparison),
        study.reported(grid, views),
        study.over_time(grid),
        study.completion(grid, comparison, views, tables.by_place(grid)),
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
            partial(phase.fixed_beside_jittered, grid, comparison=comparison),
        ),
    )
