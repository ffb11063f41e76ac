"""Quantities as the engine writes them back: `5 min`, `30 kbit/s`. Whatever people write, the engine reads first."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from millpond import _engine
from millpond.errors import UsageError
from millpond.plan.values import plain

Kind = Literal["time", "rate", "queue", "size"]

SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
BITS_PER_SECOND = {"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9}
BYTES = {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1024.0, "MiB": 1024.0**2}

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


def in_seconds(told: str) -> float:
    """A time that the engine wrote, in s."""
    return _times(told, SECONDS)


def in_bytes(told: str) -> float:
    """A size that the engine wrote, in bytes."""
    return _times(told, BYTES)


def _times(told: str, units: Mapping[str, float]) -> float:
    number, unit = told.split()
    return float(number) * units[unit]
