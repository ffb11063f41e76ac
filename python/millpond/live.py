"""The verbs that need no laboratory (get, put, observe, serve, load …): the very code of the stand-alone program."""

from __future__ import annotations

from collections.abc import Iterator

import click

from millpond import _engine

#: What only the stand-alone program can say of itself.
_ITS_OWN = ("completions", "manual")


def commands() -> Iterator[click.Command]:
    """Each verb as a command that hands its arguments on as they are, `--help` included."""
    for name, about in _engine.live_verbs():
        if name not in _ITS_OWN:
            yield _handing_on(name, about)


def _handing_on(name: str, about: str) -> click.Command:
    def run(arguments: tuple[str, ...]) -> None:
        raise SystemExit(_engine.live(["millpond", name, *arguments]))

    return click.Command(
        name,
        callback=run,
        params=[click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED)],
        context_settings={"ignore_unknown_options": True, "help_option_names": []},
        add_help_option=False,
        help=about,
    )
