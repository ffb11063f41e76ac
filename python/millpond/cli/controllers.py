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
        "millpond controllers calm --set patience='4 s'",
        "millpond controllers mine.py:Mine --out mine.html",
    ),
)
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
