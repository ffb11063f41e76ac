"""The page of the study `burst23`: the usual one, with rate, queue and retransmissions of every algorithm over time."""

from __future__ import annotations

from functools import partial

from millpond.judge.compare import Comparison
from millpond.show.document import Picture, Section
from millpond.show.report import study
from millpond.show.report.grid import Grid
from millpond.studies.burst23 import courses

_CAPTION = (
    "Twenty senders that are alike, one run of each algorithm (the first one), means over {window} s. Left, the "
    "messages that all of them send for the first time; dashed is what the link could carry. Middle, how long a "
    "byte waits in its queue. Right, the messages sent again. Numbers are means over the run."
)


def sections(grid: Grid, comparison: Comparison | None) -> list[Section]:
    """Everything that the study shows."""
    found = study.sections(grid, comparison)
    ours = _over_time(grid)
    return [ours if section.name == ours.name else section for section in found]


def _over_time(grid: Grid) -> Section:
    return Section(
        "over-time",
        "Rate, queue and retransmissions over time",
        (),
        tuple(
            Picture(
                f"over-time-{scenario.split()[0]}",
                f"{scenario.capitalize()}: rate, queue and retransmissions over time",
                _CAPTION.format(window=courses.WINDOW),
                partial(courses.over_time, grid, scenario),
            )
            for scenario in courses.SCENARIOS
        ),
    )
