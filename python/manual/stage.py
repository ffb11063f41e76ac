"""Pages of the repository as chapters of a book: copied, with links that hold there.

The manual is written to be read in the repository. In the book the README and other pages beside it are chapters too;
other files that pages point at are copied beside them, and folders, of which a site has no view, lose their link.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

#: Pages outside of `docs/` that are chapters, and what they are called there.
OUTSIDE = {
    "README.md": "index.md",
    "RESULTS.md": "changed-results.md",
    "SECURITY.md": "reporting.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
#: The list of all pages, which is no front page in the book.
LIST = "pages.md"
#: Where files of the source that pages point at go.
SOURCE = "source"
#: Where the explorer goes, if it was built, and the API of both languages.
EXPLORER, RUST, PYTHON = "explore", "api/rust", "api/python"

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_ENTRY = re.compile(r"^(?:## (?P<part>.+)|\| \[(?P<title>[^\]]+)\]\((?P<file>[^)]+\.md)\) \|.*)$", re.MULTILINE)
_BLOCK = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Page:
    """A chapter: the part of the manual that it belongs to, its title, and its file in the repository."""

    part: str
    title: str
    file: Path


def pages(root: Path) -> list[Page]:
    """The chapters, in the order of `docs/index.md`, whose headings are the parts."""
    docs = root / "docs"
    found, part = [], ""
    for entry in _ENTRY.finditer((docs / "index.md").read_text(encoding="utf-8")):
        if entry["part"]:
            part = entry["part"]
        else:
            found.append(Page(part, entry["title"].replace("`", ""), (docs / entry["file"]).resolve()))
    return found


def summary(root: Path) -> str:
    """The table of contents as mdBook reads it: one part for each heading of the list of pages."""
    lines = ["# Summary", "", f"[Millpond]({OUTSIDE['README.md']})", f"[All pages]({LIST})"]
    part = ""
    for page in pages(root):
        name = _chapter(page.file, root)
        if name == OUTSIDE["README.md"]:
            continue
        if page.part != part:
            part = page.part
            lines += ["", f"# {part}", ""]
        lines.append(f"- [{page.title}]({name})")
    return "\n".join([*lines, "", "[The API](api.md)", ""])


def stage(root: Path, to: Path, there: Collection[str]) -> None:
    """Write the sources of the book.

    Args:
        root: The repository.
        to: An empty folder.
        there: Which of `EXPLORER`, `RUST` and `PYTHON` the site will have.
    """
    to.mkdir(parents=True)
    shutil.copytree(root / "docs" / "images", to / "images")
    files = [*(root / "docs").rglob("*.md"), *(root / name for name in OUTSIDE)]
    for file in files:
        name = _chapter(file, root)
        if not name:
            continue
        text = _linked(file.read_text(encoding="utf-8"), file, root, to)
        if name == OUTSIDE["README.md"]:
            text = _with_explorer(text) if EXPLORER in there else text
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        (to / name).write_text(text, encoding="utf-8")
    (to / "api.md").write_text(_api(there), encoding="utf-8")
    (to / "SUMMARY.md").write_text(summary(root), encoding="utf-8")


# ----------------------------------------------------------------------------------------------- helpers


def _chapter(file: Path, root: Path) -> str:
    """The chapter that a page of the repository is in the book; empty if it is none."""
    docs = root / "docs"
    if file.is_relative_to(docs) and file.suffix == ".md":
        return LIST if file == docs / "index.md" else str(file.relative_to(docs))
    return OUTSIDE.get(str(file.relative_to(root)), "") if file.is_relative_to(root) else ""


def _linked(text: str, file: Path, root: Path, to: Path) -> str:
    kept: list[str] = []
    folder = Path(_chapter(file, root)).parent

    def hide(block: re.Match[str]) -> str:
        kept.append(block[0])
        return f"\0{len(kept) - 1}\0"

    def follow(link: re.Match[str]) -> str:
        target, hash_, part = link[1].partition("#")
        if "://" in target or not target:
            return link[0]
        place = (file.parent / target).resolve()
        if chapter := _chapter(place, root):
            return f"]({_from(folder, chapter)}{hash_}{part})"
        if place.is_relative_to(root / "docs" / "images"):
            return f"]({_from(folder, f'images/{place.name}')})"
        return f"]({_from(folder, _copied(place, root, to))})" if place.is_file() else "\1"

    text = _LINK.sub(follow, _BLOCK.sub(hide, text))
    # a folder has no page: what was the link's text stays
    text = re.sub(r"\[([^\[\]]*)\x01", r"\1", text)
    return re.sub(r"\0(\d+)\0", lambda number: kept[int(number[1])], text)


def _from(folder: Path, place: str) -> str:
    """The link to a place of the book on a page in this folder of it."""
    return Path(os.path.relpath(place, folder)).as_posix()


def _copied(place: Path, root: Path, to: Path) -> str:
    name = Path(SOURCE) / place.relative_to(root)
    # as text, so that browsers show it and mdBook takes no page for a chapter
    copy = to / name.with_name(f"{name.name.replace('.', '-')}.txt")
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(place, copy)
    return str(copy.relative_to(to))


def _with_explorer(text: str) -> str:
    shown = (
        f'<p><a href="{EXPLORER}/index.html">The explorer</a>: the simulator in this page, nothing to install.</p>\n'
        f'<iframe src="{EXPLORER}/index.html" title="The explorer" loading="lazy" '
        'style="width:100%;height:480px;box-sizing:border-box;border:1px solid #bbb"></iframe>\n'
    )
    title, _, rest = text.partition("\n")
    return f"{title}\n\n{shown}\n{rest}"


def _api(there: Collection[str]) -> str:
    told = {
        RUST: f'<a href="{RUST}/index.html">Rust</a>: every crate, as `cargo doc` writes it',
        PYTHON: f'<a href="{PYTHON}/index.html">Python</a>: the package `millpond`',
    }
    lines = [f"* {text}\n" for place, text in told.items() if place in there]
    return "# The API\n\n" + "".join([*lines, "* C: [the C library](c-library.md), whose headers say everything\n"])
