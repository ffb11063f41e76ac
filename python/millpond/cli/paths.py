"""The verb `paths`: those that have a name, and where each is described."""

from __future__ import annotations

from pathlib import Path

import click

from millpond.cli import arguments
from millpond.cli.output import print_json, say


@click.command(
    cls=arguments.Verb,
    epilog=arguments.examples(
        "millpond paths",
        "millpond paths nbiot-anrw18 > mine.toml",
        "millpond paths mine.toml",
    ),
)
@click.argument("name", metavar="PATH", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON and nothing else.")
def paths(name: str | None, as_json: bool) -> None:
    """List the paths that a scenario can name, with their sources, or print the file of one.

    The file has beside every figure the place where it is printed. PATH may also be the file of a path: it is checked.
    """
    from millpond import _engine

    found = {profile[0]: profile for profile in _engine.profiles()}
    chosen = list(found.values()) if name is None else [found.get(name) or _of_file(name)]
    if as_json:
        print_json([dict(zip(("name", "title", "source", "text"), profile, strict=True)) for profile in chosen])
    elif name is not None:
        say(chosen[0][3], nl=False)
    else:
        say("\n".join(f"{word}\n    {title}\n    {source}" for word, title, source, _ in chosen))


def _of_file(word: str) -> tuple[str, str, str, str]:
    """What is told of a file, once it was checked: as of a path that has a name."""
    from millpond.given_files import read_text
    from millpond.plan import path_files, toml_file

    file = path_files.found(word, Path(), "PATH") or Path(word)
    path_files.read(file)
    about = toml_file.read_tree(file)
    return word, str(about.get("title", "")), str(about.get("source", "")), read_text(file)
