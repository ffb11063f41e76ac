"""The built site of the manual in a browser, at two widths, light and dark; skipped where `make docs` made none."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

SITE = Path(__file__).parents[3] / "site"
PAGES = ("index.html", "fleet.html", "scenario.html", "studies/anrw18.html")
#: Made beside the book, without its sidebar.
BESIDE = ("api/rust/index.html",)


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


@pytest.fixture(scope="module")
def book() -> Iterator[str]:
    if not (SITE / "index.html").is_file():
        pytest.skip("the site is not built: make docs")
    handler = functools.partial(_Quiet, directory=str(SITE))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", [*PAGES, *BESIDE])
def test_pages_fit_and_can_be_used_by_every_reader(
    browser: Any, book: str, faults: Callable[[Any], list[str]], name: str, width: int, scheme: str
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce")
    page.goto(book + name)
    assert "Millpond" in page.title()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert faults(page) == []
    page.close()


def test_the_sidebar_is_grouped(browser: Any, book: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(book + "index.html")
    parts = page.locator("#mdbook-sidebar li.part-title")
    parts.first.wait_for()
    assert parts.all_inner_texts() == [
        "Tutorials",
        "How-to",
        "Reference",
        "Explanation",
        "Studies",
        "Reports",
        "Appendix",
        "Project",
    ]
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_search_finds_pages_and_can_be_read(
    browser: Any, book: str, faults: Callable[[Any], list[str]], scheme: str
) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 900}, color_scheme=scheme, reduced_motion="reduce")
    page.goto(book + "index.html")
    page.keyboard.press("s")
    page.keyboard.type("power cut")
    found = page.locator("#mdbook-searchresults a")
    found.first.wait_for()
    assert any("fleet.html" in (link.get_attribute("href") or "") for link in found.all())
    assert faults(page) == []
    page.close()


@pytest.mark.parametrize("name", PAGES)
def test_no_entry_of_the_sidebar_is_cut(browser: Any, book: str, name: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(book + name)
    page.locator("#mdbook-sidebar li.part-title").first.wait_for()
    assert (
        page.evaluate(
            "[...document.querySelectorAll('#mdbook-sidebar a')].filter(one => one.scrollWidth > one.clientWidth || "
            "one.getBoundingClientRect().right > "
            "document.getElementById('mdbook-sidebar').getBoundingClientRect().right).map(one => one.textContent)"
        )
        == []
    )
    page.close()
