"""The verb `fleet`: will these devices bring their cell down, and which setting prevents it?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from millpond.cli import arguments
from millpond.cli.output import print_files, print_json, say
from millpond.errors import UsageError

if TYPE_CHECKING:
    from millpond.fleet.answer import Answer
    from millpond.fleet.description import Fleet

_PATH = click.Path(path_type=Path)

#: The fleet that a diagnosis writes.
WRITTEN = "fleet.toml"

#: Flags that stand for a key of the description.
_KEYS = {
    "devices": "devices", "profile": "cell.profile", "after": "event.kind", "every": "everyday.every",
    "old_firmware": "old_firmware", "within": "goal.done",
}  # fmt: skip


@click.command(
    cls=arguments.Verb,
    epilog=arguments.examples(
        "millpond fleet --devices 400 --profile nbiot-anrw18 --after power-cut --every '1 d'",
        "millpond fleet --example > meters.toml",
        "millpond fleet meters.toml --largest --within '99 % in 5 min'",
        "millpond fleet --from cell",
    ),
)
@click.argument("file", metavar="[FILE.toml]", type=_PATH, required=False)
@click.option("--example", is_flag=True, help="Print a description that runs, with every key explained.")
@click.option(
    "--from", "folder", type=_PATH, metavar="DIR", help="The fleet that `millpond diagnose --write DIR` described."
)
@click.option("--devices", type=int, metavar="N", help="How many devices.")
@click.option("--profile", metavar="PATH", help="Their cell: a path that `millpond paths` lists, or the file of one.")
@click.option("--after", metavar="EVENT", help="What happens: power-cut, hourly, command, firmware.")
@click.option("--every", metavar="TIME", help="How often each reports from day to day: '1 d'; tr45820; never.")
@click.option("--old-firmware", type=float, metavar="SHARE", help="The share of devices that cannot be changed.")
@click.option("--within", metavar="GOAL", help="What is good enough: '99 % in 5 min'.")
@click.option("--largest", is_flag=True, help="Look for the largest fleet that the cell takes, too.")
@click.option("--seeds", type=int, default=20, show_default=True, metavar="N", help="Runs of each setting.")
@click.option("--seed", type=int, default=1, show_default=True, metavar="N", help="Seed of the first of them.")
@click.option("--jobs", type=int, default=0, metavar="N", help="Runs at the same time; 0: one per core.")
@arguments.sets("Set a key of the description: cell.buffer='20 kB', group[0].controller=fasor")
@click.option("--out", type=_PATH, metavar="DIR", help="Where its files go. [a free name in results/]")
@click.option("--no-report", is_flag=True, help="Write no files.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON and nothing else.")
@click.option("--markdown", is_flag=True, help="Print the answer as Markdown, for a ticket, and nothing else.")
def fleet(
    file: Path | None,
    example: bool,
    folder: Path | None,
    largest: bool,
    seeds: int,
    seed: int,
    jobs: int,
    changes: dict[str, Any],
    out: Path | None,
    no_report: bool,
    as_json: bool,
    markdown: bool,
    **flags: Any,
) -> None:
    """Say whether a fleet brings its cell down, and what prevents it.

    FILE.toml describes the fleet; flags alone will do, and everything else has a default: `millpond fleet --example`.
    """
    from millpond.fleet import description

    if example:
        say(description.example(), nl=False)
        return
    if folder is not None:
        if file is not None:
            raise UsageError(f"--from: {file} is a fleet too: give one of the two")
        file = folder / WRITTEN
        if not file.is_file():
            raise UsageError(
                f"--from: {folder} holds no {WRITTEN}: `millpond diagnose FILE --write {folder}` writes one"
            )
    told = {place: flags[flag] for flag, place in _KEYS.items() if flags[flag] is not None}
    options = {place: f"--{flag.replace('_', '-')}" for flag, place in _KEYS.items() if place in told}
    for place, option in options.items():
        if place in changes:
            raise UsageError(f"--set {place}: {option} sets it too: give one of the two")
    if file is None and not told and not changes:
        raise UsageError("which fleet? name its file, or --devices N; `millpond fleet --example` prints one")
    if as_json and markdown:
        raise UsageError("--json and --markdown: only one of them")
    if no_report and out is not None:
        raise UsageError("--no-report and --out: only one of them")
    if seeds < 2:
        raise UsageError(f"--seeds: {seeds} makes no sense here: at least 2")
    if not 0 <= seed < 2**53 - seeds:
        raise UsageError(f"--seed: {seed} is out of range: 0 to 2^53")
    if jobs < 0:
        raise UsageError(f"--jobs: {jobs} makes no sense here: at least 1, or 0 for one per core")

    known = description.read(file, {**told, **changes}, options)
    _answer(known, range(seed, seed + seeds), jobs, largest, out, file, no_report, as_json, markdown)


def _answer(
    known: Fleet,
    seeds: range,
    jobs: int,
    largest: bool,
    out: Path | None,
    file: Path | None,
    no_report: bool,
    as_json: bool,
    markdown: bool,
) -> None:
    from millpond.fleet import answer, files
    from millpond.results.directory import FREE
    from millpond.run.progress import Bar

    folder = None if no_report else files.folder(out or FREE, "fleet" if file is None else file.stem)
    found = answer.find(known, seeds, jobs=jobs, largest=largest, pictures=not no_report, watcher=Bar())
    # before anything is printed: its reader may go before the end
    report = None if folder is None else files.write(found, folder)
    _print(found, report, as_json, markdown)


def redraw(
    directory: Path,
    as_json: bool,
    figures: Sequence[str],
    tables: Sequence[str],
    width: float,
    folder: Path | None,
) -> None:
    """Draw the report of an earlier answer again, and its figures and tables as files of their own."""
    from millpond.fleet import files

    found = files.read(directory)
    report = files.write(found, directory)
    _print(found, report, as_json)
    print_files(files.export(found, folder or directory, figures, tables, width), as_json)


def _print(found: Answer, report: Path | None, as_json: bool, markdown: bool = False) -> None:
    from millpond.fleet import page
    from millpond.show import terminal, text

    if as_json:
        print_json(found.to_json())
    elif markdown:
        say(text.markdown(page.document(found)), nl=False)
    else:
        terminal.show(terminal.render(page.document(found)))
    if report is not None:
        say(f"report: {report}", err=as_json or markdown)
