"""Published figures: CSV files with the reference columns, one observation a row.

Columns that a file need not have are empty where it leaves them out. Every column that is no reference column is a
factor of the study's plan and says where a row was observed; an empty one holds for all. `partner` names what the other
clients of a mix have; where it is empty, all clients are alike. Several conditions in one cell are separated by `;`.
`bin` may hold one further condition such as `buffer>=14100`, or the column of a histogram.
"""

from __future__ import annotations

import csv
import io
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from millpond.errors import UsageError, unknown
from millpond.given_files import read_text
from millpond.results.factor import ALGORITHM, PARTNER, Factor, Value

#: What a column says of any study; every other one is a factor of the plan.
COLUMNS = (
    "id", "source", "locator", "category", "kind", "claim_id", "algorithm", "partner", "metric", "bin", "statistic",
    "qualifier", "value", "unit", "baseline", "comparator", "direction", "relative_change", "raw", "suspect", "note",
)  # fmt: skip

#: Those of them that every file has.
NEEDED = ("id", "source", "locator", "category", "kind", "metric", "value", "unit")

#: What a row may be about.
CATEGORIES = ("result", "setup", "algorithm", "background", "cited")

_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt, "=": operator.eq,
}  # fmt: skip


@dataclass(frozen=True)
class Condition:
    """One condition on a factor: `clients=1`, `buffer_bytes>=14100`, `workload=random`."""

    column: str
    sign: str
    values: tuple[str, ...]

    def met(self, value: Value) -> bool:
        """Whether a cell with this value is meant."""
        if self.sign == "=":
            return any(_same(wanted, value) for wanted in self.values)
        try:
            return _OPERATORS[self.sign](float(value), float(self.values[0]))
        except ValueError:
            return False

    def __str__(self) -> str:
        return f"{self.column}{self.sign}{';'.join(self.values)}"

    @staticmethod
    def parse(text: str, factors: Mapping[str, Factor]) -> Condition | None:
        """Read `factor sign value`, the factor by its name or the plan's word for it; None if it is no such thing."""
        found = re.fullmatch(r"\s*([a-z_]+)\s*(>=|<=|=|>|<)\s*([^;]+(?:;[^;=<>]+)*)\s*", text)
        if found is None:
            return None
        named = next((name for name, factor in factors.items() if found[1] in (name, factor.title)), None)
        return None if named is None else Condition(named, found[2], tuple(v.strip() for v in found[3].split(";")))

    @staticmethod
    def of_bin(text: str) -> Condition | None:
        """The same of a number of retransmissions: `>=2`; None if it is nothing of the kind."""
        found = re.fullmatch(r"\s*(>=|<=|=|>|<)\s*([^;=<>]+)\s*", text)
        return None if found is None else Condition("bin", found[1], (found[2].strip(),))


@dataclass(frozen=True)
class Row:
    """One published observation."""

    cells: Mapping[str, str]
    line: int
    #: The columns that say where it was observed.
    places: tuple[str, ...] = ("algorithm",)

    def __getitem__(self, column: str) -> str:
        return self.cells[column]

    @property
    def id(self) -> str:
        """The row's id."""
        return self.cells["id"]

    @property
    def is_claim(self) -> bool:
        """Whether the row belongs to a sentence that is judged."""
        return self.cells["kind"] == "claim"

    @property
    def value(self) -> float | None:
        """The number, in the row's unit."""
        return _number(self.cells["value"])

    @property
    def change(self) -> float | None:
        """Of a claim: (comparator - baseline) / baseline as published."""
        return _number(self.cells["relative_change"])

    def list(self, column: str) -> tuple[str, ...]:
        """The values of a column, empty for all."""
        return tuple(part.strip() for part in self.cells[column].split(";") if part.strip())

    def scenario(self) -> dict[str, Value]:
        """Where it was observed: the columns of factors that say something, numbers as numbers."""
        told: dict[str, Value] = {}
        for column in self.places:
            text = self.cells[column]
            if text:
                number = _number(text)
                told[column] = text if number is None else int(number) if number.is_integer() else number
        return told

    def key(self) -> tuple[str, ...]:
        """What the row says, without where it stands and how it is worded."""
        wordless = ("id", "source", "locator", "raw", "note")
        return tuple(text for column, text in self.cells.items() if column not in wordless)


@dataclass(frozen=True)
class Published:
    """All rows of a file."""

    rows: tuple[Row, ...]
    name: str

    def claims(self) -> dict[str, list[Row]]:
        """Rows by claim id, in the order of the file."""
        grouped: dict[str, list[Row]] = {}
        for row in self.rows:
            if row.is_claim:
                grouped.setdefault(row["claim_id"] or row.id, []).append(row)
        return grouped


def read(file: Path | str, name: str | None = None) -> Published:
    """Read a CSV file of published figures.

    Args:
        file: Where it lies.
        name: What it is called; its path unless given.

    Raises:
        UsageError: one line, if the file is missing, lacks a column, or a word or number in it is none.
    """
    path = Path(file)
    reader = csv.DictReader(io.StringIO(read_text(path).lstrip("\ufeff")), restkey="", restval=None)
    header = reader.fieldnames or []
    missing = [column for column in NEEDED if column not in header]
    if missing:
        raise UsageError(
            f"{path}: not a file of published figures: missing column{'s' * (len(missing) > 1)} {', '.join(missing)}"
        )
    places = tuple(column for column in header if column in (ALGORITHM, PARTNER) or column not in COLUMNS)
    rows = []
    for entry in reader:
        line = reader.line_num
        if any(entry[column] is None for column in header) or "" in entry:
            raise UsageError(f"{path}: line {line}: {len(header)} columns expected (cut short?)")
        cells = {column: entry.get(column, "").strip() for column in dict.fromkeys((*COLUMNS, *header))}
        row = Row(cells, line, places)
        if row["category"] not in CATEGORIES:
            raise UsageError(f"{path}: line {line}: category: {unknown('word', row['category'], CATEGORIES)}")
        for column in ("value", "relative_change"):
            if row[column] and _number(row[column]) is None:
                raise UsageError(f"{path}: line {line}: {column}: {row[column]!r} is not a number")
        if not row.id:
            raise UsageError(f"{path}: line {line}: id is empty")
        rows.append(row)
    if not rows:
        raise UsageError(f"{path}: holds no figures")
    return Published(tuple(rows), name or str(path))


# ----------------------------------------------------------------------------------------------- helpers


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _same(wanted: str, value: Value) -> bool:
    if isinstance(value, str):
        return wanted == value
    number = _number(wanted)
    return number is not None and number == float(value)
