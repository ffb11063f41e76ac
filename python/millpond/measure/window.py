"""Metrics of a part of a run: from the traces of links, which only traced runs have.

They have the names and units of those of whole runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from millpond.errors import UsageError
from millpond.measure.metric import Metric
from millpond.measure.population import Population
from millpond.measure.sample import Sample
from millpond.measure.statistics import Floats

if TYPE_CHECKING:
    from millpond.measure.measures import Measures

#: Seconds since the start of a run, from and to, for all runs or by the number of a run.
Window: TypeAlias = "tuple[float, float] | Callable[[int], tuple[float, float]]"


def check_window(measures: Measures, window: Window, metrics: Sequence[Metric]) -> None:
    """Raises `UsageError`, one line, for a window that no run has and for a metric that is not kept over time."""
    for metric in metrics:
        if metric.name not in OVER_TIME:
            raise UsageError(f"window: {metric.name} is of whole runs: of a part there are {', '.join(OVER_TIME)}")
        table = _TABLES[metric.name]
        if not measures.results.has(table):
            raise UsageError(
                f"window: {metric.name}: these results hold no table {table}: run them with --trace "
                f"{table.removesuffix('_trace')}"
            )
    if callable(window):
        return
    begin, end = window
    longest = max((float(measures.run_column(cell, "simulated_us").max()) * 1e-6 for cell in measures.cells), default=0)
    if not 0 <= begin < end <= longest:
        raise UsageError(f"window: {begin:g} s to {end:g} s is in no run: they last from 0 s to {longest:g} s at most")


def link_trace(measures: Measures, table: str, run: int, link: str, columns: Sequence[str]) -> tuple[Floats, ...]:
    """Columns of a link's trace in a run, the times of its rows in s first."""
    rows = measures.table(table)
    mine = rows.of_run(run, "link") == link
    times, *values = (rows.of_run(run, name)[mine].astype(np.float64) for name in ("t_us", *columns))
    return (times * 1e-6, *values)


# ----------------------------------------------------------------------------------------------- helpers


def _span(window: Window, run: int) -> tuple[float, float]:
    return window(run) if callable(window) else window


def _useful(measures: Measures, population: Population, window: Window) -> Sample:
    """Of the bytes that the bottleneck carried in the window, those that completed an exchange."""
    cell = measures.cell(population)
    runs = cell.first_run + np.arange(cell.replications)
    found = np.full(len(runs), np.nan)
    for at, run in enumerate(runs.tolist()):
        times, carried, useful = link_trace(
            measures, "share_trace", run, measures.bottleneck(cell), ("carried_bytes", "useful_bytes")
        )
        begin, end = _span(window, run)
        inside = (times >= begin) & (times <= end)
        total = float(carried[inside].sum())
        if total:
            # a transmission may be known to be useful a little after it was carried
            found[at] = min(1.0, float(useful[inside].sum()) / total)
    return Sample.of(found, runs)


def _wasted(measures: Measures, population: Population, window: Window) -> Sample:
    useful = _useful(measures, population, window)
    return Sample(1.0 - useful.values, useful.runs, useful.missing, lacking=useful.lacking)


def _queue(measures: Measures, population: Population, window: Window) -> Sample:
    """What waited at the bottleneck, at each step of the trace."""
    cell = measures.cell(population)
    values, runs = [np.empty(0)], [np.empty(0, dtype=np.int64)]
    for run in range(cell.first_run, cell.first_run + cell.replications):
        times, queue = link_trace(measures, "queue_trace", run, measures.bottleneck(cell), ("bytes",))
        begin, end = _span(window, run)
        inside = queue[(times >= begin) & (times <= end)]
        values.append(inside)
        runs.append(np.full(len(inside), run))
    return Sample(np.concatenate(values), np.concatenate(runs))


#: How metrics are computed of a part of a run.
OVER_TIME: Mapping[str, Callable[[Measures, Population, Window], Sample]] = {
    "useful_share": _useful,
    "wasted_share": _wasted,
    "queue": _queue,
}
_TABLES = {"useful_share": "share_trace", "wasted_share": "share_trace", "queue": "queue_trace"}
