"""What a page is made of: sections with pictures and tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from matplotlib.figure import Figure

from millpond.judge.compare import Verdict
from millpond.show.report.values import Rows


@dataclass(frozen=True)
class Picture:
    """One picture of the page. `draw` and `rows` raise `Missing` when the results do not hold what they need."""

    name: str
    title: str
    caption: str
    draw: Callable[[], Figure]
    rows: Callable[[], Rows]


@dataclass(frozen=True)
class Listing:
    """A table of the page. A row of a single cell is a heading over the rows below it."""

    name: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    numeric: tuple[int, ...] = ()
    """Columns that are set flush right."""
    strong: frozenset[int] = frozenset()
    """Rows that are set in bold."""
    folded: str = ""
    """If not empty: the line under which the table is folded away."""
    data: Rows | None = None


@dataclass(frozen=True)
class Section:
    """A part of the page with a line in the table of contents."""

    name: str
    title: str
    paragraphs: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = ()
    listings: tuple[Listing, ...] = ()
    claims: tuple[Verdict, ...] = ()
