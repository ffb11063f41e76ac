"""HTTP's programs through our gateway: curl as a client, and Python's server behind it."""

import contextlib
import functools
import http.server
import itertools
import json
import queue
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from resources import LARGE
from sides import Ours, free_port


@contextlib.contextmanager
def gateway(ours: Ours, folder: Path, lines: str) -> Iterator[tuple[str, str]]:
    """Our gateway with these lines, and where it is asked by HTTP and by CoAP."""
    web = free_port()
    with ours.gateway(folder, lines, http=web) as coap:
        yield f"http://127.0.0.1:{web}", f"coap://127.0.0.1:{coap}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What a server serves, apart from other files of a test."""
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "down").write_bytes(LARGE)
    (folder / "state.json").write_text("{}", encoding="utf-8")
    (folder / "state.txt").write_text("on", encoding="utf-8")
    return folder


def to_coap(upstream: int) -> str:
    return f'[[rule]]\npath = "/up/{{*rest}}"\nto = "coap://127.0.0.1:{upstream}/{{*rest}}"\n'


def curl(*arguments: str) -> str:
    """What curl prints, which is there or the test is left out."""
    program = shutil.which("curl")
    if program is None:
        pytest.skip("curl is not installed (Debian: curl)")
    done = subprocess.run([program, "--silent", "--show-error", *arguments], capture_output=True, check=True, text=True)
    return done.stdout


def test_curl_asks_devices(ours: Ours, folder: Path, tmp_path: Path) -> None:
    body = tmp_path / "body"
    code = ["-o", str(body), "-w", "%{http_code} %{content_type}"]
    with ours.serving(folder) as upstream, gateway(ours, tmp_path, to_coap(upstream)) as (web, _):
        assert curl(*code, f"{web}/up/down").startswith("200 ")
        assert body.read_bytes() == LARGE
        # With Expect: 100-continue, which curl asks for before it sends much.
        sent = curl(*code, "-T", str(folder / "down"), "-H", "Expect: 100-continue", f"{web}/up/up")
        assert sent.startswith(("201", "204"))
        assert curl(*code, f"{web}/up/nowhere").startswith("404 ")
        assert curl(*code, f"{web}/up/state.json") == "200 application/json"
        assert curl(*code, "-H", "Accept: application/cbor", f"{web}/up/state.json").startswith("406 ")
        assert curl(*code, "-X", "DELETE", f"{web}/up/up").startswith("204")
        # Both over one connection.
        twice = curl("-w", "%{num_connects} ", "-o", str(body), "-o", str(body), f"{web}/up/hello", f"{web}/up/hello")
        assert twice == "1 0 "
    assert not (folder / "up").exists()


def test_curl_asks_again_with_a_tag(ours: Ours, folder: Path, tmp_path: Path) -> None:
    tag, body = str(tmp_path / "tag"), str(tmp_path / "body")
    with ours.serving(folder) as upstream, gateway(ours, tmp_path, to_coap(upstream)) as (web, _):
        assert curl("--etag-save", tag, "-o", body, "-w", "%{http_code}", f"{web}/up/down") == "200"
        assert curl("--etag-compare", tag, "-o", body, "-w", "%{http_code}", f"{web}/up/down") == "304"


def test_curl_reads_events(ours: Ours, folder: Path, tmp_path: Path) -> None:
    arguments = ["curl", "--silent", "--no-buffer", "-H", "Accept: text/event-stream"]
    curl("--version")
    with ours.serving(folder) as upstream, gateway(ours, tmp_path, to_coap(upstream)) as (web, _):
        with subprocess.Popen([*arguments, f"{web}/up/count"], stdout=subprocess.PIPE, text=True) as reader:
            assert reader.stdout is not None
            lines = (line.strip() for line in reader.stdout)
            states = list(itertools.islice((line for line in lines if line.startswith("data: ")), 3))
            reader.kill()
        assert len(set(states)) == 3


def test_pythons_server_behind_it(ours: Ours, folder: Path, tmp_path: Path) -> None:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with contextlib.closing(server.socket):
        port = server.server_address[1]
        lines = (
            f'[[rule]]\npath = "/up/{{*rest}}"\nto = "http://127.0.0.1:{port}/{{*rest}}"\n'
            '[[forward]]\nto = ["127.0.0.1"]\nschemes = ["http"]\n'
        )
        with gateway(ours, tmp_path, lines) as (_, coap):
            assert ours.ask("get", f"{coap}/up/down").payload == LARGE
            assert ours.ask("get", f"{coap}/up/nowhere").code == "4.04"
            named = f"Proxy-Uri=http://127.0.0.1:{port}/state.txt"
            assert ours.ask("get", coap, "--option", named).payload == b"on"
        server.shutdown()


PAGE = """<!doctype html><script type=module>
const told = {events: []}
try {
  await new Promise((resolve, reject) => {
    const source = new EventSource("GATEWAY/up/count")
    source.onmessage = event => told.events.push(event.data) < 3 || resolve(source.close())
    source.onerror = () => reject("no events")
  })
  told.written = (await fetch("GATEWAY/up/note", {method: "PUT", body: "from a page"})).status
  const read = await fetch("GATEWAY/up/note")
  told.read = [read.status, await read.text(), read.headers.get("cache-status")]
} catch (error) { told.error = String(error) }
await fetch("/told", {method: "POST", body: JSON.stringify(told)})
</script>"""


@contextlib.contextmanager
def browser(page: str, profile: Path) -> Iterator[None]:
    """Chromium with this page open, which is there or the test is left out."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("Chromium is not installed (Debian: chromium)")
    # As root it cannot make its own sandbox; what is opened is our own page.
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"]
    with subprocess.Popen([program, *flags, page], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        try:
            yield
        finally:
            running.kill()


def test_a_page_in_a_browser_asks_devices(ours: Ours, folder: Path, tmp_path: Path) -> None:
    heard: queue.Queue[dict[str, Any]] = queue.Queue()
    place = ""

    class Pages(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(PAGE.replace("GATEWAY", place).encode())

        def do_POST(self) -> None:
            heard.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]
    with contextlib.closing(server.socket), ours.serving(folder) as upstream:
        lines = f'[http]\norigins = ["http://127.0.0.1:{port}"]\n{to_coap(upstream)}'
        with gateway(ours, tmp_path, lines) as (place, _):
            with browser(f"http://127.0.0.1:{port}/", tmp_path / "one"):
                told = heard.get()
            assert "error" not in told
            assert len(set(told["events"])) == 3
            assert (told["written"], told["read"]) == (201, [200, "from a page", "millpond; fwd=miss"])
            # The same page by another name is of another origin, which the gateway does not name.
            with browser(f"http://localhost:{port}/", tmp_path / "other"):
                assert heard.get() == {"events": [], "error": "no events"}
        server.shutdown()
    assert (folder / "note").read_bytes() == b"from a page"
