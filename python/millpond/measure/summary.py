"""One row for each population of clients: how many, how long they took, what they sent in vain."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from millpond.measure.measures import Measures
from millpond.measure.population import Population
from millpond.measure.statistics import t_interval

#: Statistics of the flow completion time that the summary holds.
FCT_STATISTICS = ("min", "p10", "p25", "median", "p75", "p90", "p95", "max", "mean")


def rows(measures: Measures) -> list[dict[str, Any]]:
    """The summary as plain rows: times in s, retransmissions per client, shares from 0 to 1."""
    return [_row(measures, population) for population in measures.populations()]


def table(measures: Measures) -> pa.Table:
    """The summary as an Arrow table."""
    return pa.Table.from_pylist(rows(measures))


def _row(measures: Measures, population: Population) -> dict[str, Any]:
    fct = measures.sample("fct", population)
    medians = t_interval(fct.per_run("median"))
    cell = measures.cell(population)
    row: dict[str, Any] = {
        "cell": cell.number,
        "algorithm": population.algorithm,
        "partner": population.partner,
        **{name: value for name, value in cell.columns.items() if name != "algorithm"},
        "replications": cell.replications,
        "n": fct.n,
        "unfinished": fct.missing,
    }
    for statistic in FCT_STATISTICS:
        row[f"fct_{statistic}_s"] = fct.take(statistic) if fct.n else None
    row["fct_median_ci95_low_s"], row["fct_median_ci95_high_s"] = medians or (None, None)
    for metric in ("retransmissions_per_client", "unnecessary_retx_per_client"):
        sample = measures.sample(metric, population)
        row[f"{metric}_median"] = sample.take("median")
        row[f"{metric}_mean"] = sample.take("mean")
    row["rtt_median_s"] = measures.sample("rtt", population).take("median") if fct.n else None
    row["packets_dropped_per_client"] = measures.sample("packets_dropped_per_client", population).take("mean")
    row["wasted_share"] = measures.sample("wasted_share", population).take("median")
    return row
