"""`python -m oracle`: writes `vectors/*.json`, or with `--check` says which of them differ."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from oracle.cases import FAMILIES
from oracle.layout import render

VECTORS = Path(__file__).resolve().parents[2] / "vectors"


def main() -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m oracle", description="Writes the call lists of vectors/.")
    parser.add_argument("families", nargs="*", metavar="family", help=f"one of {', '.join(FAMILIES)}; all if none")
    parser.add_argument("--out", type=Path, default=VECTORS, help="the folder (default: vectors/)")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file would change")
    arguments = parser.parse_args()
    if unknown := [family for family in arguments.families if family not in FAMILIES]:
        parser.error(f"no family {unknown[0]}; there are {', '.join(FAMILIES)}")
    changed = False
    for family in arguments.families or FAMILIES:
        file = arguments.out / f"{family}.json"
        text = render(family, FAMILIES[family]())
        calls = text.count('{"call"')
        same = file.exists() and file.read_text(encoding="utf-8") == text
        changed |= not same
        if not arguments.check:
            file.write_text(text, encoding="utf-8")
        print(f"{file}: {calls} calls, {len(text) >> 10} KiB{'' if same else ', changed'}")
    return int(changed and arguments.check)


if __name__ == "__main__":
    sys.exit(main())
