"""Values that callers hand over from Python: NumPy's numbers are taken for numbers, what fits nowhere is refused."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from typing import Any

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


# ----------------------------------------------------------------------------------------------- helpers


def _where(origin: str, place: str) -> str:
    # an option may be called after its place
    return f"{origin}: {place}" if place and not origin.endswith(place) else origin
