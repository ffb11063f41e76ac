"""The page of a study: what stands on it, in order."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from matplotlib.figure import Figure

from millpond.judge.compare import Comparison
from millpond.show.report import figures, story, tables
from millpond.show.report.data import JITTERED, Data, Rows, View
from millpond.show.report.parts import Picture, Section

BOXES = (
    "Boxes hold the middle half of all clients, whiskers 80 %, short dashes mark the fastest and the slowest client; "
    "the line and the marker are the median."
)
UNNECESSARY = "Copies that a client sent although the answer to an earlier copy was still on its way and did arrive."


def sections(data: Data, comparison: Comparison | None) -> list[Section]:
    """Everything a study shows: the lead, its pictures, figures, claims, and what was run."""
    # a study of many places begins with all of them, and shows of mixes and varying delays only what there is
    found = [
        _summary(data, comparison),
        *([_places(data)] if data.varying else []),
        _over_time(data),
        _completion(data, comparison),
        _transmissions(data, comparison),
        _retransmissions(data) if data.varying else _unnecessary(data, comparison),
    ]
    if not data.varying or any(cell.mixed for cell in data.cells):
        found.append(_sharing(data))
    if not data.varying or JITTERED in data.paths:
        found.append(_phase(data, comparison))
    if comparison is None:
        found.append(Section("figures", "Ours beside the published figures", ("No published figures were given.",)))
    else:
        found += [tables.published_figures(comparison), tables.published_claims(comparison)]
    found.append(_what_was_run(data, comparison))
    return found


def _summary(data: Data, comparison: Comparison | None) -> Section:
    tally = [] if comparison is None else [story.tally(comparison)]
    hardest = story.hardest(data, story.glances(data))
    return Section(
        "summary",
        "In short",
        (*story.study_story(data), *tally),
        listings=(tables.at_a_glance(hardest),) if hardest else (),
    )


def _over_time(data: Data) -> Section:
    return Section(
        "over-time",
        "The bottleneck over time",
        (
            f"One run (the first replication) with the most clients at the largest buffer{_staged(data)}. The useful "
            "share is the part of the bytes carried that belongs to a copy which completes an exchange.",
        ),
        _each_workload(
            data,
            "queue",
            "Queue and useful share",
            "Above, how much waits at the bottleneck (left scale) and how long a new packet has to wait for it (right "
            "scale); below, how much of what the link carries is of use. A collapsed link is full above and near the "
            "ground below; a line ends when the last client has finished.",
            partial(figures.queue_over_time, data),
            partial(figures.queue_over_time_rows, data),
        ),
    )


def _completion(data: Data, comparison: Comparison | None) -> Section:
    return Section(
        "completion",
        "Flow completion time",
        ("How long a client needs for all its exchanges, over all clients of all replications.",),
        _each_view(
            data,
            "fct",
            "Flow completion time by buffer and clients",
            f"{BOXES}{_marked(comparison)} Within a buffer the controllers stand in the order of the legend; lower is "
            "better.",
            partial(figures.completion_times, data, comparison=comparison),
            partial(figures.completion_times_rows, data),
        ),
    )


def _transmissions(data: Data, comparison: Comparison | None) -> Section:
    picture = Picture(
        "histogram",
        "Exchanges by number of retransmissions",
        "The share of all exchanges that took so many retransmissions, on a logarithmic scale (the numbers are ours, "
        "in percent). A healthy controller is highest at 0 and falls to the right, a collapsed one rises to the right.",
        partial(figures.transmissions, data, comparison),
        partial(figures.transmissions_rows, data, comparison),
    )
    return Section(
        "transmissions",
        "Transmissions per exchange",
        (
            "How often a message was sent again until its answer was accepted, with the most clients at the largest "
            f"buffer{_staged(data)}.",
        ),
        (picture,),
    )


def _unnecessary(data: Data, comparison: Comparison | None) -> Section:
    return Section(
        "unnecessary",
        "Unnecessary retransmissions",
        (UNNECESSARY,),
        _each_workload(
            data,
            "unnecessary",
            "Unnecessary retransmissions of a client",
            "Bars are the median client, lines reach from the 10th to the 90th percentile, a dot on the ground means "
            f"none.{_marked(comparison)} Lower is better.",
            partial(figures.unnecessary_copies, data, comparison=comparison),
            partial(figures.unnecessary_copies_rows, data),
        ),
    )


def _places(data: Data) -> Section:
    return Section(
        "places",
        "Every place at a glance",
        ("The median client of each controller, everywhere the study looks.",),
        tuple(
            picture
            for path in data.paths
            if path != JITTERED
            for picture in _each_workload(
                data,
                f"places-{path}",
                f"Flow completion time by place{_on(View(path, {}))}",
                "Markers are the median client, lines reach from the 10th to the 90th percentile; the scale is "
                "logarithmic. Lower is better.",
                partial(figures.completion_by_place, data, view=View(path, {})),
                partial(figures.completion_by_place_rows, data, view=View(path, {})),
            )
        ),
    )


def _retransmissions(data: Data) -> Section:
    return Section(
        "retransmissions",
        "Retransmissions: necessary and unnecessary",
        (
            "A retransmission was necessary if nothing that was sent before it led to an answer: its own or an earlier "
            "copy, or the answer to it, was lost on the air or found a full queue.",
        ),
        _each_view(
            data,
            "retransmissions",
            "Retransmissions of a client",
            "Means over all clients of all replications: unnecessary ones in colour, necessary ones pale on top.",
            partial(figures.retransmissions, data),
            partial(figures.retransmissions_rows, data),
        ),
    )


def _sharing(data: Data) -> Section:
    return Section(
        "mixes",
        "Two controllers on one bottleneck",
        ("Half of the clients use one controller, half the other. Who gains, and who loses, against being alone?",),
        _each_workload(
            data,
            "mix",
            "Completion time of each half",
            "In each pair the left box (white) is the controller when all clients have it, the right one (in colour) "
            "the half of the clients that has it while the other half has the neighbour's; the line and the marker are "
            "the median.",
            partial(figures.sharing, data),
            partial(figures.sharing_rows, data),
        ),
    )


def _phase(data: Data, comparison: Comparison | None) -> Section:
    return Section(
        "phase",
        "Small buffers: fixed delay and jitter",
        (
            "A short queue is full most of the time, and the phase of the packets decides whose is dropped. The same "
            "runs with a fixed delay and with one that varies from packet to packet tell how far a figure depends on "
            "it.",
        ),
        _each_workload(
            data,
            "phase",
            "Completion time with the smallest buffer",
            f"{BOXES} In each pair the left box (in colour) is the fixed delay, the right one (white) the varying one."
            f"{_marked(comparison)}",
            partial(figures.fixed_beside_jittered, data, comparison=comparison),
            partial(figures.fixed_beside_jittered_rows, data),
        ),
    )


def _what_was_run(data: Data, comparison: Comparison | None) -> Section:
    listings = [tables.manifest(data)]
    if data.cells:
        listings.append(tables.path_settings(data.cells[0]))
    if comparison is not None and comparison.settings:
        listings.append(tables.published_settings(comparison))
    return Section("run", "What was run", listings=tuple(listings))


def _each_workload(
    data: Data,
    name: str,
    title: str,
    caption: str,
    draw: Callable[..., Figure],
    rows: Callable[..., Rows],
    having: View | None = None,
) -> tuple[Picture, ...]:
    """The same picture for each workload; `draw` and `rows` take it as `workload`."""
    workloads = data.workloads(having)
    return tuple(
        Picture(
            f"{name}-{workload}",
            f"{title}, {workload} clients" if len(workloads) > 1 else title,
            caption,
            partial(draw, workload=workload),
            partial(rows, workload=workload),
        )
        for workload in workloads
    )


def _each_view(
    data: Data,
    name: str,
    title: str,
    caption: str,
    draw: Callable[..., Figure],
    rows: Callable[..., Rows],
) -> tuple[Picture, ...]:
    """The same picture for each view and workload; `draw` and `rows` take them as `view` and `workload`."""
    views = data.views()
    if len(views) < 2:
        return _each_workload(data, name, title, caption, draw, rows)
    return tuple(
        picture
        for view in views
        for picture in _each_workload(
            data,
            f"{name}-{view.name}",
            f"{title}{_on(view)}",
            caption,
            partial(draw, view=view),
            partial(rows, view=view),
            having=view,
        )
    )


def _on(view: View) -> str:
    return f", {view.words}" if view.words else ""


def _staged(data: Data) -> str:
    words = View("", data.stage.only).words
    return f" ({words})" if words else ""


def _marked(comparison: Comparison | None) -> str:
    return "" if comparison is None else " Empty diamonds are the published medians, where there are any."
