"""What the programs that draw a picture of the manual have in common: results in, one SVG file out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from millpond.errors import MillpondError, UsageError
from millpond.results.directory import Results
from millpond.results.store import write_text
from millpond.show.drawing import svg


def draw(arguments: Sequence[str], program: str, file: Path, picture: Callable[[Results], Figure]) -> int:
    """Draw `picture` of the results named first into the file named second, `file` if none is named.

    The exit code: 0 done, 1 failed, 2 wrong usage.
    """
    try:
        if not 1 <= len(arguments) <= 2:
            raise UsageError(f"usage: python -m {program} RESULTS_DIR [FILE]")
        if len(arguments) == 2:
            file = Path(arguments[1])
        write_text(file, svg(picture(Results.open(arguments[0]))))
    except MillpondError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(file)
    return 0
