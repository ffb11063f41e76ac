"""What is shown, before anything renders it: one tree of sections with paragraphs, tables and pictures.

Terminal, HTML, Markdown, LaTeX, CSV and JSON are renderers of this tree. They compute nothing, so they cannot differ.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

from millpond.errors import MillpondError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: How good or bad what a cell says is; renderers colour it.
Tone = Literal["", "good", "bad", "unsure", "quiet"]


class Missing(MillpondError):
    """A picture cannot be drawn from these results. The message is the sentence that stands in its place."""


@dataclass(frozen=True)
class Rows:
    """The numbers behind a picture or table, as a reader may download them."""

    header: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]

    def to_csv(self) -> str:
        """The rows as comma-separated text with a header line."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.header)
        for row in self.rows:
            writer.writerow([f"{value:.6g}" if isinstance(value, float) else value for value in row])
        return out.getvalue()


@dataclass(frozen=True)
class Entry:
    """A cell of a table that says more than its text."""

    text: str
    tone: Tone = ""
    #: What it rests on, line by line.
    points: tuple[str, ...] = ()
    #: What follows below it where there is room.
    more: str = ""

    def __str__(self) -> str:
        return f"{self.text}\n{self.more}" if self.more else self.text


Row: TypeAlias = tuple[str | Entry, ...]


@dataclass(frozen=True)
class Plot:
    """What a picture shows: its numbers, and how they are drawn."""

    rows: Rows
    draw: Callable[[], Figure]

    def _repr_svg_(self) -> str:
        from millpond.show.drawing import svg

        return svg(self.draw())


@dataclass(frozen=True)
class Picture:
    """One picture. `plot` raises `Missing` when the results do not hold what it needs."""

    name: str
    title: str
    caption: str
    plot: Callable[[], Plot]


@dataclass(frozen=True)
class Listing:
    """A table. A row of a single cell is a heading over the rows below it."""

    name: str
    header: tuple[str, ...]
    rows: tuple[Row, ...]
    caption: str = ""
    numeric: tuple[int, ...] = ()
    """Columns that are set flush right."""
    strong: frozenset[int] = frozenset()
    """Rows that are set in bold."""
    title: str = ""
    folded: bool = False
    """Folded away under its title where a reader can open it."""
    detail: bool = False
    """Left out where there is little room."""
    data: Rows | None = None
    """Its numbers in full, if the cells have them shortened."""

    @property
    def numbers(self) -> Rows:
        """What a reader may download."""
        return self.data or Rows(self.header, tuple(tuple(map(str, row)) for row in self.rows))


@dataclass(frozen=True)
class Section:
    """A part with a line in the table of contents. A table without rows is none."""

    name: str
    title: str
    paragraphs: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = ()
    listings: tuple[Listing, ...] = ()
    detail: bool = False
    """Left out where there is little room."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "listings", tuple(one for one in self.listings if one.rows))


@dataclass(frozen=True)
class Document:
    """All of it. The sections are composed when somebody first asks for them."""

    title: str
    subtitle: str
    footer: str
    compose: Callable[[], Sequence[Section]]

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """In the order in which they are read."""
        return tuple(self.compose())


def value_and_interval(cell: str) -> tuple[str, ...]:
    """A value and, if there is one, its interval: `12.3 s` and `(11.9 to 12.8)`."""
    value, bracket, interval = cell.partition(" (")
    return (value, f"({interval}") if bracket and interval.endswith(")") else (cell,)
