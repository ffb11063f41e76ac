"""The picture of docs/captures.md: one flow's bytes, window, timer and queue on one time axis.

    python -m millpond.report.firmware_picture RESULTS_DIR [FILE]

RESULTS_DIR holds results of the scenario `firmware.toml`, as `millpond run` leaves them; FILE is
`docs/images/firmware.svg` unless given.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from millpond.report import manual_picture, transfers
from millpond.report.data import Data
from millpond.report.figures import windows
from millpond.results import Results

FILE = Path("docs/images/firmware.svg")


def picture(results: Results) -> Figure:
    """The flow over TCP of the scenario's first cell. Raises `Missing` without traces."""
    data = Data(results)
    cell, run = transfers.needed(data, data.cells[:1])[0]
    return windows.flow_over_time(data, transfers.of_run(data, cell, run, 1)[0])


def main(arguments: Sequence[str]) -> int:
    """Draw the picture into a file; the exit code: 0 done, 1 failed, 2 wrong usage."""
    return manual_picture.draw(arguments, "firmware_picture", FILE, picture)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
