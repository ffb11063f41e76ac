"""Controllers that a study did not run, put beside those that it did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from millpond.controllers.own import AnyController, OwnControllers, is_own, short
from millpond.engine import presets
from millpond.errors import UsageError, unknown
from millpond.plan import overrides
from millpond.plan.plan import Algorithm, Matrix, Plan
from millpond.results.factor import ALGORITHM


def added(plan: Plan, controllers: Sequence[AnyController], own: OwnControllers) -> tuple[Plan, list[str]]:
    """The plan with those that it does not know as further algorithms of every matrix with controllers.

    Published figures that name no algorithm are still about the study's own.

    Args:
        plan: The plan.
        controllers: Algorithms of the plan, presets, custom controllers, or tables as in a scenario.
        own: Who finds custom controllers.

    Returns:
        The plan, and the names that the controllers have in it.

    Raises:
        UsageError: one line, if one is neither known to the plan nor a preset nor a custom controller, or is
            there twice.
    """
    known = {**plan.known}
    extra: list[str] = []
    names = []
    known_presets = [preset.name for preset in presets()]
    run = set(plan.algorithms)
    for controller in controllers:
        table = own.written(controller)
        name = overrides.written(table)
        known_as = plan.named(name)
        if (known_as or name) in names:
            why = (
                f"{name} stands there twice"
                if known_as in (None, name)
                else f"{name} is {known_as}, which stands there already"
            )
            raise UsageError(f"--controllers: {why}: leave one out")
        names.append(known_as or name)
        if known_as is not None:
            # one that the small version leaves out is an extra one there
            if known_as not in run and known[known_as].controller is not None:
                extra.append(known_as)
            continue
        of = table if isinstance(table, str) else str(table.get("own", table.get("preset", "")))
        if is_own(of):
            own.find(of)
        elif of not in known_presets:
            told = unknown("controller", of, dict.fromkeys([*plan.known, *known_presets]))
            raise UsageError(f"--controllers: {told}")
        known[name] = Algorithm(name, short(name), table)
        extra.append(name)

    def with_extra(matrix: Matrix) -> Matrix:
        algorithms = matrix.algorithms
        plain = any(known[name].plain for name in algorithms)
        return matrix.but(ALGORITHM, (*algorithms, *extra)) if plain or not algorithms else matrix

    return replace(plan, known=known, matrices=tuple(map(with_extra, plan.matrices)) if extra else plan.matrices), names


def stand_ins(plan: Plan, controllers: Sequence[AnyController], own: OwnControllers) -> list[str]:
    """What is run in the place of presets that were asked for by name: those to which the study gives settings."""
    told = []
    for controller in controllers:
        name = overrides.written(own.written(controller))
        known_as = plan.named(name)
        if known_as is None or known_as == name:
            continue
        table = plan.known[known_as].controller
        settings = [f"{key} = {value}" for key, value in table.items() if key != "preset"] if table != name else []
        if settings:
            told.append(f"{name} runs as {known_as} of the study, which is {name} with {', '.join(settings)}")
    return told
