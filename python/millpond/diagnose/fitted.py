"""Figures that a capture does not show, fitted: of those that are possible the ones with which runs repeat it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from millpond.diagnose import repeat, written
from millpond.diagnose.analysis import Diagnosis, Given
from millpond.diagnose.repeat import Beside

#: Runs of a candidate. The check that is printed has other seeds.
SEEDS = (1001, 1002, 1003)
#: Candidates that are run at most.
MOST = 40
#: Numbers that are so near need no better figures: the check's seeds are others.
NEAR_ENOUGH = 0.06

_LOSSES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)
#: Bytes: each twice the one before.
_BUFFERS = tuple(2_000.0 * 2**step for step in range(9))
#: Times a lower bound of a rate, and parts of an upper bound of a round trip.
_TIMES, _PARTS = (1.0, 1.5, 2.5), (0.1, 0.3, 0.6, 1.0)
_ROUND_TRIPS = (0.1, 0.3, 1.0, 2.0, 4.0)


def fitted(found: Diagnosis, source: str, step: Callable[[], None] = lambda: None) -> Diagnosis:
    """The same with figures that are no more than bounds, estimates or not visible fitted, if runs do not repeat it.

    Args:
        found: The diagnosis of a capture.
        source: What the capture is called.
        step: Called before the runs of each candidate, `MOST` times at most.
    """
    if found.figures["side"] == "devices":
        return found
    best, off = found, _off(found, source)
    tried = 1
    for _ in range(2):
        before = off
        for place in _PLACES:
            for candidate in _candidates(best, found.figure(place), place):
                if max(off) <= NEAR_ENOUGH or tried == MOST:
                    return best
                step()
                tried += 1
                other = _off(candidate, source)
                if _cost(other) < _cost(off):
                    best, off = candidate, other
        if off == before:
            break
    return best


# ----------------------------------------------------------------------------------------------- helpers


def _candidates(best: Diagnosis, given: Given, place: str) -> Iterator[Diagnosis]:
    told = best.figure(place).value
    values = _PLACES[place](given) if given.grade != "exact" else ()
    for value in values:
        if told is None or not math.isclose(value, told):
            yield _with(best, place, value, given)


def _with(found: Diagnosis, place: str, value: float, given: Given) -> Diagnosis:
    """A diagnosis with another figure."""
    seen = f"; {given.because}" if given.because else ""
    because = f"fitted: runs with it repeat the capture best{seen}"
    return found.with_figure(place, {"value": value, "grade": "estimate", "because": because})


def _buffers(given: Given) -> Sequence[float]:
    least = given.value or 0.0
    return [value for value in _BUFFERS if value >= least]


def _rates(given: Given) -> Sequence[float]:
    return [] if given.value is None or given.grade != "at-least" else [times * given.value for times in _TIMES]


def _round_trips(given: Given) -> Sequence[float]:
    return _ROUND_TRIPS if given.value is None else [part * given.value for part in _PARTS]


#: What is fitted, in this order, and what is tried where it is not exact.
_PLACES: Mapping[str, Callable[[Given], Sequence[float]]] = {
    "path.uplink.buffer_bytes": _buffers,
    "path.uplink.loss": lambda _: _LOSSES,
    "path.downlink.loss": lambda _: _LOSSES,
    "path.downlink.buffer_bytes": _buffers,
    "path.downlink.rate_bps": _rates,
    "path.base_rtt_s": _round_trips,
}


def _off(found: Diagnosis, source: str) -> list[float]:
    """How far runs are from the capture, of each number."""
    with TemporaryDirectory() as folder:
        written.write(written.of(found, source), Path(folder))
        return [_distance(one) for one in repeat.check(found, Path(folder), SEEDS)]


def _distance(one: Beside) -> float:
    return 0.0 if math.isnan(one.off) else abs(one.off)


def _cost(off: Sequence[float]) -> float:
    return sum(min(one, 1.0) ** 2 for one in off)
