"""The page of the study `tcp20`: one firmware image over UDP in blocks and over TCP, then many short exchanges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from millpond.judge.compare import Comparison
from millpond.results.factor import PATH, Value
from millpond.show import labels
from millpond.show.document import Listing, Picture, Section
from millpond.show.report import figures, story, study, tables
from millpond.show.report.grid import Facet, Grid, number, only
from millpond.show.report.study import BOXES
from millpond.studies.tcp20 import errors, listings, nearness
from millpond.studies.tcp20 import flows as firmware_flows
from millpond.studies.tcp20.errors import BULK, PROFILES, Scene, counts


def sections(grid: Grid, comparison: Comparison | None) -> list[Section]:
    """Everything that the study shows."""
    found = [
        _summary(grid, comparison),
        study.reported(grid, _downloads(grid)),
        _completion(grid, comparison),
        *firmware_flows.sections(grid),
    ]
    found += [_everyone(grid), *_dwell(grid, comparison), *_short(grid, comparison)]
    if comparison is not None:
        tabled = {(figure.id, figure.scenario.get(PATH)) for figure in listings.tabled(comparison)}
        found += study.beside_published(grid, comparison, tabled)
    return [*found, study.what_was_run(grid, comparison)]


def _downloads(grid: Grid) -> list[Facet]:
    """The views in which images are brought."""
    return [view for view in grid.views() if any(c.columns.get("workload") == BULK for c in grid.plain(view))]


def _summary(grid: Grid, comparison: Comparison | None) -> Section:
    near = nearness.of(comparison, grid.paths)
    told = [
        "One request brings one firmware image. Over UDP it comes block by block, each an exchange of its own, one at "
        "a time (RFC 7959); over TCP it is one message in a stream (RFC 8323). What passes a narrow radio cell "
        "sooner, with what buffer in front of it, and with how many losses?",
        *_how_much_sooner(grid),
        *nearness.story(near, grid),
        *_never_compared(grid),
    ]
    if comparison is not None:
        told.append(story.tally(comparison))
    return Section(
        "summary",
        "In short",
        tuple(told),
        listings=(_glance(grid), nearness.table(near, grid), listings.medians(grid)),
    )


def _never_compared(grid: Grid) -> list[str]:
    """The fastest and the slowest of those that were not published, with the most errors."""
    medians = {
        profile: {
            name: min(by_buffer.values())
            for name, by_buffer in _medians(grid, 1, profile, everyone=True).items()
            if name not in _PUBLISHED
        }
        for profile in PROFILES
    }
    told = []
    for profile in ("none", "high"):
        ranked = sorted(medians[profile].items(), key=lambda item: item[1])
        if len(ranked) > 1:
            first, last = ranked[0], ranked[-1]
            told.append(
                f"with {PROFILES[profile]} {grid.label(first[0])} is done first "
                f"({labels.number(first[1], 3)} s) and {grid.label(last[0])} last "
                f"({labels.number(last[1], 3)} s)"
            )
    if not told:
        return []
    return [f"Of what nobody has compared, for a single client: {'; '.join(told)}."]


def _how_much_sooner(grid: Grid) -> list[str]:
    """How a single client fares over TCP beside one under the standard's timer, buffer by buffer."""
    told = []
    for name in ("tcp_newreno", "tcp_bbr"):
        parts = []
        for profile, words in PROFILES.items():
            medians = _medians(grid, 1, profile)
            ratios = [
                medians["default"][buffer] / ours
                for buffer, ours in medians.get(name, {}).items()
                if buffer in medians.get("default", {})
            ]
            if ratios:
                parts.append(f"{_span(ratios)} with {words}")
        if parts:
            told.append(f"over {grid.label(name)} {', '.join(parts)}")
    if not told:
        return []
    return [
        "How many times sooner the image is with a single client than under Default CoAP in blocks, lowest and highest "
        f"over the buffers (less than 1: later): {'; '.join(told)}."
    ]


def _medians(grid: Grid, clients: int, profile: str, everyone: bool = False) -> dict[str, dict[int, float]]:
    """Medians of the ways that the study is about, by buffer."""
    found: dict[str, dict[int, float]] = {}
    for cell in Scene(BULK, clients, grid.paths[0]).cells(grid):
        spread = grid.spread("fct", cell)
        if cell.columns.get("error_profile") == profile and spread is not None and (everyone or only(cell) in _MAIN):
            found.setdefault(only(cell), {})[int(number(cell, "buffer_bytes"))] = spread.median
    return found


_PUBLISHED = ("default", "cocoa", "tcp_newreno", "tcp_bbr")
_MAIN = (*_PUBLISHED, "q_block2")


def _glance(grid: Grid) -> Listing:
    rows: list[tuple[str, ...]] = []
    for clients in counts(grid):
        rows.append((labels.clients(clients),))
        by_profile = {profile: _medians(grid, clients, profile) for profile in PROFILES}
        for name in _MAIN:
            if any(name in here for here in by_profile.values()):
                spans = [_span(list(here[name].values())) if name in here else "" for here in by_profile.values()]
                rows.append((grid.label(name), *spans, _drops(grid, clients, name)))
    header = (
        "",
        *(f"{words} (median, s)" for words in PROFILES.values()),
        "packets dropped by a full queue, no errors",
    )
    caption = "Lowest and highest over the buffers."
    return Listing("glance", header, tuple(rows), caption, numeric=tuple(range(1, len(PROFILES) + 2)))


def _drops(grid: Grid, clients: int, name: str) -> str:
    if not grid.has("flows", "dropped_queue"):
        return ""
    here = [
        cell
        for cell in Scene(BULK, clients, grid.paths[0]).cells(grid)
        if only(cell) == name and cell.columns.get("error_profile", "none") == "none"
    ]
    medians = [grid.estimated("lost_segments", cell).value for cell in here]
    return _span(medians, labels.count) if medians else ""


def _span(values: Sequence[float], write: Callable[[float], str] | None = None) -> str:
    write = write or partial(labels.number, digits=3)
    texts = list(dict.fromkeys(write(value) for value in (min(values), max(values))))
    return texts[0] if len(texts) == 1 else f"{texts[0]} to {texts[1]}"


def _completion(grid: Grid, comparison: Comparison | None) -> Section:
    marked = "" if comparison is None else " White boxes with an empty diamond are the published figures."
    pictures = [
        Picture(
            f"fct-{clients}-{path}",
            f"Flow completion time, {labels.clients(clients)}{_on(path, grid)}",
            f"{BOXES}{marked} Lower is better; the axis is logarithmic where values lie far apart.",
            partial(errors.completion_by_error, grid, Scene(BULK, clients, path), comparison),
        )
        for path in grid.paths
        for clients in counts(grid)
    ]
    return Section(
        "completion",
        "Flow completion time",
        ("From the request to the last byte of the image, over all clients of all replications.", *_readings(grid)),
        tuple(pictures),
        listings=(listings.segments(grid), listings.percentiles(grid, comparison)),
    )


def _readings(grid: Grid) -> list[str]:
    """What the path variants are, if there are several."""
    told = {name: grid.results.manifest.get("paths", {}).get(name) for name in grid.paths}
    if len(told) < 2:
        return []
    words = (f"{grid.results.reading.say(name)}: {label}" for name, label in told.items() if label)
    return [f"On each reading of the test bed by itself; {'; '.join(words)}."]


def _everyone(grid: Grid) -> Section:
    pictures = tuple(
        Picture(
            f"everyone-{clients}",
            f"Everything that was run, {labels.clients(clients)}",
            "Markers are the median client, lines reach from the 10th to the 90th percentile; the scale is logarithmic "
            "where values lie far apart. In the order of the medians with the most errors.",
            partial(errors.everyone_by_error, grid, Scene(BULK, clients, grid.paths[0])),
        )
        for clients in counts(grid)
    )
    return Section(
        "everyone",
        "Algorithms that nobody has compared",
        (
            "Every controller that Millpond has, in the same places, and bursts of non-confirmable blocks (Q-Block2, "
            "RFC 9177).",
        ),
        pictures,
    )


def _dwell(grid: Grid, comparison: Comparison | None) -> list[Section]:
    """How far all that depends on how long losses last, if that was varied."""
    if not any("-" in str(cell.columns.get("error_profile", "")) for cell in grid.cells):
        return []
    pictures = []
    for clients in counts(grid):
        scene = Scene(BULK, clients, grid.paths[0])
        pictures.append(
            Picture(
                f"dwell-{clients}",
                f"Completion times by the length of a bad state, {labels.clients(clients)}",
                "Markers are the median client, lines reach from the 10th to the 90th percentile; as many packets are "
                "lost everywhere in a row. Memoryless: each packet by itself; a length in packets: the state changes "
                "with packets, not with time. The scale is logarithmic where values lie far apart.",
                partial(errors.completion_by_dwell, grid, scene, comparison),
            )
        )
    told = "What was published says how much is lost, and not in how long turns the radio is good and bad."
    return [Section("dwell", "How long losses last", (told,), tuple(pictures), (listings.dwells(grid),))]


def _short(grid: Grid, comparison: Comparison | None) -> list[Section]:
    """Short exchanges, if they were run."""
    workloads = [str(name) for name in dict.fromkeys(cell.columns.get("workload", "") for cell in grid.cells)]
    workloads = [name for name in workloads if name != BULK]
    if not workloads:
        return []
    only_here: dict[str, Value] = {"error_profile": "none"} if "error_profile" in grid.varying else {}
    views = {name: grid.whole.but(workload=name, **only_here) for name in workloads}
    pictures = tuple(
        Picture(
            f"short-{workload}",
            f"Flow completion time of {_exchanges(grid, workload)} exchanges, {workload} clients",
            f"{BOXES} Within a buffer the controllers stand in the order of the legend; lower is better.",
            partial(figures.completion_times, grid, views[workload], comparison),
        )
        for workload in workloads
    )
    return [
        Section(
            "short",
            "Short exchanges",
            (
                "Many clients with one small request after another, without errors: over TCP on one connection "
                "(continuous), or with a handshake before each batch (random).",
            ),
            pictures,
            (tables.by_place(grid, lambda one: one.column("workload") != BULK), tables.mixes(grid)),
        )
    ]


# ----------------------------------------------------------------------------------------------- helpers


def _on(path: str, grid: Grid) -> str:
    words = grid.results.reading.say(path)
    return f", {words}" if len(grid.paths) > 1 and words else ""


def _exchanges(grid: Grid, workload: str) -> int:
    cells = [cell for cell in grid.cells if cell.columns.get("workload") == workload]
    return int(cells[0].scenario["clients"][0].get("exchanges", 50)) if cells else 0
