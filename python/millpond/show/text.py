"""Tables as text: CSV, LaTeX, Markdown, JSON; and a whole document as Markdown."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from millpond.show.document import Document, Entry, Listing, Section

#: What LaTeX reads as a command, and how it is written so that it stands for itself.
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\N{NARROW NO-BREAK SPACE}": r"\,", "\N{EN DASH}": "--",
    "\N{MINUS SIGN}": "$-$", "\N{ALMOST EQUAL TO}": r"$\approx$", "\N{LESS-THAN OR EQUAL TO}": r"$\leq$",
    "\N{GREATER-THAN OR EQUAL TO}": r"$\geq$", "\N{HORIZONTAL ELLIPSIS}": r"\dots{}", "<": "$<$", ">": "$>$",
    "\N{PLUS-MINUS SIGN}": r"$\pm$", "\N{NO-BREAK SPACE}": "~", "\N{CHECK MARK}": r"$\surd$",
    "\N{BALLOT X}": r"$\times$", "\n": " ",
}  # fmt: skip
#: The signs of a keyboard, for text that is pasted elsewhere.
_KEYBOARD = {"\N{NARROW NO-BREAK SPACE}": " ", "\N{NO-BREAK SPACE}": " ", "\N{MINUS SIGN}": "-"}


def csv(listing: Listing) -> str:
    """The numbers of a table as comma-separated text."""
    return listing.numbers.to_csv()


def latex(listing: Listing) -> str:
    """A table as a LaTeX `tabular`, rules as `booktabs` has them; a heading spans all columns."""
    places = range(len(listing.header))
    columns = "".join("r" if place in listing.numeric else "l" for place in places)
    lines = [f"% {listing.name}: needs \\usepackage{{booktabs}}", f"\\begin{{tabular}}{{{columns}}}", r"\toprule"]
    if any(listing.header):
        lines += [_row(listing.header), r"\midrule"]
    for number, row in enumerate(listing.rows):
        if len(row) == 1:
            lines += [rf"\multicolumn{{{len(listing.header)}}}{{l}}{{\textbf{{{_escaped(str(row[0]))}}}}} \\"]
        else:
            lines.append(_row(row, r"\textbf{%s}" if number in listing.strong else "%s"))
    return "\n".join((*lines, r"\bottomrule", r"\end{tabular}", ""))


def markdown(document: Document) -> str:
    """What fits into a ticket: no pictures, and nothing that is marked as a detail."""
    return plain(f"## {document.title}\n\n{document.subtitle}\n\n{of_sections(document.sections)}")


def of_sections(sections: Iterable[Section]) -> str:
    """The same of sections alone."""
    lines: list[str] = []
    for section in sections:
        listings = [listing for listing in section.listings if not listing.detail]
        if section.detail or not (listings or section.paragraphs):
            continue
        lines += [f"### {section.title}", ""]
        lines += [line for paragraph in section.paragraphs for line in (paragraph, "")]
        lines += [line for listing in listings for line in (*_markdown(listing), "")]
    return "\n".join(lines).rstrip("\n") + "\n"


def plain(text: str) -> str:
    """The text with the signs of a keyboard."""
    for sign, written in _KEYBOARD.items():
        text = text.replace(sign, written)
    return text


def as_json(content: Any) -> str:
    """JSON as programs print it: numbers that are none are null, and a line feed is at its end."""
    return json.dumps(_plain(content), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def table_as_json(listing: Listing) -> str:
    """The numbers of a table, a row a list."""
    return as_json({"name": listing.name, "columns": listing.numbers.header, "rows": listing.numbers.rows})


def table_as_markdown(listing: Listing) -> str:
    """A table as Markdown, its title above and its caption below."""
    return "\n".join((*_markdown(listing), ""))


# ----------------------------------------------------------------------------------------------- helpers


def _row(cells: Iterable[str | Entry], written: str = "%s") -> str:
    return " & ".join(written % _escaped(str(cell)) if str(cell) else "" for cell in cells) + r" \\"


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)


def _markdown(listing: Listing) -> list[str]:
    marks = ["---:" if place in listing.numeric else "---" for place in range(len(listing.header))]
    lines = [f"**{listing.title}**", ""] if listing.title else []
    lines += [_line(listing.header), _line(marks)]
    for row in listing.rows:
        cells = [str(cell) for cell in row]
        lines.append(_line([f"**{cells[0]}**", *[""] * (len(marks) - 1)] if len(cells) == 1 else cells))
    return [*lines, *(["", listing.caption] if listing.caption else [])]


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|').replace(chr(10), '<br>') for cell in cells)} |"


def _plain(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _plain(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_plain(value) for value in content]
    if isinstance(content, np.generic):
        return _plain(content.item())
    return None if isinstance(content, float) and not math.isfinite(content) else content


#: How a table is written into a file, and what its name ends in.
TABLES: dict[str, tuple[Callable[[Listing], str], str]] = {
    "csv": (csv, "csv"),
    "latex": (latex, "tex"),
    "markdown": (table_as_markdown, "md"),
    "json": (table_as_json, "json"),
}
