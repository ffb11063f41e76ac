"""What starting the program imports: the verbs on the wire must not wait for tables and figures."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("numpy", "pyarrow", "matplotlib", "scipy", "rich", "jinja2", "psutil", "pandas", "msgspec")


def imported_by(code: str) -> set[str]:
    told = f"import sys\n{code}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()}


@pytest.mark.parametrize(
    "code",
    [
        "import millpond.cli",
        "import millpond; millpond.__version__",
        "import millpond; millpond.Controller",
        "from millpond import cli\ntry: cli.main(['get', '--help'])\nexcept SystemExit: pass",
        "from millpond import cli\ntry: cli.main(['sweep', '--help'])\nexcept SystemExit: pass",
    ],
)
def test_nothing_heavy_is_imported_before_it_is_used(code: str) -> None:
    assert not imported_by(code) & set(HEAVY)


def test_what_is_asked_for_is_there() -> None:
    assert {"numpy", "pyarrow"} <= imported_by("import millpond; millpond.Results")
