"""What the terminal shows of the study `tcp20`: downloads over TCP and over UDP, percentile by percentile."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from rich import box
from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from millpond.judge.compare import Comparison, Figure
from millpond.measure.measures import Measures
from millpond.measure.population import VARIANT, Population, clients_in_words, path_in_words
from millpond.measure.statistics import PERCENTILES
from millpond.results.directory import Value
from millpond.show import places
from millpond.show import terminal as tables

#: The workload of a single large response; the others are short exchanges.
BULK = "bulk"
#: Those whose packets are dropped, repeated and counted one by one.
_TCP = ("tcp_newreno", "tcp_bbr")
#: What names a line of a published table.
_PLACE = ("clients", "error_profile", "algorithm", "buffer_bytes")
_PLAIN = ("none", "low", "medium", "high")
#: Turns of the radio in other lengths than the usual ones, as `medium-20ms`.
_USUAL = "100ms"


def of_study(measures: Measures, comparison: Comparison) -> list[RenderableType]:
    """All tables of the study, in the order they are read."""
    return [
        *overview(measures),
        *percentiles(comparison),
        *places.completion(measures, lambda population: population.column("workload") != BULK),
        *places.mixes(measures),
        tables.figures(measures, comparison, tabled(comparison)),
        *tables.judged(measures, comparison),
    ]


def overview(measures: Measures) -> list[RenderableType]:
    """The tables of downloads but for published figures, in the order they are read."""
    found = [population for population in measures.populations() if population.column("workload") == BULK]
    return [*medians(measures, found), *segments(measures, found), *dwells(measures, found)]


def medians(measures: Measures, found: Sequence[Population]) -> list[RenderableType]:
    """The median time of every algorithm: a row each, with its buffer if it depends on it, a column per loss."""
    first = [p for p in found if p.column(VARIANT) == found[0].column(VARIANT) and _errors(p) in _PLAIN]
    made: list[RenderableType] = []
    for clients in sorted({population.column("clients") for population in first}):
        here = [population for population in first if population.column("clients") == clients]
        errors = [error for error in _PLAIN if any(_errors(p) == error for p in here)]
        table = _table(f"Median time of a download in s, {clients_in_words(clients)}")
        table.add_column("algorithm", no_wrap=True)
        table.add_column("buffer", justify="right", no_wrap=True)
        for error in errors:
            table.add_column(f"{error}\nloss".replace("none", "no"), justify="right", no_wrap=True)
        table.add_column("unfinished", justify="right")
        for name in dict.fromkeys(population.algorithm for population in here):
            lines: dict[tuple[str, ...], list[int]] = {}
            for size in sorted({p.column("buffer_bytes") for p in here if p.algorithm == name}):
                line = [_one(here, algorithm=name, buffer_bytes=size, error=error) for error in errors]
                missing = sum(measures.sample("fct", p).missing for p in line if p is not None)
                told = [_seconds(measures.estimate("fct", p).value) if p is not None else "" for p in line]
                lines.setdefault((*told, str(missing)), []).append(size)
            for cells, sizes in lines.items():
                table.add_row(name, "any" if len(lines) == 1 < len(sizes) else ", ".join(map(str, sizes)), *cells)
        made.append(table)
    return made


def segments(measures: Measures, found: Sequence[Population]) -> list[RenderableType]:
    """What becomes of TCP's segments: medians and largest values over the clients of all replications."""
    columns = {
        "sent": "segments_sent", "dropped": "lost_segments", "sent\nagain": "retransmitted_segments",
        "in\nvain": "needless_segments", "time-\nouts": "timeouts", "longest\nRTO in s": "longest_rto",
    }  # fmt: skip
    here = [
        p
        for p in found
        if p.algorithm in _TCP and p.column(VARIANT) == found[0].column(VARIANT) and _errors(p) in _PLAIN
    ]
    made: list[RenderableType] = []
    for name, clients in sorted(
        dict.fromkeys((p.algorithm, p.column("clients")) for p in here), key=lambda pair: pair[1]
    ):
        table = _table(f"Segments to each of {clients_in_words(clients)}, {name}: median/largest")
        table.add_column("loss", no_wrap=True)
        table.add_column("buffer", justify="right", no_wrap=True)
        for column in columns:
            table.add_column(column, justify="right", no_wrap=True)
        mine = [
            population for population in here if (population.algorithm, population.column("clients")) == (name, clients)
        ]
        mine.sort(key=lambda p: (_PLAIN.index(_errors(p)), p.column("buffer_bytes")))
        before = ""
        for population in mine:
            error = _errors(population)
            if before not in ("", error):
                table.add_section()
            cells = [_spread(measures, metric, population) for metric in columns.values()]
            table.add_row("" if error == before else error, f"{population.column('buffer_bytes')}", *cells)
            before = error
        made.append(table)
    return made


def dwells(measures: Measures, found: Sequence[Population]) -> list[RenderableType]:
    """The median time by how long the radio stays bad: a row per algorithm and buffer."""
    made: list[RenderableType] = []
    here = [population for population in found if population.column(VARIANT) == found[0].column(VARIANT)]
    for error, clients in itertools.product(("medium", "high"), sorted({p.column("clients") for p in here})):
        named = [p for p in here if _errors(p).startswith(f"{error}-") and p.column("clients") == clients]
        turns = {_errors(population).removeprefix(f"{error}-") for population in named}
        if not turns:
            continue
        turns |= {_USUAL}
        where = f"{error} loss, {clients_in_words(clients)}"
        table = _table(f"Median time of a download in s by the mean stay in a bad state, {where}")
        table.add_column("", no_wrap=True)
        table.add_column("buffer", justify="right", no_wrap=True)
        for turn in sorted(turns, key=_length):
            words = turn.replace("memoryless", "no\nmemory").replace("packets", "\npackets")
            table.add_column(words, justify="right", no_wrap=True)
        for name, size in dict.fromkeys((p.algorithm, p.column("buffer_bytes")) for p in named):
            cells = []
            for turn in sorted(turns, key=_length):
                wanted = error if turn == _USUAL else f"{error}-{turn}"
                population = _one(here, algorithm=name, buffer_bytes=size, error=wanted, clients=clients)
                cells.append("" if population is None else _seconds(measures.estimate("fct", population).value))
            table.add_row(name.removeprefix("tcp_"), f"{size}", *cells)
        made.append(table)
    return made


def percentiles(comparison: Comparison) -> list[RenderableType]:
    """The published tables, every percentile, with ours below and the difference: a table an algorithm and loss."""
    places: dict[tuple[Value, ...], dict[Value, dict[str, dict[str, Figure]]]] = {}
    for figure in tabled(comparison):
        told = figure.scenario
        *place, size = (told[name] for name in _PLACE)
        variants = places.setdefault(tuple(place), {}).setdefault(size, {})
        variants.setdefault(str(told.get("path", "")), {})[figure.statistic] = figure
    made: list[RenderableType] = []
    for (clients, error, name), sizes in places.items():
        where = f"{clients_in_words(clients)}, {error} loss".replace("none", "no")
        table = _table(f"Time of a download in s, {where}, {name}")
        table.add_column("buffer", justify="right", no_wrap=True)
        table.add_column("", no_wrap=True)
        for statistic in PERCENTILES:
            table.add_column(statistic, justify="right", no_wrap=True)
        for size, variants in sizes.items():
            first = next(iter(variants.values()))
            table.add_row(f"{size}", "published", *(_seconds(first[s].published) for s in PERCENTILES))
            for path, figures in variants.items():
                table.add_row("", path_in_words(path) or "here", *(_seconds(_ours(figures[s])) for s in PERCENTILES))
                table.add_row("", "", *(_difference(figures[s]) for s in PERCENTILES))
            table.add_section()
        made.append(table)
    return made


def tabled(comparison: Comparison) -> list[Figure]:
    """The figures of the published tables that were measured: every percentile of one algorithm in one place.

    A percentile that the source's text repeats, often rounded, is not among them.
    """
    found: dict[tuple[Value, ...], dict[str, Figure]] = {}
    for figure in comparison.figures:
        told = figure.scenario
        if figure.metric != "fct" or figure.ours is None or figure.qualifier or "comparator" in told:
            continue
        place = tuple(told.get(name, "") for name in ("workload", *_PLACE, "bin", "path"))
        if place[0] == BULK and figure.statistic in PERCENTILES:
            found.setdefault(place, {}).setdefault(figure.statistic, figure)
    whole = [statistics for statistics in found.values() if len(statistics) == len(PERCENTILES)]
    return [figure for statistics in whole for figure in statistics.values()]


# ----------------------------------------------------------------------------------------------- helpers


def _errors(population: Population) -> str:
    return str(population.column("error_profile") or "none")


def _one(found: Sequence[Population], *, error: str, **columns: object) -> Population | None:
    """The population on the first path with these columns; None if there is none."""
    for population in found:
        if _errors(population) == error and all(population.column(name) == value for name, value in columns.items()):
            return population
    return None


def _spread(measures: Measures, metric: str, population: Population) -> str:
    if measures.sample(metric, population).n == 0:
        return "-"
    return "/".join(_short(measures.estimate(metric, population, name).value) for name in ("median", "max"))


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _length(turn: str) -> tuple[int, float]:
    """Where a mean stay in a bad state belongs: none at all, then times, then numbers of packets."""
    for unit, scale in (("ms", 1), ("s", 1000), ("packets", 1)):
        number = turn.removesuffix(unit)
        if number != turn and number.replace(".", "", 1).isdecimal():
            return (2 if unit == "packets" else 1), scale * float(number)
    return 0, 0.0


def _table(title: str) -> Table:
    return Table(
        title=escape(title),
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )


def _ours(figure: Figure) -> float:
    return math.nan if figure.ours is None else figure.ours


def _difference(figure: Figure) -> Text:
    if figure.relative is None:
        return Text("")
    change = abs(figure.relative)
    return Text(f"{figure.relative:+.{1 if change < 0.0995 else 0}%}", style="dim" if change <= 0.05 else "yellow")


def _seconds(seconds: float) -> str:
    if math.isnan(seconds):
        return "-"
    return f"{seconds:.1f}" if seconds < 1000 else f"{seconds:.0f}"
