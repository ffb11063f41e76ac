"""Tables of downloads: the time of every algorithm, what becomes of segments, how long losses last, percentiles."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from millpond.judge.compare import Comparison, Figure
from millpond.measure.population import Population
from millpond.measure.statistics import PERCENTILES
from millpond.results.factor import PATH, Value
from millpond.show import labels
from millpond.show.document import Entry, Listing, Row
from millpond.show.report.grid import Grid
from millpond.show.report.published import APART
from millpond.studies.tcp20.errors import BULK, PROFILES, length, short, words_of

#: Those whose packets are dropped, repeated and counted one by one.
_TCP = ("tcp_newreno", "tcp_bbr")
_SEGMENTS = {
    "sent": "segments_sent", "dropped": "lost_segments", "sent again": "retransmitted_segments",
    "spurious": "needless_segments", "timeouts": "timeouts", "longest RTO in s": "longest_rto",
}  # fmt: skip
#: What names a line of a published table.
_PLACE = ("clients", "error_profile", "algorithm", "buffer_bytes")


def downloads(grid: Grid) -> list[Population]:
    """The clients that download one image, on the first reading of the test bed."""
    found = [population for population in grid.measures.populations() if population.column("workload") == BULK]
    return [population for population in found if population.column(PATH) == found[0].column(PATH)]


def medians(grid: Grid) -> Listing:
    """The median time of every algorithm: a row each, with its buffers if it depends on them, a column per loss."""
    rows: list[Row] = []
    found = [population for population in downloads(grid) if _errors(population) in PROFILES]
    for clients, here in _by(found, "clients"):
        rows.append((labels.clients(clients),))
        for name, mine in _by(here, "algorithm"):
            lines: dict[tuple[str, ...], list[int]] = {}
            for size, line in _by(mine, "buffer_bytes"):
                at = {_errors(population): population for population in line}
                missing = sum(grid.measures.sample("fct", population).missing for population in line)
                told = [_median(grid, at.get(profile)) for profile in PROFILES]
                lines.setdefault((*told, labels.count(missing)), []).append(size)
            for cells, sizes in lines.items():
                buffers = "any" if len(lines) == 1 < len(sizes) else ", ".join(map(short, sorted(sizes)))
                rows.append((grid.label(str(name)), buffers, *cells))
    header = ("algorithm", "buffer", *PROFILES.values(), "unfinished")
    title = "Median time of a download in s, by loss"
    numeric = tuple(range(2, len(header)))
    return Listing("medians", header, tuple(rows), numeric=numeric, title=title, folded=True)


def segments(grid: Grid) -> Listing:
    """What becomes of TCP's segments: medians and largest values over the clients of all replications."""
    rows: list[Row] = []
    found = [p for p in downloads(grid) if p.algorithm in _TCP and _errors(p) in PROFILES]
    for clients, here in _by(found, "clients"):
        for name, mine in _by(here, "algorithm"):
            rows.append((f"{grid.label(str(name))}, each of {labels.clients(clients)}",))
            order = list(PROFILES)
            for one in sorted(mine, key=lambda p: (order.index(_errors(p)), p.column("buffer_bytes"))):
                cells = (_spread(grid, metric, one) for metric in _SEGMENTS.values())
                rows.append((PROFILES[_errors(one)], short(one.column("buffer_bytes")), *cells))
    header = ("", "buffer", *_SEGMENTS)
    numeric = tuple(range(2, len(header)))
    title = "Segments to a client: median / largest"
    return Listing("segments", header, tuple(rows), numeric=numeric, title=title, folded=True)


def dwells(grid: Grid) -> Listing:
    """The median time by how long the radio stays bad: a row per algorithm and buffer."""
    rows: list[Row] = []
    found = downloads(grid)
    varied = [population for population in found if "-" in _errors(population)]
    turns = sorted({_errors(population).partition("-")[2] for population in varied} | {""}, key=length)
    for clients, here in _by(varied, "clients"):
        for profile in dict.fromkeys(_errors(population).partition("-")[0] for population in here):
            rows.append((f"{PROFILES[profile]}, {labels.clients(clients)}",))
            alike = [p for p in found if _errors(p).partition("-")[0] == profile and p.column("clients") == clients]
            for (name, size), line in _by(alike, "algorithm", "buffer_bytes"):
                at = {_errors(population).partition("-")[2]: population for population in line}
                if len(at) > 1:
                    told = (_median(grid, at.get(turn)) for turn in turns)
                    rows.append((grid.label(str(name)), short(int(size)), *told))
    header = ("algorithm", "buffer", *(words_of(turn).replace("-\n", "").replace("\n", " ") for turn in turns))
    numeric = tuple(range(2, len(header)))
    title = "Median time of a download in s by the mean stay in a bad state"
    return Listing("dwells", header, tuple(rows), numeric=numeric, title=title, folded=True)


def percentiles(grid: Grid, comparison: Comparison | None) -> Listing:
    """The published tables, every percentile, with ours below and the difference."""
    rows: list[Row] = []
    places: dict[tuple[Value, ...], dict[str, dict[str, Figure]]] = {}
    for figure in tabled(comparison):
        told = figure.scenario
        variants = places.setdefault(tuple(told[name] for name in _PLACE), {})
        variants.setdefault(str(told.get("path", "")), {})[figure.statistic] = figure
    before: tuple[Value, ...] = ()
    for (*place, size), variants in places.items():
        if tuple(place) != before:
            clients, error, name = before = tuple(place)
            rows.append((f"{labels.clients(float(clients))}, {PROFILES[str(error)]}, {grid.label(str(name))}",))
        first = next(iter(variants.values()))
        published = (labels.number(first[statistic].published) for statistic in PERCENTILES)
        rows.append((short(int(size)), "published", *published))
        for path, figures in variants.items():
            ours = (labels.number(figures[statistic].ours) for statistic in PERCENTILES)
            rows.append(("", grid.results.reading.say(path) or "here", *ours))
            rows.append(("", "", *(_difference(figures[statistic]) for statistic in PERCENTILES)))
    header = ("buffer", "", *PERCENTILES)
    numeric = tuple(range(2, len(header)))
    title = "Percentiles of a download in s, published and ours"
    return Listing("percentiles", header, tuple(rows), numeric=numeric, title=title, folded=True)


# ----------------------------------------------------------------------------------------------- helpers


def tabled(comparison: Comparison | None) -> list[Figure]:
    """The figures of the published tables that were measured: every percentile of one algorithm in one place.

    A percentile that the source's text repeats, often rounded, is not among them.
    """
    found: dict[tuple[Value, ...], dict[str, Figure]] = {}
    for figure in () if comparison is None else comparison.figures:
        told = figure.scenario
        if figure.metric != "fct" or figure.ours is None or figure.qualifier or "comparator" in told:
            continue
        if told.get("workload") == BULK and figure.statistic in PERCENTILES:
            place = tuple(told.get(name, "") for name in (*_PLACE, "bin", "path"))
            found.setdefault(place, {}).setdefault(figure.statistic, figure)
    whole = [statistics for statistics in found.values() if len(statistics) == len(PERCENTILES)]
    return [figure for statistics in whole for figure in statistics.values()]


def _by(found: Iterable[Population], *names: str) -> list[tuple[Any, list[Population]]]:
    """The populations by one column, or by several, in the order of cells; numbers by size."""
    groups: dict[Any, list[Population]] = {}
    for population in found:
        key = tuple(population.column(name) for name in names)
        groups.setdefault(key if len(names) > 1 else key[0], []).append(population)
    numbers = all(isinstance(key, int | float) for key in groups)
    return sorted(groups.items(), key=lambda item: item[0]) if numbers else list(groups.items())


def _errors(population: Population) -> str:
    return str(population.column("error_profile") or "none")


def _median(grid: Grid, population: Population | None) -> str:
    return "" if population is None else labels.number(grid.measures.estimate("fct", population).value)


def _spread(grid: Grid, metric: str, population: Population) -> str:
    if grid.measures.sample(metric, population).n == 0:
        return "\N{EN DASH}"
    told = (grid.measures.estimate(metric, population, name).value for name in ("median", "max"))
    return " / ".join(labels.number(value, 3) for value in told)


def _difference(figure: Figure) -> Entry:
    relative = figure.relative
    far = relative is not None and abs(relative) > APART
    return Entry("" if relative is None else labels.percent(relative, signed=True), "unsure" if far else "quiet")
