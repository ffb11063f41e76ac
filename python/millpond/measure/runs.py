"""Metrics of runs: one value for each, of all clients of a population together."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from millpond.measure import clients, statistics
from millpond.measure.clients import PerClient
from millpond.measure.estimate import AMOUNT, taken
from millpond.measure.metric import Compute, Metric
from millpond.measure.population import Population
from millpond.measure.sample import Sample
from millpond.measure.statistics import Floats

if TYPE_CHECKING:
    from millpond.measure.measures import Measures


def _column(name: str, scale: float = 1.0) -> PerClient:
    """A column of the table `runs`: of all clients of the run, whatever their group."""
    return lambda measures, population: measures.run_column(measures.cell(population), name).astype(np.float64) * scale


def _each(function: Callable[..., float], *values: PerClient) -> Compute:
    """A function of the values of a run's clients. A run has none where the function has none."""

    def compute(measures: Measures, population: Population) -> Floats:
        cell = measures.cell(population)
        runs, starts = np.unique(measures.flow_column(population, "run"), return_index=True)
        if not len(runs):  # no row of a client is kept of a fleet
            return np.empty(0)
        parts = zip(*(np.split(one(measures, population), starts[1:]) for one in values), strict=True)
        found = np.full(cell.replications, np.nan)
        found[runs.astype(np.int64) - cell.first_run] = [function(*part) for part in parts]
        return found

    return compute


def _complete(measures: Measures, population: Population) -> Floats:
    """1 for a client that is done and lost nothing, 0 for another, NaN where that was not kept."""
    failed = clients.column("requests_failed")(measures, population)
    done = np.isfinite(clients.column("done_us")(measures, population))
    return _of_asking(measures, population, failed, done & (failed == 0))


def _lost(measures: Measures, population: Population) -> Floats:
    failed = clients.column("requests_failed")(measures, population)
    return _of_asking(measures, population, failed, failed > 0)


def _unfinished(measures: Measures, population: Population) -> Floats:
    done = clients.column("done_us")(measures, population)
    return _of_asking(measures, population, clients.column("arrivals")(measures, population), np.isnan(done))


def _of_asking(measures: Measures, population: Population, known: Floats, values: NDArray[np.bool_]) -> Floats:
    """The values of clients that had something to ask; NaN for others, and where it was not kept."""
    arrivals, done = (clients.column(name)(measures, population) for name in ("arrivals", "done_us"))
    silent = np.isfinite(done) & (arrivals == 0)
    return np.where(np.isnan(known) | silent, np.nan, values.astype(np.float64))


def _mean(values: Floats) -> float:
    there = values[~np.isnan(values)]
    return float(np.mean(there)) if there.size else math.nan


def _of_all(some: Floats, every: Floats) -> float:
    """Of all requests of a run's clients together, so that clients with more of them count for more."""
    return float(np.sum(some)) / whole if (whole := float(np.sum(every))) > 0 else math.nan


def _carried_load(measures: Measures, population: Population) -> Sample:
    offered = population.column(OFFERED) or measures.cell(population).columns.get(OFFERED)
    delivered = measures.sample("packet_delivery_ratio", population)
    if not isinstance(offered, int | float):
        return Sample.none(delivered.n + delivered.missing)
    return replace(delivered, values=delivered.values * float(offered) * 1000)


def _last_starts_last(begun: Floats, took: Floats) -> float:
    ended = begun + took
    return float(np.argmax(begun) == np.argmax(ended)) if np.all(np.isfinite(ended)) else math.nan


def _share_taken(measures: Measures, population: Population) -> Sample:
    """Of what the neighbours get among their like, the share that they do not get beside these clients."""
    neighbours = population.but(algorithm=population.partner, partner=population.algorithm)
    alike = neighbours.but(partner="")
    runs = measures.cell(population).replications
    if not population.partner or not (measures.has(neighbours) and measures.has(alike)):
        return Sample.none(runs)
    # where workloads have no end nobody has a completion time, and all have had equally long
    got = "throughput" if measures.sample("throughput", alike).n else "answered"
    beside, among = (
        taken(measures.sample(got, those), "mean", measures.cell(those).origin).by_run for those in (neighbours, alike)
    )
    # by the number of the seed: a run of either in which nobody finished has no value, and shifts no other
    pairs = {seed: 1 - mine / among[seed] for seed, mine in beside.items() if among.get(seed, 0) > 0}
    seeds = np.array(list(pairs), dtype=np.int64)
    found = Sample.of(np.array(list(pairs.values())), seeds + measures.cell(population).origin)
    return Sample(found.values, found.runs, runs - found.n)


#: The factor that says what load all clients of a run offer together, in kbit/s.
OFFERED = "offered_kbps"

_FCT = clients.column("fct_us")
_ANSWERED = clients.either(clients.column("answered"), clients.column("completed"))

METRICS = (
    Metric("makespan", "s", "run", "mean", "first copy of any client sent to last answer of any accepted",
           _column("makespan_us", 1e-6), "less", "time until the last client finished"),
    Metric("unfinished", "flows", "run", "mean", "clients with more to ask, or a request open, when the run ended",
           _column("unfinished"), "less"),
    Metric("requests_answered", "1", "run", "mean", "of the requests of all clients of a run those that were answered",
           clients.ratio(_column("answered"), _column("arrivals")), "more", "requests of a run answered"),
    Metric("requests_delivered", "1", "run", "mean", "of a run's requests those that reached the far application",
           clients.ratio(_column("delivered"), _column("arrivals")), "more", "requests of a run delivered"),
    Metric("complete_clients", "1", "run", "mean",
           "of the clients that asked something those of which every request was answered",
           _each(_mean, _complete), "more", "clients complete", table="flows"),
    Metric("lost_clients", "1", "run", "mean", "of the clients that asked something those of which a request failed",
           _each(_mean, _lost), "less", "clients that lost a request", table="flows"),
    Metric("unfinished_clients", "1", "run", "mean",
           "of the clients that asked something those with more to ask, or a request open, when the run ended",
           _each(_mean, _unfinished), "less", "clients unfinished", table="flows"),
    Metric("fairness", "1", "run", "mean", "Jain's index of the requests answered per client",
           _each(statistics.jain, _ANSWERED), "more", "Jain's index of answered requests", table="flows"),
    Metric("goodput_fairness", "1", "run", "mean", "Jain's index of the clients' goodput; of those that finished",
           _each(lambda values: statistics.jain(values[np.isfinite(values)]),
                 clients.ratio(clients.column("body_bytes"), _FCT)), "more", "Jain's index of goodput",
           table="flows"),
    Metric("packet_delivery_ratio", "1", "run", "mean",
           "of all requests of a run those that reached the far application (CoCoA+, Betzler et al. 2015, section 4)",
           _each(_of_all, clients.column("delivered"), clients.column("arrivals")), "more",
           "requests delivered", table="flows"),
    Metric("carried_load", "bit/s", "run", "mean",
           "the same share of the load that the plan's factor offered_kbps says is offered", _carried_load, "more",
           table="flows"),
    Metric("share_taken_from_neighbours", "1", "run", "mean",
           "of what the other half of a mix gets where all clients are like it, the share that it does not get in the "
           "mix; below 0 if it gets more", _share_taken, "less", "share taken from neighbours", (-math.inf, 1.0),
           table="flows"),
    Metric("timeouts_per_run", "timeouts", "run", "mean", "expiries of the server's timer for all clients of a run",
           _each(lambda values: float(np.sum(values)), clients.column("timeouts")), "less", table="flows"),
    Metric("spread_in_run", "1", "run", "mean", "slowest less fastest client of a run, in medians of it",
           _each(statistics.spread, _FCT), "less", limits=AMOUNT, table="flows"),
    Metric("one_flow_faster", "1", "run", "mean", "runs whose fastest client is 15 % ahead of the next",
           _each(statistics.one_ahead, _FCT), table="flows"),
    Metric("one_flow_slower", "1", "run", "mean", "runs whose slowest client takes 15 % longer than the next",
           _each(statistics.one_behind, _FCT), table="flows"),
    Metric("alike_in_run", "1", "run", "mean", "runs whose slowest client takes at most 15 % longer than the fastest",
           _each(statistics.alike, _FCT), table="flows"),
    Metric("last_starts_last", "1", "run", "mean", "runs whose last client to start is the last to finish",
           _each(_last_starts_last, clients.column("first_send_us"), _FCT), table="flows"),
)  # fmt: skip
