"""Where on a topology frames die."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from millpond.measure.nodes import FATES
from millpond.measure.population import Population
from millpond.show.document import Missing, Plot, Rows
from millpond.show.mesh import picture
from millpond.show.mesh.nodes import Node
from millpond.show.report import style
from millpond.show.report.grid import Grid
from millpond.studies.cocoaplus15.points import TOPOLOGIES, populations

LOAD = 4
CONTROLLER = "cocoa_plus"


def frames(grid: Grid) -> Plot:
    """The share of the frames for each node that it did not receive, lossy links; the tree of the first run."""
    shares = {p: _shares(grid, p) for p in _found(grid)}
    rows = [(p.column("topology"), name, share) for p, told in shares.items() for name, share in told.items()]
    return Plot(Rows(("topology", "node", "share_lost"), tuple(rows)), lambda: _draw(grid, shares))


def _draw(grid: Grid, shares: Mapping[Population, Mapping[str, float]]) -> Figure:
    found = list(shares)
    most = max(max(values.values()) for values in shares.values())
    with style.applied():
        figure = Figure(figsize=(style.width(), 2.9 * ((len(found) + 1) // 2)), layout="constrained")
        panels = figure.subplots((len(found) + 1) // 2, min(2, len(found)), squeeze=False).ravel()
        shown: Any = None
        for panel, p in zip(panels, found, strict=False):
            nodes = Node.of_run(grid.results, grid.measures.cell(p).first_run)
            shown = picture.paint(panel, nodes, shares[p], most)
            panel.set_title(TOPOLOGIES[str(p.column("topology"))], fontsize=9)
            panel.set_axis_off()
        for panel in panels[len(found) :]:
            panel.axis("off")
        bar = figure.colorbar(shown, ax=list(panels), shrink=0.7)
        bar.set_label("frames not received (%)")
        bar.ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f}")
    return figure


# ----------------------------------------------------------------------------------------------- helpers


def _found(grid: Grid) -> list[Population]:
    found = populations(grid, traffic="constant", ldr="lossy", offered_kbps=LOAD, mac_retx="on")
    found = [p for p in found if p.algorithm == CONTROLLER]
    if not found or not grid.results.has("nodes"):
        raise Missing(f"Where frames die: not drawn, constant traffic of {LOAD} kbit/s was not run.")
    return found


def _shares(grid: Grid, population: Population) -> dict[str, float]:
    """By node, over all runs of its cell."""
    cell = grid.measures.cell(population)
    table = grid.measures.table("nodes")
    names = table.of(cell, "node").astype(str)
    known, place = np.unique(names, return_inverse=True)
    every, got = (
        sum(np.bincount(place, weights=table.of(cell, column).astype(np.float64)) for column in columns)
        for columns in (FATES, FATES[:1])
    )
    return {
        str(name): float(1 - mine / whole) if whole else 0.0
        for name, mine, whole in zip(known, got, every, strict=True)  # type: ignore[arg-type]
    }
