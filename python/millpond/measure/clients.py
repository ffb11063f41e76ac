"""Metrics of clients: one value for each, from the table `flows`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from millpond.measure import statistics
from millpond.measure.estimate import ANYTHING
from millpond.measure.metric import Metric
from millpond.measure.population import Population
from millpond.measure.sample import Sample
from millpond.measure.statistics import Floats

if TYPE_CHECKING:
    from millpond.measure.measures import Measures

#: A value for each client of a population, NaN where there is none.
PerClient: TypeAlias = "Callable[[Measures, Population], Floats]"

_MICRO = 1e-6


def column(name: str, scale: float = 1.0) -> PerClient:
    """A column of the table."""
    return lambda measures, population: measures.flow_column(population, name).astype(np.float64) * scale


def ratio(top: PerClient, bottom: PerClient) -> PerClient:
    """One over the other; nothing where the other is not above zero."""
    return lambda measures, population: statistics.ratio(top(measures, population), bottom(measures, population))


def total(*names: str) -> PerClient:
    """The sum of columns."""

    def added(measures: Measures, population: Population) -> Floats:
        values: Floats = np.sum([column(name)(measures, population) for name in names], axis=0)
        return values

    return added


def either(one: PerClient, other: PerClient) -> PerClient:
    """One value, or where there is none the other."""

    def chosen(measures: Measures, population: Population) -> Floats:
        first = one(measures, population)
        return np.where(np.isnan(first), other(measures, population), first)

    return chosen


def _first_copies(measures: Measures, population: Population) -> Floats:
    return column("transmissions")(measures, population) - column("retransmissions")(measures, population)


def _goodput(measures: Measures, population: Population) -> Floats:
    return 8 * ratio(column("body_bytes"), _FCT)(measures, population)


def _of_complete(measures: Measures, population: Population) -> Floats:
    failed = column("requests_failed")(measures, population) > 0
    return np.where(failed, np.nan, _FCT(measures, population))


def _increase(measures: Measures, population: Population) -> Sample:
    alone = measures.estimate("fct", population.but(clients=1, partner="")).value
    mine = measures.sample("fct", population)
    return replace(mine, values=mine.values - alone)


_FCT = column("fct_us", _MICRO)
_COMPLETED = column("completed")


def _of_either(name: str, *over_tcp: str) -> PerClient:
    """A column that counts copies of messages, and over TCP those that count the same of segments, both ways."""
    return either(total(*over_tcp), column(name))


_RETRANSMISSIONS = _of_either("retransmissions", "fast_retransmits", "timeout_retransmits", "request_retransmits")
_UNNECESSARY = _of_either("unnecessary", "spurious")


def _necessary(measures: Measures, population: Population) -> Floats:
    return _RETRANSMISSIONS(measures, population) - _UNNECESSARY(measures, population)


def _metric(
    name: str, unit: str, usual: str, summary: str, values: PerClient, better: str = "", label: str = ""
) -> Metric:
    return Metric(name, unit, "client", usual, summary, values, better, label)  # type: ignore[arg-type]


METRICS = (
    _metric("fct", "s", "median", "flow completion time: first copy sent to last answer accepted", _FCT, "less",
            "flow completion time"),
    _metric("fct_spread", "s", "max-min", "spread of the flow completion times", _FCT, "less",
            "spread of flow completion times"),
    _metric("fct_of_complete", "s", "median", "the same of a client of which no request failed; others have none",
            _of_complete, "less", "completion time of clients that lost nothing"),
    Metric("fct_increase_vs_1_client", "s", "client", "max", "flow completion time less the median of one client",
           _increase, "less", "longer than one client by", ANYTHING),
    _metric("done", "s", "median", "start of the run to the end of a client's last request, answered or not",
            column("done_us", _MICRO), "less", "time until done"),
    _metric("throughput", "1/s", "median", "answered exchanges of a client a second, over its completion time",
            ratio(_COMPLETED, _FCT), "more", "answered exchanges a second"),
    _metric("goodput", "bit/s", "median", "application payload received over the completion time", _goodput, "more"),
    _metric("delivery_ratio", "1", "mean", "of a client's requests those that reached the far application",
            ratio(column("delivered"), column("arrivals")), "more", "delivery ratio"),
    _metric("answered_share", "1", "mean", "of a client's requests those that were answered",
            ratio(column("answered"), column("arrivals")), "more", "requests answered"),
    _metric("failed_share", "1", "mean", "of a client's requests those given up, or refused by its own full queue",
            ratio(column("requests_failed"), column("arrivals")), "less", "requests failed"),
    _metric("never_finished_share", "1", "mean", "of a client's requests those open when the run ended",
            ratio(column("never_finished"), column("arrivals")), "less", "requests never finished"),
    _metric("first_copies", "messages", "mean", "messages that a client sent, each counted once",
            _first_copies, "", "messages sent per client"),
    _metric("delivered", "requests", "mean", "requests of a client that reached the far application",
            column("delivered"), "more", "requests delivered per client"),
    _metric("completed", "exchanges", "mean", "exchanges of a client that were answered", _COMPLETED, "more",
            "exchanges completed per client"),
    _metric("answered", "requests", "mean", "requests of a client that were answered", column("answered"), "more",
            "requests answered per client"),
    _metric("failed", "requests", "mean", "requests of a client that failed", column("requests_failed"), "less",
            "failed requests per client"),
    _metric("never_finished", "requests", "mean", "requests of a client that were open when the run ended",
            column("never_finished"), "less", "requests never finished per client"),
    _metric("rtt", "s", "median", "first copy sent to answer accepted, mean over a client's exchanges",
            column("rtt_first_mean_us", _MICRO), "less", "round-trip time"),
    _metric("rtt_true", "s", "median", "the answered copy sent to answer accepted, mean over exchanges",
            column("rtt_true_mean_us", _MICRO), "less", "true round-trip time"),
    _metric("rtt_strong", "s", "median", "as rtt, over exchanges of a single copy only",
            column("rtt_strong_mean_us", _MICRO), "", "round-trip time of a single copy"),
    _metric("rto", "s", "median", "wait after an exchange's first copy, mean over a client's exchanges",
            column("first_wait_mean_us", _MICRO), "", "first wait"),
    _metric("rto_in_rtts", "round trips", "median", "first wait over true round-trip time, means over exchanges",
            ratio(column("first_wait_mean_us"), column("rtt_true_mean_us")), "", "first wait in round trips"),
    _metric("retransmissions_per_client", "retransmissions", "median", "transmissions beyond the first",
            _RETRANSMISSIONS, "less"),
    _metric("retx_per_exchange", "retransmissions", "median", "the same per completed exchange",
            ratio(_RETRANSMISSIONS, _COMPLETED), "less", "retransmissions per exchange"),
    _metric("unnecessary_retx_per_client", "retransmissions", "median", "copies after one whose answer arrives",
            _UNNECESSARY, "less", "unnecessary retransmissions per client"),
    _metric("unnecessary_retx_per_exchange", "retransmissions", "median", "the same per completed exchange",
            ratio(_UNNECESSARY, _COMPLETED), "less", "unnecessary retransmissions per exchange"),
    _metric("necessary_retx_per_client", "retransmissions", "median", "retransmissions that were needed", _necessary,
            "", "necessary retransmissions per client"),
    _metric("unnecessary_share_of_retransmissions", "1", "median", "of a client's retransmissions",
            ratio(_UNNECESSARY, _RETRANSMISSIONS), "less"),
    _metric("share_of_exchanges_without_retx", "1", "mean", "exchanges that took one copy",
            ratio(column("strong_samples"), _COMPLETED), "more", "share of exchanges without retransmission"),
    _metric("connections", "connections", "mean", "TCP connections that a client opened", column("connections")),
    _metric("segments_sent", "segments", "median", "data segments sent to a client, repeated ones included",
            column("segments")),
    _metric("retransmitted_segments", "segments", "median", "data segments sent to a client once more",
            total("fast_retransmits", "timeout_retransmits"), "less"),
    _metric("needless_segments", "segments", "median", "data segments that a client had already", column("spurious"),
            "less"),
    _metric("lost_segments", "segments", "median", "packets to a client that a full queue or the radio dropped",
            total("dropped_queue", "dropped_radio"), "less"),
    _metric("timeouts", "timeouts", "median", "expiries of the server's retransmission timer, per client",
            column("timeouts"), "less"),
    _metric("longest_rto", "s", "median", "longest retransmission timeout that the server armed for a client",
            column("longest_rto_us", _MICRO), "", "longest retransmission timeout"),
    _metric("first_timeout", "s", "median", "from a client's request to the first such expiry",
            column("first_timeout_us", _MICRO)),
)  # fmt: skip
