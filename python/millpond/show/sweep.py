"""What the terminal shows of a sweep: every setting in a row, and what a controller changes against the first one."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from millpond.judge.side_by_side import line
from millpond.measure.measures import Measures
from millpond.measure.metrics import METRICS
from millpond.measure.population import Population
from millpond.show import factors, labels
from millpond.show.factors import SERIES
from millpond.show.tables import titled

#: The metrics of the overview, and those that controllers are compared by.
SHOWN = ("complete_clients", "clients_done_99", "fct", "unnecessary_retx_per_client", "wasted_share")
COMPARED = ("fct", "unnecessary_retx_per_client")
#: Their columns: narrow, so that no word is broken; what they leave out stands below the table.
_HEADS = {
    "complete_clients": "clients\ncomplete",
    "clients_done_99": "99 % of\nclients\ndone\nafter (s)",
    "fct": "flow\ncompletion\ntime (s)",
    "unnecessary_retx_per_client": "copies\nin vain\nper client",
    "wasted_share": "bytes\nwasted",
}
#: Metrics that have no value in a run in which so much was never done.
TIMES_UNTIL = ("clients_done_", "requests_done_")
#: At most so many rows a table; the report has all.
MANY = 60


def of_sweep(measures: Measures) -> list[RenderableType]:
    """The tables of a sweep."""
    return [_overview(measures), *_paired(measures), Text(_runs(measures))]


# ----------------------------------------------------------------------------------------------- helpers


def _overview(measures: Measures) -> Table:
    spoken = factors.of(measures.results)
    names = [name for name in measures.varying if name != SERIES]
    there = list(measures.populations())
    shown = [name for name in SHOWN if any(measures.estimate(name, population).n for population in there)]
    table = titled(str(measures.results.manifest["title"]))
    for name in names:
        table.add_column(escape(spoken[name].axis), justify="right", overflow="fold")
    table.add_column("controller", overflow="fold")
    table.add_column("times\nof", justify="right", no_wrap=True)
    lost = _lost(measures, there)
    for head in lost:
        table.add_column(head, justify="right", no_wrap=True)
    for name in shown:
        table.add_column(_HEADS[name], justify="right", overflow="fold")
    for place, population in enumerate(there[:MANY]):
        where = (spoken[name].tick(measures.cell(population).columns.get(name, "")) for name in names)
        fct = measures.sample("fct", population)
        values = (_value(measures, name, population) for name in shown)
        table.add_row(
            *map(escape, where), escape(_called(measures, population)), f"{fct.n}/{fct.n + fct.missing}",
            *(counts[place] for counts in lost.values()), *values,
        )  # fmt: skip
    left = len(there) - MANY
    note = (
        "each number is the mean over runs, its 95 % interval below; completion times are those of the clients counted "
        "under `times of`; "
        "wasted are bytes of the bottleneck that completed no exchange."
    )
    table.caption = note if left <= 0 else f"{note} {left} rows more are in the report."
    return table


def _lost(measures: Measures, populations: Sequence[Population]) -> dict[str, list[str]]:
    """The requests that were not answered, by how they ended, as columns; of those ways that none ended in, nothing."""
    told = [measures.reported.outcome(measures.cell(one), measures.group(one)) for one in populations]
    found = {
        "requests\nfailed": [one.failed for one in told],
        "never\nfinished": [one.never_finished or 0 for one in told],
    }
    return {head: [str(count) for count in counts] for head, counts in found.items() if any(counts)}


def _paired(measures: Measures) -> list[Table]:
    """Every controller against the first one in the same place: seeds are shared, so runs are compared pair by pair."""
    places: dict[tuple[object, ...], list[Population]] = {}
    for population in measures.populations():
        if not population.partner:
            places.setdefault(population.factors, []).append(population)
    pairs = [(those[0], other) for those in places.values() for other in those[1:]]
    if not pairs or measures.results.replications < 2:
        return []
    spoken = factors.of(measures.results)
    names = [name for name in measures.varying if name != SERIES]
    against = dict.fromkeys(_called(measures, first) for first, _ in pairs)
    table = titled(f"Against {', '.join(against)}, run by run")
    for name in names:
        table.add_column(escape(spoken[name].axis), justify="right", overflow="fold")
    table.add_column("controller", overflow="fold")
    for name in COMPARED:
        table.add_column(_HEADS[name], justify="right", overflow="fold")
    for first, other in pairs[:MANY]:
        where = (spoken[name].tick(measures.cell(other).columns.get(name, "")) for name in names)
        told = (difference_in_words(measures, name, first, other) for name in COMPARED)
        table.add_row(*map(escape, where), escape(_called(measures, other)), *told)
    table.caption = "Difference and its 95 % interval over pairs of runs of one seed; = is within the noise."
    return [table]


def difference_in_words(measures: Measures, metric: str, first: Population, other: Population) -> str:
    """By how much a metric is larger, with the paired interval: `-3.2 (-4.1 to -2.3)`; `=` if zero is inside."""
    found = line(measures, metric, other, first)
    if found is None:
        return "-"
    if found.low is None or found.high is None or found.low == found.high:
        return f"{found.difference:+.4g}" if found.difference else "="
    noise = "= " if found.low <= 0 <= found.high else ""
    return f"{noise}{found.difference:+.4g} ({found.low:+.3g} to {found.high:+.3g})"


def reached(measures: Measures, metric: str, population: Population) -> str:
    """How many of the runs a time until so much was done speaks of: `never`, `in 2 of 5 runs`, nothing if of all."""
    cell, group = measures.cell(population), measures.group(population)
    sample = measures.sample(metric, population)
    if not metric.startswith(TIMES_UNTIL) or not sample.missing or not measures.reported.since(cell, group):
        return ""
    return f"in {sample.n} of {labels.runs(sample.n + sample.missing)}" if sample.n else "never"


def _value(measures: Measures, metric: str, population: Population) -> str:
    known = METRICS[metric]
    found = measures.estimate(metric, population)
    share = reached(measures, metric, population)
    if math.isnan(found.value):
        return share or "-"
    written = (lambda value: f"{value:.1%}") if known.unit == "1" else labels.number
    if share:
        return f"{labels.number(found.value)} {share}"
    if found.interval is None or found.same:
        return written(found.value)
    return f"{written(found.value)}\n{' to '.join(map(written, found.interval)).replace('% to', 'to')}"


def _called(measures: Measures, population: Population) -> str:
    name = labels.algorithm(measures.results.manifest, population.algorithm)
    return f"{name} beside {population.partner}" if population.partner else name


def _runs(measures: Measures) -> str:
    settings = len(measures.cells)
    return f"{settings} {'setting' if settings == 1 else 'settings'}, {labels.runs(measures.results.runs)}."
