"""Results made by hand: tables of a few rows, so that a metric can be worked out on paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from millpond.results.directory import Results
from millpond.results.factor import Value

#: Columns of `flows` that every version has.
FLOW = {
    "group": 0, "fct_us": 1_000_000, "first_send_us": 0, "completed": 10, "retransmissions": 0, "unnecessary": 0,
    "body_bytes": 1000, "strong_samples": 10,
}  # fmt: skip
LINK = {
    "offered_packets": 100, "offered_bytes": 10_000, "dropped_queue_packets": 0, "dropped_queue_bytes": 0,
    "dropped_radio_packets": 0, "dropped_radio_bytes": 0, "delivered_bytes": 10_000, "useful_bytes": 10_000,
    "busy_us": 1_000_000, "queue_mean_bytes": 0.0, "queue_mean_packets": 0.1,
}  # fmt: skip
RUN = {"simulated_us": 10_000_000, "makespan_us": 1_000_000, "unfinished": 0}

Rows = Sequence[Mapping[str, Any]]


def results(
    cells: Sequence[tuple[Mapping[str, Value], Sequence[str]]],
    *,
    flows: Rows,
    links: Rows = ({"run": 0, "link": "air"},),
    runs: Rows | None = None,
    replications: int = 1,
    **further: Rows,
) -> Results:
    """Cells as their factors and the algorithms of their groups; rows with what differs from the usual ones."""
    manifest_cells = [
        {
            "number": number,
            "id": f"cell-{number}",
            "columns": {"algorithm": ";".join(algorithms), **factors},
            "groups": [{"index": i, "count": 1, "algorithm": name} for i, name in enumerate(algorithms)],
            "first_run": number * replications,
            "replications": replications,
            "scenario": {},
        }
        for number, (factors, algorithms) in enumerate(cells)
    ]
    usual_runs = [{"run": run} for run in range(len(cells) * replications)]
    tables = {
        "flows": [{**FLOW, **row} for row in flows],
        "links": [{**LINK, **row} for row in links],
        "runs": [{**RUN, **row} for row in (runs or usual_runs)],
        "histogram": [],
        **further,
    }
    made = Results(Path("by hand"), {"cells": manifest_cells, "files": {f"{name}.parquet": {} for name in tables},
                                     "kind": "study", "name": "hand", "replications": replications})  # fmt: skip
    made._tables.update({name: pa.Table.from_pylist(list(rows)) for name, rows in tables.items()})
    return made
