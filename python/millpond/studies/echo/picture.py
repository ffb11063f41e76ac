"""The picture of docs/studies/echo.md: first waits and completion times of timers that believe a named copy.

    python -m millpond.studies.echo.picture RESULTS_DIR [FILE]

RESULTS_DIR holds results of the study `echo`, as `millpond reproduce echo` leaves them; FILE is `docs/images/echo.svg`
unless given.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from millpond.results.directory import Results
from millpond.show.report import manual_picture
from millpond.show.report.grid import Grid
from millpond.studies.echo import timers
from millpond.studies.echo.page import LATE

FILE = Path("docs/images/echo.svg")


def picture(results: Results) -> Figure:
    """First waits and completion times over the loss rate. Raises `Missing` without them."""
    return timers.over_loss(Grid(results), LATE, (timers.WAIT, timers.FCT)).draw()


def main(arguments: Sequence[str]) -> int:
    """Draw the picture into a file; the exit code: 0 done, 1 failed, 2 wrong usage."""
    return manual_picture.draw(arguments, "millpond.studies.echo.picture", FILE, picture)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
