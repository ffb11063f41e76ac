"""The whole answer: how it is, what would help, and how far it is to the edge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from millpond import _engine
from millpond.errors import UsageError
from millpond.fleet import gateway, remedies, search
from millpond.fleet.change import AS_IT_IS, Change
from millpond.fleet.description import Fleet
from millpond.fleet.outcome import Demand, Outcome, demand, simulate
from millpond.fleet.remedies import Remedy
from millpond.fleet.scenario import everyday_load, path
from millpond.fleet.search import Edge, Spread
from millpond.plan.toml_file import where
from millpond.run.campaign import Watcher

#: How long devices wait for an answer before they send again, at least (RFC 7252 §4.8).
ACK_TIMEOUT_S = 2.0


@dataclass(frozen=True)
class Answer:
    """Everything that was found out."""

    fleet: Fleet
    cost: Demand
    seeds: tuple[int, ...]
    as_it_is: Outcome
    #: Single ones, and pairs that are better than both of their parts; the best first.
    remedies: tuple[Remedy, ...]
    #: Titles of pairs that were tried and are no better than one of their parts.
    no_gain: tuple[str, ...] = ()
    #: The best controller on some of the devices only, by share.
    shares: tuple[Remedy, ...] = ()
    #: None where the fleet is safe as it is, or no device can be told to spread.
    spread: Spread | None = None
    edges: tuple[Edge, ...] = ()
    #: Of the engine that ran it.
    version: str = ""

    def to_json(self) -> dict[str, Any]:
        """Everything that was asked and found, as `answer.json` has it."""
        from millpond.fleet import files

        return files.to_json(self)

    @property
    def best(self) -> Remedy | None:
        """The remedy that helps most; None if none is better than how it is."""
        mine = Remedy(self.as_it_is, 0.0, None).rank
        return next((remedy for remedy in self.remedies if remedy.rank < mine), None)

    @property
    def gateway(self) -> str | None:
        """The configuration of a gateway that asks for the devices; None if that does not make the fleet safe."""
        changes = [one.outcome.change for one in self.remedies if one.outcome.verdict == "safe"]
        requests = next((change.asks for change in changes if change.asks is not None), None)
        return None if requests is None else gateway.configuration(self.fleet, requests)

    @property
    def easiest(self) -> Remedy | None:
        """Of the remedies that make the fleet safe the one with least trouble."""
        safe = [remedy for remedy in self.remedies if remedy.outcome.verdict == "safe"]
        return min(safe, key=lambda remedy: (remedy.outcome.change.effort, remedy.rank), default=None)

    @property
    def least_s(self) -> float:
        """The shortest time in which the cell can carry what the share of the goal sends, whatever devices do.

        Each device's requests cross the cell in it: a gateway that shares answers can be sooner.
        """
        return self.fleet.goal.share * self.fleet.keys.devices * self.cost.work_s

    @property
    def uplink_first_s(self) -> float | None:
        """How long requests wait in the uplink where that is why a calm server does not help; None elsewhere.

        Requests that wait there for longer than devices wait for an answer are sent again before any server has seen
        them, so that no server can prevent it.
        """
        calm = next((one.outcome for one in self.remedies if one.outcome.change.name == "calm-server"), None)
        if calm is None or calm.verdict == "safe":
            return None
        waited = calm.median("uplink_s")
        return waited if waited > ACK_TIMEOUT_S else None


def find(
    fleet: Fleet,
    seeds: Sequence[int],
    *,
    jobs: int = 0,
    largest: bool = False,
    pictures: bool = True,
    watcher: Watcher | None = None,
) -> Answer:
    """The answer for a fleet.

    Args:
        fleet: The description.
        seeds: One for each run of a setting.
        jobs: Runs at the same time; 0 for one per core.
        largest: Whether the largest fleet is looked for, as it is and with the best remedy.
        pictures: Whether the tables of what is drawn are kept.
        watcher: Told how it goes.

    Raises:
        UsageError: one line, if the engine refuses what is described.
        MillpondError: one line, if a run fails.
    """
    watcher = watcher or Watcher()
    gateway.check(fleet, path(fleet))
    cost = demand(fleet)
    if (load := everyday_load(fleet, cost.report_s)) > 1:
        raise UsageError(
            f"{where(fleet.origin, 'everyday', 'every')}: the reports of {fleet.who} are {load:.3g} times "
            "what the cell carries, without any event: write a longer time"
        )

    known: dict[tuple[int, Change], Outcome] = {}

    def measured(change: Change, of: Fleet = fleet, draw: bool = False) -> Outcome:
        # a search begins with what was measured before it
        key = of.keys.devices, change
        if key not in known:
            watcher.step(change.title if of is fleet else f"{of.keys.devices} devices, {change.title}")
            known[key] = simulate(of, change, cost, seeds, jobs=jobs, draw=draw, watcher=watcher)
        return known[key]

    def beside(change: Change) -> Remedy:
        return Remedy.of(measured(change, draw=pictures), as_it_is)

    try:
        as_it_is = measured(AS_IT_IS, draw=pictures)
        single = [beside(change) for change in remedies.tried(fleet, cost, as_it_is)]
        answer = Answer(fleet, cost, tuple(seeds), as_it_is, remedies.ranked(single), version=_engine.version())
        if as_it_is.verdict != "safe":
            answer = _spread(answer, single, measured, pictures)
            answer = _paired(answer, beside)
        partly = remedies.shares(fleet, single)
        answer = replace(answer, shares=tuple(beside(change) for change in partly))
        if largest:
            changes = [AS_IT_IS, *([answer.best.outcome.change] if answer.best else [])]
            found = [search.largest(fleet, change, measured, cost.report_s) for change in changes]
            answer = replace(answer, edges=tuple(found))
    finally:
        watcher.close()
    return answer


# ----------------------------------------------------------------------------------------------- helpers


def _spread(answer: Answer, single: Sequence[Remedy], measured: Any, draw: bool) -> Answer:
    """With the least spread of starts that is safe, as a remedy if it is shorter than those of fixed loads."""
    known = {load: one.outcome for one in single if (load := one.outcome.change.load) is not None}
    if not known:
        return answer
    fleet, cost = answer.fleet, answer.cost
    found = search.least_spread(fleet, cost, known, lambda change, of: measured(change, of, draw))
    least = found.outcome
    if least is None or least.change.load in known:
        return replace(answer, spread=found)
    ranked = remedies.ranked([*answer.remedies, Remedy.of(least, answer.as_it_is)])
    return replace(answer, spread=found, remedies=ranked)


def _paired(answer: Answer, beside: Callable[[Change], Remedy]) -> Answer:
    """With the pairs of remedies that are better than both of their parts."""
    gainful, no_gain = [], []
    for one, other in remedies.pairs(answer.remedies):
        pair = beside(one.outcome.change.beside(other.outcome.change))
        if remedies.gainful(pair, one, other):
            gainful.append(pair)
        else:
            no_gain.append(pair.outcome.change.title)
    return replace(answer, remedies=remedies.ranked([*answer.remedies, *gainful]), no_gain=tuple(no_gain))


__all__ = ["Answer", "find"]
