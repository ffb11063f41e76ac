"""The page of the study `cocoaplus15`: what a mesh carries, how it recovers, and where frames die."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from millpond.judge.compare import Comparison
from millpond.show.document import Picture, Section
from millpond.show.report import story, study
from millpond.show.report.grid import Grid
from millpond.studies.cocoaplus15 import curves, listings

_INTERVALS = "Upright lines are 95 % intervals over runs; diamonds are the printed means. "
_LEAD = (
    "CoAP devices on a mesh of radios report to a sink over several hops. Their messages are lost by collisions and "
    "for want of buffers, not at a bottleneck's queue. Who gets more through, how soon is all well after an event, and "
    "how many frames does it take?"
)


def sections(grid: Grid, comparison: Comparison | None) -> list[Section]:
    """Everything that the study shows."""
    told = [_LEAD] + ([] if comparison is None else [story.tally(comparison)])

    def by_place(name: str, title: str, caption: str, what: curves.What) -> Picture:
        return Picture(name, title, f"{_INTERVALS}{caption}", partial(curves.by_place, grid, what, comparison))

    settling = "How long messages take over 1.1 times what they took before."
    mixed = (
        by_place("delivery", "Messages delivered", "", curves.DELIVERY),
        by_place("bursts", "Delay around bursts", "Of messages that arrive within 10 s after a burst.", curves.BURSTS),
        Picture(
            "delays",
            "Distribution of delays",
            "Of all messages, undelivered ones included: where a line ends is the share that arrives.",
            partial(curves.delays, grid),
        ),
    )
    return [
        Section("summary", "In short", tuple(told), listings=(listings.costs(grid),)),
        _alone(
            "loads",
            "Carried against offered load",
            "Constant traffic to the primary sink. Upright lines are standard deviations; grey is all that is offered.",
            partial(curves.loads, grid),
        ),
        Section("events", "A global event", (), (by_place("settling", "Settling time", settling, curves.SETTLING),)),
        Section("mixed", "Notifications beside constant traffic", (), mixed),
        _alone(
            "first-waits",
            "First waits (RTO_init)",
            "What each exchange waits for an answer at first: 6x6 grid, lossy links, 6 kbit/s.",
            partial(curves.first_waits, grid),
            "waits",
        ),
        _alone(
            "heat",
            "Where frames die",
            f"Constant traffic of {curves.LOAD} kbit/s, lossy links. Squares are border routers, triangles sinks, "
            "lines the tree of the first run.",
            partial(curves.frames, grid),
        ),
        _readings(grid),
        *study.beside_published(grid, comparison),
        study.what_was_run(grid, comparison),
    ]


def _alone(name: str, title: str, caption: str, plot: study.Draws, section: str = "") -> Section:
    return Section(section or name, title, (), (Picture(name, title, caption, plot),))


def _readings(grid: Grid) -> Section:
    paths: Mapping[str, str] = grid.results.manifest.get("paths", {})
    words = listings.paths_in_words(grid, list(paths.items()))
    told = (f"What is not printed was read. The readings: {words}.",) if words else ()
    return Section("readings", "What the readings decide", told, listings=(listings.readings(grid),))
