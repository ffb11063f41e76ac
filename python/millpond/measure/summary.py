"""One row for each population of clients: who got what it asked for, how long that took, what was useless."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa

from millpond.measure.frame import as_array
from millpond.measure.measures import Measures
from millpond.measure.population import Population

#: Statistics of the flow completion time that the summary holds: each of the runs, and its mean over them.
FCT_STATISTICS = ("min", "p10", "p25", "median", "p75", "p90", "p95", "max", "mean")
#: What became of requests and clients, as shares, and when how much was done: by their usual statistics.
USUAL = (
    "complete_clients", "lost_clients", "unfinished_clients", "delivery_ratio", "answered_share", "failed_share",
    "never_finished_share", "clients_done_50", "clients_done_90", "clients_done_99", "clients_done_100", "fairness",
    "utilisation", "queueing_delay",
)  # fmt: skip

#: What became of the requests, as counts.
REQUESTS = ("arrivals", "answered", "failed", "never_finished", "delivered")


def rows(measures: Measures) -> list[dict[str, Any]]:
    """The summary as plain rows: times in s, counts per client, shares from 0 to 1; None for what is unknown."""
    return [_row(measures, population) for population in measures.populations()]


def table(measures: Measures) -> pa.Table:
    """The summary as an Arrow table."""
    found = rows(measures)
    return pa.table({name: as_array([row[name] for row in found]) for name in (found[0] if found else ())})


def _row(measures: Measures, population: Population) -> dict[str, Any]:
    fct = measures.sample("fct", population)
    cell = measures.cell(population)
    # a client may have ended without a completion time: its last request failed, or its workload has no end
    told = measures.reported.outcome(cell, measures.group(population)) if measures.results.has("flows") else None
    row: dict[str, Any] = {
        "cell": cell.number,
        "algorithm": population.algorithm,
        "partner": population.partner,
        **dict(population.factors),
        "replications": cell.replications,
        "n": fct.n,
        "clients_of_all_runs": None if told is None else told.clients,
        "unfinished": fct.missing if told is None else told.unfinished,
        # requests of all runs together; each ends in one of the three ways
        **{name: None if told is None else getattr(told, name) for name in REQUESTS},
    }
    for statistic in FCT_STATISTICS:
        row[f"fct_{statistic}_s"] = measures.estimate("fct", population, statistic).value if fct.n else None
    # the share of the clients that these times speak of
    row["fct_covers"] = fct.covered if fct.n + fct.missing else None
    median = measures.estimate("fct", population, "median")
    row["fct_median_ci95_low_s"], row["fct_median_ci95_high_s"] = median.low, median.high
    for metric in ("retransmissions_per_client", "unnecessary_retx_per_client"):
        for statistic in ("median", "mean"):
            row[f"{metric}_{statistic}"] = measures.estimate(metric, population, statistic).value
    row["rtt_median_s"] = measures.estimate("rtt", population, "median").value if fct.n else None
    for metric in ("packets_dropped_per_client", "wasted_share"):
        row[metric] = measures.estimate(metric, population).value
    for metric in USUAL:
        value = measures.estimate(metric, population).value
        row[metric] = None if math.isnan(value) else value
    return row
