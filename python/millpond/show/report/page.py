"""The report: one HTML file that opens offline, with every picture and its numbers inside."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from millpond.judge.compare import Comparison
from millpond.measure.population import path_in_words
from millpond.plan.study import FLEET
from millpond.real import columns
from millpond.results.directory import Results
from millpond.results.store import write_text
from millpond.show import labels, own
from millpond.show.report import fleet, real, single, study, style, sweep
from millpond.show.report.data import Data
from millpond.show.report.parts import Picture, Section
from millpond.show.report.values import Missing, Rows

NAME = "report.html"
TEMPLATE = "page.html.j2"
FOOTER = (
    "Drawn from the result tables alone; the tables, the manifest with every setting and seed, and this page lie in "
    "one directory."
)
_SHORT = re.compile(r"(\.\d\d)\d+")
"""Finer than a hundredth of a point nobody sees."""
PIXELS_PER_INCH = 99
"""How large pictures are shown, where the window allows; type on them then has the size of the text around."""


def write_report(results_dir: Path | str, comparison: Comparison | None = None) -> Path:
    """Draw the report of a results directory into it, as `report.html`; gives the file's path.

    The file appears whole or not at all, and the same results give the same bytes. What the results do not hold is left
    out with a sentence why.

    Raises:
        UsageError: if there are no results.
        MillpondError: if they are unfinished or damaged, or the file cannot be written.
    """
    directory = Path(results_dir)
    file = directory / NAME
    write_text(file, render(Results.open(directory), comparison))
    return file


def render(results: Results, comparison: Comparison | None = None) -> str:
    """The page as text."""
    parts = sections(results, comparison)
    title = str(results.manifest.get("title") or results.manifest.get("name") or "results")
    return compose(title, _subtitle(results), parts, FOOTER)


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


def compose(title: str, subtitle: str, parts: Sequence[Section], footer: str) -> str:
    """A page of these sections, with a table of contents, as text."""
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
    return environment.get_template(TEMPLATE).render(
        title=title, subtitle=subtitle, sections=_drawn(parts), footer=footer
    )


def csv_uri(rows: Rows) -> str:
    """The rows as a link that a browser saves as a CSV file."""
    return "data:text/csv;charset=utf-8;base64," + base64.b64encode(rows.to_csv().encode()).decode("ascii")


def parts_of(cell: str) -> list[str]:
    """A value and, if there is one, its interval: `12.3 s` and `(11.9 to 12.8)`."""
    value, bracket, interval = cell.partition(" (")
    return [value, f"({interval}"] if bracket and interval.endswith(")") else [cell]


def svg(figure: Figure) -> str:
    """The picture as SVG text: always the same for the same picture, letters drawn as shapes."""
    out = io.StringIO()
    with style.applied():
        # once: `savefig` lays a figure out by drawing it for nobody first
        draw: Callable[..., None] = FigureCanvasSVG(figure).print_svg
        draw(out, metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = out.getvalue()
    text = re.sub(r' d="[^"]*"', lambda path: _SHORT.sub(r"\1", path[0]), text)
    return re.sub(r"\s*\n\s*", "\n", text[text.index("<svg") :])


def _drawn(parts: Sequence[Section]) -> list[dict[str, Any]]:
    """Each section with its pictures; those that could be drawn are numbered through the page."""
    numbers = count(1)
    return [{"section": part, "pictures": [_draw(picture, numbers) for picture in part.pictures]} for part in parts]


def _draw(picture: Picture, numbers: Iterator[int]) -> dict[str, Any]:
    told: dict[str, Any] = {"name": picture.name, "title": picture.title, "caption": picture.caption, "missing": ""}
    try:
        figure = picture.draw()
        rows = picture.rows()
    except Missing as reason:
        return {**told, "missing": str(reason)}
    return {
        **told,
        "number": next(numbers),
        "image": "data:image/svg+xml;base64," + base64.b64encode(svg(figure).encode()).decode("ascii"),
        "rows": rows,
        "width": round(figure.get_figwidth() * PIXELS_PER_INCH),
    }


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
