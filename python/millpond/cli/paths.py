"""The verb `paths`: those that have a name, and where each is described."""

from __future__ import annotations

import click

from millpond.cli import arguments
from millpond.cli.output import print_json, say
from millpond.errors import UsageError, unknown


@click.command(
    cls=arguments.Verb,
    epilog=arguments.examples(
        "millpond paths",
        "millpond paths nbiot-anrw18 > mine.toml",
    ),
)
@click.argument("name", metavar="PATH", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON and nothing else.")
def paths(name: str | None, as_json: bool) -> None:
    """List the paths that a scenario can name, with their sources, or print the file of one.

    The file has beside every figure the place where it is printed.
    """
    from millpond import _engine

    found = {profile[0]: profile for profile in _engine.profiles()}
    if name is not None and name not in found:
        raise UsageError(unknown("path", name, tuple(found)))
    chosen = list(found.values()) if name is None else [found[name]]
    if as_json:
        print_json([dict(zip(("name", "title", "source", "text"), profile, strict=True)) for profile in chosen])
    elif name is not None:
        say(chosen[0][3], nl=False)
    else:
        say("\n".join(f"{word}\n    {title}\n    {source}" for word, title, source, _ in chosen))
