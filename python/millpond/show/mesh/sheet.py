"""The mesh of a scenario, drawn before anything is run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from millpond.errors import UsageError
from millpond.plan import scenario as scenarios
from millpond.plan import single
from millpond.plan.values import in_units
from millpond.results.store import write_text
from millpond.show.mesh import terminal
from millpond.show.mesh.nodes import Node, told


def drawn(scenario: Path, changes: Mapping[str, Any], seed: int, picture: Path | None = None) -> str:
    """The nodes, their roles and the tree of the run with this seed, in letters; or as a picture, and a line about it.

    Raises:
        UsageError: one line, if there is no such scenario, or it has no mesh.
    """
    built = single.program(scenario, changes=changes, seed=seed).cells[0].scenario
    nodes = Node.of(built.nodes(seed))
    if not nodes:
        raise UsageError(f"--draw: {scenario}: has no [mesh]: there are no nodes with places")
    if picture is None:
        return terminal.drawn(nodes)
    from millpond.show.drawing import svg
    from millpond.show.mesh.picture import topology

    write_text(picture, svg(topology(nodes, in_units(scenarios.in_full(built)["mesh"]["range"]))))
    return f"{told(nodes)}\ndrawn: {picture}"
