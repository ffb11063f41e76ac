"""One controller as a file: the picture of its waits alone, or a page with everything known of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from millpond.controllers.catalogue import Entry, state
from millpond.controllers.peer import Make
from millpond.controllers.requirements import Judgement
from millpond.errors import UsageError
from millpond.results.store import write_text
from millpond.show.controllers import picture
from millpond.show.report.drawing import svg
from millpond.show.report.page import compose
from millpond.show.report.parts import Listing, Picture, Section

FORMS = (".svg", ".html")

CAPTION = (
    "Above: the wait after each copy of an exchange that nobody answers; the line has the lowest draw, the band "
    "reaches to the highest. Middle: first waits after an exchange (grey, with the wait in force at its end) that was "
    "answered after so many retransmissions; each exchange that follows is answered at once, and its thin line shows "
    "how long the second wait would have been. Below: first waits on a path whose round-trip time changes and which "
    "loses the first copies of two exchanges. Waits are on logarithmic scales; middle and below have the middle draw."
)
FOOTER = "Every figure was measured by driving the controller itself in invented time."


def check(file: Path) -> None:
    """Raises `UsageError` if no file of this name can be written."""
    if file.suffix not in FORMS:
        raise UsageError(f"--out: {file}: the name must end in {' or '.join(FORMS)}")


def write(file: Path, one: Entry, makes: Mapping[str, Make], version: str) -> None:
    """Write the picture (`.svg`) or the page (`.html`); the file appears whole or not at all.

    The same controllers give the same bytes.
    """
    check(file)
    write_text(file, svg(picture.draw(makes)) if file.suffix == ".svg" else page(one, makes, version))


def page(one: Entry, makes: Mapping[str, Make], version: str) -> str:
    """The page as text; it opens offline."""
    drawn = Picture(
        "waits",
        f"Waits of {' and '.join(makes)}",
        CAPTION,
        partial(picture.draw, makes),
        partial(picture.rows, makes),
    )
    sections = [
        Section("summary", "In short", (one.summary,), listings=(_facts(one),)),
        Section("waits", "Waits", pictures=(drawn,)),
        Section("requirements", "Requirements", listings=(_verdicts(one.judgements),)),
    ]
    if one.parameters:
        sections.append(Section("parameters", "Parameters", listings=(_parameters(one),)))
    return compose(f"Controller {one.name}", f"Driven by millpond {version}", sections, FOOTER)


# ----------------------------------------------------------------------------------------------- tables


def _facts(one: Entry) -> Listing:
    rows = [
        ("source", one.source),
        ("readings", ", ".join(one.readings)),
        ("keeps", state(one)),
        ("bytes for each peer", "" if one.state_bytes is None else str(one.state_bytes)),
        ("copies told apart by", one.naming),
        ("plain messages made confirmable", f"every {one.confirmable_every}th" if one.confirmable_every else "none"),
    ]
    return Listing("facts", ("", ""), tuple(row for row in rows if row[1]))


def _verdicts(judgements: tuple[Judgement, ...]) -> Listing:
    rows = tuple(
        (
            one.requirement.id,
            one.requirement.text,
            one.requirement.source,
            f"{one.mark} {one.verdict}".replace(" ", "\N{NO-BREAK SPACE}"),
            re.sub(r"(?<=\d) s\b", "\N{NO-BREAK SPACE}s", one.evidence),
        )
        for one in judgements
    )
    return Listing("verdicts", ("", "requirement", "source", "verdict", "measured"), rows)


def _parameters(one: Entry) -> Listing:
    rows = tuple((parameter.name, parameter.legal, parameter.value) for parameter in one.parameters)
    return Listing("parameters", ("parameter", "takes", "value"), rows)
