"""Which factors tell the settings of results apart, and which of them an axis shows best."""

from __future__ import annotations

from collections.abc import Iterable

from millpond.results.directory import Cell
from millpond.results.factor import Value


def varying(cells: Iterable[Cell], names: Iterable[str]) -> list[str]:
    """Those of the columns that differ between the cells."""
    columns = [cell.columns for cell in cells]
    return [name for name in names if len({said.get(name, "") for said in columns}) > 1]


def across(cells: Iterable[Cell], names: Iterable[str]) -> str:
    """The factor that an axis shows best: one of numbers that is varied at most places; the last of several.

    Empty if no factor of numbers varies.
    """
    cells = list(cells)
    best, most = "", 0.0
    for name in varying(cells, names):
        values = {cell.columns.get(name, "") for cell in cells}
        if any(isinstance(value, str) for value in values):
            continue
        places: dict[tuple[tuple[str, Value], ...], set[Value]] = {}
        for cell in cells:
            place = tuple((key, value) for key, value in cell.columns.items() if key != name)
            places.setdefault(place, set()).add(cell.columns.get(name, ""))
        share = sum(map(len, places.values())) / (len(places) * len(values))
        if share >= most:
            best, most = name, share
    return best
