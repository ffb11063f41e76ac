"""Packet captures of runs: what travelled, as a pcapng file with virtual timestamps that Wireshark opens.

A run is a pure function of its scenario and seed, so a capture is made by running it once more.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from millpond import _engine
from millpond._engine import Scenario
from millpond.controllers.own import OwnControllers
from millpond.errors import MillpondError, UsageError, nearest
from millpond.plan import scenario as scenarios
from millpond.results.directory import Cell, Results
from millpond.results.store import write_bytes
from millpond.run import possible
from millpond.run.jobs import Here, finished

SUFFIX = ".pcapng"


def check(file: Path, option: str = "--capture") -> None:
    """Raises `UsageError` if no capture of this name can be written: before the runs, not after them."""
    if file.is_dir():
        raise UsageError(f"{option}: {file}: a folder, not a file: write {file / f'run{SUFFIX}'}")
    if file.suffix != SUFFIX:
        raise UsageError(f"{option}: {file}: the name must end in {SUFFIX}")
    if not file.parent.is_dir():
        raise UsageError(f"{option}: {file}: there is no folder {file.parent}")


def of_run(scenario: Scenario, seed: int) -> bytes:
    """The capture of one run. Raises `MillpondError` with one line if the run fails."""
    for done in finished(Here([[(scenario, seed, 0)]], capture=True)):
        if done is not None and done.failure is not None:
            raise MillpondError(f"the run that is captured, seed {seed}: {done.failure.told}") from done.failure.cause
        if done is not None and done.capture is not None:
            return done.capture
    raise MillpondError("the run gave no capture")


def write(file: Path, scenario: Scenario, seed: int) -> int:
    """Write the capture of one run; the file appears whole or not at all. Gives its length in bytes."""
    content = of_run(scenario, seed)
    write_bytes(file, content)
    return len(content)


def of_results(results: Results, cell: str | None, replication: int, run_code: bool = False) -> tuple[Cell, int, bytes]:
    """Run one run of earlier results once more: gives its cell, its seed and its capture.

    Args:
        results: Any results directory, opened.
        cell: The cell's id, or enough of it that only one is meant; may be left out if there is only one.
        replication: Which of the cell's runs.
        run_code: Whether controllers that came with the results may be executed.

    Raises:
        MillpondError: one line that says what is wrong and how to fix it.
    """
    chosen = _cell(results, cell)
    if not 0 <= replication < chosen.replications:
        raise UsageError(f"--replication: {replication} was not run: 0 to {chosen.replications - 1}")
    version = str(results.manifest["version"])
    if version != _engine.version():
        raise MillpondError(
            f"{results.directory}: these are results of version {version}, this is {_engine.version()}: it may not "
            "give the same run: run the study again"
        )
    possible.refuse_alone([chosen], str(results.manifest["kind"]), chosen.id)
    seed = int(results.manifest["seeds"][chosen.first_seed + replication])
    own = OwnControllers.of_results(results.directory, results.manifest.get("controllers", {}), run_code)
    scenario = scenarios.build(chosen.scenario, f"{results.directory} ({chosen.id})", own)
    _same_code(results, own.code)
    return chosen, seed, of_run(scenario, seed)


def _cell(results: Results, wanted: str | None) -> Cell:
    ids = {cell.id: cell for cell in results.cells}
    if wanted is None:
        if len(ids) == 1:
            return results.cells[0]
        raise UsageError(
            f"{results.directory}: which of its {len(ids)} cells? name one, such as --cell {next(iter(ids))!r}"
        )
    if wanted in ids:
        return ids[wanted]
    found = [name for name in ids if wanted in name]
    if len(found) == 1:
        return ids[found[0]]
    if found:
        raise UsageError(f"{wanted!r} is a part of {len(found)} cells: {found[0]!r}, {found[1]!r} and so on")
    near = nearest(wanted, ids)
    hint = f"did you mean {near!r}?" if near is not None else f"they are called like {next(iter(ids))!r}"
    raise UsageError(f"{results.directory}: no cell {wanted!r}: {hint}")


def _same_code(results: Results, code: Mapping[str, Mapping[str, str]]) -> None:
    for name, files in code.items():
        if results.manifest.get("controllers", {}).get(name, files) != files:
            raise MillpondError(f"{results.directory}: the code of {name} may have changed since then: run it again")
