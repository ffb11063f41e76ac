"""`millpond explore`: the page on the loopback interface, with a scenario in its address."""

from __future__ import annotations

import base64
import threading
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from millpond import cli
from millpond.errors import MillpondError
from millpond.explore import server

FIRST = Path(server.__file__).parents[1] / "scenarios" / "first.toml"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A page of a few files."""
    folder = tmp_path / "site"
    (folder / "engine").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><title>page</title>", "utf-8")
    (folder / "engine" / "engine_bg.wasm").write_bytes(b"\0asm")
    (tmp_path / "secret.txt").write_text("not for readers", "utf-8")
    return folder


@pytest.fixture
def place(site: Path) -> Iterator[str]:
    with server.serve(0, site) as page:
        thread = threading.Thread(target=page.serve_forever)
        thread.start()
        yield server.address(page.server_address[1])
        page.shutdown()
        thread.join()


def test_files_come_with_the_types_that_browsers_insist_on(place: str) -> None:
    kinds = {"": "text/html; charset=utf-8", "engine/engine_bg.wasm": "application/wasm"}
    for path, kind in kinds.items():
        with urllib.request.urlopen(place + path) as answer:
            assert answer.headers["Content-Type"] == kind


@pytest.mark.parametrize("path", ["engine/", "../secret.txt", "%2e%2e/secret.txt", "nothing.js"])
def test_nothing_else_is_served(place: str, path: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(place + path)
    assert error.value.code == 404
    error.value.close()


def test_only_this_machine_is_served(site: Path) -> None:
    with server.serve(0, site) as page:
        assert page.server_address[0] == "127.0.0.1"


def test_a_scenario_travels_in_the_address() -> None:
    words = parse_qs(urlsplit(server.address(8000, FIRST)).fragment)
    assert words["file"] == ["first.toml"]
    packed = words["scenario"][0]
    text = zlib.decompress(base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4)), wbits=-15).decode()
    assert text == FIRST.read_text("utf-8")


def test_a_port_in_use_is_one_line(site: Path) -> None:
    with server.serve(0, site) as page:
        port = page.server_address[1]
        with pytest.raises(MillpondError, match=f"^--port {port}: Address already in use"):
            server.serve(port, site)


def test_a_page_that_was_not_built_names_what_builds_it(tmp_path: Path) -> None:
    with pytest.raises(MillpondError, match="make web"):
        server.serve(0, tmp_path)


def test_a_bad_scenario_is_refused_before_a_browser_opens(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(server, "SITE", site)
    bad = tmp_path / "bad.toml"
    bad.write_text("[path.uplink]\nrat = 3\n", "utf-8")
    with pytest.raises(SystemExit) as end:
        cli.main(["explore", "--no-open", str(bad)])
    assert end.value.code == 2
    assert "unknown" in capsys.readouterr().err
