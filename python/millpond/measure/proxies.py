"""Metrics of proxies: one value for each run, of all its proxies together, from the table `proxies`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from millpond.measure.metric import Better, Metric
from millpond.measure.population import Population
from millpond.measure.statistics import Floats

if TYPE_CHECKING:
    from millpond.measure.measures import Measures


@dataclass(frozen=True)
class Figure:
    """What is counted at each proxy."""

    metric: str
    column: str
    #: What it is called above a column of a table with a row for each proxy.
    head: str
    unit: str
    summary: str
    better: Better = "less"
    #: Of several proxies, and of several runs, the largest counts, else their sum, and the mean.
    is_most: bool = False


FIGURES = (
    Figure("proxy_requests", "requests", "handed to it", "requests", "requests that clients handed to proxies", ""),
    Figure("proxy_answered", "answered", "answered", "requests", "those of them that the server answered", "more"),
    Figure("proxy_failed", "failed", "given up", "requests", "those that proxies gave up (5.04)"),
    Figure("proxy_refused", "refused", "refused", "requests", "those that proxies had no room for (5.03)"),
    Figure("proxy_transmissions", "transmissions", "sent", "messages", "transmissions of requests that proxies sent "
           "to the server"),
    Figure("proxy_retransmissions", "retransmissions", "retx", "retransmissions", "those of them after the first"),
    Figure("proxy_unnecessary", "unnecessary", "spurious", "retransmissions", "transmissions after the one whose "
           "answer the proxy took"),
    Figure("proxy_held", "held_max", "most held", "requests", "the most requests that a proxy held at once",
           is_most=True),
)  # fmt: skip


def _of_all(measures: Measures, population: Population, *, figure: Figure) -> Floats:
    return measures.each_run("proxies", measures.cell(population), (figure.column,), most=figure.is_most)


METRICS = tuple(
    Metric(one.metric, one.unit, "run", "max" if one.is_most else "mean", one.summary, partial(_of_all, figure=one),
           one.better, table="proxies")
    for one in FIGURES
)  # fmt: skip
