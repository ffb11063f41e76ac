"""Two loads of real servers side by side: what `millpond load --json` printed, one run or several of each."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from millpond.errors import UsageError
from millpond.given_files import read_text
from millpond.measure.estimate import LEAST_RUNS, Difference

#: What must be alike, so that a difference is one of what is compared.
ALIKE = (
    "uri", "method", "confirmable", "payload_bytes", "clients", "nstart", "rate", "ramp_s", "duration_s", "count",
    "count_each", "timeout_s", "oscore",
)  # fmt: skip
_TIMES = ("median", "p90", "p99", "p999", "longest")


@dataclass(frozen=True)
class Value:
    """A figure of one run; infinite if it never comes, a lower bound if requests had no answer when the load ended."""

    value: float
    is_bound: bool = False


@dataclass(frozen=True)
class Side:
    """The runs of one side with one controller."""

    name: str
    controller: str
    runs: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Line:
    """One figure of both sides: means over runs."""

    metric: str
    one: Value
    other: Value
    #: The other less the one; None where a side never comes, or is a lower bound.
    difference: float | None
    #: Its 95 % interval; None unless both have three runs.
    interval: tuple[float, float] | None

    @property
    def verdict(self) -> str:
        """Which side has more, as far as that can be said."""
        if self.interval is None:
            return ""
        low, high = self.interval
        return "more" if low > 0 else "less" if high < 0 else "equal" if low == high == 0 else "inconclusive"


@dataclass(frozen=True)
class Pair:
    """Both sides with one controller each."""

    one: Side
    other: Side
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Loads:
    """Everything that was compared."""

    pairs: tuple[Pair, ...]
    #: What was not alike, with both values.
    unlike: Mapping[str, tuple[Any, Any]]

    @property
    def has_intervals(self) -> bool:
        """Whether there are runs enough to tell how much runs differ."""
        return self.runs >= LEAST_RUNS

    @property
    def runs(self) -> int:
        """The fewest runs that a side has."""
        return min(len(side.runs) for pair in self.pairs for side in (pair.one, pair.other))

    def to_json(self) -> dict[str, Any]:
        """Everything, for programs."""
        return {
            "not_alike": {key: list(both) for key, both in self.unlike.items()},
            "pairs": [
                {
                    "controllers": [pair.one.controller, pair.other.controller],
                    "runs": [len(pair.one.runs), len(pair.other.runs)],
                    "lines": [_line(line) for line in pair.lines],
                }
                for pair in self.pairs
            ],
        }


def compare(one: str, other: str) -> Loads:
    """Two files, or several of a side with commas between.

    Raises:
        UsageError: one line, if a file holds no load, or the two have no controller in common and several each.
    """
    sides = tuple(tuple(_read(Path(name)) for name in names.split(",")) for names in (one, other))
    runs = [_by_controller(files) for files in sides]
    shared = [name for name in runs[0] if name in runs[1]]
    pairs = [(name, name) for name in shared]
    if not pairs and len(runs[0]) == len(runs[1]) == 1:
        pairs = [(next(iter(runs[0])), next(iter(runs[1])))]
    if not pairs:
        raise UsageError(f"{one} has {', '.join(runs[0])}, {other} has {', '.join(runs[1])}: no controller in common")
    found = []
    for mine, theirs in pairs:
        ours, beside = Side(one, mine, runs[0][mine]), Side(other, theirs, runs[1][theirs])
        lines = tuple(_compared(name, read, ours, beside) for name, read in _METRICS.items())
        found.append(Pair(ours, beside, lines))
    first = [files[0] for files in sides]
    unlike = {key: (first[0].get(key), first[1].get(key)) for key in ALIKE if first[0].get(key) != first[1].get(key)}
    return Loads(tuple(found), unlike)


# ----------------------------------------------------------------------------------------------- helpers


def _read(file: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(read_text(file))
    except (ValueError, RecursionError):
        found = None
    loads = found.get("loads") if isinstance(found, dict) else None
    if not isinstance(found, dict) or not isinstance(loads, list) or not loads or "rate" not in found:
        raise UsageError(f"{file}: holds no load: `millpond load --json URI > {file.name}` writes one")
    if not all(isinstance(load, dict) and isinstance(load.get("milliseconds"), dict) for load in loads):
        raise UsageError(f"{file}: a load without times: was the file changed?")
    return found


def _by_controller(files: Iterable[Mapping[str, Any]]) -> dict[str, tuple[Mapping[str, Any], ...]]:
    found: dict[str, tuple[Mapping[str, Any], ...]] = {}
    for file in files:
        for load in file["loads"]:
            name = str(load.get("controller"))
            found[name] = (*found.get(name, ()), load)
    return found


def _number(load: Mapping[str, Any], key: str) -> float:
    found = load.get(key)
    if not isinstance(found, int | float):
        raise UsageError(f"a load without {key!r}: was the file changed?")
    return float(found)


def _requests(load: Mapping[str, Any]) -> float:
    return _number(load, "requests") + _number(load, "not_started")


def _share(*keys: str) -> Callable[[Mapping[str, Any]], Value]:
    return lambda load: Value(sum(_number(load, key) for key in keys) / max(1.0, _requests(load)))


def _time(name: str) -> Callable[[Mapping[str, Any]], Value]:
    def read(load: Mapping[str, Any]) -> Value:
        times = load["milliseconds"]
        found = times.get(name)
        if found is None:
            return Value(math.inf)
        return Value(float(found), name in times.get("at_least", ()))

    return read


#: What is compared, of each run.
_METRICS: dict[str, Callable[[Mapping[str, Any]], Value]] = {
    "answers a second": lambda load: Value(_number(load, "answers_per_second")),
    **{f"{name} (ms)": _time(name) for name in _TIMES},
    "failed, of requests": _share("failed"),
    "without an answer at the end": _share("unfinished", "not_started"),
    "retransmissions a request": _share("retransmissions"),
    "spurious for certain": _share("spurious_retransmissions"),
    "needed for certain": _share("needed_retransmissions"),
}


def _compared(metric: str, read: Callable[[Mapping[str, Any]], Value], one: Side, other: Side) -> Line:
    ours, theirs = ([read(run) for run in side.runs] for side in (one, other))
    means = [
        Value(float(np.mean([value.value for value in values])), any(value.is_bound for value in values))
        for values in (ours, theirs)
    ]
    if any(value.is_bound or math.isinf(value.value) for value in means):
        return Line(metric, means[0], means[1], None, None)
    first, second = ([value.value for value in values] for values in (ours, theirs))
    found = Difference.of(np.array(second), np.array(first), paired=False).estimate()
    return Line(metric, means[0], means[1], found.value, found.interval)


def _line(line: Line) -> dict[str, Any]:
    return {
        "metric": line.metric,
        "values": [line.one.value, line.other.value],
        "at_least": [line.one.is_bound, line.other.is_bound],
        "difference": line.difference,
        "interval": None if line.interval is None else list(line.interval),
        "verdict": line.verdict,
    }
