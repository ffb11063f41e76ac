"""The page of the study `cocoaplus15`: what a mesh carries, how it recovers, and where frames die."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from millpond.judge.compare import Comparison
from millpond.show.report import story, study
from millpond.show.report.data import Data
from millpond.show.report.parts import Picture, Section
from millpond.studies.cocoaplus15 import bars, curves, heat, listings

_INTERVALS = "Bars are 95 % intervals over runs; diamonds are the printed means with theirs. "


def sections(data: Data, comparison: Comparison | None) -> list[Section]:
    """Everything that the study shows."""
    return [
        _summary(data, comparison),
        _loads(data),
        _events(data, comparison),
        _delays(data, comparison),
        _waits(data),
        _heat(data),
        _readings(data),
        *study.beside_published(data, comparison),
        study.what_was_run(data, comparison),
    ]


def _summary(data: Data, comparison: Comparison | None) -> Section:
    told = [
        "CoAP devices on a mesh of radios report to a sink over several hops. Their messages are lost by "
        "collisions and for want of buffers, not at a bottleneck's queue. Who gets more through, how soon is all "
        "well after an event, and how many frames does it take?"
    ]
    if comparison is not None:
        told.append(story.tally(comparison))
    return Section("summary", "In short", tuple(told), listings=listings.costs(data))


def _loads(data: Data) -> Section:
    return Section(
        "loads",
        "Carried against offered load",
        (),
        (
            Picture("loads", "Carried against offered load",
                    "Constant traffic to the primary sink. Bars are standard deviations; grey is all that is offered.",
                    partial(curves.loads, data), partial(curves.loads_rows, data)),
        ),
    )  # fmt: skip


def _events(data: Data, comparison: Comparison | None) -> Section:
    return Section(
        "events",
        "A global event",
        (),
        (
            Picture("settling", "Settling time",
                    f"{_INTERVALS}How long messages take over 1.1 times what they took before.",
                    partial(bars.by_place, data, bars.SETTLING, comparison),
                    partial(bars.by_place_rows, data, bars.SETTLING)),
        ),
    )  # fmt: skip


def _delays(data: Data, comparison: Comparison | None) -> Section:
    return Section(
        "mixed",
        "Notifications beside constant traffic",
        (),
        (
            Picture("delivery", "Messages delivered", _INTERVALS,
                    partial(bars.by_place, data, bars.DELIVERY, comparison),
                    partial(bars.by_place_rows, data, bars.DELIVERY)),
            Picture("bursts", "Delay around bursts", f"{_INTERVALS}Of messages born within 10 s after a burst.",
                    partial(bars.by_place, data, bars.BURSTS, comparison),
                    partial(bars.by_place_rows, data, bars.BURSTS)),
            Picture("delays", "Distribution of delays",
                    "Of all messages, undelivered ones included: where a line ends is the share that arrives.",
                    partial(curves.delays, data), partial(curves.delays_rows, data)),
        ),
    )  # fmt: skip


def _waits(data: Data) -> Section:
    return Section(
        "waits",
        "First waits",
        (),
        (
            Picture("first-waits", "First waits (RTO_init)",
                    "What each exchange waits for an answer at first: 6x6 grid, lossy links, 6 kbit/s.",
                    partial(curves.first_waits, data), partial(curves.first_waits_rows, data)),
        ),
    )  # fmt: skip


def _heat(data: Data) -> Section:
    return Section(
        "heat",
        "Where frames die",
        (),
        (
            Picture("heat", "Where frames die",
                    f"Constant traffic of {heat.LOAD} kbit/s, lossy links. Squares are border routers, "
                    "triangles sinks, lines the tree of the first run.",
                    partial(heat.frames, data), partial(heat.frames_rows, data)),
        ),
    )  # fmt: skip


def _readings(data: Data) -> Section:
    paths: Mapping[str, str] = data.results.manifest.get("paths", {})
    words = listings.paths_in_words(data, list(paths.items()))
    told = (f"What is not printed was read. The readings: {words}.",) if words else ()
    return Section("readings", "What the readings decide", told, listings=listings.readings(data))
