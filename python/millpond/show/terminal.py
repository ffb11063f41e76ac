"""A document in the terminal: tables as wide as there is room, in several parts where there is not."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import IO

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from millpond.given_files import printable
from millpond.show.document import Document, Entry, Listing, Row, Section, Tone, value_and_interval

#: Columns where there is no terminal to ask.
WIDTH = 100
#: Below this, numbers would be broken or cut: what a narrower terminal does with the ends of lines loses nothing.
LEAST = 80
#: At most so many rows of a table; the report has all.
MANY = 400

_STYLES: dict[Tone, str] = {"": "", "good": "green", "bad": "bold red", "unsure": "yellow", "quiet": "dim"}
#: Between two columns, and at both ends of a line.
_GAP, _ENDS = 2, 2
#: A column of words is made no narrower than this, nor than its longest word up to this.
_WORDS, _LONGEST = 8, 24


def render(document: Document) -> list[RenderableType]:
    """What the terminal shows of a document: no pictures, and nothing that is marked as a detail."""
    return [Text(document.title, style="bold"), Text(document.subtitle), *of_sections(document.sections)]


def of_sections(sections: Iterable[Section]) -> list[RenderableType]:
    """The same of sections alone."""
    shown: list[RenderableType] = []
    for section in sections:
        listings = [] if section.detail else [listing for listing in section.listings if not listing.detail]
        if section.detail or not (listings or section.paragraphs):
            continue
        if section.pictures and not section.listings:
            # its paragraphs are about pictures
            continue
        titled = len(listings) == 1 and not section.paragraphs and not listings[0].title
        shown += [] if titled or not section.title else [Text(f"\n{section.title}", style="bold")]
        shown += [Text(paragraph) for paragraph in section.paragraphs]
        shown += [Shown(listing, section.title if titled else "") for listing in listings]
    return shown


class Shown:
    """A table that is laid out for as many columns as there are."""

    def __init__(self, listing: Listing, title: str = "") -> None:
        self.listing, self._title = listing, listing.title or title

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self._title:
            yield Text(self._title, style="bold")
        yield from _parts(self.listing, options.max_width)
        left = sum(len(row) > 1 for row in self.listing.rows[MANY:])
        told = [self.listing.caption, f"{left} rows more are in the report." if left else ""]
        if any(told):
            yield Text(" ".join(filter(None, told)), style="dim italic")


class Plain:
    """What is printed, with nothing from a file in it that would steer the terminal."""

    def __init__(self, renderable: RenderableType) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self._renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)


def console(file: IO[str] | None = None) -> Console:
    """A console as wide as the terminal."""
    stream = file or sys.stdout
    width = shutil.get_terminal_size((WIDTH, 24)).columns
    return Console(file=stream, width=max(width, LEAST), highlight=False)


def show(renderables: Iterable[RenderableType], file: IO[str] | None = None) -> None:
    """Print what was rendered, an empty line between two tables."""
    out = console(file)
    for number, renderable in enumerate(renderables):
        if number and not isinstance(renderable, Text | str):
            out.print()
        out.print(Plain(renderable))


# ----------------------------------------------------------------------------------------------- helpers


def _parts(listing: Listing, width: int) -> Iterator[RenderableType]:
    """The table; if it is too wide, several with some of the columns each, the first ones in all of them."""
    rows = listing.rows[:MANY]
    whole = [row for row in rows if len(row) > 1]
    shown = [
        at
        for at in range(len(listing.header))
        if not whole or any(_text(row[at]) for row in whole) or listing.header[at]
    ]
    keys = [at for at in shown if at < min(listing.numeric, default=len(listing.header))]
    while keys:
        narrow = {at: _widths(listing, rows, at)[0] for at in shown}
        if sum(narrow[at] + _GAP for at in keys) <= 0.7 * width or len(keys) == 1:
            break
        keys.pop()
    rest = [at for at in shown if at not in keys]
    while True:
        columns = list(keys)
        while rest and (len(columns) == len(keys) or _fits([*columns, rest[0]], listing, rows, width)):
            columns.append(rest.pop(0))
        yield from _table(listing, rows, columns, width)
        if not rest:
            return


def _fits(columns: Sequence[int], listing: Listing, rows: Sequence[Row], width: int) -> bool:
    return sum(_widths(listing, rows, at)[0] + _GAP for at in columns) - _GAP + _ENDS <= width


def _widths(listing: Listing, rows: Sequence[Row], at: int) -> tuple[int, int]:
    """How narrow a column can be without a broken number or word, and how wide it would like to be."""
    head = listing.header[at]
    texts = [_text(row[at]) for row in rows if len(row) > 1]
    longest = max(map(len, head.split()), default=0)
    if at in listing.numeric:
        cells = max((len(part) for text in texts for part in value_and_interval(text)), default=0)
        # a head of several words is no wider than its numbers need
        return max(cells, longest), max(cells, longest, min(len(head), 14))
    words = max((len(word) for text in (*texts, head) for word in text.split(" ")), default=0)
    lines = max((len(line) for text in texts for line in text.splitlines()), default=0)
    wide = max(lines, len(head))
    return min(max(min(words, _LONGEST), longest, min(_WORDS, wide)), wide), wide


def _table(listing: Listing, rows: Sequence[Row], columns: Sequence[int], width: int) -> Iterator[RenderableType]:
    widths = _shared(
        {at: _widths(listing, rows, at) for at in columns}, width - _ENDS - _GAP * (len(columns) - 1), listing.numeric
    )
    strong, made = listing.strong, _begun(listing, columns, widths, any(listing.header))
    for number, row in enumerate(rows):
        if len(row) == 1:
            if made.row_count or (made.show_header and number == 0):
                yield made
            yield Text(f" {_text(row[0])}", style="bold")
            made = _begun(listing, columns, widths, False)
            continue
        made.add_row(
            *(_cell(row[at], at in listing.numeric) for at in columns), style="bold" if number in strong else None
        )
    if made.row_count or not rows:
        yield made


def _begun(listing: Listing, columns: Sequence[int], widths: dict[int, int], headed: bool) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, show_header=headed, show_edge=False)
    for at in columns:
        head = "\n".join(textwrap.wrap(listing.header[at], widths[at])) or listing.header[at]
        numeric = at in listing.numeric
        table.add_column(
            Text(head), justify="right" if numeric else "left", no_wrap=numeric, overflow="fold", width=widths[at]
        )
    return table


def _shared(wanted: dict[int, tuple[int, int]], room: int, numeric: Collection[int]) -> dict[int, int]:
    """Each column as wide as it likes, or where there is no room for that, words broken: the widest give way first."""
    widths = {at: wide for at, (_, wide) in wanted.items()}
    # heads over numbers before words, whose lines are many
    for columns in (numeric, set(widths)):
        while sum(widths.values()) > room:
            giving = [at for at in widths if at in columns and widths[at] > wanted[at][0]]
            if not giving:
                break
            widths[max(giving, key=lambda at: widths[at] - wanted[at][0])] -= 1
    return widths


def _text(cell: str | Entry) -> str:
    return cell.text if isinstance(cell, Entry) else cell


def _cell(cell: str | Entry, numeric: bool) -> Text:
    text = _text(cell)
    tone: Tone = cell.tone if isinstance(cell, Entry) else ""
    return Text("\n".join(value_and_interval(text)) if numeric else text, style=_STYLES[tone])
