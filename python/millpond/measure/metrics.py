"""The metrics that studies print: their names, units, and how each follows from the tables.

Nothing here walks over rows in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from millpond.measure import statistics
from millpond.measure.evidence import KINDS
from millpond.measure.population import Population
from millpond.measure.sample import Sample
from millpond.measure.statistics import Floats
from millpond.results.directory import Cell

if TYPE_CHECKING:
    from millpond.measure.measures import Measures


@dataclass(frozen=True)
class Metric:
    """What a metric is called, its base unit, and the statistic meant when a statement names none."""

    name: str
    unit: str
    usual: str
    summary: str


METRICS: dict[str, Metric] = {
    m.name: m
    for m in (
        Metric("fct", "s", "median", "flow completion time: first copy sent to last answer accepted"),
        Metric("throughput", "1/s", "median", "answered exchanges of a client a second, over its completion time"),
        Metric("makespan", "s", "median", "first copy of any client sent to last answer of any accepted"),
        Metric("fct_spread", "s", "max-min", "spread of the flow completion times"),
        Metric("fct_increase_vs_1_client", "s", "max", "flow completion time less the median of one client"),
        Metric("rtt", "s", "median", "first copy sent to answer accepted, mean over a client's exchanges"),
        Metric("rtt_true", "s", "median", "the answered copy sent to answer accepted, mean over exchanges"),
        Metric("rtt_strong", "s", "median", "as rtt, over exchanges of a single copy only"),
        Metric("rto", "s", "median", "wait after an exchange's first copy, mean over a client's exchanges"),
        Metric("retransmissions_per_client", "retransmissions", "median", "copies sent beyond the first"),
        Metric("retx_per_exchange", "retransmissions", "median", "the same per completed exchange"),
        Metric("unnecessary_retx_per_client", "retransmissions", "median", "copies after one whose answer arrives"),
        Metric("unnecessary_retx_per_exchange", "retransmissions", "median", "the same per completed exchange"),
        Metric("share_of_exchanges_without_retx", "1", "mean", "exchanges that took one copy"),
        Metric("necessary_retx_per_client", "retransmissions", "median", "retransmissions that were needed"),
        Metric("unnecessary_share_of_retransmissions", "1", "median", "of a client's retransmissions"),
        Metric("packets_dropped_per_client", "packets", "mean", "packets dropped at the queues, per client"),
        Metric("packet_losses", "packets", "mean", "packets dropped at the queues or lost on the air"),
        Metric("loss_rate", "1", "mean", "packets that found the downlink's queue full, of all offered to it"),
        Metric("utilisation", "1", "mean", "share of the time that the downlink is busy"),
        Metric("queue", "bytes", "mean", "time-weighted mean of the downlink queue"),
        Metric("link_capacity_wasted_on_unnecessary_retx", "1", "median", "downlink bytes that complete no exchange"),
        Metric("unfinished", "flows", "mean", "flows that did not finish"),
        Metric("goodput", "bit/s", "median", "application payload received over the completion time"),
        Metric("connections", "connections", "mean", "TCP connections that a client opened"),
        Metric("segments_sent", "segments", "median", "data segments sent to a client, repeated ones included"),
        Metric("retransmitted_segments", "segments", "median", "data segments sent to a client once more"),
        Metric("needless_segments", "segments", "median", "data segments that a client had already"),
        Metric("lost_segments", "segments", "median", "packets to a client that a full queue or the radio dropped"),
        Metric("timeouts", "timeouts", "median", "expiries of the server's retransmission timer, per client"),
        Metric("timeouts_per_run", "timeouts", "median", "the same of all clients of a run"),
        Metric("longest_rto", "s", "median", "longest retransmission timeout that the server armed for a client"),
        Metric("first_timeout", "s", "median", "from a client's request to the first such expiry"),
        Metric("spread_in_run", "1", "median", "slowest less fastest client of a run, in medians of it"),
        Metric("one_flow_faster", "1", "mean", "runs whose fastest client is 15 % ahead of the next"),
        Metric("one_flow_slower", "1", "mean", "runs whose slowest client takes 15 % longer than the next"),
        Metric("alike_in_run", "1", "mean", "runs whose slowest client takes at most 15 % longer than the fastest"),
        Metric("last_starts_last", "1", "mean", "runs whose last client to start is the last to finish"),
        Metric("names_last_rightly", "1", "mean", "replies after a retransmission that rightly name the last copy"),
        Metric("names_last_wrongly", "1", "mean", "the same that wrongly do so"),
        Metric("names_earlier_rightly", "1", "mean", "the same that rightly name an earlier copy"),
        Metric("names_earlier_wrongly", "1", "mean", "the same that wrongly do so"),
        Metric("naming_error", "round trips", "mean", "by how much those that name a wrong copy are mistaken"),
        Metric("rto_in_rtts", "round trips", "median", "first wait over true round-trip time, means over exchanges"),
    )
}  # fmt: skip

#: Other names for the same metrics.
ALIASES = {
    "wasted_share": "link_capacity_wasted_on_unnecessary_retx",
    "rtt_first": "rtt",
    "first_attempt_success": "share_of_exchanges_without_retx",
}

#: The direction in which a metric of these is better.
SMALLER_IS_BETTER = {
    "fct", "makespan", "rtt", "rtt_true", "retransmissions_per_client", "retx_per_exchange",
    "unnecessary_retx_per_client", "unnecessary_retx_per_exchange", "packets_dropped_per_client", "packet_losses",
    "queue", "link_capacity_wasted_on_unnecessary_retx", "fct_spread",
}  # fmt: skip
LARGER_IS_BETTER = {"throughput", "share_of_exchanges_without_retx"}

#: How many of a unit make the base unit of a metric.
UNITS: dict[str, dict[str, float]] = {
    "s": {"s": 1.0, "ms": 1e3, "us": 1e6, "min": 1 / 60},
    "1": {"": 1.0, "1": 1.0, "percent": 100.0, "percent of runs": 100.0, "fraction": 1.0, "runs": 1.0},
    "bytes": {"bytes": 1.0, "kB": 1e-3},
}


def factor(metric: Metric, unit: str) -> float | None:
    """What a value in the metric's base unit is multiplied by to be in `unit`; None if it cannot be."""
    if unit in ("", metric.unit):
        return 1.0
    table = UNITS.get(metric.unit)
    if table is not None:
        return table.get(unit)
    # counts: 'retransmissions', 'packets', 'retransmissions per client' and the like are all plain numbers
    return None if unit in ("s", "ms", "percent") else 1.0


# ----------------------------------------------------------------------------------------------- per metric


Compute: TypeAlias = "Callable[[Measures, Population], Sample]"


def _flows(column: Callable[[Measures, Population], NDArray[np.generic]], scale: float = 1.0) -> Compute:
    def compute(measures: Measures, population: Population) -> Sample:
        values = column(measures, population).astype(np.float64) * scale
        runs = measures.flow_column(population, "run").astype(np.int64)
        there = np.isfinite(values)
        return Sample(values[there], runs[there], int(np.count_nonzero(~there)))

    return compute


def _plain(column: str) -> Callable[[Measures, Population], NDArray[np.generic]]:
    return lambda measures, population: measures.flow_column(population, column)


def _throughput(measures: Measures, population: Population) -> Floats:
    completed = measures.flow_column(population, "completed").astype(np.float64)
    lasted = measures.flow_column(population, "fct_us").astype(np.float64) * 1e-6
    rate: Floats = np.divide(completed, lasted, out=np.full(len(lasted), np.nan), where=lasted > 0)
    return rate


def _per_exchange(column: str) -> Callable[[Measures, Population], NDArray[np.generic]]:
    def ratio(measures: Measures, population: Population) -> Floats:
        top = measures.flow_column(population, column).astype(np.float64)
        completed = measures.flow_column(population, "completed").astype(np.float64)
        share: Floats = np.divide(top, completed, out=np.full(len(top), np.nan), where=completed > 0)
        return share

    return ratio


def _runs(values: Callable[[Measures, Cell], Floats]) -> Compute:
    def compute(measures: Measures, population: Population) -> Sample:
        cell = measures.cell(population)
        return Sample(values(measures, cell), measures.run_column(cell, "run").astype(np.int64))

    return compute


def _dropped(measures: Measures, cell: Cell, columns: Sequence[str]) -> Floats:
    parts = [measures.link_column(cell, column, link) for link in measures.links() for column in columns]
    total: Floats = np.sum(parts, axis=0)
    return total


def _lost(measures: Measures, cell: Cell) -> Floats:
    return _dropped(measures, cell, ("dropped_queue_packets", "dropped_radio_packets"))


def _dropped_per_client(measures: Measures, cell: Cell) -> Floats:
    return _dropped(measures, cell, ("dropped_queue_packets",)) / float(sum(g.count for g in cell.groups))


def _wasted(measures: Measures, cell: Cell) -> Floats:
    useful = measures.link_column(cell, "useful_bytes", "downlink")
    carried = measures.link_column(cell, "delivered_bytes", "downlink") + measures.link_column(
        cell, "dropped_radio_bytes", "downlink"
    )
    return 1.0 - np.divide(useful, carried, out=np.zeros(len(useful)), where=carried > 0)


def _loss_rate(measures: Measures, cell: Cell) -> Floats:
    dropped = measures.link_column(cell, "dropped_queue_packets", "downlink")
    offered = measures.link_column(cell, "offered_packets", "downlink")
    return np.divide(dropped, offered, out=np.zeros(len(dropped)), where=offered > 0)


def _utilisation(measures: Measures, cell: Cell) -> Floats:
    busy = measures.link_column(cell, "busy_us", "downlink")
    lasted = measures.run_column(cell, "simulated_us").astype(np.float64)
    return np.divide(busy, lasted, out=np.zeros(len(busy)), where=lasted > 0)


def _necessary(measures: Measures, population: Population) -> Floats:
    all_of_them = measures.flow_column(population, "retransmissions").astype(np.float64)
    needed: Floats = all_of_them - measures.flow_column(population, "unnecessary").astype(np.float64)
    return needed


def _unnecessary_share(measures: Measures, population: Population) -> Floats:
    top = measures.flow_column(population, "unnecessary").astype(np.float64)
    bottom = measures.flow_column(population, "retransmissions").astype(np.float64)
    share: Floats = np.divide(top, bottom, out=np.full(len(top), np.nan), where=bottom > 0)
    return share


def _rto_in_rtts(measures: Measures, population: Population) -> Floats:
    wait = measures.flow_column(population, "first_wait_mean_us").astype(np.float64)
    rtt = measures.flow_column(population, "rtt_true_mean_us").astype(np.float64)
    ratio: Floats = np.divide(wait, rtt, out=np.full(len(wait), np.nan), where=rtt > 0)
    return ratio


def _named(metric: str) -> Compute:
    return lambda measures, population: measures.named(metric, population)


def _sum(*columns: str) -> Callable[[Measures, Population], NDArray[np.generic]]:
    def total(measures: Measures, population: Population) -> Floats:
        added: Floats = np.sum([measures.flow_column(population, name).astype(np.float64) for name in columns], axis=0)
        return added

    return total


def _either(one: str, other: str) -> Callable[[Measures, Population], NDArray[np.generic]]:
    """A column, or where it has no value another one."""

    def chosen(measures: Measures, population: Population) -> Floats:
        first = measures.flow_column(population, one).astype(np.float64)
        second = measures.flow_column(population, other).astype(np.float64)
        return np.where(np.isnan(first), second, first)

    return chosen


def _goodput(measures: Measures, population: Population) -> Floats:
    bits = 8 * measures.flow_column(population, "body_bytes").astype(np.float64)
    lasted = measures.flow_column(population, "fct_us").astype(np.float64) * 1e-6
    rate: Floats = np.divide(bits, lasted, out=np.full(len(lasted), np.nan), where=lasted > 0)
    return rate


def _each_run(column: str, function: Callable[[Floats], float], scale: float = 1.0) -> Compute:
    """One value for each run: a function of its clients' values. A run with an unfinished client has none."""

    def compute(measures: Measures, population: Population) -> Sample:
        values = measures.flow_column(population, column).astype(np.float64) * scale
        runs = measures.flow_column(population, "run").astype(np.int64)
        names, starts = np.unique(runs, return_index=True)
        found = np.array([function(part) for part in np.split(values, starts[1:])])
        there = np.isfinite(found)
        return Sample(found[there], names[there], int(np.count_nonzero(~there)))

    return compute


def _retransmissions(measures: Measures, population: Population) -> Floats:
    """Of either transport: copies of a message, or segments sent again by client and server."""
    ends = ("fast_retransmits", "timeout_retransmits", "request_retransmits")
    segments = _sum(*ends)(measures, population)
    messages = measures.flow_column(population, "retransmissions").astype(np.float64)
    return np.where(np.isnan(segments), messages, segments)


def _last_starts_last(measures: Measures, population: Population) -> Sample:
    begun = measures.flow_column(population, "first_send_us").astype(np.float64)
    ended = begun + measures.flow_column(population, "fct_us").astype(np.float64)
    runs = measures.flow_column(population, "run").astype(np.int64)
    names, starts = np.unique(runs, return_index=True)
    pairs = zip(np.split(begun, starts[1:]), np.split(ended, starts[1:]), strict=True)
    found = np.array([float(np.argmax(b) == np.argmax(e)) if np.all(np.isfinite(e)) else np.nan for b, e in pairs])
    there = np.isfinite(found)
    return Sample(found[there], names[there], int(np.count_nonzero(~there)))


def _queue(measures: Measures, cell: Cell) -> Floats:
    return measures.link_column(cell, "queue_mean_bytes", "downlink")


def _increase(measures: Measures, population: Population) -> Sample:
    alone = measures.sample("fct", population.but(clients=1, partner=""))
    mine = measures.sample("fct", population)
    return replace(mine, values=mine.values - alone.take("median"))


FUNCTIONS: dict[str, Compute] = {
    "fct": _flows(_plain("fct_us"), 1e-6),
    "fct_spread": _flows(_plain("fct_us"), 1e-6),
    "throughput": _flows(_throughput),
    "rto": _flows(_plain("first_wait_mean_us"), 1e-6),
    "fct_increase_vs_1_client": _increase,
    "rtt": _flows(_plain("rtt_first_mean_us"), 1e-6),
    "rtt_true": _flows(_plain("rtt_true_mean_us"), 1e-6),
    "rtt_strong": _flows(_plain("rtt_strong_mean_us"), 1e-6),
    "retransmissions_per_client": _flows(_retransmissions),
    "retx_per_exchange": _flows(_per_exchange("retransmissions")),
    "unnecessary_retx_per_client": _flows(_either("spurious", "unnecessary")),
    "unnecessary_retx_per_exchange": _flows(_per_exchange("unnecessary")),
    "necessary_retx_per_client": _flows(_necessary),
    "unnecessary_share_of_retransmissions": _flows(_unnecessary_share),
    "share_of_exchanges_without_retx": _flows(_per_exchange("strong_samples")),
    "makespan": _runs(lambda measures, cell: measures.run_column(cell, "makespan_us").astype(np.float64) * 1e-6),
    "packets_dropped_per_client": _runs(_dropped_per_client),
    "packet_losses": _runs(_lost),
    "loss_rate": _runs(_loss_rate),
    "utilisation": _runs(_utilisation),
    "queue": _runs(_queue),
    "link_capacity_wasted_on_unnecessary_retx": _runs(_wasted),
    "unfinished": _runs(lambda measures, cell: measures.run_column(cell, "unfinished").astype(np.float64)),
    "rto_in_rtts": _flows(_rto_in_rtts),
    "goodput": _flows(_goodput),
    "connections": _flows(_plain("connections")),
    "segments_sent": _flows(_plain("segments")),
    "retransmitted_segments": _flows(_sum("fast_retransmits", "timeout_retransmits")),
    "needless_segments": _flows(_plain("spurious")),
    "lost_segments": _flows(_sum("dropped_queue", "dropped_radio")),
    "timeouts": _flows(_plain("timeouts")),
    "timeouts_per_run": _each_run("timeouts", lambda values: float(np.sum(values))),
    "longest_rto": _flows(_plain("longest_rto_us"), 1e-6),
    "first_timeout": _flows(_plain("first_timeout_us"), 1e-6),
    "spread_in_run": _each_run("fct_us", statistics.spread),
    "one_flow_faster": _each_run("fct_us", statistics.one_ahead),
    "one_flow_slower": _each_run("fct_us", statistics.one_behind),
    "alike_in_run": _each_run("fct_us", statistics.alike),
    "last_starts_last": _last_starts_last,
    **{metric: _named(metric) for metric in (*KINDS, "naming_error")},
}
