"""The picture of docs/captures.md: one flow's bytes, window, timer and queue on one time axis.

    python -m millpond.report.firmware_picture RESULTS_DIR [FILE]

RESULTS_DIR holds results of the scenario `firmware.toml`, as `millpond run` leaves them; FILE is
`docs/images/firmware.svg` unless given.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from millpond.errors import MillpondError, UsageError
from millpond.report import transfers
from millpond.report.data import Data
from millpond.report.figures import windows
from millpond.report.page import svg
from millpond.results import Results
from millpond.store import write_text

FILE = Path("docs/images/firmware.svg")


def main(arguments: Sequence[str]) -> int:
    """Draw the picture into a file; the exit code: 0 done, 1 failed, 2 wrong usage."""
    try:
        if not 1 <= len(arguments) <= 2:
            raise UsageError("usage: python -m millpond.report.firmware_picture RESULTS_DIR [FILE]")
        file = Path(arguments[1]) if len(arguments) == 2 else FILE
        data = Data(Results.open(arguments[0]))
        cell, run = transfers.needed(data, data.cells[:1])[0]
        write_text(file, svg(windows.flow_over_time(data, transfers.of_run(data, cell, run, 1)[0])))
    except MillpondError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(file)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
