"""How the factors of a study or sweep are called and written, as its plan declares them.

Nothing here knows a factor by name: what the plan does not say follows from the name and the values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from millpond.measure.population import USUAL, VARIANT
from millpond.results.directory import Cell, Results, Value
from millpond.show import labels

#: The column that says whose clients they are: colours and legends tell its values apart.
SERIES = "algorithm"
LOGARITHMIC = "log"


@dataclass(frozen=True)
class Factor:
    """One column of the cells: what it is called, its unit, and words for values that have some."""

    name: str
    #: On an axis and over a column of a table.
    label: str
    #: As written behind a number; empty for names and plain numbers.
    unit: str = ""
    #: `log` for an axis on which equal ratios are equally far apart; else it has none of its own.
    scale: str = ""
    #: What is written instead of a value; an empty text leaves it out where it stands among others.
    words: Mapping[str, str] = field(default_factory=dict)
    #: Whether the plan says anything of it; if not, it is told in the words that studies have in common.
    declared: bool = False
    #: Whether the label is the plan's own.
    named: bool = False

    @property
    def axis(self) -> str:
        """The label with its unit, for an axis or the head of a column."""
        return f"{self.label} ({self.unit})" if self.unit and self.unit != self.label else self.label

    def say(self, value: Value) -> str:
        """A value inside a sentence or title: `50 clients`, `buffer 2 500 B`, `low losses`; maybe empty."""
        if not self.declared and self.name in (*USUAL.factors, VARIANT):
            return USUAL.word(self.name, value)
        word = self.words.get(str(value), value)
        if isinstance(word, str):
            word = "no" if word == "none" and self.named else word
            return f"{word} {self.label}" if word and self.named and self.unit != self.label else word
        number = labels.plain_number(word)
        if self.unit == self.label:
            return f"{number} {self.unit}"
        return f"{self.label} {number}{_behind(self.unit)}"

    def tick(self, value: Value) -> str:
        """The same on an axis that names the factor, or in its column."""
        if self.words.get(str(value)) and self.unit != self.label:
            return self.words[str(value)]
        return value if isinstance(value, str) else labels.plain_number(value)

    def ordered(self, values: Iterable[Value]) -> list[Value]:
        """Each value once: numbers by size, then words as they come."""
        seen = list(dict.fromkeys(values))
        numbers = sorted(value for value in seen if not isinstance(value, str))
        return [*numbers, *(value for value in seen if isinstance(value, str))]


def of(results: Results) -> dict[str, Factor]:
    """Every column of the cells, in the order in which the plan counts them."""
    declared: Mapping[str, Any] = results.manifest.get("factors", {})
    found = dict.fromkeys(name for cell in results.cells for name in cell.columns)
    return {name: _read(name, declared.get(name, {})) for name in found}


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


def _read(name: str, said: Mapping[str, Any]) -> Factor:
    return Factor(
        name,
        str(said.get("label") or name.replace("_", " ")),
        str(said.get("unit", "")),
        str(said.get("scale", "")),
        {str(value): str(word) for value, word in said.get("words", {}).items()},
        bool(said),
        bool(said.get("label")),
    )


def _behind(unit: str) -> str:
    return f"\N{NARROW NO-BREAK SPACE}{unit}" if unit else ""
