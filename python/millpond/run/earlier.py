"""Runs that earlier results hold: a run is a function of scenario, seed, engine and code, so it need not run again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from millpond.errors import UsageError
from millpond.plan.program import Program
from millpond.results.directory import EARLIER, TRACES, Cell, Results
from millpond.results.provenance import engine_digest
from millpond.run.jobs import Done, Job

#: The tables that are made of the plan, not of runs.
_OF_PLAN = ("cells", "groups")
#: Columns of `runs` that say where a run stands in its plan.
_PLACES = ("cell", "replication")


def check(results: Results) -> None:
    """Raises `UsageError` with one line if another engine made these results: its runs may be others."""
    if results.manifest.get("engine") != engine_digest():
        raise UsageError(f"--reuse: {results.directory}: made by another build of millpond: its runs may be others")


def taken(program: Program, jobs: Sequence[Job], results: Results) -> Done:
    """The runs of the jobs that the results hold, with their rows as those of this program."""
    manifest = results.manifest
    code: Mapping[str, Any] = manifest.get("controllers", {})
    told = manifest["trace"]
    traced, same_trace = set(told["runs"]), _trace(program) == (set(told["tables"]), told["step_us"], told["flows"])
    there = set(results.table("runs").column("run").to_pylist())
    cells: dict[str, Cell] = {_key(cell): cell for cell in results.cells}
    found: dict[int, int] = {}
    for job in jobs:
        cell = cells.get(_key(job.planned.cell))
        if cell is None or not _same_code(program, code, cell):
            continue
        seeds = manifest["seeds"][cell.first_seed : cell.first_seed + cell.replications]
        run = cell.first_run + seeds.index(job.seed) if job.seed in seeds else -1
        if run in there and (not job.traced or (same_trace and run in traced)):
            found[job.run] = run
    files = [file.removesuffix(".parquet") for _, part in results.folders for file in part["files"]]
    names = [EARLIER.get(file, file) for file in files]
    wanted = [name for name in dict.fromkeys(names) if name not in (*_OF_PLAN, *program.dropped)]
    traces = {job.run for job in jobs if job.traced}
    tables = {}
    for name in wanted:
        mine = {run: old for run, old in found.items() if name not in TRACES or run in traces}
        rows = _renumbered(results.table(name), mine)
        if mine and (name not in TRACES or rows.num_rows):
            tables[name] = rows
    return Done(tuple(found), tables)


# ----------------------------------------------------------------------------------------------- helpers


def _key(cell: Cell) -> str:
    return json.dumps(cell.scenario, sort_keys=True)


def _trace(program: Program) -> tuple[set[str], int, int]:
    return set(program.trace.tables), program.trace.step_us, program.trace.flows


def _same_code(program: Program, code: Mapping[str, Any], cell: Cell) -> bool:
    text = _key(cell)
    return all(code.get(name) == files for name, files in program.code.items() if json.dumps(name) in text)


def _renumbered(table: pa.Table, runs: Mapping[int, int]) -> pa.Table:
    """The rows of these runs, by the numbers that they have now."""
    new, old = (np.array(numbers, np.int64) for numbers in (list(runs), list(runs.values())))
    order = np.argsort(old)
    column = table.column("run").to_numpy().astype(np.int64)
    place = np.minimum(np.searchsorted(old[order], column), max(0, len(old) - 1))
    is_there = old[order][place] == column if len(old) else np.zeros(len(column), bool)
    chosen = table.filter(pa.array(is_there))
    numbers = new[order][place[is_there]] if len(old) else np.empty(0, np.int64)
    position = table.column_names.index("run")
    chosen = chosen.set_column(position, table.schema.field("run"), pa.array(numbers, table.schema.field("run").type))
    return chosen.drop_columns([name for name in _PLACES if name in chosen.column_names])
