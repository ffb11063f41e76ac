"""The report of results: of a study the page that it has for itself, else the usual one of their kind."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeAlias

from millpond.errors import UsageError, unknown
from millpond.judge.compare import Comparison
from millpond.measure.measures import Measures
from millpond.plan.program import FLEET
from millpond.real import columns
from millpond.results.directory import Results
from millpond.results.store import write_text
from millpond.show import html, labels
from millpond.show.document import Document, Section
from millpond.show.report import fleet, real, single, study, sweep
from millpond.show.report.grid import Grid

Compose: TypeAlias = Callable[[Grid, "Comparison | None"], list[Section]]

NAME = "report.html"
FOOTER = (
    "Drawn from the result tables alone; the tables, the manifest with every setting and seed, and this page lie in "
    "one directory."
)
#: The studies that have pages of their own, `millpond.studies.<study>.page`.
PAGES = ("anrw18", "burst23", "cocoaplus15", "echo", "tcp20")


def check(name: str, file: Path) -> None:
    """Refuse a page that a plan asks for and no study has. Raises `UsageError`."""
    if name and name not in PAGES:
        raise UsageError(f"{file}: page: {unknown('page', name, PAGES)}")


def document(results: Results, comparison: Comparison | None = None) -> Document:
    """All that is shown of these results, in every format."""
    title = str(results.manifest.get("title") or results.manifest.get("name") or "results")
    return Document(title, _subtitle(results), FOOTER, partial(sections, results, comparison))


def sections(results: Results, comparison: Comparison | None = None) -> list[Section]:
    """What is shown of these results, in order."""
    if results.manifest.get("kind") == FLEET:
        return fleet.sections(results)
    grid = Grid(results)
    if results.study is None:
        return single.sections(grid)
    if results.manifest.get("kind") == "sweep":
        return sweep.sections(grid)
    live = columns.read(results.directory, Measures(results), comparison)
    found = _of_study(results)(grid, comparison)
    return found if live is None else [*found[:1], real.section(live, grid.measures), *found[1:]]


def render(results: Results, comparison: Comparison | None = None) -> str:
    """The page as text."""
    return html.render(document(results, comparison), len(results.cells))


def write_report(results: Results | Path | str, comparison: Comparison | None = None) -> Path:
    """Draw the report of a results directory into it, as `report.html`; gives the file's path.

    The file appears whole or not at all, and the same results give the same bytes. What the results do not hold is left
    out with a sentence why.

    Raises:
        UsageError: if there are no results.
        MillpondError: if they are unfinished or damaged, or the file cannot be written.
    """
    opened = results if isinstance(results, Results) else Results.open(results)
    return write(opened, document(opened, comparison))


def write(results: Results, shown: Document) -> Path:
    """The same of a document that is there already."""
    file = results.directory / NAME
    write_text(file, html.render(shown, len(results.cells)))
    return file


# ----------------------------------------------------------------------------------------------- helpers


def _of_study(results: Results) -> Compose:
    """A plan names the study whose page it wants (`page = "..."`); else it is the one of the same name."""
    name = str(results.manifest.get("page") or results.study or "")
    found: Compose = (
        importlib.import_module(f"millpond.studies.{name}.page").sections if name in PAGES else study.sections
    )
    return found


def _subtitle(results: Results) -> str:
    manifest = results.manifest
    kinds = {"study": "Rerun of the study", "sweep": "Sweep", FLEET: "Fleet"}
    word = kinds.get(str(manifest.get("kind")))
    kind = f"{word} {manifest.get('name')}" if word else "Report of one scenario"
    settings = "1 setting" if len(results.cells) == 1 else f"{len(results.cells)} settings"
    return f"{kind} by millpond {manifest.get('version', '')}: {settings}, {labels.runs(results.runs)}"
