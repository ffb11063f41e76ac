"""What a metric is: its name and unit, what it is a number of, how it follows from the tables and how it is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from millpond.measure.estimate import AMOUNT, Range
from millpond.measure.population import Population
from millpond.measure.sample import Sample
from millpond.measure.statistics import Floats

if TYPE_CHECKING:
    from millpond.measure.measures import Measures

#: What one value of a metric belongs to.
Per = Literal["client", "run", "link", "group"]
#: In which direction a metric is better; empty where that is no question, or depends.
Better = Literal["", "less", "more"]
#: A sample, or a value for each client of a population or each run of its cell, NaN where there is none.
Compute: TypeAlias = "Callable[[Measures, Population], Sample | Floats]"

#: Statistics that tell no value but an amount, whatever the values are.
_AMOUNTS = ("variance", "count", "total", "max-min", "spread")

_TABLES: dict[Per, tuple[str, ...]] = {
    "client": ("flows",), "run": ("runs",), "link": ("links",), "group": ("delays", "reported", "arrivals"),
}  # fmt: skip
#: How many of a unit make the base unit of a metric.
UNITS: dict[str, dict[str, float]] = {
    "s": {"s": 1.0, "ms": 1e3, "us": 1e6, "min": 1 / 60},
    "1": {"": 1.0, "1": 1.0, "percent": 100.0, "percent of runs": 100.0, "fraction": 1.0, "runs": 1.0},
    "bytes": {"bytes": 1.0, "kB": 1e-3},
    "bit/s": {"bit/s": 1.0, "bps": 1.0, "kbit/s": 1e-3, "kbps": 1e-3},
}


@dataclass(frozen=True)
class Metric:
    """One number that results hold of a client, a run, a link or a group of clients, and its only definition."""

    name: str
    #: `s`, `bytes`, `bit/s`, `1` for a share, or what is counted.
    unit: str
    per: Per
    #: The statistic of a run that is meant where none is named; what is shown is its mean over the runs.
    usual: str
    #: What it is, in one line.
    summary: str
    #: The values of a population. Where the tables do not hold what it needs, all values are missing.
    compute: Compute
    better: Better = ""
    #: How it is written above a column or along an axis; its name with spaces if that is said well enough.
    label: str = ""
    #: What a value can be; empty: a share from 0 to 1, anything else from 0 on.
    limits: Range | None = None
    #: The table that has it, if it is not the usual one of what a value belongs to.
    table: str = ""

    def within(self, statistic: str) -> Range:
        """What a statistic of the values can be."""
        if self.limits is not None:
            return self.limits if statistic not in _AMOUNTS else AMOUNT
        return (0.0, 1.0) if self.unit == "1" and statistic not in _AMOUNTS else AMOUNT

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables of which one at least must be there, so that there are values."""
        return (self.table,) if self.table else _TABLES[self.per]

    @property
    def title(self) -> str:
        """What it is called in a table."""
        return self.label or self.name.replace("_", " ")

    @property
    def axis(self) -> str:
        """What it is called along an axis, with its unit."""
        unit = {"1": "%"}.get(self.unit, self.unit)
        # as words: there is an `s` in most titles
        return self.title if f" {unit} " in f" {self.title} " else f"{self.title} ({unit})"

    def written(self, value: float) -> str:
        """A value in the base unit, short: shares in percent, times with their unit, counts bare."""
        if self.unit == "1":
            return f"{100 * value:.3g} %" if value < 0.9995 or value == 1 else f"{100 * value:.4g} %"
        if self.unit == "s":
            return f"{value:.5g} s"
        return f"{value:.4g}"

    def factor(self, unit: str) -> float | None:
        """What a value in the base unit is multiplied by to be in `unit`; None if it cannot be."""
        if unit in ("", self.unit):
            return 1.0
        table = UNITS.get(self.unit)
        if table is not None:
            return table.get(unit)
        # counts: 'retransmissions', 'packets', 'retransmissions per client' and the like are all plain numbers
        return None if unit in ("s", "ms", "percent") else 1.0
