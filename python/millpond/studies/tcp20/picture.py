"""The picture of docs/captures.md: one flow's bytes, window, timer and queue on one time axis.

    python -m millpond.studies.tcp20.picture RESULTS_DIR [FILE]

RESULTS_DIR holds results of the scenario `firmware.toml`, as `millpond run` leaves them; FILE is
`docs/images/firmware.svg` unless given.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from millpond.results.directory import Results
from millpond.show.report import manual_picture, transfers
from millpond.show.report.figures import windows
from millpond.show.report.grid import Grid

FILE = Path("docs/images/firmware.svg")


def picture(results: Results) -> Figure:
    """The flow over TCP of the scenario's first cell. Raises `Missing` without traces."""
    grid = Grid(results)
    cell, run = transfers.needed(grid, grid.cells[:1])[0]
    return windows.flow_over_time(grid, transfers.of_run(grid, cell, run, 1)[0]).draw()


def main(arguments: Sequence[str]) -> int:
    """Draw the picture into a file; the exit code: 0 done, 1 failed, 2 wrong usage."""
    return manual_picture.draw(arguments, "millpond.studies.tcp20.picture", FILE, picture)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
