"""The calls of notebooks, which the program uses as well: rerun a study, sweep a plan, run a scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, cast

from millpond.controllers.own import AnyController, OwnControllers
from millpond.errors import MillpondError, UsageError, told_to_programs, unknown
from millpond.given import Reproduction as Reproduction
from millpond.given import Run as Run
from millpond.judge import side_by_side
from millpond.judge.published import read as read_published
from millpond.judge.side_by_side import SideBySide
from millpond.plan import extra_algorithms, single, study
from millpond.plan.factor import with_short
from millpond.plan.program import Program
from millpond.real import campaign as real_campaign
from millpond.real import columns, description
from millpond.real.description import Description
from millpond.results.directory import Results, free_directory
from millpond.results.factor import Value
from millpond.results.store import write_json
from millpond.run import capture as captures
from millpond.run import executors
from millpond.run.campaign import Watcher, carry_out
from millpond.run.executors import On
from millpond.show.mesh import animation as animations
from millpond.studies import pages, reproduction

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: What `reuse` takes.
Earlier: TypeAlias = "Run | Results | Path | str | Sequence[Path | str]"
COMPARISON = "comparison.json"


class Keeping(TypedDict, total=False):
    """Where results of runs go and how many run at once: the keywords that `run`, `sweep` and `reproduce` share."""

    #: Runs at the same time; 0, if it is left out, for one per core.
    jobs: int
    #: Results directory: new, empty, or with `resume` one of this very plan; `results/*` is a free name in `results/`.
    #: Left out: nothing is written, and all results are in memory.
    out: Path | str | None
    #: Keep the runs that are there.
    resume: bool
    #: Earlier results: runs of equal scenario and seed are taken from there instead of run again.
    reuse: Earlier | None
    #: Write the HTML report into the results directory, unless it is False; never of a single shard.
    report: bool
    #: Told about progress.
    watcher: Watcher | None


@told_to_programs
def reproduce(
    name: str,
    *,
    clients: Sequence[int] = (),
    buffers: Sequence[int] = (),
    factors: Mapping[str, Value | Sequence[Value]] | None = None,
    published: Path | str | None = None,
    **options: Any,
) -> Reproduction:
    """Rerun a published study.

    Args:
        name: The study, e.g. `anrw18`, or the folder of one, e.g. `./mystudy`.
        clients: These numbers of clients instead of the plan's; short for its factor `clients`.
        buffers: These buffers, in bytes, instead of the plan's; short for its factor `buffer_bytes`.
        factors: Values of any factor of the plan, by its name, instead of the plan's.
        published: A CSV file to compare with instead of the study's own.
        options: Those of `sweep`.

    Raises:
        MillpondError: one line that says what is wrong and how to fix it.
    """
    chosen = with_short(factors or {}, clients, buffers)
    if published is not None:
        read_published(published)
    folder = study.find(name)
    if not study.load(folder).judged:
        raise UsageError(f"{name}: nothing is published about it, and it claims nothing: use millpond sweep")
    return cast(Reproduction, sweep(folder, factors=chosen, published=published, **options))


@told_to_programs
def sweep(
    plan: Path | str | Mapping[str, Any],
    *,
    quick: bool = False,
    controllers: AnyController | Sequence[AnyController] = (),
    factors: Mapping[str, Value | Sequence[Value]] | None = None,
    changes: Mapping[str, Any] | None = None,
    replications: int | None = None,
    seed: int | None = None,
    shard: tuple[int, int] = (1, 1),
    on: On | None = None,
    published: Path | str | None = None,
    live: bool | Mapping[str, Any] = False,
    **keeping: Unpack[Keeping],
) -> Run:
    """Run a plan: every combination of its factors.

    Args:
        plan: Its file, or the folder of its `plan.toml`, or its keys as a tree.
        quick: What its `[quick]` says instead: fewer replications and values.
        controllers: Only these: algorithms of the plan (also by the names of their presets), and beside them other
            presets and custom controllers, as a name (`mine.py:Mine`), as a table or as the class itself.
        factors: Values of factors, by name, instead of the plan's.
        changes: Values by their place in every scenario, such as `{"path.uplink.rate": "20 kbit/s"}`.
        replications: So many of every cell instead of the plan's.
        seed: Seed of the first replication, from which the others count up, instead of the plan's own.
        shard: Which part of the runs, of how many, such as `(1, 4)`; each part has a directory of its own.
        on: Where runs are done instead of on the cores of this machine: `processes`, `dask` (a cluster of this machine
            for the time being), `dask://HOST:PORT`, any `concurrent.futures.Executor`, or a Dask client. Tables are the
            same to the byte.
        published: A CSV file to compare with instead of the study's own.
        live: Run real programs over the same paths as well, as the plan's `live.toml` says, in real time; or a table:
            `runs` of every setting, and `lateness`, how late 99 % of their packets may be, such as `4ms`, and all five
            times that, instead of what the path demands.
        keeping: See `Keeping`.

    Returns:
        What it gave: a `Reproduction` if the plan has published figures or claims.

    Raises:
        MillpondError: one line that says what is wrong and how to fix it.
    """
    how = _Kept.of(keeping)
    executors.check(on, how.jobs)
    known = study.load(Path(plan) if isinstance(plan, str) else plan)
    reproduction.check(known)
    if quick:
        known = known.quick()
    told, shard = _live(live), _shard(shard)
    if told is not None and shard != (1, 1):
        raise UsageError("--live: real programs run beside all of a plan, not beside a shard")
    if told is not None:
        description.check(known.folder)
    how.need_place({"--resume": how.resume, "--live": told is not None, "--shard": shard != (1, 1)})
    own = OwnControllers(Path(), known.folder)
    reproduction.know_kept(known, own)
    if isinstance(controllers, str | Mapping) or not isinstance(controllers, Sequence):
        controllers = (controllers,)
    known, names = extra_algorithms.added(known, controllers, own)
    for line in extra_algorithms.stand_ins(known, controllers, own):
        how.watcher.say(line)
    known = known.narrowed(controllers=names, factors=factors, replications=replications, seed=seed, changes=changes)
    program = replace(study.unfold(known, own), shard=shard)
    name = f"{known.name}-quick" if quick else known.name
    results = how.carry_out(program, name, on=on, extra_files=reproduction.kept_files(known))
    done = _done(results, published)
    if program.shard[1] > 1:
        return done
    if told is not None:
        described = description.read(known.folder, results.cells, quick=quick, runs=told.get("runs"))
        _run_live(done, described, how.resume, told.get("lateness"), how.watcher)
    if isinstance(done, Reproduction) and how.out is not None:
        write_json(done.directory / COMPARISON, done.to_json())
    return how.reported(done)


@told_to_programs
def run(
    scenario: Path | str | Mapping[str, Any],
    *,
    controller: AnyController | Sequence[AnyController] = (),
    clients: int | Sequence[int] = (),
    changes: Mapping[str, Any] | None = None,
    replications: int = 1,
    seed: int = 1,
    trace: Sequence[str] | None = None,
    capture: Path | str | None = None,
    animation: Path | str | None = None,
    **keeping: Unpack[Keeping],
) -> Run:
    """Run a scenario.

    Args:
        scenario: Its file, or its keys as a tree.
        controller: For all clients instead of the scenario's: a preset, a custom controller as a name
            (`mine.py:Mine`) or as the class itself, or a table as in a scenario. Several: one for each client group.
        clients: How many clients instead of the scenario's: a number, or one for each client group.
        changes: Values by their place in the scenario, such as `{"path.uplink.queue": "20 kB"}`.
        replications: Independent runs of it.
        seed: Seed of the first; the others count up from it.
        trace: Tables to trace in replication 0 beside those that the report draws: `queue`, `share`, `sent`, `rto`,
            `packets`, `exchanges`, `tcp`, `frames`; `none` for none at all.
        capture: Write every packet of replication 0 into this file, `.pcapng`.
        animation: Write the minute of replication 0 in which most frames of a mesh collided into this file, `.html`.
        keeping: See `Keeping`.

    Raises:
        MillpondError: one line that says what is wrong and how to fix it.
    """
    how = _Kept.of(keeping)
    if capture is not None:
        captures.check(Path(capture))
    if animation is not None:
        animations.check(Path(animation), trace)
        trace = tuple(dict.fromkeys((*(trace or ()), *animations.TRACES)))
    if isinstance(controller, str | Mapping) or not isinstance(controller, Sequence):
        controller = (controller,)
    program = single.program(
        Path(scenario) if isinstance(scenario, str) else scenario,
        controllers=controller,
        clients=(clients,) if isinstance(clients, int) else clients,
        changes=changes,
        replications=replications,
        seed=seed,
        trace=trace,
    )
    if animation is not None and not program.cells[0].scenario.nodes(seed):
        raise UsageError(f"--animation: {program.name} has no [mesh]: there is nothing on the air")
    how.need_place({"--resume": how.resume})
    results = how.carry_out(program, program.name)
    if animation is not None:
        animations.write(results, Path(animation))
    if capture is not None:
        captures.write(Path(capture), program.cells[0].scenario, program.seeds[0])
    return how.reported(Run(results))


def open_results(directory: Path | str | Sequence[Path | str], published: Path | str | None = None) -> Run:
    """Results of an earlier run, or all shards of one: a `Reproduction` if they are a study's.

    Raises:
        MillpondError: one line that says what is wrong and how to fix it.
    """
    results = Results.open(directory)
    if published is not None and results.manifest["kind"] != "study":
        raise MillpondError(f"{results.directory}: results of no study: --published compares studies")
    return _done(results, published)


def compare(
    results: Run | Results | Path | str | Sequence[Path | str],
    one: str | Run | Results | Path,
    other: str | None = None,
    *,
    metrics: str | Sequence[str] = (),
    margin: float | None = None,
) -> SideBySide:
    """Put two algorithms, two values of a factor, or two results side by side, run by run of equal seeds.

    Args:
        results: What `sweep`, `run` or `reproduce` gave, or where such results lie.
        one: An algorithm, or a value of a factor, alone or as `factor=value`; or, without `other`, further results.
        other: Another one of the same.
        metrics: These metrics; left out: those that both have of the usual ones.
        margin: By how much `one` may be worse and count as no worse: a share of the other, of shares so many points.

    Raises:
        MillpondError: one line that says what is wrong and how to fix it.
    """
    asked = (metrics,) if isinstance(metrics, str) else metrics
    if margin is not None and not 0 < margin < 1:
        raise UsageError(f"--margin: {margin:g}: a share above 0 and below 1, such as 0.05")
    if other is None:
        first, second = (_opened(side) for side in (results, one))
        return side_by_side.compare_results(first, second, asked, margin)
    return side_by_side.compare(_opened(results), str(one), other, asked, margin)


def redraw(done: Run) -> Path:
    """Write the report again, from results alone. Gives the file."""
    if done.results.is_in_memory:
        raise MillpondError(f"{done.directory}: nothing of these results is kept: name a directory by --out")
    done.report = pages.write(done.results, done.document)
    return done.report


def export(
    done: Run,
    folder: Path | str | None = None,
    *,
    figures: Sequence[str] = (),
    tables: Sequence[str] = (),
    width: float = 10.5,
) -> list[Path]:
    """Write the figures and tables of a report as files of their own.

    Args:
        done: What a run or study gave.
        folder: Where to; left out: `figures/` and `tables/` in the results directory.
        figures: Formats of the figures: `svg`, `pdf`.
        tables: Formats of the tables: `csv`, `latex`, `markdown`, `json`.
        width: Inches of the figures: 3.5 for a column of a paper, 7 for two.

    Returns:
        The files.

    Raises:
        MillpondError: one line that says what is wrong and how to fix it.
    """
    from millpond.show import export as files

    shown, written = done.document.sections if figures or tables else (), []
    if figures:
        written += files.figures(shown, folder or done.directory / "figures", figures, width)
    if tables:
        written += files.tables(shown, folder or done.directory / "tables", tables)
    return written


# ----------------------------------------------------------------------------------------------- helpers


@dataclass(frozen=True)
class _Kept:
    """`Keeping` with its defaults."""

    jobs: int = 0
    out: Path | str | None = None
    resume: bool = False
    reuse: Results | None = None
    report: bool = True
    watcher: Watcher = field(default_factory=Watcher)

    @staticmethod
    def of(told: Keeping) -> _Kept:
        """What was told. Raises `UsageError` for what makes no sense, `TypeError` for a keyword that there is not."""
        jobs, earlier = told.get("jobs", 0), told.get("reuse")
        if jobs < 0:
            raise UsageError(f"--jobs: {jobs} makes no sense here: at least 1, or 0 for one per core")
        changed = {"reuse": None if earlier is None else _opened(earlier), "watcher": told.get("watcher") or Watcher()}
        return _Kept(**{**told, **changed})  # type: ignore[arg-type]

    def need_place(self, options: Mapping[str, bool]) -> None:
        """Raises `UsageError` for an option that needs a directory where none is asked for."""
        for option, is_there in options.items():
            if is_there and self.out is None:
                raise UsageError(f"{option}: what it is about lies in a directory: name it by --out")

    def carry_out(self, program: Program, name: str, **further: Any) -> Results:
        directory = None
        if self.out is not None:
            directory = free_directory(self.out, name, plan_hash=program.hash, shard=program.shard, resume=self.resume)
        return carry_out(
            program, directory, workers=self.jobs, resume=self.resume, reuse=self.reuse, watcher=self.watcher, **further
        )

    def reported(self, done: Run) -> Run:
        """The same, with its report if one is wanted."""
        if self.report and self.out is not None:
            redraw(done)
        return done


def _live(live: bool | Mapping[str, Any]) -> Mapping[str, Any] | None:
    if not isinstance(live, Mapping):
        return {} if live else None
    for name in live:
        if name not in ("runs", "lateness"):
            raise UsageError(f"--live: {unknown('key', name, ('runs', 'lateness'))}")
    return live


def _done(results: Results, published: Path | str | None) -> Run:
    return Reproduction(results, published) if results.manifest["kind"] == "study" else Run(results)


def _run_live(done: Run, described: Description, resume: bool, lateness: str | None, watcher: Watcher) -> None:
    for gone in described.left_out:
        watcher.say(f"live: left out, not among what was simulated: {gone}")
    real_campaign.carry_out(
        described,
        done.directory,
        lambda setting: columns.slowest(done.measures, setting.cell.columns),
        resume=resume,
        lateness=lateness,
        say=watcher.say,
    )


def _opened(results: Run | Results | Path | str | Sequence[Path | str]) -> Results:
    if isinstance(results, Run):
        return results.results
    return results if isinstance(results, Results) else Results.open(results)


def _shard(shard: tuple[int, int]) -> tuple[int, int]:
    number, of = shard
    if of < 1:
        raise UsageError(f"--shard: {number}/{of} makes no sense here: at least one part")
    if not 1 <= number <= of:
        raise UsageError(f"--shard: {number}/{of} makes no sense here: 1/{of} to {of}/{of}")
    return number, of
