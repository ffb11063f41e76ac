"""`python -m manual.api FOLDER`: the API of the Python package as pages, by pdoc."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pdoc

PACKAGE = "millpond"


def main() -> int:
    """Write the pages. Gives the exit code."""
    package = importlib.import_module(PACKAGE)
    # names that are looked for when they are first asked for are documented only once they are there
    vars(package).update({name: getattr(package, name) for name in package.__all__})
    pdoc.render.configure(docformat="google")
    pdoc.pdoc(PACKAGE, output_directory=Path(sys.argv[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
