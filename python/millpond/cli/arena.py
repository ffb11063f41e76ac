"""The verb `arena`: candidates against published presets, on many paths."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from millpond.cli import arguments
from millpond.cli.output import print_json, say

_PATH = click.Path(path_type=Path)


@click.command(
    cls=arguments.Verb,
    epilog=arguments.examples(
        "millpond arena",
        "millpond arena --candidate mine.py:Mine",
        "millpond arena --candidate calm --search 'patience=1 s..60 s' --out results/search",
    ),
)
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
    "--readings",
    default="first",
    show_default=True,
    metavar="WHICH",
    help="Interpretations of studies' test beds: first or all.",
)
@click.option(
    "--seeds",
    default="training",
    show_default=True,
    metavar="SPLIT",
    help="training or held-out: they have no path and no seed in common.",
)
@click.option(
    "--drawn", default="120", show_default=True, metavar="N", help="How many drawn cells, or which: 401..800."
)
@click.option(
    "--families",
    multiple=True,
    callback=arguments.names,
    metavar="A,B",
    help="Draw cells of these families in turn. [all but windows and bursts]",
)
@click.option("--runs", type=int, default=16, show_default=True, metavar="N", help="Runs of a cell, at most.")
@arguments.sets("Set a key of every cell: server.duplicates=stored")
@click.option("--out", type=_PATH, metavar="DIR", help="Where results go. [a free name in results/]")
@click.option("--resume", is_flag=True, help="Go on with what is in the results directory.")
@click.option("--jobs", type=int, default=0, metavar="N", help="Runs at the same time; 0: one per core.")
@click.option(
    "--search",
    "ranges",
    multiple=True,
    metavar="S=A..B",
    help="Search settings of the one candidate, a preset, on training cells: 'patience=1 s..60 s'; may be repeated.",
)
@click.option("--draws", type=int, default=27, show_default=True, metavar="N", help="How many settings are drawn.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON and nothing else.")
def arena(
    as_json: bool, candidates: tuple[Any, ...], cells: str, ranges: tuple[str, ...], draws: int, **options: Any
) -> None:
    """Put candidates beside published presets, one of each family, on many paths.

    In each cell a candidate is judged against the best preset of that cell.
    """
    from millpond.arena import contest
    from millpond.cli.lab import bar
    from millpond.results.directory import FREE
    from millpond.show import terminal

    _fits_search(bool(ranges))
    if ranges:
        found = _searched(candidates or ("calm",), ranges, draws, options)
        if as_json:
            print_json({"found": [vars(one) for one in found]})
            return
        for one in found:
            say(f"rung {one.rung}: worst {one.worst:.2f}, mean {one.mean:.3f}: {one.settings}")
        return
    options["out"] = options["out"] or FREE
    done = contest.hold(candidates or ("calm",), cells_of=cells, watcher=bar(), **options)
    if as_json:
        print_json({"directory": str(done.directory), "summary": [vars(one) for one in done.summaries]})
        return
    terminal.show(terminal.render(done.document))
    say(f"page: {done.page}")


def _fits_search(is_search: bool) -> None:
    """Raises `UsageError` for a flag that would count for nothing."""
    from click.core import ParameterSource

    from millpond.errors import UsageError

    context = click.get_current_context()
    for name in ("cells", "readings", "families", "drawn", "runs", "changes") if is_search else ("draws",):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            told = "its rungs say which cells are run, and how often" if is_search else "it goes with --search alone"
            flag = "--set" if name == "changes" else f"--{name}"
            raise UsageError(f"{'--search' if is_search else flag}: {told}: leave {flag} out")


def _searched(candidates: tuple[Any, ...], ranges: tuple[str, ...], draws: int, options: dict[str, Any]) -> list[Any]:
    from millpond.arena import search
    from millpond.cli.lab import bar
    from millpond.errors import UsageError

    if len(candidates) != 1 or not isinstance(candidates[0], str):
        raise UsageError("--search: it takes one candidate, a preset without settings")
    if options["seeds"] != "training":
        raise UsageError("--search: held-out cells are for judging what was found: leave --seeds out")
    out = options["out"] or Path("results") / f"arena-search-{candidates[0]}"
    if out.exists() and not options["resume"]:
        raise UsageError(f"{out} is there already: --resume goes on with it")
    how = {name: options[name] for name in ("against", "jobs")}
    return search.search(candidates[0], search.ranges(ranges), draws, out, watcher=bar(), **how)
