"""The program `millpond`. Exit codes: 0 done, 1 failed, 2 usage, 130 stopped by Ctrl-C."""

from __future__ import annotations

import contextlib
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from millpond import api, live
from millpond.controllers import catalogue, sheet, terminal
from millpond.controllers.requirements import REQUIREMENTS
from millpond.errors import MillpondError, UsageError, unknown
from millpond.plan import study
from millpond.results.directory import Results
from millpond.results.store import write_bytes
from millpond.run import capture as captures
from millpond.run.engine import native
from millpond.run.progress import Bar
from millpond.show import terminal as tables


class _Verbs(click.Group):
    """A group that says which verb was probably meant."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            raise click.UsageError(unknown("verb", args[0], self.commands))
        return super().resolve_command(ctx, args)


def _numbers(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...]:
    """Numbers with commas between: `1,50,400`."""
    found = []
    for word in _names(ctx, param, value):
        try:
            found.append(int(word))
        except ValueError:
            raise click.BadParameter(f"{word!r} is not a whole number", ctx, param) from None
    return tuple(found)


def _names(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...]:
    """Names with commas between."""
    if value is None:
        return ()
    words = tuple(word.strip() for word in value.split(","))
    if "" in words:
        raise click.BadParameter(f"{value!r}: nothing between two commas", ctx, param)
    return words


def _settings(ctx: click.Context, param: click.Parameter, value: Sequence[str]) -> dict[str, object]:
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


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(f"millpond {native().version()}")
        ctx.exit()


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Print the version."
)
def program() -> None:
    """CoAP congestion control, measured in the very code that ships."""


for _command in live.commands():
    program.add_command(_command)


@program.command()
@click.argument("name", metavar="STUDY", required=False)
@click.option("--quick", is_flag=True, help="Fewer replications and client counts.")
@click.option(
    "--controllers",
    callback=_names,
    metavar="A,B",
    help="Only these algorithms of the study; also other presets, and your own: mine.py:Mine.",
)
@click.option("--clients", callback=_numbers, metavar="N,M", help="These numbers of clients.")
@click.option("--buffers", callback=_numbers, metavar="N,M", help="These bottleneck buffers, in bytes.")
@click.option("--replications", type=int, metavar="N", help="Runs of each cell, each with its own seed.")
@click.option("--jobs", type=int, default=0, metavar="N", help="Runs at the same time; 0: one per core.")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", help="Where results go. [a free name in results/]"
)
@click.option("--resume", is_flag=True, help="Go on with what is in the results directory.")
@click.option(
    "--published", type=click.Path(path_type=Path), metavar="FILE", help="Compare with this CSV file instead."
)
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON and nothing else.")
@click.option("--no-report", is_flag=True, help="Write no HTML report.")
def reproduce(name: str | None, as_json: bool, no_report: bool, **options: Any) -> None:
    """Rerun a published study and put ours beside theirs."""
    if name is None:
        raise UsageError(f"which study? known: {', '.join(study.studies())}")
    done = api.reproduce(name, report=not no_report, watcher=Bar(), command=sys.argv, **options)
    if as_json:
        _print_json(done.comparison.to_json())
    else:
        tables.show(done.tables)
    _say_where(done, as_json)


@program.command()
@click.argument("file", metavar="FILE.toml", type=click.Path(path_type=Path))
@click.option(
    "--controller",
    callback=_names,
    metavar="A[,B]",
    help="Another controller for all clients, or one for each group: a preset, or your own: mine.py:Mine.",
)
@click.option(
    "--replications", type=int, default=1, show_default=True, metavar="N", help="Runs, each with its own seed."
)
@click.option("--seed", type=int, default=1, show_default=True, metavar="N", help="Seed of the first run.")
@click.option(
    "--trace",
    callback=lambda ctx, param, value: None if value is None else _names(ctx, param, value),
    metavar="A,B",
    help="Trace run 0: queue, share, rto, packets, exchanges, tcp; or none. [what the report draws]",
)
@click.option(
    "--capture",
    type=click.Path(path_type=Path),
    metavar="FILE.pcapng",
    help="Write every packet of run 0 into a file that Wireshark opens.",
)
@click.option("--jobs", type=int, default=0, metavar="N", help="Runs at the same time; 0: one per core.")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", help="Where results go. [a free name in results/]"
)
@click.option("--resume", is_flag=True, help="Go on with what is in the results directory.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON and nothing else.")
@click.option("--no-report", is_flag=True, help="Write no HTML report.")
def run(file: Path, as_json: bool, no_report: bool, **options: Any) -> None:
    """Run any scenario."""
    done = api.run(file, report=not no_report, watcher=Bar(), command=sys.argv, **options)
    if as_json:
        _print_json(_summary(done))
    else:
        tables.show(done.tables)
    _say_where(done, as_json)
    if options["capture"] is not None:
        click.echo(f"captured: {options['capture']}", err=as_json)


@program.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--published", type=click.Path(path_type=Path), metavar="FILE", help="Compare with this CSV file instead."
)
@click.option("--json", "as_json", is_flag=True, help="Print the comparison or summary as JSON and nothing else.")
def report(directory: Path, published: Path | None, as_json: bool) -> None:
    """Redraw tables and report from results alone."""
    done = api.open_results(directory, published)
    api.redraw(done)
    if as_json:
        _print_json(done.comparison.to_json() if isinstance(done, api.Reproduction) else _summary(done))
    else:
        tables.show(done.tables)
    _say_where(done, as_json)


@program.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("file", metavar="FILE.pcapng", type=click.Path(path_type=Path))
@click.option("--cell", metavar="NAME", help="Which setting of a study, or enough of its name that only one is meant.")
@click.option("--replication", type=int, default=0, show_default=True, metavar="N", help="Which run of it.")
def capture(directory: Path, file: Path, cell: str | None, replication: int) -> None:
    """Run one run of earlier results again and write its packets.

    DIR is any results directory, of a study or of one scenario. The run is the same as it was, packet by packet.
    """
    captures.check(file, "FILE")
    found, seed, content = captures.of_results(Results.open(directory), cell, replication, native())
    write_bytes(file, content)
    click.echo(f"captured: {file}   cell: {found.id}   seed: {seed}")


@program.command()
@click.argument("name", metavar="CONTROLLER", required=False)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Draw its waits into FILE.svg, or all of it into FILE.html.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    callback=_settings,
    metavar="NAME=VALUE",
    help="Set a parameter; may be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON and nothing else.")
@click.option("--markdown", is_flag=True, help="Print the tables of the manual and nothing else.")
def controllers(name: str | None, out: Path | None, settings: dict[str, object], as_json: bool, markdown: bool) -> None:
    """List the controllers, or explain one and draw its waits.

    CONTROLLER is a preset's name, or a controller of your own: mine.py:Mine. Which requirements one meets is found out
    by driving it.
    """
    if as_json and markdown:
        raise UsageError("--json and --markdown: only one of them")
    if name is None:
        if out is not None or settings:
            raise UsageError(f"{'--set' if settings else '--out'}: which controller? name one")
        _list_controllers(as_json, markdown)
        return
    if markdown:
        raise UsageError("--markdown: it is about all controllers: leave the name out")
    if out is not None:
        sheet.check(out)
    choice = catalogue.Choice(name, settings)
    one, makes = catalogue.entry(choice), choice.beside_the_standard()
    with catalogue.in_one_line():
        if as_json:
            _print_json({"version": native().version(), "controller": one.to_json(), "waits": catalogue.waits(makes)})
        else:
            tables.show(terminal.explanation(one, makes))
        if out is not None:
            sheet.write(out, one, makes, native().version())
            click.echo(f"drawn: {out}", err=as_json)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program; always ends in SystemExit."""
    try:
        program.main(args=None if arguments is None else list(arguments), prog_name="millpond", standalone_mode=False)
    except click.ClickException as error:
        code = 2 if isinstance(error, click.UsageError) else 1
        _fail(error.format_message(), code)
    except MillpondError as error:
        _fail(str(error), error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        _fail("stopped", 130)
    except BrokenPipeError:
        # whoever read the tables has gone: nothing more to say, and nothing to flush at the end
        sys.stdout = None
        raise SystemExit(1) from None
    except OSError as error:
        # a disk that is full, a directory that vanished: nothing that a traceback would help with
        _fail(f"{error.filename or 'files'}: {error.strerror or error}", 1)
    raise SystemExit(0)


# ----------------------------------------------------------------------------------------------- helpers


def _list_controllers(as_json: bool, markdown: bool) -> None:
    found = catalogue.entries()
    if as_json:
        told = [{"id": one.id, "title": one.title, "text": one.text, "source": one.source} for one in REQUIREMENTS]
        _print_json(
            {"version": native().version(), "requirements": told, "controllers": [one.to_json() for one in found]}
        )
    elif markdown:
        click.echo(catalogue.markdown(found), nl=False)
    else:
        tables.show(terminal.overview(found))


def _print_json(content: Any) -> None:
    sys.stdout.write(json.dumps(_plain(content), indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    sys.stdout.flush()


def _plain(content: Any) -> Any:
    """JSON knows no number that is none."""
    if isinstance(content, dict):
        return {key: _plain(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_plain(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def _summary(done: api.Run) -> dict[str, Any]:
    manifest = done.results.manifest
    return {
        "scenario": manifest["name"],
        "title": manifest["title"],
        "version": manifest["version"],
        "seeds": manifest["seeds"],
        "groups": done.summary.to_pylist(),
    }


def _say_where(done: api.Run, as_json: bool) -> None:
    told = f"results: {done.directory}" + (f"   report: {done.report}" if done.report is not None else "")
    click.echo(told, err=as_json)


def _fail(message: str, code: int) -> None:
    click.echo(f"millpond: {' '.join(message.split())}", err=True)
    raise SystemExit(code)
