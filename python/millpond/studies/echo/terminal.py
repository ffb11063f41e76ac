"""What the terminal shows of the study `echo`: wrong names, timers that believe them, and the findings as checks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from rich import box
from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from millpond.judge.compare import Comparison
from millpond.measure.measures import Measures
from millpond.measure.population import Population
from millpond.results.directory import Value
from millpond.show import terminal as tables

#: The ratio of initial wait and round trip at which timers that adapt are shown: late ones.
_LATE = 3


def of_study(measures: Measures, comparison: Comparison) -> list[RenderableType]:
    """All tables of the study, in the order they are read."""
    return [
        *wrong_names(measures),
        *timers(measures),
        tables.claims(comparison),
        Text(tables.closing(comparison)),
    ]


def wrong_names(measures: Measures) -> list[RenderableType]:
    """Shares of replies that name a wrong copy, and their error: a row per loss, a column per ratio."""
    found = [p for p in measures.populations() if p.algorithm == "fixed" and p.column("error_profile")]
    made: list[RenderableType] = []
    for server in _values(found, "server"):
        here = [population for population in found if population.column("server") == server]
        if not any(measures.sample("naming_error", population).n for population in here):
            made.append(Text(f"Replies {server}: not one names a wrong copy."))
            continue
        table = _table(f"Replies after a retransmission that name a wrong copy / their error in round trips, {server}")
        table.add_column("loss", justify="right")
        ratios = _values(here, "ratio")
        for ratio in ratios:
            table.add_column(f"wait\n{ratio} rtt", justify="right", no_wrap=True)
        for loss in _values(here, "error_profile"):
            line = [p for p in here if p.column("error_profile") == loss]
            table.add_row(f"{loss} %", *(_wrong(measures, _only(line, "ratio", ratio)) for ratio in ratios))
        made.append(table)
    return made


def timers(measures: Measures) -> list[Table]:
    """First waits and completion times of timers that adapt: a table per kind of server, a row per loss."""
    found = [
        p
        for p in measures.populations()
        if p.algorithm != "fixed" and p.column("bottleneck") in (None, "none") and p.column("ratio") == _LATE
    ]
    made = []
    for server in _values(found, "server"):
        here = [population for population in found if population.column("server") == server]
        table = _table(f"First wait in round trips / median completion time in s, replies {server}")
        table.add_column("loss", justify="right")
        names = list(dict.fromkeys(population.algorithm for population in here))
        for name in names:
            table.add_column(name.replace("_", "\n"), justify="right", no_wrap=True)
        for loss in _values(here, "error_profile"):
            line = {p.algorithm: p for p in here if p.column("error_profile") == loss}
            table.add_row(f"{loss} %", *(_timer(measures, line.get(name)) for name in names))
        made.append(table)
    return made


# ----------------------------------------------------------------------------------------------- helpers


def _table(title: str) -> Table:
    return Table(title=escape(title), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)


def _values(populations: Iterable[Population], column: str) -> list[Value]:
    return [value for value in dict.fromkeys(p.column(column) for p in populations) if value is not None]


def _only(populations: Sequence[Population], column: str, value: Value) -> Population | None:
    return next((population for population in populations if population.column(column) == value), None)


def _wrong(measures: Measures, population: Population | None) -> str:
    if population is None:
        return ""
    share = measures.estimate("names_earlier_wrongly", population).value
    error = measures.estimate("naming_error", population).value
    return "-" if math.isnan(share) else f"{100 * share:.1f}%/{error:.1f}"


def _timer(measures: Measures, population: Population | None) -> str:
    if population is None:
        return ""
    wait, took = (measures.estimate(name, population).value for name in ("rto_in_rtts", "fct"))
    return f"{wait:.3g}/{took:.4g}"
