"""Metrics of a part of a run: from the traces of links, which only traced runs have.

They have the names and units of those of whole runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
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


def useful_share(measures: Measures, link: str, run: int, span: tuple[float, float]) -> float:
    """Of the bytes that a link carried in a part of a run, those that completed an exchange; NaN if it carried none."""
    times, carried, useful = link_trace(measures, "share_trace", run, link, ("carried_bytes", "useful_bytes"))
    inside = (times >= span[0]) & (times <= span[1])
    total = float(carried[inside].sum())
    # a transmission may be known to be useful a little after it was carried
    return min(1.0, float(useful[inside].sum()) / total) if total else math.nan


def queue_bytes(measures: Measures, link: str, run: int, span: tuple[float, float]) -> Floats:
    """What waited before a link in a part of a run, at each step of the trace."""
    times, queue = link_trace(measures, "queue_trace", run, link, ("bytes",))
    return queue[(times >= span[0]) & (times <= span[1])]


# ----------------------------------------------------------------------------------------------- helpers


def _span(window: Window, run: int) -> tuple[float, float]:
    return window(run) if callable(window) else window


def _useful(measures: Measures, population: Population, window: Window) -> Sample:
    cell = measures.cell(population)
    link, runs = measures.bottleneck(cell), range(cell.first_run, cell.first_run + cell.replications)
    shares = [useful_share(measures, link, run, _span(window, run)) for run in runs]
    return Sample.of(np.array(shares), np.array(runs))


def _wasted(measures: Measures, population: Population, window: Window) -> Sample:
    useful = _useful(measures, population, window)
    return replace(useful, values=1.0 - useful.values)


def _queue(measures: Measures, population: Population, window: Window) -> Sample:
    cell = measures.cell(population)
    link, runs = measures.bottleneck(cell), range(cell.first_run, cell.first_run + cell.replications)
    found = [queue_bytes(measures, link, run, _span(window, run)) for run in runs]
    numbers = np.repeat(np.array(runs), [len(values) for values in found])
    return Sample(np.concatenate(found), numbers)


#: How metrics are computed of a part of a run.
OVER_TIME: Mapping[str, Callable[[Measures, Population, Window], Sample]] = {
    "useful_share": _useful,
    "wasted_share": _wasted,
    "queue": _queue,
}
_TABLES = {"useful_share": "share_trace", "wasted_share": "share_trace", "queue": "queue_trace"}
