"""The frame that every table in the terminal has."""

from __future__ import annotations

from rich import box
from rich.markup import escape
from rich.table import Table


def titled(title: str) -> Table:
    """A table without rows or columns under this title, which is text, not markup."""
    return Table(
        title=escape(title),
        title_justify="left",
        title_style="bold",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
