"""Controllers that a study did not run, put beside those that it did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from millpond.engine import Engine
from millpond.errors import UsageError, unknown
from millpond.own import OwnControllers, is_own, short
from millpond.plan import Algorithm, Plan


def invited(plan: Plan, names: Sequence[str], engine: Engine, own: OwnControllers) -> Plan:
    """The plan with those of the names that it does not know as further algorithms of every matrix.

    Published figures that name no algorithm are still about the study's own.

    Raises:
        UsageError: one line, if a name is neither known to the study nor a preset nor a controller of one's own.
    """
    known = {**plan.known}
    guests = []
    presets = [preset.name for preset in engine.presets()]
    for name in dict.fromkeys(names):
        if plan.named(name) is not None:
            continue
        if is_own(name):
            own.find(name)
        elif name not in presets:
            raise UsageError(unknown("controller", name, dict.fromkeys([*plan.known, *presets])))
        known[name] = Algorithm(name, short(name), name)
        guests.append(name)
    matrices = (matrix.but("algorithm", (*matrix.values["algorithm"], *guests)) for matrix in plan.matrices)
    return replace(plan, known=known, matrices=tuple(matrices))
