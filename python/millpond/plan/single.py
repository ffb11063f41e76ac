"""A single scenario as a program of one cell, so that it runs, is kept and is resumed like a study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from millpond.controllers.own import AnyController, OwnControllers
from millpond.errors import UsageError, unknown
from millpond.plan import scenario as scenarios
from millpond.plan.keys import counted
from millpond.plan.plan import TRACES, Trace
from millpond.plan.program import Point, Program
from millpond.plan.program import program as build_program
from millpond.plan.values import whole

#: What the report of a run draws over time; it costs next to nothing.
USUAL_TRACES = ("queue", "share")
#: The same where few clients transfer bodies: their packets are drawn one by one.
TRANSFER_TRACES = (*USUAL_TRACES, "rto", "packets", "tcp")
#: More clients than this are not drawn one by one.
FEW = 8
#: How often queues are looked at: where packets or frames are drawn one by one, and else.
FINE_STEP_US, STEP_US = 100_000, 1_000_000
#: Traces nothing.
NO_TRACES = ("none",)
#: A scenario's timers are kept for all its clients.
_EVERY_FLOW = 2**32


def program(
    scenario: Path | Mapping[str, Any],
    *,
    controllers: Sequence[AnyController] = (),
    clients: Sequence[int] = (),
    changes: Mapping[str, Any] | None = None,
    replications: int = 1,
    seed: int = 1,
    trace: Sequence[str] | None = None,
) -> Program:
    """A scenario, run once per replication with the seeds `seed`, `seed + 1`, ...

    Args:
        scenario: Its file, or its keys as a tree.
        controllers: Others for its client groups: one for all, or as many as there are groups with controllers.
        clients: How many clients the groups have instead: one number for each group.
        changes: Values by their place, such as `path.uplink.queue`.
        replications: How often it is run.
        seed: Seed of the first replication.
        trace: Traced as well as what the report draws, which is `USUAL_TRACES`, or `TRANSFER_TRACES` where few clients
            transfer bodies; `none` traces nothing.

    Raises:
        UsageError: one line, if the scenario, an option or a number makes no sense.
    """
    replications, seed = counted(replications), whole(seed, "--seed")
    if not 0 <= seed < 2**53 - replications:
        raise UsageError(f"--seed: {seed} is out of range: 0 to 2^53")
    for name in trace or ():
        if name not in (*TRACES, *NO_TRACES):
            raise UsageError(f"--trace: {unknown('trace', name, (*TRACES, *NO_TRACES))}")
    if trace and len(trace) > 1 and set(NO_TRACES) & set(trace):
        raise UsageError(f"--trace: {','.join(trace)}: none goes alone")
    from_file = isinstance(scenario, Path)
    origin, name = (str(scenario), scenario.stem) if isinstance(scenario, Path) else ("scenario", "scenario")
    own = OwnControllers(*([scenario.parent] if isinstance(scenario, Path) else []))
    built = scenarios.load(scenario, own)
    options = {f"--set {place}": {place: value} for place, value in (changes or {}).items()}
    tree = scenarios.in_full(built)
    if clients:
        options["--clients"] = _with_clients(tree, clients)
    if controllers:
        if from_file:
            own = OwnControllers(Path(), *own.folders)
        options["--controller"] = _with_controllers(tree, controllers, own)
    _none_overruled(changes or {}, {name: of for name, of in options.items() if not name.startswith("--set")})
    if options:
        # what is written, for what follows from it is to follow from the changes
        written = scenarios.load_tree(scenario) if isinstance(scenario, Path) else scenario
        built = scenarios.changed(written, options, own, origin)
        tree = scenarios.in_full(built)
    transfers = _transfers(tree)
    usual = TRANSFER_TRACES if transfers else USUAL_TRACES
    tables = () if trace is not None and tuple(trace) == NO_TRACES else tuple(dict.fromkeys([*usual, *(trace or ())]))
    return build_program(
        [Point(name, built, replications=replications, traced=True)],
        own,
        kind="scenario",
        name=name,
        seeds=range(seed, seed + replications),
        trace=Trace(tables, FINE_STEP_US if transfers or "frames" in tables else STEP_US, flows=_EVERY_FLOW),
    )


def _none_overruled(changes: Mapping[str, Any], flags: Mapping[str, Mapping[str, Any]]) -> None:
    """Raises `UsageError` for a place that a flag of its own sets too: the flag would win without a word."""
    for place in changes:
        for flag, places in flags.items():
            if any(scenarios.lies_in(place, spot) for spot in places):
                raise UsageError(f"--set {place}: {flag} sets it too: give one of the two")


def _with_clients(tree: Mapping[str, Any], clients: Sequence[int]) -> dict[str, Any]:
    groups = len(tree["clients"])
    if len(clients) != groups:
        wanted = "one number" if groups == 1 else f"{groups} numbers"
        raise UsageError(f"--clients: {len(clients)} for {groups} group(s) of clients: give {wanted}")
    return {f"clients[{group}].count": count for group, count in enumerate(clients)}


def _with_controllers(
    tree: Mapping[str, Any], controllers: Sequence[AnyController], own: OwnControllers
) -> dict[str, Any]:
    # clients that ask over TCP have none
    having = [place for place, table in enumerate(tree["clients"]) if "controller" in table]
    if not having:
        raise UsageError("--controller: all clients ask over TCP, which brings its own congestion control")
    if len(controllers) not in (1, len(having)):
        wanted = "one" if len(having) == 1 else f"one, or {len(having)}"
        raise UsageError(f"--controller: {len(controllers)} for {len(having)} group(s) of clients: give {wanted}")
    written = [own.written(controller) for controller in controllers]
    return {f"clients[{group}].controller": written[place % len(written)] for place, group in enumerate(having)}


def _transfers(tree: Mapping[str, Any]) -> bool:
    """Whether these are few clients, and some of them transfer bodies in more than one packet."""
    few = sum(int(table["count"]) for table in tree["clients"]) <= FEW
    return few and any(name in table for table in tree["clients"] for name in ("transport", "transfer"))
