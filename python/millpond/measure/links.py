"""Metrics of links: one value for each run, from the table `links`. The bottleneck is the link that is busy longest."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from millpond import _engine
from millpond.measure import clients
from millpond.measure.clients import PerClient
from millpond.measure.metric import Metric
from millpond.measure.population import Population
from millpond.measure.statistics import Floats, ratio
from millpond.results.directory import Cell

if TYPE_CHECKING:
    from millpond.measure.measures import Measures

#: A link has collapsed when more than this share of its bytes completes no exchange. The engine has it and its reason,
#: so that the explorer judges by the same.
COLLAPSE: float = _engine.COLLAPSE
#: The same in words.
COLLAPSE_IN_WORDS = {Fraction(1, 2): "half", Fraction(2, 3): "two thirds", Fraction(3, 4): "three quarters"}[
    Fraction(COLLAPSE).limit_denominator(12)
]
#: Other thresholds, beside which a verdict on collapse is shown. At a half it is one needless copy of every message.
OTHER_THRESHOLDS = (0.5, 0.6, 0.75)


#: What stands above the columns of a table with a row for each link.
HEADS = ("packets offered", "dropped at the queue", "lost on the air", "delivered", "goodput ratio", "busy",
         "mean queue", "95th percentile", "largest")  # fmt: skip
_COLUMNS = ("offered_packets", "dropped_queue_packets", "dropped_radio_packets", "delivered_packets",
            "queue_mean_bytes", "queue_p95_bytes", "queue_max_bytes",
            "delivered_bytes", "dropped_radio_bytes", "useful_bytes", "busy_us")  # fmt: skip


def useful_share(measures: Measures, cell: Cell, link: str) -> Floats:
    """Of the bytes that a link carried, those that completed an exchange, for every run; NaN where it carried none."""
    useful = measures.link_column(cell, "useful_bytes", link)
    carried = measures.link_column(cell, "delivered_bytes", link)
    carried = carried + measures.link_column(cell, "dropped_radio_bytes", link)
    # what was under way when a run ended may be known as useful and not be counted as carried
    return np.minimum(ratio(useful, carried), 1.0)


def of_each(measures: Measures, cell: Cell) -> dict[str, tuple[float, ...]]:
    """The figures of each link of a cell, by its name, as `HEADS` has them: of one run, the mean of its runs.

    Packets offered, dropped at the queue, lost on the air and delivered; the share of the bytes carried that completed
    an exchange, and of the time that it was busy (NaN without bytes or time); bytes of its queue.
    """
    found = {}
    whole = float(np.mean(measures.counted_us(cell)))
    for (link,), column in measures.of_each("links", cell, "link").items():
        told = {name: float(np.mean(column(name))) for name in _COLUMNS}
        carried = told["delivered_bytes"] + told["dropped_radio_bytes"]
        useful = min(1.0, told["useful_bytes"] / carried) if carried else np.nan
        busy = told["busy_us"] / whole if whole else np.nan
        packets, queue = (tuple(told[name] for name in _COLUMNS[part]) for part in (slice(4), slice(4, 7)))
        found[link] = (*packets, useful, busy, *queue)
    return found


def _of_bottleneck(column: str) -> PerClient:
    """A column of the bottleneck's rows, one a run; no row without links."""
    return lambda measures, population: measures.link_column(
        cell := measures.cell(population), column, measures.bottleneck(cell)
    )


def _of_all(*columns: str, table: str = "links") -> PerClient:
    """Columns added up over all links, or relays, of a run."""
    return lambda measures, population: measures.each_run(table, measures.cell(population), columns)


def _dropped_per_client(measures: Measures, population: Population) -> Floats:
    clients = sum(group.count for group in measures.cell(population).groups)
    return _of_all("dropped_queue_packets")(measures, population) / float(clients)


def _useful(measures: Measures, population: Population) -> Floats:
    cell = measures.cell(population)
    return useful_share(measures, cell, measures.bottleneck(cell))


def _wasted(measures: Measures, population: Population) -> Floats:
    return 1.0 - _useful(measures, population)


def _counted(measures: Measures, population: Population) -> Floats:
    """For how long a run's bottleneck was watched; of a cell without links nothing."""
    cell = measures.cell(population)
    return measures.counted_us(cell) if measures.links(cell) else np.empty(0)


def _queueing_delay(measures: Measures, population: Population) -> Floats:
    """By Little's law: how many packets wait on average, over how many come in a second.

    The queue holds the packet that is being sent as well, and does so for as long as the link is busy.
    """
    mean, busy, offered, dropped = (
        _of_bottleneck(name)(measures, population)
        for name in ("queue_mean_packets", "busy_us", "offered_packets", "dropped_queue_packets")
    )
    waited = np.maximum(0.0, mean * _counted(measures, population) - busy) * 1e-6
    return ratio(waited, offered - dropped)


METRICS = (
    Metric("useful_share", "1", "link", "mean", "bytes of the bottleneck that completed an exchange, of all carried",
           _useful, "more", "goodput ratio of the bottleneck"),
    Metric("wasted_share", "1", "link", "mean", "bytes of the bottleneck that completed no exchange, of all carried",
           _wasted, "less", "share of the bottleneck wasted"),
    Metric("utilisation", "1", "link", "mean", "share of the time that the bottleneck is busy",
           clients.ratio(_of_bottleneck("busy_us"), _counted), "more", "utilisation of the bottleneck"),
    Metric("loss_rate", "1", "link", "mean", "packets that found the bottleneck's queue full, of all offered to it",
           clients.ratio(_of_bottleneck("dropped_queue_packets"), _of_bottleneck("offered_packets")), "less",
           "packets dropped at the bottleneck"),
    Metric("queue", "bytes", "link", "mean", "time-weighted mean of the bottleneck's queue",
           _of_bottleneck("queue_mean_bytes"), "less", "queue in bytes"),
    Metric("queueing_delay", "s", "link", "mean", "mean time that a packet waits before the bottleneck begins to "
           "send it, by Little's law", _queueing_delay, "less", "queueing delay"),
    Metric("packets_dropped_per_client", "packets", "run", "mean", "packets dropped at the queues, per client",
           _dropped_per_client, "less", table="links"),
    Metric("packet_losses", "packets", "run", "mean", "packets dropped at the queues or lost on the air",
           _of_all("dropped_queue_packets", "dropped_radio_packets"), "less", table="links"),
    Metric("packets_withheld", "packets", "run", "mean", "copies that relays kept back, because the ones before them "
           "still waited in their queues", _of_all("withheld_packets", table="relays"), "less", table="relays"),
)  # fmt: skip
