"""Serves the page on the loopback interface."""

from __future__ import annotations

import base64
import http.server
import zlib
from functools import partial
from os import PathLike
from pathlib import Path
from urllib.parse import urlencode

from millpond.errors import MillpondError
from millpond.given_files import read_text
from millpond.plan.scenario import load

#: Where the page is, if it was built into this installation.
SITE = Path(__file__).parent / "site"

#: What browsers insist on, whatever this machine's tables of file types say.
_TYPES = {
    ".css": "text/css",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".wasm": "application/wasm",
}


class _Page(http.server.SimpleHTTPRequestHandler):
    """The files of the page and nothing else."""

    extensions_map = _TYPES | {"": "application/octet-stream"}

    def log_message(self, *_: object) -> None:
        """A line for each file would be in the way."""

    def list_directory(self, path: str | PathLike[str]) -> None:  # noqa: ARG002
        """Folders are not listed."""
        self.send_error(404)


def serve(port: int, site: Path | None = None) -> http.server.ThreadingHTTPServer:
    """Bind a server for the page to 127.0.0.1; `port` 0 takes a free one. Raises `MillpondError` with one line."""
    site = SITE if site is None else site
    if not (site / "index.html").is_file():
        raise MillpondError(
            "the page is not part of this installation: build it with `make web` in the sources "
            "(it wants `rustup target add wasm32-unknown-unknown`)"
        )
    try:
        return http.server.ThreadingHTTPServer(("127.0.0.1", port), partial(_Page, directory=str(site)))
    except OSError as error:
        raise MillpondError(f"--port {port}: {error.strerror or error}; without --port a free one is taken") from None


def address(port: int, scenario: Path | None = None) -> str:
    """The address of the page, with a scenario in it if one is given. Raises `MillpondError` with one line."""
    place = f"http://127.0.0.1:{port}/"
    if scenario is None:
        return place
    # A refusal is told here rather than in the page.
    load(scenario)
    text = read_text(scenario)
    deflate = zlib.compressobj(9, wbits=-15)
    packed = deflate.compress(text.encode()) + deflate.flush()
    word = base64.urlsafe_b64encode(packed).decode().rstrip("=")
    return f"{place}#{urlencode({'file': scenario.name, 'scenario': word})}"
