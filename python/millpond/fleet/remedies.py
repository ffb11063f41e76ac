"""Which remedies are tried for a fleet, and how they are ranked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from millpond.fleet.change import Change, Effort
from millpond.fleet.description import Fleet
from millpond.fleet.outcome import VERDICTS, Demand, Outcome
from millpond.fleet.scenario import spread_s
from millpond.measure.statistics import t_interval
from millpond.show import labels

#: How busy a spread may keep the cell: half, as a rule that leaves room for luck and for others; and wholly, the
#: shortest time in which it can carry what must be carried.
LOADS = (0.5, 1.0)
#: The queue of the base station that is tried beside one bandwidth-delay product: so many times its own.
DEEPER = 10
#: Shares of devices with new firmware.
SHARES = (0.25, 0.5, 0.75)
#: Buffers are no smaller than a packet of Ethernet's length.
LEAST_BUFFER = 1500
#: Copies before a device gives up, tried where devices do.
PATIENT = 8


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
        return Remedy(outcome, float(np.mean(before - after)), t_interval(before - after))

    @property
    def is_surely_sooner(self) -> bool:
        """Whether the whole interval says so: what lies within the noise is no gain."""
        return self.interval is not None and self.interval[0] > 0

    @property
    def rank(self) -> tuple[float, ...]:
        """What is best comes first: safe, then without collapse, then sooner; of equals the one with less trouble."""
        outcome = self.outcome
        return (
            VERDICTS.index(outcome.verdict),
            -outcome.count("safe"),
            outcome.count("collapse"),
            outcome.median("goal_s"),
            outcome.change.effort,
        )


def tried(fleet: Fleet, cost: Demand, as_it_is: Outcome) -> list[Change]:
    """The remedies that make sense for this fleet."""
    keys, kind = fleet.keys, fleet.keys.event.kind
    reach = 1.0 - keys.old_firmware
    # who starts things by itself can be told by a setting; who is told can be told later by the server
    by_server = kind in ("command", "firmware")
    effort = Effort.SERVER if by_server else Effort.DEVICES
    on = 1.0 if by_server else reach
    found: list[Change] = []
    asks = kind != "command"
    if asks and keys.server.duplicates != "calm":
        found.append(Change("calm-server", "a calm server", Effort.SERVER, duplicates="calm"))
    for load in LOADS:
        over = f"{labels.number(spread_s(keys.devices, cost.work_s, load), 3)} s"
        told = {"command": "send commands over", "firmware": "start in waves over"}.get(kind, "spread starts over")
        found.append(Change(f"spread-{load:g}", f"{told} {over} (load {load:g})", effort, load=load, reach=on))
    if kind == "power-cut":
        found.append(
            Change(
                "capped-exponential",
                "first attempt after 1 s + U(0, 1 s)",
                Effort.DEVICES,
                reconnect="capped-exponential",
                reach=reach,
            )
        )
    if asks and as_it_is.median("never") > 0:
        found.append(
            Change("patient", f"MAX_RETRANSMIT {PATIENT}", Effort.DEVICES, max_retransmit=PATIENT, reach=reach)
        )
    if asks and as_it_is.median("never") > 0:
        title = "who gave up tries again as in LwM2M 1.1 (after 60 s, 120 s, ...)"
        found.append(Change("lwm2m", title, Effort.DEVICES, reconnect="lwm2m", reach=reach))
    if asks and keys.server.duplicates != "calm":
        over = f"{labels.number(spread_s(keys.devices, cost.work_s, 1.0), 3)} s"
        found.append(
            Change(
                "calm-spread",
                f"a calm server, starts spread over {over}",
                effort,
                load=1.0,
                duplicates="calm",
                reach=on,
            )
        )
    whose = [group.controller for group in keys.group]
    for name in keys.try_controllers:
        if asks and any(name != one for one in whose) and reach:
            found.append(_controller(name, reach))
        elif not asks and name != keys.server.controller:
            title = f"{labels.CONTROLLERS.get(name, name)} on the server"
            found.append(Change(name, title, Effort.SERVER, controller=name))
    return [change for change in [*found, *_buffers(cost)] if not change.on_devices or change.reach]


def shares(fleet: Fleet, best: str) -> list[Change]:
    """The best controller on new firmware only, for several shares of it, none more than can have it."""
    return [_controller(best, share) for share in SHARES if share < 1.0 - fleet.keys.old_firmware]


def ranked(remedies: Sequence[Remedy]) -> list[Remedy]:
    """The best first."""
    return sorted(remedies, key=lambda remedy: remedy.rank)


# ----------------------------------------------------------------------------------------------- helpers


def _controller(name: str, reach: float) -> Change:
    where = "all devices" if reach == 1 else f"{100 * reach:g} % of the devices"
    title = f"{labels.CONTROLLERS.get(name, name)} on {where}"
    return Change(f"{name}-{reach:g}" if reach < 1 else name, title, Effort.FIRMWARE, controller=name, reach=reach)


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
