"""Every link of a site leads somewhere within it: files are there, and places in them too."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Read(HTMLParser):
    """The links of a page and the places that it has."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and (name == "id" or (tag == "a" and name == "name")):
                self.places.add(value)
            elif value and (name, tag) in (("href", "a"), ("src", "img"), ("src", "iframe"), ("src", "script")):
                self.links.append(value)


def broken(site: Path, apart: tuple[str, ...] = ()) -> list[str]:
    """The links that lead nowhere, as `page: link`.

    Args:
        site: Its folder.
        apart: Folders whose own pages are made and checked by other programs; what leads there is checked.
    """
    read: dict[Path, _Read] = {}
    pages = [page for page in sorted(site.rglob("*.html")) if not page.is_relative_to(site / "source")]
    mine = [page for page in pages if not any(page.is_relative_to(site / folder) for folder in apart)]
    return [f"{page.relative_to(site)}: {link}" for page in mine for link in _broken(page, read, site)]


def _broken(page: Path, read: dict[Path, _Read], site: Path) -> Iterator[str]:
    for link in _of(page, read).links:
        told = urlsplit(link)
        if told.scheme or told.netloc:
            continue
        target = (page.parent / unquote(told.path)).resolve() if told.path else page
        if target.is_dir():
            target /= "index.html"
        there = target.is_relative_to(site.resolve()) and target.is_file()
        part = unquote(told.fragment) if target.suffix == ".html" else ""
        if not there or (part and part not in _of(target, read).places):
            yield link


def _of(page: Path, read: dict[Path, _Read]) -> _Read:
    if page not in read:
        read[page] = _Read()
        read[page].feed(page.read_text(encoding="utf-8"))
    return read[page]
