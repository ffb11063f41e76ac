"""What the terminal shows of a single scenario: who is done by when, what became of the requests, how long it took."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from millpond.measure import proxies, relays
from millpond.measure.links import COLLAPSE, collapse
from millpond.measure.measures import Measures
from millpond.measure.population import Population
from millpond.measure.reported import SHARES, Reported
from millpond.measure.workloads import with_an_end
from millpond.results.directory import Cell, Group
from millpond.show import labels
from millpond.show.tables import titled


def of_scenario(measures: Measures, title: str) -> list[RenderableType]:
    """The tables of a single scenario: a row for each group of clients."""
    cell = measures.cells[0]
    reported = measures.reported
    populations = list(measures.populations())
    return [
        _done(cell, reported, title),
        _requests(cell, reported),
        _times(measures, cell, populations, _timed(measures, populations)),
        *_relays(measures, cell),
        *_proxies(measures, cell),
        Text(_bottleneck(measures, cell, populations[0])),
    ]


# ----------------------------------------------------------------------------------------------- helpers


def _done(cell: Cell, reported: Reported, title: str) -> Table:
    table = titled(title)
    table.add_column("group")
    for name in ("clients", "com-\nplete", "lost a\nrequest", "un-\nfinished"):
        table.add_column(name, justify="right")
    for place, share in enumerate(SHARES):
        table.add_column(f"{'done by (s)' if place == 0 else ''}\n{share:.0%}".strip(), justify="right")
    for group in cell.groups:
        told, course = reported.outcome(cell, group), reported.course(cell, group)
        counts = [str(count) for count in (told.complete, told.lost, told.unfinished)]
        counts += [
            "-" if not course.of else "never" if time is None else number(time) for time in course.points.values()
        ]
        table.add_row(_name(group), str(told.clients), *(["-"] * len(counts) if told.is_silent else counts))
    silent = sum(reported.outcome(cell, group).silent for group in cell.groups)
    together = " of all runs together" if cell.replications > 1 else ""
    caption = f"A client is complete when all its requests are answered; shares are of all clients{together}"
    caption += f" that asked, which {labels.clients(silent)} did not." if silent else "."
    if events := reported.since(cell) - {0}:
        start = "the start, or since " if len(events) < len(reported.since(cell)) else ""
        caption += f" Times are since {start}the first event that concerns the group."
    if len(with_an_end(cell)) < len(cell.groups):
        caption += " No time is told of work that goes on until the run ends."
    table.caption = caption
    return table


def _requests(cell: Cell, reported: Reported) -> Table:
    table = titled("Requests")
    table.add_column("group")
    for name in ("born", "answered", "failed", "never\nfinished", "delivered"):
        table.add_column(name, justify="right")
    for group in cell.groups:
        told = reported.outcome(cell, group)
        counts = (told.born, told.answered, told.failed, told.never_finished)
        ratio = "" if told.delivery_ratio is None else f" ({told.delivery_ratio:.1%})"
        delivered = "-" if told.delivered is None else f"{told.delivered}{ratio}"
        table.add_row(_name(group), *("-" if count is None else str(count) for count in counts), delivered)
    return table


def _timed(measures: Measures, populations: list[Population]) -> str:
    """What time is told of the groups: where no client's work has an end, that of single requests."""
    ended = any(measures.sample("fct", population).n for population in populations)
    asked = any(measures.sample("answer_delay", population).n for population in populations)
    return "answer_delay" if asked and not ended else "fct"


def _times(measures: Measures, cell: Cell, populations: list[Population], timed: str) -> Table:
    several = cell.replications > 1
    whole = "Flow completion time in s, of the clients whose last request was answered"
    table = titled(whole if timed == "fct" else "Birth of a request to its answer in s, of the requests answered")
    # bins tell no extremes
    statistics = ("min", "median", "p90", "max") if timed == "fct" else ("median", "p90", "p99")
    table.add_column("group")
    table.add_column("of", justify="right", no_wrap=True)
    for name in statistics:
        table.add_column(name, justify="right", no_wrap=True)
        if several and name == "median":
            table.add_column("95 % of it", justify="right")
    for name in ("retx", "in vain"):
        table.add_column(name, justify="right", no_wrap=True)
    for group, population in zip(cell.groups, populations, strict=False):
        times, cells = measures.sample(timed, population), []
        for name in statistics:
            found = measures.estimate(timed, population, name)
            cells.append(number(found.value))
            if several and name == "median":
                cells.append("-" if found.interval is None else " to ".join(map(number, found.interval)))
        copies = (
            measures.estimate(f"{name}_per_client", population, "mean").value
            for name in ("retransmissions", "unnecessary_retx")
        )
        of = f"{times.n}/{times.n + times.missing}"
        if timed != "fct":
            told = measures.reported.outcome(cell, group)
            of = f"{told.answered}/{'-' if told.born is None else told.born}"
        table.add_row(_name(group), of, *cells, *map(number, copies))
    runs = f" Over {cell.replications} replications: percentiles of each run, their mean." if several else ""
    table.caption = f"Retransmissions, and those in vain, are means per client.{runs}"
    return table


def _relays(measures: Measures, cell: Cell) -> list[Table]:
    """What relays passed on and kept back; no table without one."""
    return _each_node(
        cell,
        "What relays did with packets",
        relays.HEADS,
        relays.of_each(measures.results, cell),
        "Kept back are copies of messages that still waited; they are in no count of the link.",
    )


def _proxies(measures: Measures, cell: Cell) -> list[Table]:
    """What proxies did behind the clients; no table without one."""
    each: dict[tuple[str, ...], list[float]] = {
        (name,): values for name, values in proxies.of_each(measures.results, cell).items()
    }
    return _each_node(
        cell,
        "What proxies asked the server",
        ("proxy", *(figure.head for figure in proxies.FIGURES)),
        each,
        "Retransmissions, and those in vain, are the proxy's own; most held is the largest of all runs.",
    )


def _each_node(
    cell: Cell, title: str, heads: Sequence[str], each: Mapping[tuple[str, ...], Sequence[float]], caption: str
) -> list[Table]:
    """A table with a row for each node: the words that name it, then its numbers. None without a node."""
    if not each:
        return []
    table = titled(f"{title}{', mean of a run' if cell.replications > 1 else ''}")
    words = len(next(iter(each)))
    for place, head in enumerate(heads):
        table.add_column(head, justify="left" if place < words else "right")
    for names, values in each.items():
        table.add_row(*map(escape, names), *map(number, values))
    table.caption = caption
    return [table]


def _bottleneck(measures: Measures, cell: Cell, population: Population) -> str:
    """What the busiest link carried, and whether it has collapsed."""
    lost = measures.estimate("packet_losses", population).value
    told = f"Packets lost per run: {number(lost)}."
    verdict = collapse(measures, population)
    if math.isnan(verdict.wasted):
        return told
    named = labels.busiest(cell.scenario, measures.bottleneck(cell))
    told += f" Of the bytes of the {named}, {verdict.wasted:.1%} completed no exchange"
    if verdict.collapsed:
        told += f": congestion collapse (more than {COLLAPSE:.0%})"
    if verdict.turns:
        other = [at for at, found in verdict.by_threshold.items() if found != verdict.collapsed]
        nearest = min(other, key=lambda at: abs(at - COLLAPSE))
        told += (
            f"; with the line drawn at {nearest:.0%} it would {'not be one' if verdict.collapsed else 'be a collapse'}"
        )
    return f"{told}."


def _name(group: Group) -> str:
    return escape(labels.controller(group.algorithm, group.name))


def number(value: float) -> str:
    """A figure of a table with five digits at most; a dash for none."""
    if math.isnan(value):
        return "-"
    return f"{value:.0f}" if value == 0 or abs(value) >= 1000 else f"{value:.4g}"
