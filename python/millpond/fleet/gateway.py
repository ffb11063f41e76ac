"""A gateway between devices and cell that asks the server for them: in a scenario, and as the configuration of one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from millpond.errors import UsageError
from millpond.fleet.description import LINKS, OTHERS, Fleet
from millpond.plan import scenario as scenarios
from millpond.plan.toml_file import where

if TYPE_CHECKING:
    from millpond.fleet.outcome import Demand

NAME = "gateway"
#: Between the devices and it, much faster than the cell.
SITE = {"rate": "1 Mbit/s", "delay": "10 ms", "queue": "100 kB"}
#: What it is as it ships, where its configuration does not say otherwise.
CACHE, CONTROLLER = "16 MiB", "calm"
#: Of its queue the part that is left to devices of one network whose addresses are not validated.
UNVALIDATED = 16
#: NSTART has 16 bits, and half of the message IDs are for others.
MOST_AT_A_TIME = 32_768


def check(fleet: Fleet, path: Mapping[str, Any]) -> None:
    """Raise `UsageError` if it is to be tried and no scenario over this path can have one."""
    keys = fleet.keys
    if not keys.try_gateway:
        return
    problem = None
    if keys.event.kind not in ("power-cut", "hourly"):
        problem = f"not modelled of the event {keys.event.kind!r}, only of power-cut and hourly"
    elif keys.security != "none":
        problem = "a security layer that ends at it is not modelled: security = 'none'"
    elif "access" in _full(path, fleet):
        problem = "random access of its own is not modelled: choose a cell without"
    if problem is not None:
        raise UsageError(f"{where(fleet.origin, 'try_gateway')}: {problem}, or leave this key out")


def at_a_time(cost: Demand) -> int:
    """Requests that fill the cell: how long a device alone takes, in times of what it keeps the cell busy."""
    return min(MOST_AT_A_TIME, max(1, math.ceil(cost.alone_s / cost.work_s)))


def between(tree: Mapping[str, Any], fleet: Fleet, requests: int) -> dict[str, Any]:
    """A scenario with it between the devices and the cell, on which the others stay."""
    path = _full(tree["path"], fleet)
    cell = {"up": [LINKS[0]], "down": [LINKS[1]]}
    links: dict[str, Any] = {"site-up": SITE, "site-down": SITE, **{str(link): path[link] for link in LINKS}}
    proxy = {
        "name": NAME,
        "route": cell,
        "controller": CONTROLLER,
        "nstart": requests,
        "cache": CACHE,
        "coalesce": True,
        "queue": _queue(fleet),
    }
    network = {"header": path["header"], "up": ["site-up"], "down": ["site-down"], "links": links}
    routes: tuple[dict[str, Any], dict[str, Any]] = ({"via": NAME}, {"route": cell})
    clients = [{**table, **routes[table["name"] == OTHERS]} for table in tree["clients"]]
    rest = {key: value for key, value in tree.items() if key != "path"}
    return {**rest, "network": network, "proxies": [proxy], "clients": clients}


def configuration(fleet: Fleet, requests: int) -> str:
    """The file for `millpond gateway`."""
    return f"""\
# {fleet.who} behind a gateway, which asks the server for them over the cell: millpond gateway gateway.toml
# Devices ask this machine instead of the server. 192.0.2.1 stands for your server: write its address in both places.

[listen]
coap = ["[::]", "0.0.0.0"]

[cache]
size = "{CACHE}"

[[path]]
name = "cell"
devices = ["192.0.2.1/32"]
nstart = {requests}
queue = {_queue(fleet)}  # a {UNVALIDATED}th of it is for devices of one network whose addresses are not validated
controller = "{CONTROLLER}"

[[rule]]
path = "/{{*rest}}"
to = "coap://192.0.2.1/{{*rest}}"
"""


# ----------------------------------------------------------------------------------------------- helpers


def _queue(fleet: Fleet) -> int:
    """Room for a request of every device."""
    return UNVALIDATED * fleet.keys.devices


def _full(path: Mapping[str, Any], fleet: Fleet) -> Mapping[str, Any]:
    """A path with everything that its profile says."""
    tree = {"clients": [{"count": 1, "controller": "rfc7252"}], "path": path, "run": {"for": "1 h"}}
    found: Mapping[str, Any] = scenarios.in_full(scenarios.build(tree, fleet.origin))["path"]
    return found
