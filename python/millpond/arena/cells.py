"""From candidates and cells to a program: candidates and presets meet the same random streams in every cell."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from millpond.arena import drawn
from millpond.controllers.own import AnyController, OwnControllers
from millpond.errors import UsageError, unknown
from millpond.plan import scenario as scenarios
from millpond.plan import study
from millpond.plan.program import Point, Program
from millpond.plan.program import program as build_program
from millpond.results.factor import PATH

#: Which cells there are.
KINDS = ("studies", "drawn", "all")
#: Of which readings of a study's test bed there are cells: what stands first in its plan, or all that the plan has.
READINGS = ("first", "all")
#: What candidates are put beside unless others are named: one of each family of those that send one message at a time.
AGAINST = ("rfc7252", "default-fb2", "cocoa-03", "cocoa-s", "fasor", "fasor-token", "linux-rto", "peak-hopper")
#: One client alone on the same path without losses, and with an endless queue: it shows what the path allows.
ALONE = "alone"
#: The other clients of a cell that has some.
NEIGHBOUR = "neighbours"
#: With so many clients over all of its runs a cell has enough for percentiles.
ENOUGH = 200
#: However many clients it has: two halves, each with two runs that may differ.
LEAST_RUNS = 4
#: Studies whose cells are not exchanges of one controller with one server.
NO_CELLS = ("echo",)


@dataclass(frozen=True)
class Place:
    """A cell before a candidate is put on it."""

    name: str
    family: str
    scenario: Mapping[str, Any]
    replications: int
    #: So many of its groups, from the first on, are the candidate's.
    groups: int = 1


def program(
    candidates: Mapping[str, AnyController],
    against: Sequence[str],
    places: Sequence[Place],
    split: str,
    own: OwnControllers,
) -> Program:
    """Everything to run. Raises `UsageError` with one line if a candidate or a cell makes no sense."""
    if not places:
        raise UsageError("arena: no cells: raise --drawn, or choose --cells all")
    told = {name: own.written(controller) for name, controller in candidates.items()}
    rivals = {name: name for name in against if name not in told}
    every: dict[str, Any] = {**told, **rivals}

    def points() -> Iterator[Point]:
        for place in places:
            for name, controller in [*every.items(), (ALONE, None)]:
                tree = _alone(place.scenario) if controller is None else _with(place, controller)
                if tree is None:
                    continue
                theirs = len(tree["clients"]) - place.groups
                yield Point(
                    f"{name}-{place.name}",
                    scenarios.build(tree, f"cell {place.name}", own),
                    {"algorithm": name, "place": place.name, "family": place.family},
                    [*[name] * place.groups, *[NEIGHBOUR] * theirs],
                    1 if controller is None else place.replications,
                )

    most = max(place.replications for place in places)
    return build_program(
        points(),
        own,
        kind="sweep",
        name="arena",
        title="Arena",
        seeds=[study.seed(f"arena {split}", replication) for replication in range(most)],
        labels={name: name for name in every},
    )


def places(
    kind: str,
    split: str,
    chosen: range,
    runs: int,
    own: OwnControllers,
    readings: str = "first",
    families: Sequence[str] = (),
) -> list[Place]:
    """The cells of a kind. Raises `UsageError` for a kind, a split, readings or a family that there are not.

    `chosen` are the numbers, from 0 on, of the cells that are drawn, of these families in turn.
    """
    if kind not in KINDS:
        raise UsageError(f"--cells: {unknown('kind', kind, KINDS)}")
    if readings not in READINGS:
        raise UsageError(f"--readings: {unknown('choice', readings, READINGS)}")
    if kind == "drawn" and readings != "first":
        raise UsageError("--readings: drawn cells have none: choose --cells studies, or all")
    for family in families:
        if family not in drawn.FAMILIES:
            raise UsageError(f"--families: {unknown('family', family, drawn.FAMILIES)}")
    if families and kind == "studies":
        raise UsageError("--families: studies' cells are of none: choose --cells drawn, or all")
    if split not in drawn.SPLITS:
        raise UsageError(f"--seeds: {unknown('split', split, drawn.SPLITS)}")
    if runs < 1:
        raise UsageError(f"--runs: {runs}: at least 1")
    found: list[Place] = []
    if kind != "drawn":
        for name in study.studies():
            if name not in NO_CELLS:
                found.extend(_of_study(name, runs, own, readings))
    if kind != "studies":
        found.extend(
            Place(one.name, one.family, one.scenario, _runs(one.clients, runs))
            for one in drawn.cells(split, chosen.stop, families)[chosen.start :]
        )
    return found


# ----------------------------------------------------------------------------------------------- helpers


def _runs(clients: int, most: int) -> int:
    """Fewer clients, more runs: percentiles are over all clients of all runs."""
    return min(most, max(LEAST_RUNS, math.ceil(ENOUGH / max(1, clients))))


def _of_study(name: str, most: int, own: OwnControllers, readings: str) -> Iterator[Place]:
    """The cells of a study with one controller and over UDP, on the first reading of its test bed or on all."""
    plan = study.load(study.find(name))
    # a study's own choice of fewer values: the ends and the middle
    plan = replace(plan.quick(), mixes=())
    first = plan.paths[0]
    # one algorithm stands for all: its place in the scenario is what matters
    seen = set()
    for planned in study.unfold(plan, own).cells:
        cell = planned.cell
        tree = cell.scenario
        here = "-".join([name, *(str(value) for key, value in cell.columns.items() if key != "algorithm")])
        # the entry that stands first: further ones of its name read other cells
        is_first = cell.columns[PATH] == first.name and first.only.covers(cell.columns)
        if readings == "first" and not is_first:
            continue
        if here in seen or not all(_is_exchanges(group) for group in tree["clients"]):
            continue
        seen.add(here)
        clients = sum(int(group["count"]) for group in tree["clients"])
        yield Place(here, name, tree, _runs(clients, most), len(tree["clients"]))


def _is_exchanges(group: Mapping[str, Any]) -> bool:
    transfer = group.get("transfer", "whole")
    kind = transfer if isinstance(transfer, str) else transfer.get("kind", "whole")
    return "controller" in group and kind != "bursts" and group.get("confirmable", True)


def _with(place: Place, controller: Any) -> dict[str, Any]:
    tree = copy.deepcopy(dict(place.scenario))
    for group in tree["clients"][: place.groups]:
        group["controller"] = controller
    return tree


def _alone(scenario: Mapping[str, Any]) -> dict[str, Any] | None:
    """One client on the same path, which loses nothing and holds everything; None where that shows no bound."""
    group = scenario["clients"][0]
    workload = group.get("workload", "continuous")
    kind = workload if isinstance(workload, str) else workload.get("kind") if isinstance(workload, dict) else None
    if "path" not in scenario or "timeline" in scenario or kind not in ("continuous", "random", "fresh-batches"):
        return None
    if isinstance(workload, dict) and set(workload) - {"kind", "requests"}:
        return None
    tree = copy.deepcopy(dict(scenario))
    for way in ("uplink", "downlink"):
        link = tree["path"][way]
        link.pop("jitter", None)
        link.pop("loss", None)
        link["queue"] = drawn.ENDLESS
    tree["clients"] = [
        {
            **tree["clients"][0],
            "count": 1,
            "start_spread": "0 s",
            "controller": {"preset": "rfc7252", "ack-timeout": "600 s"},
        }
    ]
    return tree
