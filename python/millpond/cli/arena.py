"""The verb `arena`: candidates against every published preset, on many paths."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from millpond.cli import arguments
from millpond.cli.output import print_json

_PATH = click.Path(path_type=Path)


@click.command(cls=arguments.Verb)
@click.option(
    "--candidate",
    "candidates",
    multiple=True,
    callback=arguments.controllers,
    metavar="A[,B]",
    help="Who is judged: presets, with settings 'rfc7252?ack-timeout=3 s' or as a table; mine.py:Mine. [calm]",
)
@click.option(
    "--against", multiple=True, callback=arguments.names, metavar="A,B", help="Presets to compare with. [one a family]"
)
@click.option("--cells", default="drawn", show_default=True, metavar="WHICH", help="studies, drawn or all.")
@click.option(
    "--seeds", default="training", show_default=True, metavar="LOT", help="training or held-out: paths and luck apart."
)
@click.option("--drawn", type=int, default=120, show_default=True, metavar="N", help="So many drawn cells.")
@click.option("--runs", type=int, default=4, show_default=True, metavar="N", help="Runs of a cell, at most.")
@click.option("--out", type=_PATH, metavar="DIR", help="Where results go. [a free name in results/]")
@click.option("--resume", is_flag=True, help="Go on with what is in the results directory.")
@click.option("--jobs", type=int, default=0, metavar="N", help="Runs at the same time; 0: one per core.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON and nothing else.")
def arena(as_json: bool, candidates: tuple[Any, ...], cells: str, **options: Any) -> None:
    """Put candidates beside every published preset, on many paths.

    Every cell is judged by the best preset of that very cell.
    """
    from millpond.arena import contest, page
    from millpond.cli.lab import bar
    from millpond.show import terminal

    done = contest.hold(candidates or ("calm",), cells_of=cells, watcher=bar(), command=sys.argv, **options)
    if as_json:
        print_json({"directory": str(done.directory), "summary": [vars(one) for one in done.summaries]})
        return
    terminal.show([page.terminal(done.summaries)])
    click.echo(f"page: {done.page}")
