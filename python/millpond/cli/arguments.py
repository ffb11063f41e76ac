"""What stands behind the words of a command line: lists, settings, shards, and flags that may be given once."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


class Verb(click.Command):
    """A command that refuses a single-valued flag given twice: the last one would win without a word."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments. Raises `click.UsageError` with one line."""
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        often = Counter(param.name for param in order if isinstance(param, click.Option) and not param.multiple)
        for param in order:
            if often[param.name] > 1 and isinstance(param, click.Option) and not param.is_flag:
                raise click.BadOptionUsage(param.opts[-1], f"{param.opts[-1]} is given twice: it takes one value")
        return super().parse_args(ctx, args)


class Group(click.Group):
    """A group that says which verb was probably meant."""

    command_class = Verb

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command. Raises `click.UsageError` with one line."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            from millpond.errors import unknown

            raise click.UsageError(unknown("verb", args[0], self.commands))
        return super().resolve_command(ctx, args)


#: Long lines go on in the next one.
_WHOLE = 200


class Program(Group):
    """The program: its verbs stand in groups, each with its line."""

    #: What the verbs are for, in the order of the help.
    groups: Mapping[str, Sequence[str]] = {}

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs."""
        for title, verbs in self.groups.items():
            if rows := [
                (verb, self.commands[verb].get_short_help_str(_WHOLE)) for verb in verbs if verb in self.commands
            ]:
                with formatter.section(title):
                    formatter.write_dl(rows)


def examples(*lines: str) -> str:
    """What stands at the end of a verb's help, line by line as it is."""
    return "\n".join(("\b", "Examples:", *(f"  {line}" for line in lines)))


#: The verb of a group that is meant where a place stands instead of a verb.
PLACES = "places"


class GroupOfPlaces(Group):
    """A group whose first word may be a place instead of a verb."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words. Raises `click.UsageError` with one line if there are none."""
        if not args:
            ctx.fail(f"DIR is missing: name a folder, as in `{ctx.command_path} results/anrw18`")
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command. Raises `click.UsageError` with one line."""
        from pathlib import Path

        from millpond.errors import nearest

        verbs = [name for name, command in self.commands.items() if not command.hidden]
        if args and args[0] not in verbs and (Path(args[0]).exists() or nearest(args[0], verbs) is None):
            return PLACES, self.commands[PLACES], args
        return super().resolve_command(ctx, args)


def names(ctx: click.Context, param: click.Parameter, value: Sequence[str]) -> tuple[str, ...]:
    """Names with commas between; a flag given again adds to them."""
    words = [word.strip() for text in value for word in text.split(",")]
    if "" in words:
        raise click.BadParameter(f"{','.join(value)!r}: nothing between two commas", ctx, param)
    return tuple(words)


def numbers(ctx: click.Context, param: click.Parameter, value: Sequence[str]) -> tuple[int, ...]:
    """Numbers with commas between: `1,50,400`; a flag given again adds to them."""
    found = []
    for word in names(ctx, param, value):
        try:
            found.append(int(word))
        except ValueError:
            raise click.BadParameter(f"{word!r} is not a whole number", ctx, param) from None
    return tuple(found)


def controllers(ctx: click.Context, param: click.Parameter, value: Sequence[str]) -> tuple[Any, ...]:
    """Controllers with commas between, each a name, a name with settings, or a table."""
    if not value:
        return ()
    from millpond.plan import overrides

    option = param.opts[-1]
    return tuple(overrides.controller(word, option) for text in value for word in overrides.listed(text, option))


def changes(ctx: click.Context, param: click.Parameter, value: Sequence[str]) -> dict[str, Any]:
    """`PLACE=VALUE`, each as often as there are places."""
    if not value:
        return {}
    from millpond.plan import overrides

    return overrides.places(value, param.opts[-1])


def sets(text: str) -> Callable[[F], F]:
    """The flag `--set` of every verb that reads a description."""
    told = f"{text}; may be repeated."
    return click.option("--set", "changes", multiple=True, callback=changes, metavar="PLACE=VALUE", help=told)


def factors(ctx: click.Context, param: click.Parameter, value: Sequence[str]) -> dict[str, list[Any]]:
    """`NAME=V,W`: the values of a factor."""
    if not value:
        return {}
    from millpond.errors import UsageError
    from millpond.plan import overrides

    option = param.opts[-1]
    found: dict[str, list[Any]] = {}
    for word in value:
        name, equals, text = (part.strip() for part in word.partition("="))
        if not equals or not name or not text:
            raise UsageError(f"{option}: {word!r} is no NAME=VALUE,VALUE")
        found.setdefault(name, []).extend(overrides.value_of(entry, option) for entry in overrides.listed(text, option))
    return found


def shard(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, int]:
    """`2/8`: the second of eight parts."""
    if value is None:
        return 1, 1
    number, slash, of = value.partition("/")
    if not slash or not number.strip().isdigit() or not of.strip().isdigit():
        raise click.BadParameter(f"{value!r} is no PART/PARTS, such as 2/8", ctx, param)
    return int(number), int(of)


def settings(ctx: click.Context, param: click.Parameter, value: Sequence[str]) -> dict[str, object]:
    """Parameters as a scenario would write them: `max-wait=60 s`; numbers are numbers."""
    found: dict[str, object] = {}
    for word in value:
        name, equals, text = (part.strip() for part in word.partition("="))
        if not equals or not name or not text:
            raise click.BadParameter(f"{word!r} is no NAME=VALUE", ctx, param)
        if name in found:
            raise click.BadParameter(f"{name} is set twice", ctx, param)
        found[name] = _number_or_text(text)
    return found


def _number_or_text(text: str) -> int | float | str:
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text
