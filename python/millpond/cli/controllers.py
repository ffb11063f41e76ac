"""The verb `controllers`: those there are, and what each does."""

from __future__ import annotations

from pathlib import Path

import click

from millpond.cli import arguments
from millpond.cli.output import print_json, say
from millpond.errors import UsageError


@click.command(
    cls=arguments.Verb,
    epilog=arguments.examples(
        "millpond controllers",
        "millpond controllers calm --set patience=none",
        "millpond controllers mine.py:Mine --out mine.html",
    ),
)
@click.argument("name", metavar="[CONTROLLER]", required=False)
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
    callback=arguments.settings,
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
    from millpond import _engine
    from millpond.controllers import catalogue
    from millpond.show import terminal
    from millpond.show.controllers import sheet

    if as_json and markdown:
        raise UsageError("--json and --markdown: only one of them")
    if name is None:
        if out is not None or settings:
            raise UsageError(f"{'--set' if settings else '--out'}: which controller? name one")
        _list(as_json, markdown)
        return
    if markdown:
        raise UsageError("--markdown: it is about all controllers: leave the name out")
    if out is not None:
        sheet.check(out)
    choice = catalogue.Choice(name, settings)
    one, makes = catalogue.entry(choice), choice.beside_the_standard()
    with catalogue.in_one_line():
        if as_json:
            print_json({"version": _engine.version(), "controller": one.to_json(), "waits": catalogue.waits(makes)})
        else:
            terminal.show(terminal.render(sheet.explanation(one, makes, _engine.version())))
        if out is not None:
            sheet.write(out, one, makes, _engine.version())
            say(f"drawn: {out}", err=as_json)


def _list(as_json: bool, markdown: bool) -> None:
    from millpond import _engine
    from millpond.controllers import catalogue
    from millpond.controllers.requirements import REQUIREMENTS
    from millpond.show import terminal, text
    from millpond.show.controllers import sheet

    found = catalogue.entries()
    if as_json:
        told = [{"id": one.id, "title": one.title, "text": one.text, "source": one.source} for one in REQUIREMENTS]
        print_json(
            {"version": _engine.version(), "requirements": told, "controllers": [one.to_json() for one in found]}
        )
    elif markdown:
        say(text.of_sections(sheet.overview_sections(found)), nl=False)
    else:
        terminal.show(terminal.render(sheet.overview(found, _engine.version())))
        say("millpond controllers NAME explains one and draws its waits")


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


@click.command(
    cls=arguments.Verb,
    epilog=arguments.examples(
        "millpond paths",
        "millpond paths nbiot-anrw18 > mine.toml",
        "millpond paths mine.toml",
    ),
)
@click.argument("name", metavar="[PATH]", required=False)
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
