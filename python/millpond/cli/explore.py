"""The verb `explore`."""

from __future__ import annotations

from pathlib import Path

import click

from millpond.cli import arguments
from millpond.cli.output import say


@click.command(
    cls=arguments.Verb,
    epilog=arguments.examples(
        "millpond explore",
        "millpond explore scenario.toml --port 8080 --no-open",
    ),
)
@click.argument("scenario", metavar="[FILE.toml]", type=click.Path(path_type=Path), required=False)
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Listen there. [a free port]")
@click.option("--no-open", is_flag=True, help="Open no browser; print the address only.")
def explore(scenario: Path | None, port: int, no_open: bool) -> None:
    """Play with a collapse in a browser: the simulator in a page.

    With a scenario file the page begins with that one. Nothing leaves this machine; Ctrl-C ends it.
    """
    import contextlib
    import webbrowser

    from millpond.explore import server

    with server.serve(port) as page:
        address = server.address(page.server_address[1], scenario)
        say(address)
        if not no_open and not webbrowser.open(address):
            say("no browser was found: open that address in one", err=True)
        with contextlib.suppress(KeyboardInterrupt):
            page.serve_forever()
