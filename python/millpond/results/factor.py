"""Factors: what was varied, as its plan declares it, and how tables, figures and claims speak of it.

Nothing here knows a factor by name: what the plan does not say follows from the name and the values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Value = str | int | float

#: The column that says whose clients they are.
ALGORITHM = "algorithm"
#: The column that says whose clients share the bottleneck with them, in a mix.
PARTNER = "partner"
#: The column that says which reading of the test bed a cell is.
PATH = "path"
LOGARITHMIC = "log"


@dataclass(frozen=True)
class Factor:
    """One column of the cells: what it is called, its unit, and words for values that have some."""

    name: str
    #: What the plan calls it; empty: its name with spaces.
    label: str = ""
    #: As written behind a number; empty for names and plain numbers.
    unit: str = ""
    #: `log` for an axis on which equal ratios are equally far apart.
    scale: str = "linear"
    #: What is written instead of a value, by its text; an empty one leaves it out where it stands among others.
    words: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """What it is called, over a column of a table."""
        return self.label or self.name.replace("_", " ")

    @property
    def axis(self) -> str:
        """The same with its unit, for an axis or the head of a column."""
        return f"{self.title} ({self.unit})" if self.unit and self.unit != self.title else self.title

    def say(self, value: Value) -> str:
        """A value inside a sentence or title: `50 clients`, `buffer 2 500 B`, `low losses`; maybe empty."""
        word = self.words.get(str(value), value)
        if isinstance(word, str):
            if self.name == PATH:
                return word.replace("-", " ")
            word = "no" if word == "none" and self.label else word
            return f"{word} {self.label}" if word and self.label and self.unit != self.label else word
        if self.unit == self.title:
            return f"{plain_number(word)} {self.unit}"
        return f"{self.title} {plain_number(word)}{_behind(self.unit)}"

    def tick(self, value: Value) -> str:
        """The same on an axis that names the factor, or in its column."""
        if self.words.get(str(value)) and self.unit != self.title:
            return self.words[str(value)]
        return value if isinstance(value, str) else plain_number(value)

    def ordered(self, values: Iterable[Value]) -> list[Value]:
        """Each value once: numbers by size, then words as they come."""
        seen = list(dict.fromkeys(values))
        numbers = sorted(value for value in seen if not isinstance(value, str))
        return [*numbers, *(value for value in seen if isinstance(value, str))]

    def to_json(self) -> dict[str, Any]:
        """The form the manifest keeps."""
        return {"label": self.label, "unit": self.unit, "scale": self.scale, "words": dict(self.words)}

    @staticmethod
    def from_json(name: str, entry: Mapping[str, Any]) -> Factor:
        """The reverse of `to_json`."""
        words = {str(value): str(word) for value, word in entry.get("words", {}).items()}
        label, unit, scale = (str(entry.get(key, "")) for key in ("label", "unit", "scale"))
        return Factor(name, label, unit, scale, words)


def plain_number(value: float) -> str:
    """A number as a plan writes it, with thin spaces between thousands: `2 500`, `0.5`."""
    if float(value).is_integer():
        return f"{value:,.0f}".replace(",", "\N{NARROW NO-BREAK SPACE}")
    return f"{value:g}"


def _behind(unit: str) -> str:
    return f"\N{NARROW NO-BREAK SPACE}{unit}" if unit else ""
