"""Which remedies are tried for a fleet, and how they are ranked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from millpond.fleet import gateway
from millpond.fleet.change import Change, Effort
from millpond.fleet.description import Fleet
from millpond.fleet.outcome import Demand, Outcome
from millpond.fleet.scenario import spread_s
from millpond.fleet.security import COSTS, Security
from millpond.fleet.verdict import VERDICTS
from millpond.measure.estimate import mean
from millpond.show import labels

#: How busy a spread may keep the cell: half, as a rule that leaves room for chance and for others; and wholly, the
#: shortest time in which it can carry what must be carried.
LOADS = (0.5, 1.0)
#: The queue of the base station that is tried beside one bandwidth-delay product: so many times its own.
DEEPER = 10
#: Shares of devices with new firmware.
SHARES = (0.25, 0.5, 0.75)
#: Buffers are no smaller than a packet of Ethernet's length.
LEAST_BUFFER = 1500
#: Retransmissions before a device gives up, tried where devices do.
PATIENT = 8
#: Times of what is done lie at most so much too late.
RESOLUTION = 1 / 32
#: The interval of RFC 8289 §4.4, and the least that is tried.
CODEL_INTERVAL_MS = 100
#: What costs less after a power cut.
_CHEAPER: dict[Security, tuple[Security, ...]] = {
    "dtls-psk": ("dtls-resumed", "dtls-cid", "oscore"),
    "dtls-resumed": ("dtls-cid", "oscore"),
}
#: What is paired.
KINDS = ("calm-server", "gateway", "spread", "patient", "controller")


@dataclass(frozen=True)
class Remedy:
    """A remedy that was measured beside the fleet as it is, run by run of equal seeds."""

    outcome: Outcome
    #: By how many seconds the share of the goal is done sooner: mean, and its 95 % interval over seeds; None where one
    #: of both never is.
    sooner: float | None
    interval: tuple[float, float] | None

    @staticmethod
    def of(outcome: Outcome, as_it_is: Outcome) -> Remedy:
        """The remedy beside how it is."""
        before, after = as_it_is.values("goal_s"), outcome.values("goal_s")
        if not np.all(np.isfinite(before) & np.isfinite(after)):
            return Remedy(outcome, None, None)
        sooner = mean(before - after)
        return Remedy(outcome, sooner.value, sooner.interval)

    @property
    def is_surely_sooner(self) -> bool:
        """Whether the whole interval says so: what lies within the noise is no gain."""
        return self.interval is not None and self.interval[0] > 0

    @property
    def gain(self) -> tuple[float, ...]:
        """How good it is, the less the better: safe, then better words, then sooner, then fewer that never report."""
        outcome = self.outcome
        return (
            VERDICTS.index(outcome.verdict),
            -outcome.count("safe"),
            sum(VERDICTS.index(run.verdict) for run in outcome.runs),
            outcome.median("goal_s"),
            outcome.median("never"),
        )

    @property
    def rank(self) -> tuple[float, ...]:
        """What is best comes first; of equals the one with less trouble."""
        return (*self.gain, self.outcome.change.effort)


def spread(fleet: Fleet, cost: Demand, load: float, name: str, why: str) -> Change:
    """Starts spread over so long that the cell is so busy: by the devices themselves, or the server that asks them."""
    kind = fleet.keys.event.kind
    by_server = kind in ("command", "firmware")
    over = f"{labels.number(spread_s(fleet.keys.devices, cost.work_s, load), 3)} s"
    told = {"command": "send commands over", "firmware": "start in waves over"}.get(kind, "spread starts over")
    effort, reach = (Effort.SERVER, 1.0) if by_server else (Effort.DEVICES, 1.0 - fleet.keys.old_firmware)
    return Change(name, f"{told} {over} ({why})", effort, load=load, reach=reach)


def tried(fleet: Fleet, cost: Demand, as_it_is: Outcome) -> list[Change]:
    """The single remedies that make sense for this fleet."""
    keys, kind = fleet.keys, fleet.keys.event.kind
    reach = 1.0 - keys.old_firmware
    found: list[Change] = []
    asks, give_up = kind != "command", as_it_is.median("never") > 0
    if asks and keys.server.duplicates != "calm":
        found.append(Change("calm-server", "a calm server", Effort.SERVER, duplicates="calm"))
    if not COSTS[keys.security].hides_copies:
        found.append(Change("gateway", "a gateway that withholds", Effort.GATEWAY, gateway=True))
    if keys.try_gateway:
        requests = gateway.at_a_time(cost)
        title = f"a gateway that asks for devices, {requests} at a time"
        found.append(Change("asking-gateway", title, Effort.GATEWAY, asks=requests))
    found += [spread(fleet, cost, load, f"spread-{load:g}", f"load {load:g}") for load in LOADS]
    if kind == "power-cut":
        title = "first attempt after 1 s + U(0, 1 s)"
        found.append(Change("capped-exponential", title, Effort.DEVICES, reconnect="capped-exponential", reach=reach))
        found += [_security(name, reach) for name in _CHEAPER.get(keys.security, ())]
    if asks and give_up:
        title = f"MAX_RETRANSMIT {PATIENT}"
        found.append(Change("patient", title, Effort.DEVICES, max_retransmit=PATIENT, reach=reach))
        title = "who gave up tries again as in LwM2M 1.1 (after 60 s, 120 s, ...)"
        found.append(Change("lwm2m", title, Effort.DEVICES, reconnect="lwm2m", reach=reach))
    whose = [group.controller for group in keys.group]
    for name in keys.try_controllers:
        if asks and any(name != one for one in whose) and reach:
            found.append(_controller(name, reach))
        elif not asks and name != keys.server.controller:
            title = f"{labels.CONTROLLERS.get(name, name)} on the server"
            found.append(Change(name, title, Effort.SERVER, controller=name))
    return [change for change in [*found, *_buffers(cost), _managed(cost)] if not change.on_devices or change.reach]


def pairs(found: Sequence[Remedy]) -> Iterator[tuple[Remedy, Remedy]]:
    """Which of the single remedies are tried two at a time.

    A calm server, a gateway, the best spread of starts, more retransmissions, and the best controller. The rest are
    other values of these, or belong to the operator.
    """
    best: dict[str, Remedy] = {}
    for remedy in sorted(found, key=lambda remedy: remedy.rank):
        if (kind := _kind(remedy.outcome.change)) is not None:
            best.setdefault(kind, remedy)
    yield from combinations((best[kind] for kind in KINDS if kind in best), 2)


def gainful(pair: Remedy, one: Remedy, other: Remedy) -> bool:
    """Whether a pair is better than either of its parts alone, by more than times are known to."""
    better = min(one.gain, other.gain)
    *words, reached, never = pair.gain
    return (*words, reached * (1 + RESOLUTION), never) < better


def shares(fleet: Fleet, found: Sequence[Remedy]) -> list[Change]:
    """The best controller on new firmware only, for several shares of it, none more than can have it."""
    if fleet.keys.event.kind == "command":
        return []
    best = next((one.outcome.change.controller for one in ranked(found) if one.outcome.change.controller), None)
    reachable = 1.0 - fleet.keys.old_firmware
    return [] if best is None else [_controller(best, share) for share in SHARES if share < reachable]


def ranked(remedies: Sequence[Remedy]) -> tuple[Remedy, ...]:
    """The best first."""
    return tuple(sorted(remedies, key=lambda remedy: remedy.rank))


# ----------------------------------------------------------------------------------------------- helpers


def _kind(change: Change) -> str | None:
    if change.load is not None:
        return "spread"
    if change.controller is not None:
        return "controller"
    return change.name if change.name in KINDS else None


def _controller(name: str, reach: float) -> Change:
    where = "all devices" if reach == 1 else f"{100 * reach:g} % of the devices"
    title = f"{labels.CONTROLLERS.get(name, name)} on {where}"
    return Change(f"{name}-{reach:g}" if reach < 1 else name, title, Effort.FIRMWARE, controller=name, reach=reach)


def _security(name: Security, reach: float) -> Change:
    return Change(name, f"{COSTS[name].title} in place of a handshake", Effort.FIRMWARE, security=name, reach=reach)


def _buffers(cost: Demand) -> list[Change]:
    """One bandwidth-delay product of the bottleneck, and a much deeper queue."""
    product = max(LEAST_BUFFER, 100 * round(cost.product / 100))
    number, unit = cost.queue.split()
    deeper = f"{DEEPER * int(number)} {unit}"
    title = f"{product} B of buffer (one bandwidth-delay product)"
    return [
        Change("buffer-bdp", title, Effort.OPERATOR, buffer=f"{product} B"),
        Change("buffer-deeper", f"{deeper} of buffer", Effort.OPERATOR, buffer=deeper),
    ]


def _managed(cost: Demand) -> Change:
    """CoDel for the round trip of this cell, which is its interval (RFC 8289 §4.4)."""
    interval = max(CODEL_INTERVAL_MS, round(1000 * 8 * cost.product / cost.rate))
    return Change("codel", f"CoDel in the cell, interval {interval} ms", Effort.OPERATOR, codel_ms=interval)
