"""The verbs of the laboratory: run, sweep, reproduce, compare, report, capture, results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from millpond.cli import arguments
from millpond.cli import fleet as fleets
from millpond.cli.arguments import F
from millpond.cli.output import print_files, print_json, print_run, say
from millpond.errors import MillpondError, UsageError

if TYPE_CHECKING:
    from millpond.api import Run
    from millpond.run.campaign import Watcher

_PATH = click.Path(path_type=Path)
_HOME = "Where results go. [a free name in results/]"
_TRACE = (
    "Trace of run 0, beside what the report draws: queue, share, sent, rto, packets, exchanges, tcp, frames; or none "
    "at all."
)


def _listing(*names: str, callback: Callable[..., Any], metavar: str, text: str) -> Callable[[F], F]:
    """A flag that adds up when it is given again."""
    return click.option(*names, multiple=True, callback=callback, metavar=metavar, help=text)


def _as_files(function: F) -> F:
    """The flags of every verb that writes figures and tables as files of their own."""
    for option in (
        click.option(
            "--width",
            type=float,
            default=10.5,
            show_default=True,
            metavar="INCHES",
            help="Of figures as files: 3.5 for a column.",
        ),
        _listing(
            "--tables",
            callback=arguments.names,
            metavar="F,G",
            text="Tables as files: csv, latex, markdown, json.",
        ),
        _listing("--figures", callback=arguments.names, metavar="F,G", text="Every figure as a file: svg, pdf."),
    ):
        function = option(function)
    return function


def _of_any_run(function: F) -> F:
    """The flags of every verb that runs something."""
    for option in (
        _as_files,
        click.option("--no-report", is_flag=True, help="Write no HTML report."),
        click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON and nothing else."),
        click.option("--reuse", type=_PATH, metavar="DIR", help="Take the runs that these earlier results hold."),
        click.option("--resume", is_flag=True, help="Go on with what is in the results directory."),
        click.option("--out", type=_PATH, metavar="DIR", help=_HOME),
        click.option("--jobs", type=int, default=0, metavar="N", help="Runs at the same time; 0: one per core."),
        arguments.sets("Set a key of the scenario: path.uplink.queue='20 kB'"),
    ):
        function = option(function)
    return function


def _of_any_plan(function: F) -> F:
    """The flags of every verb that runs a plan."""
    for option in (
        click.option(
            "--on",
            metavar="WHERE",
            help="Run elsewhere: processes, dask (a cluster of this machine), or dask://HOST:PORT.",
        ),
        click.option(
            "--shard", callback=arguments.shard, metavar="I/N", help="Only part I of N, into a folder of its own."
        ),
        click.option("--seed", type=int, metavar="N", help="Seed of the first replication. [made of the plan's name]"),
        click.option("--replications", type=int, metavar="N", help="Runs of each cell, each with its own seed."),
        _listing(
            "--factor",
            "factors",
            callback=arguments.factors,
            metavar="NAME=V,W",
            text="These values of a factor of the plan; may be repeated.",
        ),
        _listing(
            "--controllers",
            callback=arguments.controllers,
            metavar="A,B",
            text="Only these algorithms of the plan; also presets, with settings 'rfc7252?ack-timeout=3 s', and your "
            "own: mine.py:Mine.",
        ),
        click.option("--quick", is_flag=True, help="What [quick] of the plan says: fewer replications and values."),
    ):
        function = option(function)
    return function


@click.command(
    cls=arguments.Verb,
    epilog=arguments.examples(
        "millpond reproduce anrw18 --quick",
        "millpond reproduce anrw18 --controllers cocoa-03,fasor,mine.py:Mine",
        "millpond reproduce ./mystudy --out results/mystudy",
    ),
)
@click.argument("name", metavar="STUDY", required=False)
@_of_any_plan
@_listing("--clients", callback=arguments.numbers, metavar="N,M", text="Short for --factor clients=N,M.")
@_listing("--buffers", callback=arguments.numbers, metavar="N,M", text="Short for --factor buffer_bytes=N,M.")
@_of_any_run
@click.option("--published", type=_PATH, metavar="FILE", help="Compare with this CSV file instead.")
@click.option(
    "--live-lateness",
    metavar="TIME",
    help="With --live: how late 99 % of the packets may be, and all five times that. [by the path's rate]",
)
@click.option("--live-runs", type=int, metavar="N", help="With --live: runs of each setting. [what live.toml says]")
@click.option("--live", is_flag=True, help="Also run real programs over the same paths, in real time (live.toml).")
def reproduce(name: str | None, **options: Any) -> None:
    """Rerun a published study and put ours beside theirs.

    STUDY is one that comes with the program, or the folder of one: ./mystudy.
    """
    from millpond import api
    from millpond.plan import study

    if name is None:
        raise UsageError(f"which study? known: {', '.join(study.studies())}")
    options["live"] = _live(options.pop("live"), options.pop("live_runs"), options.pop("live_lateness"))
    _run_and_show(api.reproduce, name, options)


@click.command(
    cls=arguments.Verb,
    epilog=arguments.examples(
        "millpond sweep scenarios/sweeps/queues.toml",
        "millpond sweep plan.toml --factor devices=10,100 --jobs 4",
        "millpond sweep plan.toml --out results/plan --resume",
    ),
)
@click.argument("plan", metavar="PLAN", type=_PATH)
@_of_any_plan
@_of_any_run
def sweep(plan: Path, **options: Any) -> None:
    """Run every combination of a plan's factors.

    PLAN is a file, or a folder with a plan.toml.
    """
    from millpond import api

    _run_and_show(api.sweep, plan, options)


@click.command(
    cls=arguments.Verb,
    epilog=arguments.examples(
        "millpond run scenarios/first.toml",
        "millpond run scenarios/first.toml --controller calm --replications 5",
        "millpond run scenarios/firmware.toml --capture firmware.pcapng",
    ),
)
@click.argument("scenario", metavar="FILE.toml", type=_PATH)
@_listing(
    "--controller",
    callback=arguments.controllers,
    metavar="A[,B]",
    text="Another controller for all clients, or one for each group: a preset, with settings 'rfc7252?ack-timeout=3 s' "
    "or as a table, or your own: mine.py:Mine. [the file's]",
)
@_listing(
    "--clients",
    callback=arguments.numbers,
    metavar="N[,M]",
    text="Other numbers of clients, one for each group. [the file's]",
)
@click.option("--replications", type=int, default=1, show_default=True, metavar="N", help="Runs, each with its seed.")
@click.option("--seed", type=int, default=1, show_default=True, metavar="N", help="Seed of the first run.")
@_listing("--trace", callback=arguments.names, metavar="A,B", text=_TRACE)
@click.option("--capture", type=_PATH, metavar="FILE.pcapng", help="Write every packet of run 0 for Wireshark.")
@click.option("--draw", is_flag=True, help="Run nothing, but show the nodes of a mesh, their roles and the tree.")
@click.option("--picture", type=_PATH, metavar="FILE.svg", help="With --draw: as a picture into this file.")
@click.option("--animation", type=_PATH, metavar="FILE.html", help="The worst minute of a mesh, frame by frame.")
@_of_any_run
def run(scenario: Path, draw: bool, picture: Path | None, **options: Any) -> None:
    """Run any scenario."""
    if picture is not None and not draw:
        raise UsageError("--picture: goes with --draw alone")
    for name in ("figures", "tables"):
        if draw and options[name]:
            raise UsageError(f"--{name}: --draw runs nothing, so that there are none")
    if draw:
        from millpond.show.mesh import sheet

        say(sheet.drawn(scenario, options["changes"], options["seed"], picture))
        return
    from millpond import api

    as_json = options["as_json"]
    _run_and_show(api.run, scenario, options)
    for name, done in (("capture", "captured"), ("animation", "animated")):
        if options[name] is not None:
            say(f"{done}: {options[name]}", err=as_json)


@click.command(
    cls=arguments.Verb,
    epilog=arguments.examples(
        "millpond compare results/queues rfc7252 cocoa-03",
        "millpond compare results/queues queue='2 kB' queue='32 kB' --metric fct",
        "millpond compare results/queues rfc7252 cocoa-03 --p-values --margin 0.05",
        "millpond compare results/before results/after",
        "millpond compare before.json after.json",
    ),
)
@click.argument("directory", metavar="DIR", type=_PATH)
@click.argument("one", metavar="A")
@click.argument("other", metavar="B", required=False)
@_listing("--metric", "metrics", callback=arguments.names, metavar="M,N", text="These metrics. [those that both have]")
@click.option("--p-values", is_flag=True, help="Show them, corrected for all lines (Holm), and effect sizes.")
@click.option("--margin", type=float, metavar="SHARE", help="Say where A is no worse than B by more than this.")
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON and nothing else.")
def compare(
    directory: Path,
    one: str,
    other: str | None,
    metrics: tuple[str, ...],
    p_values: bool,
    margin: float | None,
    as_json: bool,
) -> None:
    """Put two algorithms, two values of a factor or two results side by side, run by run of equal seeds; or two loads.

    A and B are names of algorithms, or values of one factor of the plan, as buffer_bytes=2500. Two results directories
    of one plan: millpond compare DIR DIR.

    Two loads, that `millpond load --json` printed: millpond compare A.json B.json. Several files of a side have commas
    between them.
    """
    if other is None and not (directory.is_dir() and Path(one).is_dir()):
        if p_values or margin is not None:
            raise UsageError("--p-values and --margin: of results: leave them out for loads")
        _compare_loads(str(directory), one, metrics, as_json)
        return
    from millpond import api

    found = api.compare(directory, one, other, metrics=metrics, margin=margin)
    if as_json:
        print_json(found.to_json())
    else:
        from millpond.show import comparisons, terminal

        terminal.show(terminal.of_sections([comparisons.side_by_side(found, p_values)]))


def _compare_loads(one: str, other: str, metrics: tuple[str, ...], as_json: bool) -> None:
    if Path(one).is_dir():
        raise UsageError(f"{one}: beside what? millpond compare {one} {other} B, where B is like {other}")
    if metrics:
        raise UsageError("--metric: loads have figures of their own: leave it out")
    from millpond.judge import loads

    found = loads.compare(one, other)
    if as_json:
        print_json(found.to_json())
    else:
        from millpond.show import comparisons, terminal

        terminal.show(terminal.of_sections([comparisons.loads(found)]))


@click.command(
    cls=arguments.Verb,
    epilog=arguments.examples(
        "millpond report results/queues",
        "millpond report results/queues --figures svg,pdf --tables csv,latex --out paper/",
    ),
)
@click.argument("directory", metavar="DIR", type=_PATH)
@click.option("--published", type=_PATH, metavar="FILE", help="Compare with this CSV file instead.")
@click.option("--json", "as_json", is_flag=True, help="Print the comparison or summary as JSON and nothing else.")
@_as_files
@click.option("--out", type=_PATH, metavar="FOLDER", help="Where those go. [figures/ and tables/ in DIR]")
def report(
    directory: Path,
    published: Path | None,
    as_json: bool,
    figures: Sequence[str],
    tables: Sequence[str],
    width: float,
    out: Path | None,
) -> None:
    """Redraw tables and report from results alone.

    DIR is any results directory, that of `millpond fleet` too, or the one that the shards of a plan lie in.
    """
    from millpond import api
    from millpond.fleet import files

    _check_formats(figures, tables, width)
    if out is not None and not figures and not tables:
        raise UsageError("--out: what should go there? --figures svg,pdf, --tables csv,latex")
    if files.holds_answer(directory):
        if published is not None:
            raise MillpondError(f"{directory}: results of no study: --published compares studies")
        fleets.redraw(directory, as_json, figures, tables, width, out)
        return
    done = api.open_results(directory, published)
    api.redraw(done)
    _print(done, as_json, figures, tables, width, out)


@click.command(
    cls=arguments.Verb,
    epilog=arguments.examples(
        "millpond capture results/queues run.pcapng --cell 20-rfc7252 --replication 1",
    ),
)
@click.argument("directory", metavar="DIR", type=_PATH)
@click.argument("file", metavar="FILE.pcapng", type=_PATH)
@click.option("--cell", metavar="NAME", help="Which setting of a study, or enough of its name that only one is meant.")
@click.option("--replication", type=int, default=0, show_default=True, metavar="N", help="Which run of it.")
@click.option(
    "--run-code", is_flag=True, help="Execute controllers that came with the results, after comparing their digests."
)
def capture(directory: Path, file: Path, cell: str | None, replication: int, run_code: bool) -> None:
    """Run one run of earlier results again and write its packets.

    DIR is any results directory, of a study or of one scenario. The run is the same as it was, packet by packet.
    """
    from millpond.results.directory import Results
    from millpond.results.store import write_bytes
    from millpond.run import capture as captures

    captures.check(file, "FILE.pcapng")
    found, seed, content = captures.of_results(Results.open(directory), cell, replication, run_code)
    write_bytes(file, content)
    say(f"captured: {file}   cell: {found.id}   seed: {seed}")


@click.group(
    cls=arguments.GroupOfPlaces,
    subcommand_metavar="DIR... | COMMAND [ARGS]...",
    epilog=arguments.examples("millpond results results/queues", "millpond results verify results/queues --runs 10"),
)
def results() -> None:
    """Say what results hold and lack, and how they can be made again.

    millpond results DIR... tells of results directories, or of the one that the shards of a plan lie in, whether they
    fit together: shards of one plan, none twice, none missing, all finished. Exits with 1 if they do not.
    """


@results.command(arguments.PLACES, hidden=True)
@click.argument("directories", metavar="DIR...", type=_PATH, nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON and nothing else.")
def told(directories: Sequence[Path], as_json: bool) -> None:
    """Say what results directories hold together, and what they lack."""
    from millpond.results.shards import overview
    from millpond.show import comparisons, terminal

    found = overview(directories)
    if as_json:
        print_json(found.to_json())
    else:
        terminal.show(terminal.of_sections([comparisons.overview(found)]))
    for fault in found.faults:
        say(f"millpond: {fault}", err=True)
    if found.faults:
        raise SystemExit(1)


@results.command(epilog=arguments.examples("millpond results verify results/queues --runs 10"))
@click.argument("directory", metavar="DIR", type=_PATH)
@click.option("--runs", type=int, default=3, show_default=True, metavar="N", help="So many runs are run again.")
@click.option(
    "--run-code", is_flag=True, help="Execute controllers that came with the results, after comparing their digests."
)
def verify(directory: Path, runs: int, run_code: bool) -> None:
    """Compare every table with its digest, and some runs with the same ones run again.

    Prints a statement of reproducibility for a paper.
    """
    from millpond.results.provenance import statement
    from millpond.results.shards import folders_of
    from millpond.run import verify as verifying

    found = folders_of(directory)
    for folder, manifest in found:
        tables = verifying.tables_unchanged(folder, manifest)
        again = verifying.runs_again(folder, manifest, runs, run_code)
        told = f"{len(again)} of {manifest['runs']} runs gave the same rows again" if again else "no run was repeated"
        say(f"{folder}: {tables} tables are as they were written; {told}")
    say("\n" + statement([manifest for _, manifest in found]))


def _check_formats(figures: Sequence[str], tables: Sequence[str], width: float) -> None:
    if figures or tables or width != 10.5:
        from millpond.show import export

        export.check(figures, tables, width)


def _live(live: bool, runs: int | None, lateness: str | None) -> dict[str, Any] | bool:
    told = {name: value for name, value in (("runs", runs), ("lateness", lateness)) if value is not None}
    if told and not live:
        raise UsageError("--live-runs and --live-lateness go with --live alone")
    return told or live


def _run_and_show(verb: Callable[..., Run], about: Path | str, options: dict[str, Any]) -> None:
    """Runs something by its flags, into a free name in `results/` unless a place is named, and prints what it gave."""
    from millpond.results.directory import FREE

    shown = [options.pop(name) for name in ("as_json", "figures", "tables", "width")]
    _check_formats(*shown[1:])
    report = not options.pop("no_report")
    placed = {**options, "out": options["out"] or FREE}
    _print(verb(about, report=report, watcher=bar(), **placed), *shown)


def _print(
    done: Run,
    as_json: bool,
    figures: Sequence[str],
    tables: Sequence[str],
    width: float,
    folder: Path | None = None,
) -> None:
    """Prints what a run gave, and writes what is wanted of it as files."""
    from millpond import api

    print_run(done, as_json)
    print_files(api.export(done, folder, figures=figures, tables=tables, width=width), as_json)


COMMANDS: tuple[click.Command, ...] = (reproduce, sweep, run, compare, report, capture, results)


def bar() -> Watcher:
    """What draws how far a campaign has come."""
    from millpond.run.progress import Bar

    return Bar()
