"""What it takes to read results of twenty million clients: the summary, and the whole report, with peak memory.

The results are made up: one run of each of two controllers, kept again and again under other numbers with other
completion times. By hand: `python crates/py/benches/large_results.py [ROWS]` (some GB of disk, some minutes).
Figures of one machine at one time: see docs/reports/benchmarks.md.
"""

from __future__ import annotations

import copy
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

import millpond
from millpond.results.directory import Cell
from millpond.results.store import write_json, write_pieces
from millpond.run.campaign import cells_table, groups_table

CLIENTS, LOADS = 400, 125
#: So many rows of a run's distributions are kept: their number grows with runs, not with clients.
BINS = 10

PLAN: dict[str, Any] = {
    "name": "large",
    "title": "Made up, as large as results of twenty million clients",
    "matrix": {"load": [1], "algorithm": ["rfc7252", "cocoa-03"]},
    "vary": {"load": {"places": ["clients[0].exchanges"]}},
    "scenario": {
        "path": {link: {"rate": "1 Mbit/s", "delay": "100 ms", "queue": "20 kB"} for link in ("uplink", "downlink")},
        "clients": [{"controller": "rfc7252", "count": CLIENTS, "exchanges": 2}],
    },
}

MEASURED = """
import resource, sys, time
from millpond import api
began, place, what = time.perf_counter(), sys.argv[1], sys.argv[2]
done = api.open_results(place)
told = done.summary.num_rows if what == "summary" else api.redraw(done)
print(time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def made(place: Path, rows: int) -> None:
    """A results directory with so many rows of clients."""
    replications = rows // (CLIENTS * LOADS * 2)
    small = millpond.sweep(PLAN, out=place / "small", report=False).results
    cells = []
    for number in range(2 * LOADS):
        like = small.cells[number % 2].to_json()
        load = number // 2 + 1
        changed = {"number": number, "id": f"{like['id']}-{load}", "first_run": number * replications,
                   "replications": replications, "columns": {**like["columns"], "load": load}}  # fmt: skip
        cells.append(Cell.from_json({**like, **changed}))
    large = place / "large"
    large.mkdir()
    manifest = copy.deepcopy(dict(small.manifest))
    files = {}
    tables = {"cells": cells_table(cells), "groups": groups_table(cells, manifest["labels"])}
    for name in (file.removesuffix(".parquet") for file in manifest["files"]):
        pieces = iter([tables[name]]) if name in tables else _pieces(small.table(name), name, cells)
        count, size, _ = write_pieces(large / f"{name}.parquet", pieces)
        files[f"{name}.parquet"] = {"rows": count, "bytes": size, "sha256": ""}
    runs = len(cells) * replications
    told = {"files": files, "cells": [cell.to_json() for cell in cells], "runs": runs, "runs_done": runs,
            "replications": replications, "seeds": list(range(replications))}  # fmt: skip
    write_json(large / "manifest.json", {**manifest, **told})


def _pieces(table: pa.Table, name: str, cells: list[Cell]) -> Iterator[pa.Table]:
    chance = np.random.default_rng(1)
    for cell in cells:
        one = table.filter(pa.compute.equal(table.column("run"), cell.number % 2))
        one = one.slice(0, BINS) if name in ("delays", "reported") else one
        many = pa.concat_tables([one] * cell.replications).combine_chunks()
        runs = np.repeat(np.arange(cell.first_run, cell.first_run + cell.replications), one.num_rows)
        changed: dict[str, Any] = {"run": pa.array(runs, table.schema.field("run").type)}
        if name == "flows":
            longer = many.column("fct_us").to_numpy() + chance.integers(0, 10_000_000, many.num_rows)
            changed["fct_us"] = pa.array(longer.astype(np.int64), table.schema.field("fct_us").type)
        if name == "runs":
            changed["cell"] = pa.array(np.full(many.num_rows, cell.number), pa.uint32())
            changed["replication"] = pa.array(np.arange(many.num_rows), pa.uint32())
        for column, values in changed.items():
            many = many.set_column(many.schema.get_field_index(column), many.schema.field(column), values)
        yield many


def main(rows: int) -> None:
    """Three lines: what there is, and what reading it takes."""
    with tempfile.TemporaryDirectory() as folder:
        made(Path(folder), rows)
        large = Path(folder) / "large"
        size = sum(file.stat().st_size for file in large.iterdir())
        print(f"{pq.read_metadata(large / 'flows.parquet').num_rows:,} rows of clients, {size / 1e6:.0f} MB in files")
        for what in ("summary", "report"):
            done = subprocess.run(
                [sys.executable, "-c", MEASURED, str(large), what], check=True, capture_output=True, text=True
            )
            seconds, peak = map(float, done.stdout.split())
            print(f"{what:8} {seconds:6.1f} s, {peak:.0f} MiB at the peak")


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 20_000_000)
    print(json.dumps({"clients of a run": CLIENTS, "settings": 2 * LOADS}))
