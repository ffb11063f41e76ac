"""From the words of the trade to a scenario: groups of clients, a path, an event, everyday traffic beside it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

from millpond.fleet import gateway
from millpond.fleet.change import Change, Effort
from millpond.fleet.description import (
    LINKS,
    NEVER,
    OTHERS,
    REPORTING,
    CellKeys,
    Each,
    Fleet,
    GroupKeys,
    Link,
    share,
)  # fmt: skip
from millpond.fleet.security import COSTS, Cost
from millpond.plan import path_files, values
from millpond.plan import scenario as scenarios
from millpond.plan.toml_file import where

#: The event comes so many seconds after the start: what others need on a quiet cell is known by then.
LEAD_S = 60
#: Bytes of a token.
TOKEN = 2
#: Distinguished from groups of the description.
CHANGED = ", changed"

#: 3GPP TR 37.868 §6.1.1, model 2: devices that an event has synchronised.
SYNCHRONISED: dict[str, Any] = {"kind": "beta", "over": "10 s", "alpha": 3, "beta": 4}
#: min(2^n s + U(0, 1 s), 64 s) before the first attempt, n = 0 (Google Cloud IoT's rule): all wait 1 s, then this.
CAPPED_EXPONENTIAL = "1 s"

#: LwM2M 1.1's defaults (OMA, object of the server, resources 17, 18 and 20): five attempts in one row, the next one
#: 60 s * 2^(n-1) after n of them failed. There is no chance in it, and it does not say when a device begins.
LWM2M: dict[str, Any] = {"timer": "60 s", "attempts": 5}

#: The load of the rule `by-load`: half of what the far end takes, as Azure's guidance for provisioning has it.
BY_LOAD = 0.5

#: RFC 8289 §4.3 wants a target of 5 to 10 % of the interval.
CODEL_TARGET = 0.1

#: IPv4 and UDP, where a path does not say otherwise.
HEADER = "28 B"


def tree(fleet: Fleet, change: Change, work_s: float = 0.0, others_every_s: float | None = None) -> dict[str, Any]:
    """The scenario of a fleet with a change.

    Args:
        fleet: The description.
        change: What is different.
        work_s: How long one device keeps the bottleneck busy.
        others_every_s: How often each of the others reports; None leaves them out.
    """
    keys = fleet.keys
    clients: list[dict[str, Any]] = []
    for group, size in zip(keys.group, fleet.sizes, strict=True):
        changed = round(size * change.reach) if change.on_devices else 0
        parts = ((size - changed, group.name, False), (changed, group.name + CHANGED, True))
        clients += [
            _clients(fleet, group, count, name, change if new else None, work_s) for count, name, new in parts if count
        ]
    timeline = _timeline(fleet, [table["name"] for table in clients])
    if others_every_s is not None and keys.everyday.others:
        clients.append(_others(fleet, others_every_s))
    server: dict[str, Any] = {
        "payload": keys.event.block if keys.event.kind == "firmware" else keys.waking.answer,
        "duplicates": change.duplicates or keys.server.duplicates,
    }
    if keys.event.kind == "command":
        server |= {"controller": change.controller or keys.server.controller, "token_length": TOKEN}
    relays = [{"name": f"gateway-{link}", "before": link, "copies": "withheld"} for link in LINKS]
    found = {
        "title": f"{fleet.title}: {change.title}",
        "path": path(fleet, change.buffer, change.codel_ms),
        **({"relays": relays} if change.gateway else {}),
        "clients": clients,
        "server": server,
        "timeline": timeline,
        "run": {"for": f"{LEAD_S + fleet.horizon_s:g} s"},
    }
    return found if change.asks is None else gateway.between(found, fleet, change.asks)


def spread_s(devices: int, work_s: float, load: float) -> float:
    """Over how long starts must be spread for so high a load of the cell."""
    return devices * work_s / load


def path(fleet: Fleet, buffer: str | None = None, codel_ms: int | None = None) -> dict[str, Any]:
    """The cell: a named path, or that of a file, with what the description lays over it."""
    cell = fleet.keys.cell
    told: dict[str, Any] = dict(fleet.path) if fleet.path is not None else {"profile": cell.profile}
    laid = {link: _direction(fleet, link, buffer) for link in LINKS}
    if codel_ms is not None:
        aqm = {"kind": "codel", "interval": f"{codel_ms} ms", "target": f"{round(1000 * CODEL_TARGET * codel_ms)} us"}
        laid = {link: {**keys, "aqm": aqm} for link, keys in laid.items()}
    return path_files.laid_over(told, {link: keys for link, keys in laid.items() if keys})


def alone(fleet: Fleet) -> dict[str, Any]:
    """One device of the fleet on an idle cell without losses: what the event costs it."""
    one = tree(fleet.with_devices(1), Change("alone", "alone", Effort.NONE, reconnect="at-once"))
    clients = [{**table, "workload": _first(table.get("workload"))} for table in one["clients"]]
    timeline = [{**event, **({"back": "at-once"} if "back" in event else {})} for event in one["timeline"]]
    return {**one, "path": _without_loss(one["path"]), "clients": clients, "timeline": timeline}


def one_report(fleet: Fleet) -> dict[str, Any]:
    """One of the others that reports once on such a cell."""
    client = {**_others(fleet, 1.0), "count": 1, "workload": {"kind": "after-event", "payload": _report(fleet)}}
    return {
        "path": _without_loss(path(fleet)),
        "clients": [client],
        "server": {"payload": fleet.keys.waking.answer},
        "run": {"until": "1 h"},
    }


# ----------------------------------------------------------------------------------------------- helpers


def _direction(fleet: Fleet, link: Link, buffer: str | None) -> dict[str, Any]:
    """What the description lays over one direction of its path."""
    cell, keys = fleet.keys.cell, dict[str, Any]()
    if (rate := getattr(cell, link)) is not None:
        keys["rate"] = rate
    if (queue := buffer or cell.of("buffer", link)) is not None:
        keys["queue"] = queue
    if (loss := cell.of("loss", link)) is not None:
        lost = share(loss, where(fleet.origin, "cell", "loss"))
        keys |= {"loss": {"kind": "bernoulli", "rate": lost} if lost else "none", "loss_of": "each-client"}
    if (delay := cell.of("delay", link)) is not None:
        # one value is of the round trip
        part = 1.0 if isinstance(cell.delay, Each) else 0.5
        keys["delay"] = f"{round(1e6 * part * values.in_units(delay))} us"
    return keys


def _clients(
    fleet: Fleet, group: GroupKeys, count: int, name: str, change: Change | None, work_s: float
) -> dict[str, Any]:
    keys = fleet.keys
    arrival = _arrival(fleet, group, change, work_s)
    security = COSTS[(change.security if change else None) or keys.security]
    after: dict[str, Any] = {"kind": "after-event", "arrival": arrival}
    if _rule(group, change) == "lwm2m":
        after |= {"retry": LWM2M}
    if keys.event.kind == "firmware":
        after |= {"requests": _blocks(keys.event.image, keys.event.block)}
    elif keys.event.kind == "hourly":
        after |= {"script": [_reading(fleet)]}
    else:
        after |= {"script": _waking(fleet, security)}
    workload = [*([] if keys.event.kind == "command" else [after]), *_everyday(fleet)]
    table: dict[str, Any] = {
        "name": name,
        "count": count,
        "controller": (change.controller if change else None) or group.controller,
        "max_retransmit": (change.max_retransmit if change else None) or group.max_retransmit,
        "token_length": TOKEN,
        "uri_path": "fw" if keys.event.kind == "firmware" else "r",
        "workload": workload or "none",
        **_protection(security),
    }
    if keys.event.kind == "command":
        told = {"kind": "after-event", "arrival": arrival, "requests": 1}
        table["commands"] = {"workload": told, "request_payload": keys.event.command}
    return table


def _arrival(fleet: Fleet, group: GroupKeys, change: Change | None, work_s: float) -> Any:
    rule = _rule(group, change)
    load = BY_LOAD if rule == "by-load" else None
    load = load if change is None or change.load is None else change.load
    if load is not None:
        # finer than a microsecond no time is
        return f"{round(1e6 * spread_s(fleet.keys.devices, work_s, load))} us"
    if rule == "capped-exponential":
        return CAPPED_EXPONENTIAL
    if rule in ("at-once", "lwm2m"):
        return (fleet.keys.event.arrival if fleet.keys.event.kind != "power-cut" else None) or "at-once"
    return rule


def _rule(group: GroupKeys, change: Change | None) -> Any:
    return group.reconnect if change is None or change.reconnect is None else change.reconnect


def _timeline(fleet: Fleet, names: list[str]) -> list[dict[str, Any]]:
    at = f"{LEAD_S} s"
    if fleet.keys.event.kind != "power-cut":
        return [{"kind": "alarm", "at": at}]
    back = fleet.keys.event.arrival or SYNCHRONISED
    return [{"kind": "restart", "at": at, "clients": name, "back": back} for name in names]


def _waking(fleet: Fleet, security: Cost) -> list[dict[str, Any]]:
    waking = fleet.keys.waking
    script: list[dict[str, Any]] = []
    if values.in_units(waking.registration):
        script.append({"method": "POST", "path": "rd", "payload": waking.registration})
    script += [{"path": "o"}] * waking.observations
    script += [_reading(fleet)] * waking.readings
    if security.last:
        first = script[0]
        # a payload that begins brings its marker
        more = values.in_units(str(first.get("payload", "0 B"))) or -1
        script[0] = {**first, "payload": f"{more + security.last:g} B"}
    return [{"flights": {"up": f"{up} B", "down": f"{down} B"}} for up, down in security.flights] + script


def _protection(security: Cost) -> dict[str, Any]:
    if not security.request:
        return {}
    return {"protection": {"request": f"{security.request} B", "response": f"{security.response} B"}}


def _reading(fleet: Fleet) -> dict[str, Any]:
    return {"method": "POST", "path": "r", "payload": _report(fleet)}


def _report(fleet: Fleet) -> str:
    return fleet.keys.everyday.report


def _everyday(fleet: Fleet) -> list[dict[str, Any]]:
    every = fleet.keys.everyday.every
    if every == NEVER:
        return []
    if every == REPORTING:
        return [dict(_reporting())]
    return [{"kind": "periodic", "period": every, "payload": _report(fleet)}]


@cache
def _reporting() -> Mapping[str, Any]:
    """The engine's mix of reports, written out: by its name a workload stands alone."""
    tree = {
        "clients": [{"count": 1, "controller": "rfc7252", "workload": "tr45820-reporting"}],
        "path": {"profile": CellKeys().profile},
        "run": {"for": "1 h"},
    }
    found: Mapping[str, Any] = scenarios.in_full(scenarios.build(tree, REPORTING))["clients"][0]["workload"]
    return found


def everyday_load(fleet: Fleet, report_s: float) -> float:
    """How much of the cell the fleet's reports take from day to day, each of which keeps it busy for so long."""
    told = _everyday(fleet)
    if not told:
        return 0.0
    period = told[0]["period"]
    rhythms = period if isinstance(period, list) else [{"share": 1.0, "period": period}]
    a_second = sum(float(one["share"]) / values.in_units(one["period"]) for one in rhythms)
    return fleet.keys.devices * a_second * report_s


def _others(fleet: Fleet, every_s: float) -> dict[str, Any]:
    return {
        "name": OTHERS,
        "count": fleet.keys.everyday.others or 1,
        "controller": "rfc7252",
        "token_length": TOKEN,
        "uri_path": "r",
        "workload": {"kind": "periodic", "period": f"{max(1, round(1000 * every_s))} ms", "payload": _report(fleet)},
        **_protection(COSTS[fleet.keys.security]),
    }


def _first(workload: Any) -> Any:
    """Of several workloads the event's, which comes first."""
    return workload[0] if isinstance(workload, list) else workload


def _without_loss(told: Mapping[str, Any]) -> dict[str, Any]:
    return scenarios.laid_over(told, {link: {"loss": "none"} for link in LINKS})


def _blocks(image: str, block: str) -> int:
    return math.ceil(values.in_units(image) / values.in_units(block))
