"""What the laboratory's verbs print."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from millpond.show.plain import as_json

if TYPE_CHECKING:
    from millpond.api import Run


def print_json(content: Any) -> None:
    """Print JSON and nothing else."""
    sys.stdout.write(as_json(content))
    sys.stdout.flush()


def print_run(done: Run, as_json: bool) -> None:
    """Print what a run gave, its tables or as JSON, and where it lies."""
    from millpond.api import Reproduction
    from millpond.show import terminal

    if done.results.manifest["shard"][1] > 1 and len(done.results.folders) == 1:
        number, of = done.results.manifest["shard"]
        click.echo(f"results: {done.directory}   shard {number} of {of}: read it together with the others", err=as_json)
        return
    if as_json:
        print_json(done.to_json() if isinstance(done, Reproduction) else _summary(done))
    else:
        terminal.show(done.tables)
    told = f"results: {done.directory}" + (f"   report: {done.report}" if done.report is not None else "")
    click.echo(told, err=as_json)


def print_files(files: Sequence[Path], as_json: bool) -> None:
    """Say what was written beside the results, a line a folder."""
    folders = {file.parent: [other for other in files if other.parent == file.parent] for file in files}
    for folder, written in folders.items():
        click.echo(f"written: {len(written)} files in {folder}", err=as_json)


def _summary(done: Run) -> dict[str, Any]:
    manifest = done.results.manifest
    return {
        "scenario": manifest["name"],
        "title": manifest["title"],
        "version": manifest["version"],
        "seeds": manifest["seeds"],
        "groups": done.summary.to_pylist(),
    }
