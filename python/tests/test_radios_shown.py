"""A radio of a mesh is a link that is called by its node, in the terminal and on the page."""

from __future__ import annotations

import io
from pathlib import Path

import millpond
from millpond.show import terminal
from millpond.show.report import figures, tables
from millpond.show.report.grid import Grid

MESH = {
    "mesh": {"topology": "chain-17", "delivery": [0.9]},
    "clients": [{"controller": "rfc7252", "exchanges": 2}],
    "run": {"for": "2 min"},
}


def test_a_radio_is_called_by_its_node(tmp_path: Path) -> None:
    done = millpond.run(MESH, out=tmp_path / "out", report=False)
    told = io.StringIO()
    terminal.show(done.tables, told)
    grid = Grid(done.results)
    node = grid.bottleneck(grid.cells[0])
    assert f"The busiest radio is that of node {node}: " in " ".join(told.getvalue().split())
    listing = tables.links(grid)
    assert listing.header[0] == "radio of"
    assert f"node {node}" in [row[0] for row in listing.rows]
    title = figures.bottleneck_over_time(done.results).draw().axes[0].get_title(loc="left")
    assert title == f"node {node}, the busiest radio"
