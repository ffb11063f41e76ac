"""The program `millpond`. Exit codes: 0 done, 1 failed, 2 usage, 130 stopped by Ctrl-C.

Nothing here imports tables or figures before a verb needs them: the verbs on the wire start at once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from millpond import _engine, live
from millpond.cli import arena, calibrate, controllers, diagnose, fleet, lab
from millpond.cli.arguments import Program, examples
from millpond.cli.output import say, write_plainly
from millpond.errors import MillpondError, telling_of_flags, without_laboratory

__all__ = ["main", "program"]


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(f"millpond {_engine.built()}")
        ctx.exit()


@click.group(
    cls=Program,
    epilog=examples(
        "millpond fleet --devices 400 --profile nbiot-anrw18 --after power-cut",
        "millpond run scenarios/first.toml",
        "millpond get --trace coap://127.0.0.1/slow",
    ),
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Print the version."
)
def program() -> None:
    """CoAP congestion control, measured in the very code that ships."""


for _command in (
    *live.commands(),
    *lab.COMMANDS,
    arena.arena,
    calibrate.calibrate,
    controllers.controllers,
    diagnose.diagnose,
    controllers.explore,
    fleet.fleet,
    controllers.paths,
):
    program.add_command(_command)


#: Those on the wire come last: the engine has them.
program.groups = {
    "Simulate": ("run", "sweep", "compare", "report", "results", "capture"),
    "Fleets and studies": ("fleet", "reproduce", "calibrate"),
    "Controllers and paths": ("controllers", "arena", "paths", "explore"),
    **dict(_engine.verb_groups()),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program; always ends in SystemExit."""
    write_plainly()
    try:
        told = None if arguments is None else list(arguments)
        with telling_of_flags():
            program.main(args=told, prog_name="millpond", standalone_mode=False)
    except click.ClickException as error:
        code = 2 if isinstance(error, click.UsageError) else 1
        _fail(error.format_message(), code)
    except MillpondError as error:
        _fail(str(error), error.exit_code)
    except ModuleNotFoundError as missing:
        lacking = without_laboratory(missing)
        if lacking is None:
            raise
        _fail(str(lacking), lacking.exit_code)
    except (KeyboardInterrupt, click.Abort):
        _fail("stopped", 130)
    except BrokenPipeError:
        # the reader of the tables has gone: nothing more to say, and nothing to flush at the end
        sys.stdout = None
        raise SystemExit(1) from None
    except RecursionError:
        _fail("nested too deep: a file or an argument holds lists or tables in one another without an end in sight", 1)
    except OSError as error:
        # a disk that is full, a directory that vanished: nothing that a traceback would help with
        _fail(f"{error.filename or 'files'}: {error.strerror or error}", 1)
    raise SystemExit(0)


def _fail(message: str, code: int) -> None:
    say(f"millpond: {' '.join(message.split())}", err=True)
    raise SystemExit(code)
