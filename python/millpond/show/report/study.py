"""The page of a study: what stands on it, in order. A study with more to show composes it from the same parts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial

from millpond.judge.compare import Comparison
from millpond.results.factor import PATH
from millpond.show.document import Listing, Picture, Plot, Section
from millpond.show.report import figures, published, story, tables
from millpond.show.report.grid import Facet, Grid

BOXES = (
    "Boxes hold the middle half of all clients, whiskers 80 %, short dashes mark the fastest and the slowest client; "
    "the line and the marker are the median, a thick upright line is its 95 % interval over runs."
)
UNNECESSARY = "Copies that a client sent although the answer to an earlier copy was still on its way and did arrive."
Draws = Callable[..., Plot]
MANY = 8
"""With more places than this a study begins with all of them at a glance."""
REPORTED = (
    "A client is done when all its requests are answered; one that lost a request never is, and its line stays below "
    "100 %. Dotted: 50, 90 and 99 %."
)


def sections(grid: Grid, comparison: Comparison | None) -> list[Section]:
    """Everything a study shows: the lead, its pictures, figures, claims, and what was run."""
    views = grid.views()
    found = [summary(grid, comparison), reported(grid, views)]
    if many(grid):
        found.append(places(grid, views))
    found += [
        over_time(grid),
        completion(grid, comparison, views, (tables.by_place(grid),)),
        transmissions(grid, comparison),
    ]
    found.append(retransmissions(grid, views) if many(grid) else unnecessary(grid, comparison, views))
    if any(cell.mixed for cell in grid.cells):
        found.append(sharing(grid, views))
    return [*found, *beside_published(grid, comparison), what_was_run(grid, comparison)]


def many(grid: Grid) -> bool:
    """Whether the study looks at so many places that they need a picture of all of them."""
    return len({grid.place(cell) for cell in grid.plain()}) > MANY


def summary(grid: Grid, comparison: Comparison | None) -> Section:
    """The lead: what was found, and the places that the study looks at closely as a table."""
    tally = [] if comparison is None else [story.tally(comparison)]
    hardest = story.hardest(grid, story.glances(grid))
    return Section(
        "summary",
        "In short",
        (*story.study_story(grid), *tally),
        listings=(tables.at_a_glance(grid, hardest),) if hardest else (),
    )


def reported(grid: Grid, views: Sequence[Facet]) -> Section:
    """Who is done by when, as a picture and as a table of every place."""
    return Section(
        "reported",
        "Share of clients done against time",
        (),
        each_view(
            grid,
            views,
            "reported",
            "Share of clients done against time",
            f"{REPORTED} All clients of all replications.",
            partial(figures.reported, grid),
        ),
        listings=(tables.reported(grid),),
    )


def over_time(grid: Grid) -> Section:
    """Queue and goodput ratio of the traced runs."""
    return Section(
        "over-time",
        "The bottleneck over time",
        (
            "One run of each controller (the first replication). The goodput ratio is the part of the bytes carried "
            "that belongs to a copy which completes an exchange.",
        ),
        each_stage(
            grid,
            "queue",
            "Queue and goodput ratio",
            f"Above, how much waits at the bottleneck{figures.scales(grid, grid.plain())}; below, how much of what "
            "the link carries is of use. A collapsed link is full above and near the ground below; a line ends when "
            "the last client has finished.",
            partial(figures.queue_over_time, grid),
        ),
    )


def completion(
    grid: Grid, comparison: Comparison | None, views: Sequence[Facet], listings: tuple[Listing, ...] = ()
) -> Section:
    """Completion times of every place."""
    return Section(
        "completion",
        "Flow completion time",
        (
            "How long a client needs for all its exchanges, over all clients of all replications that came to their "
            "end; the table above says which share of all that is.",
        ),
        each_view(
            grid,
            views,
            "fct",
            "Flow completion time",
            f"{BOXES}{marked(comparison)} Within a group the controllers stand in the order of the legend; lower is "
            "better.",
            partial(figures.completion_times, grid, comparison=comparison),
        ),
        listings=listings,
    )


def transmissions(grid: Grid, comparison: Comparison | None) -> Section:
    """How often exchanges were sent again, where the study looks closely."""
    return Section(
        "transmissions",
        "Transmissions per exchange",
        ("How often a message was sent again until its answer was accepted.",),
        each_stage(
            grid,
            "histogram",
            "Exchanges by number of retransmissions",
            "The share of all exchanges that took so many retransmissions, on a logarithmic scale (numbers: "
            "percent). A healthy controller is highest at 0 and falls to the right, a collapsed one rises to the "
            "right.",
            partial(figures.transmissions, grid, comparison),
        ),
    )


def unnecessary(grid: Grid, comparison: Comparison | None, views: Sequence[Facet]) -> Section:
    """Unnecessary retransmissions of every place."""
    return Section(
        "unnecessary",
        "Unnecessary retransmissions",
        (UNNECESSARY,),
        each_view(
            grid,
            views,
            "unnecessary",
            "Unnecessary retransmissions of a client",
            "Bars are the median client, lines reach from the 10th to the 90th percentile, a dot on the ground means "
            f"none.{marked(comparison)} Lower is better.",
            partial(figures.unnecessary_copies, grid, comparison=comparison),
        ),
    )


def places(grid: Grid, views: Sequence[Facet]) -> Section:
    """Completion times of all places in one picture for each reading of the test bed."""
    readings = {view.only.get(PATH): Facet({k: v for k, v in view.only.items() if k == PATH}) for view in views}
    return Section(
        "places",
        "Every place at a glance",
        ("The median client of each controller, everywhere the study looks.",),
        each_view(
            grid,
            list(readings.values()),
            "places",
            "Flow completion time by place",
            "Markers are the median client, lines reach from the 10th to the 90th percentile; the scale is "
            "logarithmic. Lower is better.",
            partial(figures.completion_by_place, grid),
        ),
    )


def retransmissions(grid: Grid, views: Sequence[Facet]) -> Section:
    """Necessary and unnecessary retransmissions of every place."""
    return Section(
        "retransmissions",
        "Retransmissions: necessary and unnecessary",
        (
            "A retransmission was necessary if nothing that was sent before it led to an answer: its own or an earlier "
            "copy, or the answer to it, was lost on the air or found a full queue.",
        ),
        each_view(
            grid,
            views,
            "retransmissions",
            "Retransmissions of a client",
            "Means over all clients of all replications: unnecessary ones in colour, necessary ones pale on top.",
            partial(figures.retransmissions, grid),
        ),
    )


def sharing(grid: Grid, views: Sequence[Facet]) -> Section:
    """Mixes of two controllers beside each of them alone."""
    having = [view for view in views if any(cell.mixed and view.covers(cell) for cell in grid.cells)]
    return Section(
        "mixes",
        "Two controllers on one bottleneck",
        ("Half of the clients use one controller, half the other. Who gains, and who loses, against being alone?",),
        each_view(
            grid,
            having or views[:1],
            "mix",
            "Completion time of each half",
            "In each pair the left box (white) is the controller when all clients have it, the right one (in colour) "
            "the half of the clients that has it while the other half has the neighbour's; the line and the marker are "
            "the median.",
            partial(figures.sharing, grid),
        ),
        listings=(tables.mixes(grid),),
    )


def beside_published(
    grid: Grid, comparison: Comparison | None, elsewhere: Collection[tuple[str, object]] = ()
) -> list[Section]:
    """Figures and claims beside ours; figures `elsewhere`, by id and reading, stand in tables of their own."""
    if comparison is None:
        return [Section("figures", "Ours beside the published figures", ("No published figures were given.",))]
    return [
        published.published_figures(grid, comparison, elsewhere),
        *published.differing_settings(grid, comparison),
        published.published_claims(comparison),
    ]


def what_was_run(grid: Grid, comparison: Comparison | None) -> Section:
    """What was run, by what, and on which path."""
    listings = [tables.manifest(grid)]
    if grid.cells:
        listings.append(tables.path_settings(grid.cells[0]))
    if comparison is not None and comparison.settings:
        listings.append(published.published_settings(grid, comparison))
    return Section("run", "What was run", tables.statement(grid), listings=tuple(listings), detail=True)


def each_view(
    grid: Grid, views: Sequence[Facet], name: str, title: str, caption: str, plot: Draws
) -> tuple[Picture, ...]:
    """The same picture for each view; `plot` takes it as `view`."""
    return tuple(
        Picture(f"{name}-{view.name or 'all'}", f"{title}{_on(grid, view)}", caption, partial(plot, view=view))
        for view in views
    )


def each_stage(grid: Grid, name: str, title: str, caption: str, plot: Draws) -> tuple[Picture, ...]:
    """The same picture for each place that the study looks at closely; `plot` takes it as `stage`."""
    return tuple(
        Picture(f"{name}-{stage.name or 'all'}", f"{title}{_on(grid, stage)}", caption, partial(plot, stage=stage))
        for stage in grid.stages
    )


def marked(comparison: Comparison | None) -> str:
    """The words of a caption about published medians."""
    return "" if comparison is None else " Empty diamonds are the published medians, where there are any."


# ----------------------------------------------------------------------------------------------- helpers


def _on(grid: Grid, view: Facet) -> str:
    words = grid.words(view)
    return f", {words}" if words else ""
