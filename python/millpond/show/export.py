"""The figures and tables of a document as files of their own: for a paper, a slide or a spreadsheet."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from millpond.errors import MillpondError, UsageError, unknown
from millpond.results.store import write_bytes, write_text
from millpond.show import text
from millpond.show.document import Missing, Section
from millpond.show.report import style

FIGURES = ("svg", "pdf")
NARROWEST = 3.0
"""Inches of the narrowest figure whose words have room."""


def check(figures: Sequence[str], tables: Sequence[str], width: float = style.WIDTH) -> None:
    """Refuse formats and widths that there are not, before anything is run. Raises `UsageError` with one line."""
    if not NARROWEST <= width <= style.WIDTH:
        raise UsageError(f"--width: {width:g}: {NARROWEST:g} to {style.WIDTH:g} inches, such as 3.5 or 7")
    _known(figures, FIGURES, "--figures")
    _known(tables, tuple(text.TABLES), "--tables")


def figures(
    sections: Iterable[Section], folder: Path | str, formats: Sequence[str] = FIGURES, width: float = style.WIDTH
) -> list[Path]:
    """Write every figure into a folder, under the name that it has on the page.

    Text stays text in both formats, so that it can be searched, and set in a paper's own font. Figures that cannot be
    drawn are left out. `width` is that of the largest in inches: 3.5 for a column, 7 for two. Gives the files.

    Raises:
        UsageError: for a format that is neither `svg` nor `pdf`, and a width that no figure has.
        MillpondError: if a file cannot be written.
    """
    check(formats, (), width)
    files = []
    for picture in (picture for section in sections for picture in section.pictures):
        with style.as_wide_as(width):
            try:
                drawn = picture.plot().draw()
            except Missing:
                continue
            for format_ in formats:
                files.append(_in(folder) / f"{picture.name}.{format_}")
                write_bytes(files[-1], image(drawn, format_))
    return files


def image(figure: Figure, format_: str) -> bytes:
    """A figure as SVG or PDF with text as text: the same bytes for the same figure."""
    out = io.BytesIO()
    # a date would make the same figure another file
    unnamed = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    style.literally(figure)
    with style.applied({"svg.fonttype": "none", "pdf.fonttype": 42}):
        figure.savefig(out, format=format_, metadata=unnamed[format_])
    return out.getvalue()


def tables(sections: Iterable[Section], folder: Path | str, formats: Sequence[str] = ("csv", "latex")) -> list[Path]:
    """Write every table, and the numbers behind every figure as CSV, into a folder. Gives the files.

    Raises:
        UsageError: for a format that is none of `csv`, `latex`, `markdown`, `json`.
        MillpondError: if a file cannot be written.
    """
    check((), formats)
    files = []

    def write(name: str, ending: str, content: str) -> None:
        files.append(_in(folder) / f"{name}.{ending}")
        write_text(files[-1], content)

    for section in sections:
        for listing in section.listings:
            for written, ending in (text.TABLES[format_] for format_ in formats):
                write(listing.name, ending, written(listing))
        for picture in section.pictures if "csv" in formats else ():
            try:
                write(picture.name, "csv", picture.plot().rows.to_csv())
            except Missing:
                continue
    return files


# ----------------------------------------------------------------------------------------------- helpers


def _known(formats: Sequence[str], known: Sequence[str], flag: str) -> None:
    for name in formats:
        if name not in known:
            raise UsageError(f"{flag}: {unknown('format', name, known)}")


def _in(folder: Path | str) -> Path:
    found = Path(folder)
    try:
        found.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MillpondError(f"{found}: cannot be made: {error.strerror or error}") from None
    return found
