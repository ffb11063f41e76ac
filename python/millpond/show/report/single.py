"""The page of a single scenario: what stands on it, in order."""

from __future__ import annotations

from functools import partial

from millpond.show.document import Picture, Section
from millpond.show.report import figures, packets, story, tables
from millpond.show.report.grid import Grid
from millpond.show.report.study import BOXES, REPORTED, UNNECESSARY


def sections(grid: Grid) -> list[Section]:
    """Everything a single scenario shows: the lead, its pictures, its links, and what was run."""
    cell = grid.cells[0]
    kind = "radio" if cell.scenario.get("mesh") else "link"
    reported = Picture(
        "reported",
        "Share of clients done against time",
        f"{REPORTED}{' All clients of all replications.' if cell.replications > 1 else ''}",
        partial(figures.reported_by_group, grid),
    )
    over_time = Picture(
        "queue",
        "Queue and goodput ratio",
        f"Above, how much waits at the busiest {kind}{figures.scales(grid, [cell])}; below, how much of what the "
        f"{kind} carries completes an exchange.",
        partial(figures.bottleneck_over_time, grid),
    )
    ended = grid.measures.sample("fct", grid.measures.of(cell)).n > 0
    completion = Picture(
        "fct",
        "Flow completion time of each group",
        f"{BOXES} Lower is better.",
        partial(figures.completion_by_group, grid),
    )
    delays = Picture(
        "delays",
        "Arrival of a request to its answer",
        "The share of all requests answered within a time: where a line ends is the share that is answered at all.",
        partial(figures.delays_by_group, grid),
    )
    histogram = Picture(
        "histogram",
        "Exchanges by number of retransmissions",
        "The share of each group's completed exchanges that took so many retransmissions; the more at 0, the better.",
        partial(figures.transmissions_by_group, grid),
    )
    unnecessary = Picture(
        "unnecessary-copies",
        "Unnecessary retransmissions of a client",
        "Bars are the median client of the group, lines reach from the 10th to the 90th percentile. Lower is better.",
        partial(figures.unnecessary_by_group, grid),
    )
    followed = packets.section(grid)
    return [
        Section(
            "summary",
            "In short",
            tuple(story.scenario_story(grid)),
            (reported,),
            listings=(tables.reported_by_group(grid), tables.requests(grid)),
        ),
        Section("over-time", "The bottleneck over time", ("One run: the first replication.",), (over_time,)),
        *([followed] if followed is not None else []),
        Section(
            "completion",
            "Flow completion time",
            (f"How long a client needs for all its exchanges. {_covered(grid)}",),
            (completion, *([] if ended else [delays])),
            listings=(tables.completion(grid),),
        ),
        Section(
            "transmissions",
            "Transmissions per exchange",
            ("How often a message was sent again until its answer was accepted.",),
            (histogram,),
        ),
        Section("unnecessary", "Unnecessary retransmissions", (UNNECESSARY,), (unnecessary,)),
        Section("links", "Links", listings=(tables.links(grid), tables.relays_of(grid), tables.proxies_of(grid))),
        Section(
            "run",
            "What was run",
            tables.statement(grid),
            listings=(tables.manifest(grid), tables.path_settings(cell)),
            detail=True,
        ),
    ]


def _covered(grid: Grid) -> str:
    """Of which share of the clients completion times speak."""
    times = grid.measures.sample("fct", grid.measures.of(grid.cells[0]))
    why = "work without end, a last request that failed, or the end of the run"
    rest = f"; the others have none ({why})" if times.missing else ""
    return f"Of {tables.covered(times.n, times.n + times.missing)}{rest}."
