"""The whole answer: how it is, what would help, and how far it is to the edge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from millpond.engine import Engine
from millpond.errors import UsageError
from millpond.fleet import remedies
from millpond.fleet.change import AS_IT_IS, Change
from millpond.fleet.description import Fleet
from millpond.fleet.outcome import SURE, VERDICTS, Demand, Outcome, demand, simulate
from millpond.fleet.remedies import Remedy
from millpond.fleet.scenario import everyday_load
from millpond.measure.reported import SHARES
from millpond.plan.toml_file import where

#: A fleet that the cell takes is known to so large a share of its size.
NEAR = 0.02
#: No larger fleet is tried than so many times the one described.
MOST = 64


class Watch:
    """Told how the work goes. This one says nothing."""

    def step(self, what: str, runs: int) -> None:
        """So many runs of something begin."""

    def finished(self) -> None:
        """One run is done."""

    def end(self) -> None:
        """No further run will come."""


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
class Answer:
    """Everything that was found out."""

    fleet: Fleet
    cost: Demand
    seeds: tuple[int, ...]
    as_it_is: Outcome
    #: The best first.
    remedies: tuple[Remedy, ...]
    #: The best controller on some of the devices only, by share.
    shares: tuple[Remedy, ...]
    edges: tuple[Edge, ...]

    @property
    def best(self) -> Remedy | None:
        """The remedy that helps most; None if none is better than how it is."""
        mine = Remedy(self.as_it_is, 0.0, None).rank
        return next((remedy for remedy in self.remedies if remedy.rank < mine), None)

    @property
    def easiest(self) -> Remedy | None:
        """Of the remedies that make the fleet safe the one with least trouble."""
        safe = [remedy for remedy in self.remedies if remedy.outcome.verdict == "safe"]
        return min(safe, key=lambda remedy: (remedy.outcome.change.effort, remedy.rank), default=None)

    def to_json(self) -> dict[str, Any]:
        """Everything, for programs."""
        goal = self.fleet.goal
        return {
            "title": self.fleet.title,
            "devices": self.fleet.keys.devices,
            "goal": {"share": goal.share, "within_s": goal.within_s, "copies": goal.copies, "useful": goal.useful},
            "seeds": list(self.seeds),
            "one_device": {
                "bottleneck": self.cost.bottleneck,
                "work_s": self.cost.work_s,
                "alone_s": self.cost.alone_s,
            },
            "answer": _outcome(self.as_it_is),
            "remedies": [_remedy(remedy) for remedy in self.remedies],
            "new_firmware": [_remedy(remedy) for remedy in self.shares],
            "edges": [
                {
                    "change": edge.change.name,
                    "largest": edge.largest,
                    "smallest_unsafe": edge.smallest_unsafe,
                    "points": [_outcome(point) for point in edge.points],
                }
                for edge in self.edges
            ],
        }


def find(
    fleet: Fleet,
    engine: Engine,
    seeds: Sequence[int],
    *,
    jobs: int = 0,
    largest: bool = False,
    pictures: bool = True,
    watch: Watch | None = None,
) -> Answer:
    """The answer for a fleet.

    Args:
        fleet: The description.
        engine: Who runs it.
        seeds: One for each run of a setting.
        jobs: Runs at the same time; 0 for one per core.
        largest: Whether the largest fleet is looked for, as it is and with the best remedy.
        pictures: Whether the tables of what is drawn are kept.
        watch: Told how it goes.

    Raises:
        UsageError: one line, if the engine refuses what is described.
        MillpondError: one line, if a run fails.
    """
    watch = watch or Watch()
    cost = demand(fleet, engine)
    if (load := everyday_load(fleet, cost.report_s)) > 1:
        raise UsageError(
            f"{where(fleet.origin, 'everyday', 'every')}: the reports of {fleet.who} are {load:.3g} times "
            "what the cell carries, without any event: write a longer time"
        )

    def measured(change: Change, of: Fleet = fleet, keep: bool = False) -> Outcome:
        watch.step(change.title if of is fleet else f"{of.keys.devices} devices, {change.title}", len(seeds))
        return simulate(of, change, cost, seeds, engine, jobs=jobs, keep=keep, finished=watch.finished)

    try:
        as_it_is = measured(AS_IT_IS, keep=pictures)
        changes = remedies.tried(fleet, cost, as_it_is)
        found = remedies.ranked([Remedy.of(measured(change), as_it_is) for change in changes])
        controllers = [one.outcome.change for one in found if _is_controller(one.outcome.change, fleet)]
        partly = remedies.shares(fleet, str(controllers[0].controller)) if controllers else []
        shares = [Remedy.of(measured(change), as_it_is) for change in partly]
        answer = Answer(fleet, cost, tuple(seeds), as_it_is, tuple(found), tuple(shares), ())
        if pictures and (best := answer.best) is not None:
            # its tables were not kept when it was one of many
            again = Remedy(measured(best.outcome.change, keep=True), best.sooner, best.interval)
            found[found.index(best)] = again
        edges: list[Edge] = []
        if largest:
            for change in [AS_IT_IS, *([answer.best.outcome.change] if answer.best else [])]:
                edges.append(_edge(fleet, change, measured, cost.report_s))
    finally:
        watch.end()
    return Answer(fleet, cost, tuple(seeds), as_it_is, tuple(found), tuple(shares), tuple(edges))


# ----------------------------------------------------------------------------------------------- helpers


def _is_controller(change: Change, fleet: Fleet) -> bool:
    return change.controller is not None and fleet.keys.event.kind != "command"


def _edge(fleet: Fleet, change: Change, measured: Any, report_s: float) -> Edge:
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


def _remedy(remedy: Remedy) -> dict[str, Any]:
    return {
        **_outcome(remedy.outcome),
        "change": remedy.outcome.change.name,
        "title": remedy.outcome.change.title,
        "needs": remedy.outcome.change.effort.words,
        "reach": remedy.outcome.change.reach if remedy.outcome.change.on_devices else 1.0,
        "sooner_s": remedy.sooner,
        "sooner_interval_s": None if remedy.interval is None else list(remedy.interval),
    }


def _outcome(outcome: Outcome) -> dict[str, Any]:
    names = ("never", "copies", "vain", "useful", "queue_bytes", "queue_s", "others_s", "messages", "bytes")
    return {
        "devices": outcome.devices,
        "verdict": outcome.verdict,
        "probability": {
            verdict: dict(zip(("share", "low", "high"), outcome.probability(verdict), strict=True))
            for verdict in VERDICTS
        },
        "done_s": {f"{100 * share:g} %": outcome.median(f"done_{100 * share:.0f}") for share in SHARES},
        "bottleneck": outcome.bottleneck,
        **{name: outcome.median(name) for name in names},
    }


__all__ = ["SURE", "Answer", "Edge", "Watch", "find"]
