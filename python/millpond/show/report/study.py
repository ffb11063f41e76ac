"""The page of a study: what stands on it, in order. A study with more to show composes it from the same parts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial

from millpond.judge.compare import Comparison
from millpond.show.document import Listing, Picture, Plot, Section
from millpond.show.report import figures, published, story, tables
from millpond.show.report.data import VARIANT, Data
from millpond.show.report.values import View

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


def sections(data: Data, comparison: Comparison | None) -> list[Section]:
    """Everything a study shows: the lead, its pictures, figures, claims, and what was run."""
    views = data.views()
    found = [summary(data, comparison), reported(data, views)]
    if many(data):
        found.append(places(data, views))
    found += [
        over_time(data),
        completion(data, comparison, views, tables.by_place(data)),
        transmissions(data, comparison),
    ]
    found.append(retransmissions(data, views) if many(data) else unnecessary(data, comparison, views))
    if any(cell.mixed for cell in data.cells):
        found.append(sharing(data, views))
    return [*found, *beside_published(data, comparison), what_was_run(data, comparison)]


def many(data: Data) -> bool:
    """Whether the study looks at so many places that they need a picture of all of them."""
    return len({data.place(cell) for cell in data.plain()}) > MANY


def summary(data: Data, comparison: Comparison | None) -> Section:
    """The lead: what was found, and the places that the study looks at closely as a table."""
    tally = [] if comparison is None else [story.tally(comparison)]
    hardest = story.hardest(data, story.glances(data))
    return Section(
        "summary",
        "In short",
        (*story.study_story(data), *tally),
        listings=(tables.at_a_glance(data, hardest),) if hardest else (),
    )


def reported(data: Data, views: Sequence[View]) -> Section:
    """Who is done by when, as a picture and as a table of every place."""
    return Section(
        "reported",
        "Share of clients done against time",
        (),
        each_view(
            data,
            views,
            "reported",
            "Share of clients done against time",
            f"{REPORTED} All clients of all replications.",
            partial(figures.reported, data),
        ),
        listings=(tables.reported(data),),
    )


def over_time(data: Data) -> Section:
    """Queue and useful share of the traced runs."""
    return Section(
        "over-time",
        "The bottleneck over time",
        (
            "One run of each controller (the first replication). The useful share is the part of the bytes carried "
            "that belongs to a copy which completes an exchange.",
        ),
        each_stage(
            data,
            "queue",
            "Queue and useful share",
            f"Above, how much waits at the bottleneck{figures.scales(data, data.plain())}; below, how much of what "
            "the link carries is of use. A collapsed link is full above and near the ground below; a line ends when "
            "the last client has finished.",
            partial(figures.queue_over_time, data),
        ),
    )


def completion(
    data: Data, comparison: Comparison | None, views: Sequence[View], listings: tuple[Listing, ...] = ()
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
            data,
            views,
            "fct",
            "Flow completion time",
            f"{BOXES}{marked(comparison)} Within a group the controllers stand in the order of the legend; lower is "
            "better.",
            partial(figures.completion_times, data, comparison=comparison),
        ),
        listings=listings,
    )


def transmissions(data: Data, comparison: Comparison | None) -> Section:
    """How often exchanges were sent again, where the study looks closely."""
    return Section(
        "transmissions",
        "Transmissions per exchange",
        ("How often a message was sent again until its answer was accepted.",),
        each_stage(
            data,
            "histogram",
            "Exchanges by number of retransmissions",
            "The share of all exchanges that took so many retransmissions, on a logarithmic scale (numbers: "
            "percent). A healthy controller is highest at 0 and falls to the right, a collapsed one rises to the "
            "right.",
            partial(figures.transmissions, data, comparison),
        ),
    )


def unnecessary(data: Data, comparison: Comparison | None, views: Sequence[View]) -> Section:
    """Unnecessary retransmissions of every place."""
    return Section(
        "unnecessary",
        "Unnecessary retransmissions",
        (UNNECESSARY,),
        each_view(
            data,
            views,
            "unnecessary",
            "Unnecessary retransmissions of a client",
            "Bars are the median client, lines reach from the 10th to the 90th percentile, a dot on the ground means "
            f"none.{marked(comparison)} Lower is better.",
            partial(figures.unnecessary_copies, data, comparison=comparison),
        ),
    )


def places(data: Data, views: Sequence[View]) -> Section:
    """Completion times of all places in one picture for each reading of the test bed."""
    readings = {view.only.get(VARIANT): View({k: v for k, v in view.only.items() if k == VARIANT}) for view in views}
    return Section(
        "places",
        "Every place at a glance",
        ("The median client of each controller, everywhere the study looks.",),
        each_view(
            data,
            list(readings.values()),
            "places",
            "Flow completion time by place",
            "Markers are the median client, lines reach from the 10th to the 90th percentile; the scale is "
            "logarithmic. Lower is better.",
            partial(figures.completion_by_place, data),
        ),
    )


def retransmissions(data: Data, views: Sequence[View]) -> Section:
    """Necessary and unnecessary retransmissions of every place."""
    return Section(
        "retransmissions",
        "Retransmissions: necessary and unnecessary",
        (
            "A retransmission was necessary if nothing that was sent before it led to an answer: its own or an earlier "
            "copy, or the answer to it, was lost on the air or found a full queue.",
        ),
        each_view(
            data,
            views,
            "retransmissions",
            "Retransmissions of a client",
            "Means over all clients of all replications: unnecessary ones in colour, necessary ones pale on top.",
            partial(figures.retransmissions, data),
        ),
    )


def sharing(data: Data, views: Sequence[View]) -> Section:
    """Mixes of two controllers beside each of them alone."""
    having = [view for view in views if any(cell.mixed and view.covers(cell) for cell in data.cells)]
    return Section(
        "mixes",
        "Two controllers on one bottleneck",
        ("Half of the clients use one controller, half the other. Who gains, and who loses, against being alone?",),
        each_view(
            data,
            having or views[:1],
            "mix",
            "Completion time of each half",
            "In each pair the left box (white) is the controller when all clients have it, the right one (in colour) "
            "the half of the clients that has it while the other half has the neighbour's; the line and the marker are "
            "the median.",
            partial(figures.sharing, data),
        ),
        listings=tables.mixes(data),
    )


def beside_published(
    data: Data, comparison: Comparison | None, elsewhere: Collection[tuple[str, object]] = ()
) -> list[Section]:
    """Figures and claims beside ours; figures `elsewhere`, by id and reading, stand in tables of their own."""
    if comparison is None:
        return [Section("figures", "Ours beside the published figures", ("No published figures were given.",))]
    return [
        published.published_figures(data, comparison, elsewhere),
        *published.differing_settings(data, comparison),
        published.published_claims(comparison),
    ]


def what_was_run(data: Data, comparison: Comparison | None) -> Section:
    """What was run, by what, and on which path."""
    listings = [tables.manifest(data)]
    if data.cells:
        listings.append(tables.path_settings(data.cells[0]))
    if comparison is not None and comparison.settings:
        listings.append(published.published_settings(data, comparison))
    return Section("run", "What was run", tables.statement(data), listings=tuple(listings), detail=True)


def each_view(
    data: Data, views: Sequence[View], name: str, title: str, caption: str, plot: Draws
) -> tuple[Picture, ...]:
    """The same picture for each view; `plot` takes it as `view`."""
    return tuple(
        Picture(f"{name}-{view.name or 'all'}", f"{title}{_on(data, view)}", caption, partial(plot, view=view))
        for view in views
    )


def each_stage(data: Data, name: str, title: str, caption: str, plot: Draws) -> tuple[Picture, ...]:
    """The same picture for each place that the study looks at closely; `plot` takes it as `stage`."""
    return tuple(
        Picture(f"{name}-{stage.name or 'all'}", f"{title}{_on(data, stage)}", caption, partial(plot, stage=stage))
        for stage in data.stages
    )


def marked(comparison: Comparison | None) -> str:
    """The words of a caption about published medians."""
    return "" if comparison is None else " Empty diamonds are the published medians, where there are any."


# ----------------------------------------------------------------------------------------------- helpers


def _on(data: Data, view: View) -> str:
    words = data.words(view)
    return f", {words}" if words else ""
