"""Controllers that a study did not run, put beside those that it did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from millpond.controllers.own import OwnControllers, is_own, short
from millpond.errors import UsageError, unknown
from millpond.plan.factor import ALGORITHM
from millpond.plan.plan import Algorithm, Matrix, Plan
from millpond.run.engine import Engine


def invited(plan: Plan, names: Sequence[str], engine: Engine, own: OwnControllers) -> Plan:
    """The plan with those of the names that it does not know as further algorithms of every matrix with controllers.

    Published figures that name no algorithm are still about the study's own.

    Raises:
        UsageError: one line, if a name is neither known to the study nor a preset nor a controller of one's own.
    """
    known = {**plan.known}
    guests = []
    presets = [preset.name for preset in engine.presets()]
    run = set(plan.algorithms)
    for name in dict.fromkeys(names):
        known_as = plan.named(name)
        if known_as is not None:
            # one that the small version leaves out is a guest there
            if known_as not in run and known[known_as].controller is not None:
                guests.append(known_as)
            continue
        if is_own(name):
            own.find(name)
        elif name not in presets:
            raise UsageError(unknown("controller", name, dict.fromkeys([*plan.known, *presets])))
        known[name] = Algorithm(name, short(name), name)
        guests.append(name)

    def host(matrix: Matrix) -> Matrix:
        names = matrix.algorithms
        return matrix.but(ALGORITHM, (*names, *guests)) if any(known[name].plain for name in names) else matrix

    return replace(plan, known=known, matrices=tuple(map(host, plan.matrices)))
