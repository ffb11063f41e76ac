"""The picture of docs/echo.md: first waits and completion times of timers that believe a named copy.

    python -m millpond.report.echo_picture RESULTS_DIR [FILE]

RESULTS_DIR holds results of the study `echo`, as `millpond reproduce echo` leaves them; FILE is `docs/images/echo.svg`
unless given.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from millpond.errors import MillpondError, UsageError
from millpond.report.data import Data
from millpond.report.echo import LATE
from millpond.report.figures import timers
from millpond.report.page import svg
from millpond.results import Results
from millpond.store import write_text

FILE = Path("docs/images/echo.svg")


def main(arguments: Sequence[str]) -> int:
    """Draw the picture into a file; the exit code: 0 done, 1 failed, 2 wrong usage."""
    try:
        if not 1 <= len(arguments) <= 2:
            raise UsageError("usage: python -m millpond.report.echo_picture RESULTS_DIR [FILE]")
        file = Path(arguments[1]) if len(arguments) == 2 else FILE
        data = Data(Results.open(arguments[0]))
        write_text(file, svg(timers.over_loss(data, LATE, (timers.WAIT, timers.FCT))))
    except MillpondError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(file)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
