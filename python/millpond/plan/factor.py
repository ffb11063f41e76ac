"""Factors: what a plan varies, under any names, and the places of the scenario that each of them changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from millpond.errors import UsageError, unknown
from millpond.plan.toml_file import Declared, checked, where
from millpond.plan.values import plain
from millpond.results.factor import PATH, Factor, Value

#: Names that a table of results or of the plan has for something else.
RESERVED = (PATH, "cell", "id", "first_run", "replications", "replication", "run", "group", "scenario")

_LISTED: Any = list[str | int | float] | str | int | float


class _Table(Declared):
    """`[vary.<factor>]`, as it is written."""

    places: list[str] = []
    write: str | None = None
    set: dict[str, dict[str, Any]] = {}
    label: str = ""
    unit: str = ""
    scale: Literal["linear", "log"] = "linear"
    words: dict[str, str] = {}


@dataclass(frozen=True)
class Vary:
    """What a factor changes in the scenario, and how it is spoken of."""

    wording: Factor
    places: tuple[str, ...] = ()
    #: The value is written as this text; None: as it is.
    text: str | None = None
    sets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def changes(self, value: Value) -> dict[str, Any]:
        """The places that this value sets."""
        written = value if self.text is None else self.text.format(value)
        return {**dict.fromkeys(self.places, written), **self.sets.get(str(value), {})}

    @property
    def reach(self) -> set[str]:
        """Every place that some value sets."""
        return {*self.places, *(place for sets in self.sets.values() for place in sets)}

    @property
    def touches(self) -> bool:
        """Whether any value changes any place."""
        return bool(self.places) or any(self.sets.values())


@dataclass(frozen=True)
class Only:
    """Limits something to cells whose factors have one of these values, or lie within bounds."""

    values: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    #: Least and greatest value, both included.
    within: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def covers(self, factors: Mapping[str, Value]) -> bool:
        """Whether a cell with these factors is meant."""
        return all(factors.get(name) in values for name, values in self.values.items()) and all(
            name in factors and low <= float(factors[name]) <= high for name, (low, high) in self.within.items()
        )

    @property
    def names(self) -> list[str]:
        """The factors that it speaks of."""
        return [*self.values, *self.within]


def read_vary(name: str, tree: Any, file: Path) -> Vary:
    """One `[vary.<factor>]`. Raises `UsageError` with one line."""
    here = f"vary.{name}"
    table = checked(tree, _Table, file, here)
    try:
        written = None if table.write is None else (table.write.format(0), table.write.format(1))
    except (KeyError, ValueError, IndexError):
        written = ("", "")
    if written is not None and written[0] == written[1]:
        raise UsageError(
            f"{where(file, here, 'write')}: {table.write!r} does not say where the value goes: write {{}} there"
        )
    wording = Factor(name, table.label, table.unit, table.scale, table.words)
    return Vary(wording, tuple(table.places), table.write, table.set)


def read_values(tree: Any, file: Path, place: str) -> tuple[Value, ...]:
    """A list of numbers, or of texts; a single value stands for a list of one. Raises `UsageError` with one line."""
    found: Any = checked(tree, _LISTED, file, place)
    values: list[Value] = found if isinstance(found, list) else [found]
    if not values:
        raise UsageError(f"{where(file, place)}: an empty list makes no cells: leave it out, or name a value")
    if len({isinstance(value, str) for value in values}) > 1:
        number = next(value for value in values if not isinstance(value, str))
        raise UsageError(f"{where(file, place)}: texts and numbers in one list: write {number} as {str(number)!r} too")
    none_twice(values, where(file, place))
    return tuple(values)


def chosen(given: Any, place: str, numbers: bool, known: Sequence[str] | None) -> tuple[Value, ...]:
    """The values that are chosen of a factor beside its plan. Raises `UsageError` with one line.

    Args:
        given: One value, or several.
        place: Who chooses them.
        numbers: Whether the plan has numbers there; else all become texts.
        known: The only values that can be chosen; None if any can.
    """
    values: list[Value] = plain([given] if isinstance(given, str | int | float) else list(given), place)
    if not values:
        raise UsageError(f"{place}: no value: name at least one")
    for value in values:
        if numbers and isinstance(value, str):
            raise UsageError(f"{place}: {value!r} is no number, and the plan has numbers here")
        if known is not None and str(value) not in known:
            raise UsageError(f"{place}: {unknown('value', str(value), known)}")
    found = tuple(values if numbers else [str(value) for value in values])
    none_twice(found, place)
    return found


def with_short(
    factors: Mapping[str, Value | Sequence[Value]], clients: Sequence[int], buffers: Sequence[int]
) -> dict[str, Value | Sequence[Value]]:
    """The factors with those that flags of their own are short for. Raises `UsageError` with one line."""
    found = dict(factors)
    for option, name, counts in (("--clients", "clients", clients), ("--buffers", "buffer_bytes", buffers)):
        for count in counts:
            if count < 1:
                raise UsageError(f"{option}: {count} makes no sense here: at least 1")
        if counts and name in factors:
            raise UsageError(f"{option}: short for --factor {name}, which is there too: give one of the two")
        if counts:
            found[name] = counts
    return found


def none_twice(values: Sequence[Value], place: str) -> None:
    """Raises `UsageError` with one line if a value is there twice: one of the two would count for nothing."""
    for number, value in enumerate(values):
        if value in values[:number]:
            raise UsageError(f"{place}: {value} stands there twice: leave one out")


def read_only(tree: Mapping[str, Any], file: Path, place: str, known: Iterable[str]) -> Only:
    """`only = { payload = [68, 176], clients = { from = 100 } }`. Raises `UsageError` with one line."""
    values: dict[str, tuple[Value, ...]] = {}
    within: dict[str, tuple[float, float]] = {}
    for name, entry in tree.items():
        must_be_known(name, known, file, place)
        if isinstance(entry, dict):
            bounds = checked(entry, dict[str, float], file, f"{place}.{name}")
            for key in bounds:
                if key not in ("from", "to"):
                    raise UsageError(f"{where(file, place, name)}: {unknown('key', key, ('from', 'to'))}")
            within[name] = bounds.get("from", float("-inf")), bounds.get("to", float("inf"))
        else:
            values[name] = read_values(entry, file, f"{place}.{name}")
    return Only(values, within)


def must_be_known(name: str, known: Iterable[str], file: Path, place: str) -> None:
    """Raises `UsageError` with one line if no matrix of the plan has such a factor."""
    names = list(known)
    if name not in names:
        raise UsageError(f"{where(file, place)}: {unknown('factor', name, names)}")


def places_of(name: str, tree: Mapping[str, Any]) -> list[str]:
    """The places of a scenario that end in a key of this name."""
    return [place for place, key in _keys(tree) if key == name]


# ----------------------------------------------------------------------------------------------- helpers


def _keys(tree: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """Every key that holds no table, with its place."""
    if isinstance(tree, Mapping):
        for key, value in tree.items():
            here = f"{place}.{key}" if place else str(key)
            if isinstance(value, Mapping) or (isinstance(value, list) and value and isinstance(value[0], Mapping)):
                yield from _keys(value, here)
            else:
                yield here, str(key)
    elif isinstance(tree, list):
        for number, entry in enumerate(tree):
            yield from _keys(entry, f"{place}[{number}]")
