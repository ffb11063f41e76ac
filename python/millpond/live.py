"""The verbs that need no laboratory (get, put, observe, serve, load …): the very code of the stand-alone program."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import click

from millpond import _engine

#: What only the stand-alone program can say of itself.
_ITS_OWN = ("completions", "manual")

#: Those that put a path between programs, and the exit code of a run that was too late to be believed.
_EMULATING, _LATE = ("emulate", "relay"), 3


def commands() -> Iterator[click.Command]:
    """Each verb as a command that hands its arguments on as they are, `--help` included."""
    for name, about in _engine.live_verbs():
        if name not in _ITS_OWN:
            yield _handing_on(name, about)


def _handing_on(name: str, about: str) -> click.Command:
    def run(arguments: tuple[str, ...]) -> None:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            # the verb hears Ctrl-C itself; Python would hear it too, and end what ended well as stopped
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        code = _engine.live(["millpond", name, *arguments])
        folder = _out(arguments) if name in _EMULATING else None
        # a run that was late is told of by its code, and has its figures nevertheless
        if folder is not None and code in (0, _LATE):
            from millpond.results.emulation import write_tables

            write_tables(folder)
        raise SystemExit(code)

    return _AsTheyAre(name, callback=run, add_help_option=False, help=about)


class _AsTheyAre(click.Command):
    """Leaves the arguments alone: a parser, even one that knows no options, would take `--` out of them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.params["arguments"] = tuple(args)
        return []


def _out(arguments: tuple[str, ...]) -> Path | None:
    """The folder of `--out`, if there is one; what stands after `--` is another program's."""
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    for word, following in zip(own, (*own[1:], ""), strict=True):
        if word == "--out":
            return Path(following)
        if word.startswith("--out="):
            return Path(word.removeprefix("--out="))
    return None
