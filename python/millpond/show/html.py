"""A document as one HTML file that opens offline, with every picture and its numbers inside."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from millpond.show import drawing
from millpond.show.document import Document, Entry, Picture, Rows, Section, value_and_interval
from millpond.show.drawing import Drawn, Painters, pictures_of

TEMPLATE = "page.html.j2"


def render(document: Document, cells: int = 0) -> str:
    """The page as text. `cells` is how many settings it is about: with many its pictures are drawn on several cores."""
    with drawing.painters(document.compose, cells) as painters:
        environment = Environment(
            loader=FileSystemLoader(Path(__file__).parent),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.filters["csv_uri"] = csv_uri
        environment.filters["parts"] = lambda cell: value_and_interval(str(cell))
        environment.filters["points"] = lambda cell: cell.points if isinstance(cell, Entry) else ()
        environment.filters["tone"] = lambda cell: cell.tone if isinstance(cell, Entry) else ""
        return environment.get_template(TEMPLATE).render(
            title=document.title,
            subtitle=document.subtitle,
            sections=_drawn(document.sections, painters),
            footer=document.footer,
        )


def csv_uri(rows: Rows) -> str:
    """The rows as a link that a browser saves as a CSV file."""
    return "data:text/csv;charset=utf-8;base64," + base64.b64encode(rows.to_csv().encode()).decode("ascii")


# ----------------------------------------------------------------------------------------------- helpers


def _drawn(parts: Sequence[Section], painters: Painters) -> list[dict[str, Any]]:
    """Each section with its pictures; those that could be drawn are numbered through the page."""
    drawn, numbers = iter(painters.draw(pictures_of(parts))), count(1)
    return [
        {"section": part, "pictures": [_shown(picture, next(drawn), numbers) for picture in part.pictures]}
        for part in parts
    ]


def _shown(picture: Picture, drawn: Drawn, numbers: Iterator[int]) -> dict[str, Any]:
    told: dict[str, Any] = {"name": picture.name, "title": picture.title, "caption": picture.caption}
    return told | vars(drawn) | ({} if drawn.missing else {"number": next(numbers)})
