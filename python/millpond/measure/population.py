"""Populations: which clients a statement is about, and how that place is told in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from millpond.results.directory import Factor, Value

#: The factor that tells readings of a test bed apart: a claim is judged on each of them.
VARIANT = "path"


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


@dataclass(frozen=True)
class FactorWords:
    """How the values of one factor are told."""

    #: A value with its unit or noun, as `{} clients`.
    text: str = "{}"
    #: The same of a number, if it is told otherwise than a word.
    number: str = ""
    #: Values that are told otherwise; an empty text is not told at all.
    values: Mapping[Value, str] = field(default_factory=dict)
    #: Cells of which the factor is not told, because it follows from another: a factor and its value.
    except_where: tuple[str, Value] | None = None

    def of(self, value: Value) -> str:
        """The value in words."""
        word = self.values.get(value, self.values.get(str(value)))
        if word is not None:
            return word
        if value == "":
            return ""
        number = not isinstance(value, str) or value.isdecimal()
        return (self.number if self.number and number else self.text).format(value)


@dataclass(frozen=True)
class Wording:
    """How places are told: the words of every factor, and those that are told even if they are the same everywhere."""

    factors: Mapping[str, FactorWords] = field(default_factory=dict)
    #: In this order, before all others.
    leading: tuple[str, ...] = ()

    def and_of(self, factors: Mapping[str, Factor]) -> Wording:
        """The same, and beyond that the words in which a plan speaks of its factors."""
        told: dict[str, FactorWords] = {}
        for name, factor in factors.items():
            values: dict[Value, str] = dict(factor.words.items())
            text = f"{{}} {factor.unit}".rstrip()
            told[name] = FactorWords(text, f"{factor.title} {text}", values)
        return replace(self, factors={**told, **self.factors})

    def word(self, name: str, value: Value) -> str:
        """A factor as part of a place: `176 B payload`, `high loss`; nothing for one that goes without saying."""
        words = self.factors.get(name, FactorWords()).of(value)
        return words.replace("-", " ") if name == VARIANT else words

    def place(self, population: Population, varying: Iterable[str]) -> str:
        """Where these clients are, without their algorithm. `varying` are the factors that differ between places."""
        here = dict(population.factors)
        others = sorted(name for name in varying if name not in (*self.leading, VARIANT))
        words = [
            self.word(name, here[name])
            for name in (*self.leading, *others, VARIANT)
            if name in here and not self._follows(name, here)
        ]
        return ", ".join(word for word in words if word)

    def _follows(self, name: str, here: Mapping[str, Value]) -> bool:
        told = self.factors.get(name)
        return told is not None and told.except_where is not None and told.except_where in here.items()


#: The words of the factors that the studies have in common.
USUAL = Wording(
    leading=("clients", "buffer_bytes", "workload"),
    factors=MappingProxyType(
        {
            "clients": FactorWords("{} clients", values={1: "1 client"}),
            "buffer_bytes": FactorWords("{} B"),
            # a download has one size
            "payload": FactorWords("{} B payload", except_where=("workload", "bulk")),
            "ratio": FactorWords("first wait {} round trips"),
            "server": FactorWords("replies {}"),
            "bottleneck": FactorWords("{} for all", values={"none": ""}),
            "error_profile": FactorWords("{} loss", "{} % loss", {"none": "no loss"}),
            VARIANT: FactorWords("{}", values={"fixed": "", "jittered": "jittered delay"}),
        }
    ),
)


def clients_in_words(number: object) -> str:
    """`1 client`, `50 clients`."""
    return f"{number} client" if number == 1 else f"{number} clients"


def path_in_words(path: str) -> str:
    """A path variant as part of a place; nothing for the usual one."""
    return USUAL.word(VARIANT, path)
