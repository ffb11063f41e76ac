"""`python -m manual MDBOOK SITE`: builds the book into a folder and checks every link in it.

What other programs made goes beside it before the links are checked: `--rust`, `--python` and `--explorer` name the
folders.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from manual import links, stage

ROOT = Path(__file__).resolve().parents[2]
BOOK = """\
[book]
title = "Millpond"
language = "en"
src = "src"

[build]
create-missing = false

[output.html]
default-theme = "light"
preferred-dark-theme = "navy"
no-section-label = true
additional-css = ["site.css"]
additional-js = ["site.js"]

[output.html.print]
enable = false

[output.html.search]
limit-results = 30
use-boolean-and = true
"""
_CRATES = """\
<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Crates of Millpond</title>
<h1>Crates</h1>
<ul>{rows}</ul>
"""


def main() -> int:
    """Build the site. Gives the exit code."""
    reader = argparse.ArgumentParser(prog="manual")
    reader.add_argument("mdbook")
    reader.add_argument("site", type=Path)
    for name in ("rust", "python", "explorer"):
        reader.add_argument(f"--{name}", type=Path)
    asked = reader.parse_args()
    beside = {stage.RUST: asked.rust, stage.PYTHON: asked.python, stage.EXPLORER: asked.explorer}
    there = {place: folder for place, folder in beside.items() if folder is not None and folder.is_dir()}
    with tempfile.TemporaryDirectory() as folder:
        book = Path(folder)
        (book / "book.toml").write_text(BOOK, encoding="utf-8")
        for name in ("site.css", "site.js"):
            shutil.copyfile(Path(__file__).with_name(name), book / name)
        stage.stage(ROOT, book / "src", there)
        subprocess.run([asked.mdbook, "build", "--dest-dir", str(book / "out"), str(book)], check=True)
        for place, made in there.items():
            shutil.copytree(made, book / "out" / place)
            _with_index(book / "out" / place)
        found = links.broken(book / "out", apart=tuple(beside))
        if found:
            print("\n".join(["links that lead nowhere:", *found]), file=sys.stderr)
            return 1
        shutil.rmtree(asked.site, ignore_errors=True)
        shutil.copytree(book / "out", asked.site)
    left_out = [place for place in beside if place not in there]
    print(f"site: {asked.site / 'index.html'}" + (f"   left out: {', '.join(left_out)}" if left_out else ""))
    return 0


def _with_index(folder: Path) -> None:
    """Rustdoc writes no page that lists all crates."""
    index = folder / "index.html"
    if index.exists():
        return
    crates = sorted(page.parent.name for page in folder.glob("*/index.html") if page.parent.name.startswith("millpond"))
    rows = "".join(f'<li><a href="{name}/index.html">{name}</a></li>' for name in crates)
    index.write_text(_CRATES.format(rows=rows), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
