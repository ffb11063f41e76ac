"""Populations: which clients a statement is about."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from millpond.results.factor import Value


@dataclass(frozen=True)
class Population:
    """The clients with one algorithm in one cell. `partner` is the other algorithm of a mix of populations.

    `part` names one group of a cell, or all of its clients, whatever algorithms these have; see `Measures.of`.

    `factors` are the cell's, whatever they are called, by name. One that has the same value in all results need not be
    among them.
    """

    algorithm: str
    factors: tuple[tuple[str, Value], ...] = ()
    partner: str = ""
    part: str = ""

    @staticmethod
    def of(algorithm: str, partner: str = "", **factors: Value) -> Population:
        """The clients with this algorithm where the factors have these values."""
        return Population(algorithm, tuple(sorted(factors.items())), partner)

    def but(self, **changes: Any) -> Population:
        """The same with some factors, the algorithm or the partner changed."""
        own: dict[str, Any] = {name: changes.pop(name) for name in ("algorithm", "partner") if name in changes}
        return replace(self, factors=tuple(sorted({**dict(self.factors), **changes}.items())), **own)

    def column(self, name: str) -> Any:
        """The value of a factor, or `algorithm` or `partner`; None if it is none of these clients'."""
        if name in ("algorithm", "partner"):
            return self.algorithm if name == "algorithm" else self.partner
        return dict(self.factors).get(name)

    def value(self, name: str) -> Value:
        """The same, empty where there is none. A factor of 0 has a value."""
        found = self.column(name)
        return "" if found is None else found

    @property
    def who(self) -> str:
        """Their algorithm, and in a mix the one they share the bottleneck with."""
        return f"{self.algorithm} (beside {self.partner})" if self.partner else self.algorithm
