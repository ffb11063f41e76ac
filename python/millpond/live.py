"""The verbs that need no laboratory (get, put, observe, serve, load …): the very code of the stand-alone program."""

from __future__ import annotations

import inspect
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from millpond import _engine

#: Those that tell of all verbs, also of the laboratory's.
_TELLING = ("completions", "manual")

#: Those that put a path between programs, and the exit code of a run that was too late to be believed.
_EMULATING, _LATE = ("emulate", "relay"), 3


def commands() -> Iterator[click.Command]:
    """Each verb as a command that hands its arguments on as they are, `--help` included."""
    for name, about in _engine.live_verbs():
        yield _handing_on(name, about)


def _handing_on(name: str, about: str) -> click.Command:
    def run(arguments: tuple[str, ...]) -> None:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            # the verb hears Ctrl-C itself; Python would hear it too, and end what ended well as stopped
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        code = _engine.live(["millpond", name, *arguments], _laboratory() if name in _TELLING else None)
        folder = _out(arguments) if name in _EMULATING else None
        # a run that was late is told of by its code, and has its figures nevertheless
        if folder is not None and code in (0, _LATE):
            from millpond.results.emulation import write_tables

            write_tables(folder)
        raise SystemExit(code)

    return _AsTheyAre(name, callback=run, add_help_option=False, help=about)


def _laboratory() -> str:
    """The verbs of this program that are not passed to the other, for those that tell of all."""
    program = click.get_current_context().find_root().command
    assert isinstance(program, click.Group)
    own = [command for command in program.commands.values() if not isinstance(command, _AsTheyAre)]
    return json.dumps([_described(command) for command in own])


def _described(command: click.Command) -> dict[str, Any]:
    verbs = command.commands.values() if isinstance(command, click.Group) else ()
    return {
        "name": command.name,
        "about": inspect.cleandoc(command.help or "").replace("\b\n", ""),
        "flags": [flag for param in command.params for flag in _flags(param)],
        "verbs": [_described(verb) for verb in verbs if not verb.hidden],
    }


def _flags(param: click.Parameter) -> Iterator[dict[str, Any]]:
    """A flag or an argument; one that has a word for yes and a word for no is two."""
    is_option = isinstance(param, click.Option)
    takes_value = not (isinstance(param, click.Option) and (param.is_flag or param.count))
    name = param.name or ""
    flag = {
        "name": name,
        "written": [],
        "help": getattr(param, "help", None) or "",
        "value": (param.metavar or name.upper()) if takes_value else None,
        "words": list(param.type.choices) if isinstance(param.type, click.Choice) else [],
        "is_required": param.required,
    }
    yield flag | {"written": param.opts} if is_option else flag
    if param.secondary_opts:
        yield flag | {"name": f"no-{name}", "written": param.secondary_opts}


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
