"""The verb `calibrate`: the setting under which a study's rows would come out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from millpond.cli import arguments
from millpond.cli.output import print_json, say

if TYPE_CHECKING:
    from millpond.calibrate.trial import Trial


@click.command(
    cls=arguments.Verb,
    epilog=arguments.examples("millpond calibrate burst23 --quick", "millpond calibrate ./mystudy --out results/found"),
)
@click.argument("name", metavar="STUDY")
@click.option("--quick", is_flag=True, help="Few settings, and what [quick] of the plan says to judge the best.")
@click.option("--tries", type=int, metavar="N", help="How many settings are tried. [what calibration.toml says]")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Where it goes. [results/calibrate-STUDY]")
@click.option("--resume", is_flag=True, help="Take the settings that were tried there.")
@click.option("--jobs", type=int, default=0, metavar="N", help="Settings at the same time; 0: one per core.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON and nothing else.")
def calibrate(
    name: str, quick: bool, tries: int | None, out: Path | None, resume: bool, jobs: int, as_json: bool
) -> None:
    """Search what a study's paper does not print: the setting under which its rows come out.

    STUDY is one that comes with the program, or the folder of one: ./mystudy. Its calibration.toml says what may
    change, which rows choose the setting, and which test it.
    """
    from millpond.calibrate import answer, page, search
    from millpond.cli.lab import bar
    from millpond.errors import UsageError
    from millpond.plan import study
    from millpond.show import terminal

    if tries is not None and tries < 1:
        raise UsageError(f"--tries: {tries} makes no sense here: at least 1")
    if jobs < 0:
        raise UsageError(f"--jobs: {jobs} makes no sense here: at least 1, or 0 for one per core")
    plan = study.load(study.find(name))
    folder = out or Path("results") / f"calibrate-{plan.name}"
    if (folder / search.TRIALS).exists() and not resume:
        raise UsageError(f"{folder} holds settings that were tried: --resume goes on with them, --out names another")
    found = answer.calibrate(plan, folder, quick=quick, tries=tries, jobs=jobs, told=_told, watcher=bar)
    report = page.write(found, folder)
    if as_json:
        print_json(found.to_json())
    else:
        terminal.show(terminal.render(page.document(found)))
    say(f"report: {report}", err=as_json)


def _told(number: int, best: Trial) -> None:
    """A line that is written over, on a terminal."""
    import sys

    if sys.stderr.isatty():
        click.echo(f"\r{number} settings, least distance {best.misfit:.3f} ", err=True, nl=False)
