"""The two calls: rerun a study, run a scenario. The program and notebooks use the same ones."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from millpond.controllers.own import AnyController, Make, OwnControllers
from millpond.errors import MillpondError, UsageError
from millpond.judge.compare import Comparison
from millpond.judge.published import read as read_published
from millpond.measure import summary
from millpond.measure.measures import Measures
from millpond.plan import guests, single, study
from millpond.plan.study import Program
from millpond.results.directory import MANIFEST, Results, Value, read_manifest
from millpond.results.store import write_json
from millpond.run import capture as captures
from millpond.run.campaign import Watcher, carry_out
from millpond.run.engine import Engine, native
from millpond.show import terminal as tables
from millpond.studies import reproduction
from millpond.studies.echo import terminal as named_copies

if TYPE_CHECKING:
    import pandas
    from rich.console import RenderableType

#: Where results go if nobody says where.
HOME = Path("results")
COMPARISON = "comparison.json"


class Run:
    """What a scenario gave. Everything is read from the results directory."""

    def __init__(self, results: Results, report: Path | None = None) -> None:
        self.results = results
        #: The HTML report, if one was written.
        self.report = report

    @property
    def directory(self) -> Path:
        """The results directory."""
        return self.results.directory

    @cached_property
    def measures(self) -> Measures:
        """The metrics by population of clients."""
        return Measures(self.results)

    @cached_property
    def summary(self) -> pa.Table:
        """One row for each population of clients: times in s, retransmissions per client."""
        return summary.table(self.measures)

    @property
    def tables(self) -> list[RenderableType]:
        """What the program prints; each shows itself in a notebook and by `rich.print`."""
        return tables.of_scenario(self.measures, str(self.results.manifest["title"]))

    def table(self, name: str) -> pa.Table:
        """A result table with the scenario columns of each row's cell before its own: times in microseconds."""
        return with_scenario(self.results, name)

    def to_pandas(self, name: str = "flows") -> pandas.DataFrame:
        """The same as a data frame. Raises `MillpondError` if pandas is not installed."""
        try:
            return self.table(name).to_pandas()
        except ImportError:
            raise MillpondError("to_pandas needs pandas: pip install pandas (or use .table, an Arrow table)") from None


class Reproduction(Run):
    """What a study gave, and how it stands beside what was published."""

    def __init__(self, results: Results, published: Path | str | None = None, report: Path | None = None) -> None:
        super().__init__(results, report)
        self._published = published

    @cached_property
    def comparison(self) -> Comparison:
        """Every published figure, claim and setting, with ours."""
        return reproduction.compare(self.results, self._published, self.measures)

    @property
    def tables(self) -> list[RenderableType]:
        """What the program prints."""
        if self.results.study == "echo":
            return named_copies.of_study(self.measures, self.comparison)
        return tables.of_study(self.measures, self.comparison)


def reproduce(
    name: str,
    *,
    quick: bool = False,
    controllers: Sequence[str | Make] = (),
    clients: Sequence[int] = (),
    buffers: Sequence[int] = (),
    factors: Mapping[str, Sequence[Value]] | None = None,
    replications: int | None = None,
    jobs: int = 0,
    out: Path | str | None = None,
    resume: bool = False,
    published: Path | str | None = None,
    report: bool = True,
    watcher: Watcher | None = None,
    command: Sequence[str] = (),
    engine: Engine | None = None,
) -> Reproduction:
    """Rerun a published study.

    Args:
        name: The study, e.g. `anrw18`.
        quick: Fewer replications and client counts.
        controllers: Only these: algorithms of the study (also by the names of their presets), and beside them other
            presets and controllers of one's own, as a name (`mine.py:Mine`) or as the class itself.
        clients: These numbers of clients instead of the plan's.
        buffers: These buffers, in bytes, instead of the plan's.
        factors: Values of any factor of the plan, by its name, instead of the plan's.
        replications: So many instead of the plan's.
        jobs: Runs at the same time; 0 for one per core.
        out: Results directory: new, empty, or with `resume` one of this very plan. Left out: a free name in `results/`.
        resume: Keep the runs that are there.
        published: A CSV file to compare with instead of the study's own.
        report: Write the HTML report.
        watcher: Told about progress.
        command: The command line, for the manifest.
        engine: Another engine than the one that ships.

    Raises:
        MillpondError: one line that says what is wrong and how to mend it.
    """
    engine = engine or native()
    plan = study.load(study.find(name))
    if quick:
        plan = plan.quick()
    own = OwnControllers(Path(), plan.folder)
    names = [name if isinstance(name, str) else own.add(name) for name in controllers]
    plan = guests.invited(plan, names, engine, own)
    values = {**(factors or {}), "clients": clients, "buffer_bytes": buffers}
    given = {factor: chosen for factor, chosen in values.items() if chosen}
    plan = plan.narrowed(controllers=names, factors=given, replications=replications)
    if published is not None:
        read_published(published)
    program = study.unfold(plan, engine, own)
    directory = place(out, f"{plan.name}-quick" if quick else plan.name, program, resume)
    results = carry_out(
        program,
        directory,
        engine,
        workers=_workers(jobs),
        resume=resume,
        command=command or sys.argv,
        watcher=watcher,
        extra_files=reproduction.kept_files(plan),
    )
    done = Reproduction(results, published)
    write_json(directory / COMPARISON, done.comparison.to_json())
    if report:
        done.report = _write_report(directory, done.comparison)
    return done


def run(
    file: Path | str,
    *,
    controller: AnyController | Sequence[AnyController] = (),
    replications: int = 1,
    seed: int = 1,
    trace: Sequence[str] | None = None,
    jobs: int = 0,
    out: Path | str | None = None,
    resume: bool = False,
    capture: Path | str | None = None,
    report: bool = True,
    watcher: Watcher | None = None,
    command: Sequence[str] = (),
    engine: Engine | None = None,
) -> Run:
    """Run a scenario file.

    Args:
        file: The scenario.
        controller: For all clients instead of the scenario's: a preset, a controller of one's own as a name
            (`mine.py:Mine`) or as the class itself, or a table as in a scenario. Several: one for each client group.
        replications: Independent runs of it.
        seed: Seed of the first; the others count up from it.
        trace: Tables to trace in replication 0: `queue`, `share`, `rto`, `packets`, `exchanges`, `tcp`; `none` for
            none; left out, what the report draws.
        jobs: Runs at the same time; 0 for one per core.
        out: Results directory; left out: a free name in `results/`.
        resume: Keep the runs that are there.
        capture: Write every packet of replication 0 into this file, `.pcapng`.
        report: Write the HTML report.
        watcher: Told about progress.
        command: The command line, for the manifest.
        engine: Another engine than the one that ships.

    Raises:
        MillpondError: one line that says what is wrong and how to mend it.
    """
    engine = engine or native()
    path = Path(file)
    if capture is not None:
        captures.check(Path(capture))
    if isinstance(controller, str) or not isinstance(controller, Sequence):
        controller = (controller,)
    program = single.program(
        path,
        engine,
        controllers=controller,
        replications=replications,
        seed=seed,
        trace=trace,
    )
    directory = place(out, path.stem, program, resume)
    results = carry_out(
        program,
        directory,
        engine,
        workers=_workers(jobs),
        resume=resume,
        command=command or sys.argv,
        watcher=watcher,
    )
    if capture is not None:
        captures.write(Path(capture), program.cells[0].scenario, program.seeds[0], engine)
    done = Run(results)
    if report:
        done.report = _write_report(directory, None)
    return done


def open_results(directory: Path | str, published: Path | str | None = None) -> Run:
    """Results of an earlier run: a `Reproduction` if they are a study's. Raises `MillpondError` with one line."""
    results = Results.open(directory)
    if results.study is None:
        if published is not None:
            raise MillpondError(f"{directory}: results of a single scenario: --published compares studies")
        return Run(results)
    return Reproduction(results, published)


def redraw(done: Run) -> Path:
    """Write the report again, from results alone. Gives the file."""
    comparison = done.comparison if isinstance(done, Reproduction) else None
    done.report = _write_report(done.directory, comparison)
    return done.report


def place(out: Path | str | None, name: str, program: Program, resume: bool) -> Path:
    """The directory to use: the one asked for, or a free one in `results/`; to resume, the latest of this program."""
    if out is not None:
        return Path(out)
    candidates = [HOME / name]
    while candidates[-1].exists():
        candidates.append(HOME / f"{name}-{len(candidates) + 1}")
    if resume:
        for directory in reversed(candidates[:-1]):
            if (directory / MANIFEST).is_file() and read_manifest(directory)["plan_hash"] == program.hash:
                return directory
    return candidates[-1]


def with_scenario(results: Results, name: str) -> pa.Table:
    """A table of the results with `clients`, `buffer_bytes`, `workload`, `algorithm` and `path` of each row."""
    table = results.table(name)
    runs = results.table("runs")
    first = runs.column("run").to_numpy()
    cells = runs.column("cell").to_numpy()[np.searchsorted(first, table.column("run").to_numpy())]
    columns = list(dict.fromkeys(key for cell in results.cells for key in cell.columns))
    for position, key in enumerate(columns):
        values = pa.array([cell.columns.get(key) for cell in results.cells])
        chosen = values.take(pa.array(cells))
        if key == "algorithm" and "group" in table.column_names:
            chosen = _by_group(results, cells, table)
        table = table.add_column(position, key, chosen)
    return table


# ----------------------------------------------------------------------------------------------- helpers


def _by_group(results: Results, cells: Any, table: pa.Table) -> pa.Array:
    most = max(len(cell.groups) for cell in results.cells)
    names = np.full((len(results.cells), most), "", dtype=object)
    for cell in results.cells:
        for group in cell.groups:
            names[cell.number, group.index] = group.algorithm
    return pa.array(names[cells, table.column("group").to_numpy()])


def _workers(jobs: int) -> int:
    if jobs < 0:
        raise UsageError(f"--jobs: {jobs} makes no sense here: at least 1, or 0 for one per core")
    return jobs


def _write_report(directory: Path, comparison: Comparison | None) -> Path:
    from millpond.show.report import write_report

    return write_report(directory, comparison)
