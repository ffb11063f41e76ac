"""The first picture of the README: the collapse of devices with the standard timer, and a server that ends it.

    python -m millpond.studies.anrw18.calm_picture RESULTS_DIR [FILE]

RESULTS_DIR holds results of `millpond sweep scenarios/sweeps/calm-cell.toml`; FILE is `docs/images/calm-cell.svg`
unless given.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from millpond.results.directory import Results
from millpond.show.document import Missing
from millpond.show.report import manual_picture, style
from millpond.show.report.figures.queue import follow
from millpond.show.report.grid import Grid
from millpond.studies.anrw18.picture import drawn

FILE = Path("docs/images/calm-cell.svg")
HOW = {
    "stored": (style.PRESETS["rfc7252"], "a server that answers every copy"),
    "calm": (style.PRESETS["cocoa-03"], "a calm server"),
}
CLIENTS, BUFFER = 400, 1_410_000
"""What the plan says of both runs."""


def picture(results: Results) -> Figure:
    """Queue and useful share over time before both servers. Raises `Missing` without traces."""
    grid = Grid(results)
    runs = {str(cell.columns.get("server")): (cell, run) for cell, run in grid.traced(grid.plain())}
    if not HOW.keys() <= runs.keys():
        raise Missing("The picture needs the traced runs of scenarios/sweeps/calm-cell.toml.")
    return drawn(grid, follow(grid, {name: runs[name] for name in HOW}), HOW, CLIENTS, BUFFER, ends_low=True)


def main(arguments: Sequence[str]) -> int:
    """Draw the picture into a file; the exit code: 0 done, 1 failed, 2 wrong usage."""
    return manual_picture.draw(arguments, "millpond.studies.anrw18.calm_picture", FILE, picture)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
