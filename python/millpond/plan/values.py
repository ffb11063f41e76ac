"""Values that callers hand over from Python: NumPy's numbers are taken for numbers, what fits nowhere is refused."""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Mapping
from typing import Any, Literal

from millpond import _engine
from millpond.errors import UsageError


def plain(value: Any, origin: str, place: str = "") -> Any:
    """The value in types that JSON knows. Raises `UsageError` with the place of one that cannot be."""
    if isinstance(value, Mapping):
        return {key: plain(entry, origin, f"{place}.{key}" if place else str(key)) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry, origin, f"{place}[{number}]") for number, entry in enumerate(value)]
    if hasattr(value, "tolist"):  # a number or an array of NumPy's
        return plain(value.tolist(), origin, place)
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"{_where(origin, place)}: {value} is no number that can be run: write a finite one")
    if not isinstance(value, str | int | float | None):
        kind = type(value).__name__
        raise UsageError(f"{_where(origin, place)}: {kind} fits nowhere: write text in quotes, a number or a table")
    return value


def whole(value: Any, option: str) -> int:
    """A whole number of any type. Raises `UsageError` with one line if it is none."""
    try:
        return operator.index(value)
    except TypeError:
        raise UsageError(f"{option}: {value!r} is no whole number") from None


Kind = Literal["time", "rate", "queue", "size"]

#: What a unit of the engine is in s, bit/s, bytes or metres.
UNITS = {
    "": 1.0,
    **{"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0},
    **{"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9},
    **{"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1024.0, "MiB": 1024.0**2},
    **{"mm": 1e-3, "cm": 1e-2, "m": 1.0, "km": 1e3},
}

#: A scenario that any engine takes, and where it holds a quantity of each kind.
SMALLEST: dict[str, Any] = {
    # over TCP, so that a size may be that of a whole body
    "clients": [{"count": 1, "transport": "tcp"}],
    "path": {
        name: {"rate": "1 Mbit/s", "delay": "1 ms", "queue": "1 MB"} for name in ("uplink", "downlink")
    },
}  # fmt: skip


def canonical(kind: Kind, written: Any, place: str) -> str:
    """A quantity as the engine writes it.

    Args:
        kind: What is measured.
        written: What was written.
        place: Where, for errors.

    Raises:
        UsageError: one line: the place, what was found and what is meant.
    """
    try:
        return _engine.quantity(kind, json.dumps(plain(written, place)))
    except ValueError as error:
        raise UsageError(f"{place}: {error}") from None


def in_base(told: Any) -> float | None:
    """A quantity that the engine wrote in s, bit/s, bytes or metres, or a number as it is; None of anything else."""
    if isinstance(told, bool) or not isinstance(told, str | int | float):
        return None
    number, _, unit = str(told).strip().partition(" ")
    try:
        return float(number) * UNITS[unit]
    except (ValueError, KeyError):
        return None


def in_units(told: Any) -> float:
    """The same of what is one. Raises `ValueError` if it is none."""
    if (found := in_base(told)) is None:
        raise ValueError(f"{told!r} is no quantity")
    return found


# ----------------------------------------------------------------------------------------------- helpers


def _where(origin: str, place: str) -> str:
    # an option may be called after its place
    return f"{origin}: {place}" if place and not origin.endswith(place) else origin
