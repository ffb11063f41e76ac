"""The built page, served as `millpond explore` serves it, and a browser to open it in."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from millpond.explore import server


@pytest.fixture(scope="session")
def site() -> str:
    """The folder of the built page; tests are skipped where it could not be built."""
    if not (server.SITE / "index.html").is_file():
        pytest.skip("the page is not built: make web")
    return str(server.SITE)


@pytest.fixture(scope="session")
def place(site: str) -> Iterator[str]:
    """The address of the page."""
    assert site
    with server.serve(0) as page:
        thread = threading.Thread(target=page.serve_forever)
        thread.start()
        yield server.address(page.server_address[1])
        page.shutdown()
        thread.join()


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    """Chromium, driven by Playwright; tests are skipped where one of both is missing."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    names = ("chromium", "chromium-browser", "google-chrome")
    program = next((found for name in names if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip("Chromium is not installed")
    with playwright.sync_playwright() as driver:
        # Within a container or as root Chromium cannot make its own sandbox; what is opened here is our own page.
        running = driver.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield running
        running.close()


@pytest.fixture(scope="session")
def faults() -> Callable[[Any], list[str]]:
    """What axe finds wrong with an open page: titles, alternative texts, contrast, names (WCAG 2 A and AA)."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")

    def found(page: Any) -> list[str]:
        told = axe.Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa"]}).response["violations"]
        return [f"{fault['id']}: {fault['nodes'][0]['html'][:100]}" for fault in told]

    return found
