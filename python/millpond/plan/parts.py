"""Parts of a scenario looked at alone, so that what is wrong with one is told by the place where its author wrote it.

The engine tells of a mistake without its place where a scenario has no lines. Each call raises `UsageError` with one
line that begins with the place.
"""

from __future__ import annotations

from typing import Any

from millpond.controllers.own import OwnControllers
from millpond.plan import scenario as scenarios
from millpond.plan.quantity import SMALLEST


def check_arrival(written: Any, place: str) -> None:
    """When requests of an event are born."""
    asking = [{"count": 1, "controller": "rfc7252", "workload": {"kind": "after-event", "arrival": written}}]
    timeline = [{"kind": "alarm", "at": "1 s"}]
    scenarios.build({**SMALLEST, "clients": asking, "timeline": timeline, "run": {"for": "1 h"}}, place)


def check_controller(written: Any, place: str, own: OwnControllers) -> None:
    """A controller of clients."""
    scenarios.build({**SMALLEST, "clients": [{"count": 1, "controller": written}]}, place, own)
