"""The report: one HTML file that opens offline, with every picture and its numbers inside."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from millpond.judge.compare import Comparison
from millpond.measure.population import path_in_words
from millpond.plan.program import FLEET
from millpond.real import columns
from millpond.results.directory import Results
from millpond.results.store import write_text
from millpond.show import labels, own
from millpond.show.report import drawing, fleet, published, real, single, study, sweep
from millpond.show.report.data import Data
from millpond.show.report.drawing import Drawn, Painters, pictures_of
from millpond.show.report.parts import Picture, Section
from millpond.show.report.values import Rows

NAME = "report.html"
TEMPLATE = "page.html.j2"
FOOTER = (
    "Drawn from the result tables alone; the tables, the manifest with every setting and seed, and this page lie in "
    "one directory."
)


def write_report(results: Results | Path | str, comparison: Comparison | None = None) -> Path:
    """Draw the report of a results directory into it, as `report.html`; gives the file's path.

    The file appears whole or not at all, and the same results give the same bytes. What the results do not hold is left
    out with a sentence why.

    Raises:
        UsageError: if there are no results.
        MillpondError: if they are unfinished or damaged, or the file cannot be written.
    """
    opened = results if isinstance(results, Results) else Results.open(results)
    file = opened.directory / NAME
    write_text(file, render(opened, comparison))
    return file


def render(results: Results, comparison: Comparison | None = None) -> str:
    """The page as text."""
    title = str(results.manifest.get("title") or results.manifest.get("name") or "results")
    with drawing.painters(results, comparison) as painters:
        return compose(title, _subtitle(results), sections(results, comparison), FOOTER, painters)


def sections(results: Results, comparison: Comparison | None = None) -> list[Section]:
    """What stands on the page of these results, in order."""
    if results.manifest.get("kind") == FLEET:
        return fleet.sections(results)
    data = Data(results)
    if results.manifest.get("kind") == "sweep":
        return sweep.sections(data)
    if results.study is None:
        return single.sections(data)
    live = columns.read(results.directory, data.measures, comparison)
    found = _of_study(results)(data, comparison)
    return found if live is None else [*found[:1], real.section(live, data.measures), *found[1:]]


def compose(title: str, subtitle: str, parts: Sequence[Section], footer: str, painters: Painters | None = None) -> str:
    """A page of these sections, with a table of contents, as text. `painters` help with its pictures."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["csv_uri"] = csv_uri
    environment.filters["path_in_words"] = path_in_words
    environment.filters["parts"] = parts_of
    environment.filters["calibrates"] = published.calibrates
    return environment.get_template(TEMPLATE).render(
        title=title, subtitle=subtitle, sections=_drawn(parts, painters or Painters()), footer=footer
    )


def csv_uri(rows: Rows) -> str:
    """The rows as a link that a browser saves as a CSV file."""
    return "data:text/csv;charset=utf-8;base64," + base64.b64encode(rows.to_csv().encode()).decode("ascii")


def parts_of(cell: str) -> list[str]:
    """A value and, if there is one, its interval: `12.3 s` and `(11.9 to 12.8)`."""
    value, bracket, interval = cell.partition(" (")
    return [value, f"({interval}"] if bracket and interval.endswith(")") else [cell]


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


def _of_study(results: Results) -> Callable[[Data, Comparison | None], list[Section]]:
    page = own.part(results, "page") or study
    found: Callable[[Data, Comparison | None], list[Section]] = page.sections
    return found


def _subtitle(results: Results) -> str:
    manifest = results.manifest
    kinds = {"study": f"Rerun of the study {manifest.get('name')}", "sweep": f"Sweep {manifest.get('name')}"}
    kinds[FLEET] = f"Fleet {manifest.get('name')}"
    kind = kinds.get(str(manifest.get("kind")), "Report of one scenario")
    settings = "1 setting" if len(results.cells) == 1 else f"{len(results.cells)} settings"
    return f"{kind} by millpond {manifest.get('version', '')}: {settings}, {labels.runs(results.runs)}"
