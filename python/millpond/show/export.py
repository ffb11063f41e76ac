"""The figures and tables of a report as files of their own: for a paper, a slide or a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from millpond.errors import MillpondError, UsageError, unknown
from millpond.judge.compare import Comparison
from millpond.results.directory import Results
from millpond.results.store import write_bytes, write_text
from millpond.show.report import page, style
from millpond.show.report.parts import Listing, Section
from millpond.show.report.values import Missing

FIGURES = ("svg", "pdf")
TABLES = ("csv", "latex")
_ENDINGS = {"csv": "csv", "latex": "tex"}
#: What LaTeX reads as a command, and how it is written so that it stands for itself.
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\N{NARROW NO-BREAK SPACE}": r"\,", "\N{EN DASH}": "--",
    "\N{MINUS SIGN}": "$-$", "\N{ALMOST EQUAL TO}": r"$\approx$", "\N{LESS-THAN OR EQUAL TO}": r"$\leq$",
    "\N{GREATER-THAN OR EQUAL TO}": r"$\geq$", "\N{HORIZONTAL ELLIPSIS}": r"\dots{}", "<": "$<$", ">": "$>$",
    "\N{PLUS-MINUS SIGN}": r"$\pm$",
}  # fmt: skip


def check(figures: Sequence[str], tables: Sequence[str]) -> None:
    """Refuse formats that there are not, before anything is run. Raises `UsageError` with one line."""
    _known(figures, FIGURES, "--figures")
    _known(tables, TABLES, "--tables")


def figures(
    results: Results, folder: Path | str, formats: Sequence[str] = FIGURES, comparison: Comparison | None = None
) -> list[Path]:
    """Write every figure of the report of these results into a folder, under the name that it has on the page.

    Text stays text in both formats, so that it can be searched, and set in a paper's own font. Figures that cannot be
    drawn from these results are left out. Gives the files.

    Raises:
        UsageError: for a format that is neither `svg` nor `pdf`.
        MillpondError: if a file cannot be written.
    """
    return figures_of(page.sections(results, comparison), folder, formats)


def figures_of(sections: Iterable[Section], folder: Path | str, formats: Sequence[str] = FIGURES) -> list[Path]:
    """The same of sections of any page."""
    _known(formats, FIGURES, "--figures")
    files = []
    for section in sections:
        for picture in section.pictures:
            try:
                drawn = picture.draw()
            except Missing:
                continue
            for format_ in formats:
                file = _in(folder) / f"{picture.name}.{format_}"
                write_bytes(file, image(drawn, format_))
                files.append(file)
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


def tables(
    results: Results, folder: Path | str, formats: Sequence[str] = TABLES, comparison: Comparison | None = None
) -> list[Path]:
    """Write every table of the report, and the numbers behind every figure as CSV, into a folder. Gives the files.

    Raises:
        UsageError: for a format that is neither `csv` nor `latex`.
        MillpondError: if a file cannot be written.
    """
    return tables_of(page.sections(results, comparison), folder, formats)


def tables_of(sections: Iterable[Section], folder: Path | str, formats: Sequence[str] = TABLES) -> list[Path]:
    """The same of sections of any page."""
    _known(formats, TABLES, "--tables")
    files = []

    def write(name: str, format_: str, text: str) -> None:
        file = _in(folder) / f"{name}.{_ENDINGS[format_]}"
        write_text(file, text)
        files.append(file)

    for section in sections:
        for listing in section.listings:
            if "csv" in formats:
                write(listing.name, "csv", listing.data.to_csv() if listing.data is not None else as_csv(listing))
            if "latex" in formats:
                write(listing.name, "latex", as_latex(listing))
        if "csv" in formats:
            for picture in section.pictures:
                try:
                    write(picture.name, "csv", picture.rows().to_csv())
                except Missing:
                    continue
    return files


def as_csv(listing: Listing) -> str:
    """A table of the page as comma-separated text."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows([listing.header, *listing.rows])
    return out.getvalue()


def as_latex(listing: Listing) -> str:
    """A table of the page as a LaTeX `tabular`, rules as `booktabs` has them; a heading spans all columns."""
    places = range(len(listing.header))
    columns = "".join("r" if place in listing.numeric else "l" for place in places)
    lines = [f"% {listing.name}: needs \\usepackage{{booktabs}}", f"\\begin{{tabular}}{{{columns}}}", r"\toprule"]
    if any(listing.header):
        lines += [_row(listing.header), r"\midrule"]
    for number, row in enumerate(listing.rows):
        if len(row) == 1:
            lines += [rf"\multicolumn{{{len(listing.header)}}}{{l}}{{\textbf{{{_escaped(row[0])}}}}} \\"]
        else:
            lines.append(_row(row, r"\textbf{%s}" if number in listing.strong else "%s"))
    return "\n".join((*lines, r"\bottomrule", r"\end{tabular}", ""))


# ----------------------------------------------------------------------------------------------- helpers


def _row(cells: Iterable[str], written: str = "%s") -> str:
    return " & ".join(written % _escaped(cell) if cell else "" for cell in cells) + r" \\"


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)


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
