"""Metrics of links: one value for each run, from the table `links`. The bottleneck is the link that is busy longest."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from millpond import _engine
from millpond.measure.metric import Compute, Metric
from millpond.measure.population import Population
from millpond.measure.sample import Sample
from millpond.measure.statistics import Floats
from millpond.results.directory import Cell

if TYPE_CHECKING:
    from millpond.measure.measures import Measures

#: A value for each run of a cell, NaN where there is none.
PerRun: TypeAlias = "Callable[[Measures, Cell], Floats]"

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
    return np.minimum(_ratio(useful, carried), 1.0)


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


def _sample(values: PerRun) -> Compute:
    def compute(measures: Measures, population: Population) -> Sample:
        cell = measures.cell(population)
        if not measures.links(cell):
            return Sample.none(cell.replications)
        return Sample.of(values(measures, cell), measures.run_column(cell, "run"))

    return compute


def _ratio(top: Floats, bottom: Floats) -> Floats:
    share: Floats = np.divide(top, bottom, out=np.full(len(top), np.nan), where=bottom > 0)
    return share


def _of_bottleneck(column: str) -> PerRun:
    return lambda measures, cell: measures.link_column(cell, column, measures.bottleneck(cell))


def _dropped_per_client(measures: Measures, cell: Cell) -> Floats:
    return measures.each_run("links", cell, ("dropped_queue_packets",)) / float(
        sum(group.count for group in cell.groups)
    )


def _losses(measures: Measures, cell: Cell) -> Floats:
    return measures.each_run("links", cell, ("dropped_queue_packets", "dropped_radio_packets"))


def _useful(measures: Measures, cell: Cell) -> Floats:
    return useful_share(measures, cell, measures.bottleneck(cell))


def _wasted(measures: Measures, cell: Cell) -> Floats:
    return 1.0 - _useful(measures, cell)


def _loss_rate(measures: Measures, cell: Cell) -> Floats:
    dropped, offered = (
        _of_bottleneck(column)(measures, cell) for column in ("dropped_queue_packets", "offered_packets")
    )
    return _ratio(dropped, offered)


def _utilisation(measures: Measures, cell: Cell) -> Floats:
    busy = _of_bottleneck("busy_us")(measures, cell)
    return _ratio(busy, measures.counted_us(cell))


def _queueing_delay(measures: Measures, cell: Cell) -> Floats:
    """By Little's law: how many packets wait on average, over how many come in a second.

    The queue holds the packet that is being sent as well, and does so for as long as the link is busy.
    """
    held = _of_bottleneck("queue_mean_packets")(measures, cell) * measures.counted_us(cell)
    waited = np.maximum(0.0, held - _of_bottleneck("busy_us")(measures, cell)) * 1e-6
    offered, dropped = (_of_bottleneck(f"{name}_packets")(measures, cell) for name in ("offered", "dropped_queue"))
    return _ratio(waited, offered - dropped)


def _withheld(measures: Measures, population: Population) -> Sample:
    cell = measures.cell(population)
    return measures.of_runs(cell, measures.each_run("relays", cell, ("withheld_packets",)))


METRICS = (
    Metric("useful_share", "1", "link", "mean", "bytes of the bottleneck that completed an exchange, of all carried",
           _sample(_useful), "more", "goodput ratio of the bottleneck"),
    Metric("wasted_share", "1", "link", "mean", "bytes of the bottleneck that completed no exchange, of all carried",
           _sample(_wasted), "less", "share of the bottleneck wasted"),
    Metric("utilisation", "1", "link", "mean", "share of the time that the bottleneck is busy", _sample(_utilisation),
           "more", "utilisation of the bottleneck"),
    Metric("loss_rate", "1", "link", "mean", "packets that found the bottleneck's queue full, of all offered to it",
           _sample(_loss_rate), "less", "packets dropped at the bottleneck"),
    Metric("queue", "bytes", "link", "mean", "time-weighted mean of the bottleneck's queue",
           _sample(_of_bottleneck("queue_mean_bytes")), "less", "queue in bytes"),
    Metric("queueing_delay", "s", "link", "mean", "mean time that a packet waits before the bottleneck begins to "
           "send it, by Little's law", _sample(_queueing_delay), "less", "queueing delay"),
    Metric("packets_dropped_per_client", "packets", "run", "mean", "packets dropped at the queues, per client",
           _sample(_dropped_per_client), "less", table="links"),
    Metric("packet_losses", "packets", "run", "mean", "packets dropped at the queues or lost on the air",
           _sample(_losses), "less", table="links"),
    Metric("packets_withheld", "packets", "run", "mean", "copies that relays kept back, because the ones before them "
           "still waited in their queues", _withheld, "less", table="relays"),
)  # fmt: skip
