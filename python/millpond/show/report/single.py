"""The page of a single scenario: what stands on it, in order."""

from __future__ import annotations

from functools import partial

import numpy as np

from millpond.show.document import Picture, Section
from millpond.show.report import figures, packets, story, tables
from millpond.show.report.data import Data
from millpond.show.report.study import BOXES, REPORTED, UNNECESSARY


def sections(data: Data) -> list[Section]:
    """Everything a single scenario shows: the lead, its pictures, its links, and what was run."""
    cell = data.cells[0]
    kind = "radio" if cell.scenario.get("mesh") else "link"
    reported = Picture(
        "reported",
        "Share of clients done against time",
        f"{REPORTED}{' All clients of all replications.' if cell.replications > 1 else ''}",
        partial(figures.reported_by_group, data),
    )
    over_time = Picture(
        "queue",
        "Queue and useful share",
        f"Above, how much waits at the busiest {kind}{figures.scales(data, [cell])}; below, how much of what the "
        f"{kind} carries completes an exchange.",
        partial(figures.bottleneck_over_time, data),
    )
    ended = np.isfinite(data.values("flows", "fct_us", cell)).any()
    completion = Picture(
        "fct",
        "Flow completion time of each group",
        f"{BOXES} Lower is better.",
        partial(figures.completion_by_group, data),
    )
    delays = Picture(
        "delays",
        "Arrival of a request to its answer",
        "The share of all requests answered within a time: where a line ends is the share that is answered at all.",
        partial(figures.delays_by_group, data),
    )
    histogram = Picture(
        "histogram",
        "Exchanges by number of retransmissions",
        "The share of each group's completed exchanges that took so many retransmissions; the more at 0, the better.",
        partial(figures.transmissions_by_group, data),
    )
    unnecessary = Picture(
        "unnecessary-copies",
        "Unnecessary retransmissions of a client",
        "Bars are the median client of the group, lines reach from the 10th to the 90th percentile. Lower is better.",
        partial(figures.unnecessary_by_group, data),
    )
    followed = packets.section(data)
    return [
        Section(
            "summary",
            "In short",
            tuple(story.scenario_story(data)),
            (reported,),
            listings=(tables.reported_by_group(data), tables.requests(data)),
        ),
        Section("over-time", "The bottleneck over time", ("One run: the first replication.",), (over_time,)),
        *([followed] if followed is not None else []),
        Section(
            "completion",
            "Flow completion time",
            (f"How long a client needs for all its exchanges. {_covered(data)}",),
            (completion, *([] if ended else [delays])),
            listings=(tables.completion(data),),
        ),
        Section(
            "transmissions",
            "Transmissions per exchange",
            ("How often a message was sent again until its answer was accepted.",),
            (histogram,),
        ),
        Section("unnecessary", "Unnecessary retransmissions", (UNNECESSARY,), (unnecessary,)),
        Section("links", "Links", listings=(tables.links(data), *tables.relays_of(data), *tables.proxies_of(data))),
        Section(
            "run",
            "What was run",
            tables.statement(data),
            listings=(tables.manifest(data), tables.path_settings(cell)),
            detail=True,
        ),
    ]


def _covered(data: Data) -> str:
    """Of which share of the clients completion times speak."""
    times = data.values("flows", "fct_us", data.cells[0])
    why = "work without end, a last request that failed, or the end of the run"
    rest = "" if np.all(np.isfinite(times)) else f"; the others have none ({why})"
    return f"Of {tables.covered(times)}{rest}."
