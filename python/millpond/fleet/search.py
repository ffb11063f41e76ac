"""Two searches by bisection over runs of equal seeds: the largest safe fleet, and the least safe spread of starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from millpond.fleet import remedies
from millpond.fleet.change import Change
from millpond.fleet.description import Fleet
from millpond.fleet.outcome import Demand, Outcome
from millpond.fleet.scenario import everyday_load, spread_s

#: A fleet that the cell takes is known to so large a share of its size.
NEAR = 0.02
#: No larger fleet is tried than so many times the one described.
MOST = 64
#: A spread is known to so large a share of it, and to so many seconds.
NEAR_SPREAD, NEAR_S = 0.05, 1.0

#: Runs a fleet with a change.
Measure = Callable[[Change, Fleet], Outcome]


@dataclass(frozen=True)
class Edge:
    """How safe fleets of several sizes are with one change, and the largest that is."""

    change: Change
    #: By size.
    points: tuple[Outcome, ...]
    #: The largest that was found safe; 0 if none is.
    largest: int
    #: The smallest that was found not to be; None if all that were tried are.
    smallest_unsafe: int | None


@dataclass(frozen=True)
class Spread:
    """How safe the fleet is with starts spread over several times, and the least of them with which it is."""

    #: By time, in s.
    points: tuple[tuple[float, Outcome], ...]
    #: The least that was found safe; None if none is that is no longer than the goal.
    least_s: float | None
    #: The longest below it that was found not to be; 0 s, as it is, was found so before.
    unsafe_s: float

    @property
    def outcome(self) -> Outcome | None:
        """What the least safe spread gave."""
        return next((outcome for over, outcome in self.points if over == self.least_s), None)

    @property
    def below(self) -> Outcome | None:
        """What the longest below it gave; None if that was not run."""
        return next((outcome for over, outcome in self.points if over == self.unsafe_s), None)


def largest(fleet: Fleet, change: Change, measured: Measure, report_s: float) -> Edge:
    """The largest fleet that is safe with a change: doubled or halved until it is between two sizes, then bisected."""
    points: dict[int, Outcome] = {}

    def safe(devices: int) -> bool:
        points[devices] = measured(change, fleet.with_devices(devices))
        return points[devices].verdict == "safe"

    at = fleet.keys.devices
    low, high = 0, None
    if safe(at):
        low = at
        while low < MOST * at and everyday_load(fleet.with_devices(2 * low), report_s) <= 1:
            if not safe(2 * low):
                high = 2 * low
                break
            low *= 2
    else:
        high = at
        while high > 1:
            if safe(high // 2):
                low = high // 2
                break
            high //= 2
    while high is not None and high - low > max(1, NEAR * low):
        middle = (low + high) // 2
        low, high = (middle, high) if safe(middle) else (low, middle)
    return Edge(change, tuple(points[size] for size in sorted(points)), low, high)


def least_spread(fleet: Fleet, cost: Demand, known: dict[float, Outcome], measured: Measure) -> Spread:
    """The least time over which starts must be spread, for a fleet that is not safe as it is.

    It is doubled, from the shortest in which the cell can carry what is to be sent, until the fleet is safe or the last
    devices would start too late for the goal, then bisected down.

    Args:
        fleet: The description.
        cost: What `demand` gave.
        known: Loads that were measured already.
        measured: Runs it.
    """
    whole = spread_s(fleet.keys.devices, cost.work_s, 1.0)
    points = {whole / load: outcome for load, outcome in known.items()}

    def safe(over: float) -> bool:
        if over not in points:
            load = whole / over
            change = remedies.spread(fleet, cost, load, "spread-least", f"load {load:.3g}")
            points[over] = measured(change, fleet)
        return points[over].verdict == "safe"

    low, high = 0.0, whole
    latest = max(whole, (fleet.goal.within_s - cost.alone_s) / fleet.goal.share)
    while not safe(high):
        if high >= latest:
            return Spread(_sorted(points), None, high)
        low, high = high, min(2 * high, latest)
    while high - low > max(NEAR_S, NEAR_SPREAD * high):
        middle = (low + high) / 2
        low, high = (low, middle) if safe(middle) else (middle, high)
    return Spread(_sorted(points), high, low)


# ----------------------------------------------------------------------------------------------- helpers


def _sorted(points: dict[float, Outcome]) -> tuple[tuple[float, Outcome], ...]:
    return tuple(sorted(points.items(), key=lambda point: point[0]))
