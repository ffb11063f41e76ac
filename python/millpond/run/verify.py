"""Whether results are still what they were: their tables by digest, and some of their runs by running them again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from millpond import _engine
from millpond.controllers.own import OwnControllers
from millpond.errors import MillpondError, UsageError
from millpond.plan import scenario as scenarios
from millpond.plan.plan import Trace
from millpond.results.directory import Cell, Results, check_whole, read_table
from millpond.results.provenance import digest
from millpond.results.store import joined
from millpond.run import possible
from millpond.run.jobs import Here, finished

#: Runs that are run again unless asked for others.
SAMPLE = 3


def tables_unchanged(directory: Path, manifest: Mapping[str, Any]) -> int:
    """Compares every table with the digest that was kept of it; gives how many there are.

    Raises:
        MillpondError: one line, if one is missing or another.
    """
    check_whole(directory, manifest)
    for name, told in manifest["files"].items():
        if digest(directory / name) != told["sha256"]:
            raise MillpondError(f"{directory / name}: changed since it was written: run the study again")
    return len(manifest["files"])


def runs_again(directory: Path, manifest: Mapping[str, Any], sample: int = SAMPLE, run_code: bool = False) -> list[int]:
    """Runs some runs of a directory again, evenly spread, and compares every row; gives their numbers.

    Controllers that came with the results are executed only with `run_code`, from the results folder and after their
    digests were compared.

    Raises:
        MillpondError: one line, if this program is another version, or a run gave other rows.
        UsageError: if `sample` makes no sense, or code would have to be executed.
    """
    if sample < 0:
        raise UsageError(f"--runs: {sample} makes no sense here: at least 0")
    if manifest["version"] != _engine.version():
        raise MillpondError(
            f"{directory}: results of version {manifest['version']}, this is {_engine.version()}: their runs cannot be "
            "compared: verify with that version"
        )
    results = Results.of(directory, manifest)
    if sample:
        possible.refuse_alone(results.cells, str(manifest["kind"]), "--runs: write 0")
    own = OwnControllers.of_results(directory, manifest["controllers"], run_code)
    there = results.table("runs").column("run").to_pylist()
    chosen = sorted({there[number * len(there) // sample] for number in range(sample)}) if sample else []
    for run in chosen:
        cell = next(c for c in results.cells if c.first_run <= run < c.first_run + c.replications)
        for name, table in _tables(results, cell, run, own).items():
            if not results.has(name):
                continue
            unknown = set(table.column_names) - set(results.table(name).column_names)
            if unknown:
                raise MillpondError(
                    f"{directory}: {name} has no column {sorted(unknown)[0]!r}, another build of this version made it: "
                    "verify with that build, or run it again"
                )
            if not table.equals(read_table(results.files(name)[0], [("run", "=", run)], table.column_names)):
                raise MillpondError(f"{directory}: run {run} ({cell.id}) gave other rows of {name} than were kept")
    for name, files in own.code.items():
        if manifest["controllers"].get(name) != files:
            raise MillpondError(f"{directory}: the code of {name} is not the one that these results were made with")
    return chosen


# ----------------------------------------------------------------------------------------------- helpers


def _tables(results: Results, cell: Cell, run: int, own: OwnControllers) -> dict[str, pa.Table]:
    manifest = results.manifest
    scenario = scenarios.build(cell.scenario, f"{results.directory} ({cell.id})", own)
    job = (scenario, int(manifest["seeds"][run - cell.origin]), run)
    told = manifest["trace"]
    tables = tuple(told["tables"]) if run in told["runs"] else ()
    for done in finished(Here([[job]], Trace(tables, told["step_us"], told.get("flows", 0)))):
        if done is None:
            continue
        if done.failure is not None:
            why = f"{results.directory}: run {run} ({cell.id}): {done.failure.told}"
            raise MillpondError(why) from done.failure.cause
        made = {name: joined([rows]) for name, rows in done.tables.items()}
        made["runs"] = made["runs"].drop_columns(["wall_us"])
        return made
    raise MillpondError(f"{results.directory}: run {run} ({cell.id}) was stopped")
