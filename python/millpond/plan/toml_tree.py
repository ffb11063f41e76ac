"""TOML files of ours read strictly: every key is asked for, one that was not is refused with the nearest legal name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from millpond.errors import UsageError, nearest, unknown
from millpond.plan.toml_file import read_text, read_tree

__all__ = ["Table", "read_text", "read_tree"]

T = TypeVar("T")

_NAMES = {str: "text", int: "a whole number", float: "a number", bool: "true or false", list: "a list", dict: "a table"}


class Table:
    """One table of a file. Ask for every key, then call `done`."""

    def __init__(self, tree: dict[str, Any], file: Path | str, place: str = "") -> None:
        self._tree = tree
        self._asked: list[str] = []
        self._file = file
        self._place = place

    def __contains__(self, key: str) -> bool:
        self._note(key)
        return key in self._tree

    @property
    def place(self) -> str:
        """File and dotted path of this table."""
        return f"{self._file}: {self._place}" if self._place else str(self._file)

    def where(self, key: str) -> str:
        """File and dotted path of a key."""
        return f"{self._file}: {self._place}.{key}" if self._place else f"{self._file}: {key}"

    def get(self, key: str, kind: type[T], default: T | None = None) -> T:
        """The value of a key, or the default; without a default the key must be there."""
        self._note(key)
        if key not in self._tree:
            if default is None:
                raise self._missing(key)
            return default
        value = self._tree[key]
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise UsageError(f"{self.where(key)}: expected {_NAMES[kind]}, found {value!r}")
        return value

    def maybe(self, key: str, kind: type[T]) -> T | None:
        """The value of a key, or None."""
        return self.get(key, kind) if key in self else None

    def items(self, key: str, kind: type[T], default: Sequence[T] | None = None) -> list[T]:
        """A list of values of one kind; a single value stands for a list of one."""
        self._note(key)
        if key not in self._tree:
            if default is None:
                raise self._missing(key)
            return list(default)
        found = self._tree[key]
        values = found if isinstance(found, list) else [found]
        for value in values:
            if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
                raise UsageError(f"{self.where(key)}: expected {_NAMES[kind]}, found {value!r}")
        return list(values)

    def table(self, key: str) -> Table:
        """A table below this one; empty if it is not there."""
        return Table(self.get(key, dict, {}), self._file, f"{self._place}.{key}" if self._place else key)

    def tables(self, key: str) -> list[Table]:
        """An array of tables; empty if it is not there."""
        found = self.items(key, dict, [])
        place = f"{self._place}.{key}" if self._place else key
        return [Table(tree, self._file, f"{place}[{number}]") for number, tree in enumerate(found)]

    def names(self) -> list[str]:
        """Every key of this table; all of them count as asked for."""
        self._asked.extend(self._tree)
        return list(self._tree)

    def raw(self) -> dict[str, Any]:
        """The tree itself; every key counts as asked for."""
        self._asked.extend(self._tree)
        return self._tree

    def done(self) -> None:
        """Refuse any key that was not asked for."""
        for key in self._tree:
            if key not in self._asked:
                raise UsageError(f"{self.place}: {unknown('key', key, dict.fromkeys(self._asked))}")

    def _missing(self, key: str) -> UsageError:
        for other in self._tree:
            if other not in self._asked and nearest(other, [key]):
                return UsageError(f"{self.place}: unknown key {other!r}: did you mean {key!r}?")
        return UsageError(f"{self.where(key)}: missing key")

    def _note(self, key: str) -> None:
        self._asked.append(key)
