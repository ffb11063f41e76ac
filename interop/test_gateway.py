"""Every peer's client and server through our gateway, and other stacks' proxies on either side of it."""

import contextlib
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from resources import LARGE, path
from sides import TOOLS, Aiocoap, Libcoap, Missing, Ours, Peer, free_port, wait_for_pong


def gateway(ours: Ours, upstream: int, folder: Path) -> AbstractContextManager[int]:
    """Our gateway before a server on this port: at /up/, and for clients that name it themselves."""
    rule = f'[[rule]]\npath = "/up/{{*rest}}"\nto = "coap://127.0.0.1:{upstream}/{{*rest}}"\n'
    return ours.gateway(folder, rule + '[[forward]]\nto = ["127.0.0.1"]\n')


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What our server serves, apart from other files of a test."""
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "down").write_bytes(LARGE)
    return folder


def test_every_method_of_a_client(ours: Ours, peer: Peer, folder: Path, tmp_path: Path) -> None:
    with ours.serving(folder) as upstream, gateway(ours, upstream, tmp_path) as port:
        for method in peer.methods:
            payload = None if method in ("get", "delete") else b"hi"
            answer = peer.ask(method, f"coap://127.0.0.1:{port}/up/echo", payload)
            assert answer.code[0] == "2", method


def test_twenty_kilobytes_both_ways(ours: Ours, peer: Peer, folder: Path, tmp_path: Path) -> None:
    with ours.serving(folder) as upstream, gateway(ours, upstream, tmp_path) as port:
        # It is kept from now on: libcoap 4.3.1 takes no blocks in a separate response, which a slow path makes of it.
        assert ours.ask("get", f"coap://127.0.0.1:{port}/up/down").payload == LARGE
        assert peer.ask("get", f"coap://127.0.0.1:{port}/up/down").payload == LARGE
        assert peer.ask("put", f"coap://127.0.0.1:{port}/up/up", LARGE).code[0] == "2"
    assert (folder / "up").read_bytes() == LARGE


def test_a_separate_response(ours: Ours, peer: Peer, folder: Path, tmp_path: Path) -> None:
    with ours.serving(folder) as upstream, gateway(ours, upstream, tmp_path) as port:
        assert peer.ask("get", f"coap://127.0.0.1:{port}/up/slow").code[0] == "2"


def test_a_client_observes_through_it(ours: Ours, peer: Peer, folder: Path, tmp_path: Path) -> None:
    with ours.serving(folder) as upstream, gateway(ours, upstream, tmp_path) as port:
        assert len(peer.observe(f"coap://127.0.0.1:{port}/up/time")) >= 3


@pytest.mark.parametrize("resource", ["test", "separate", "large"])
def test_a_server_is_asked_through_it(ours: Ours, peer: Peer, tmp_path: Path, resource: str) -> None:
    where = path(peer.name, resource)
    if where is None:
        pytest.skip(f"{peer.name}'s server has nothing of this kind")
    with peer.serving() as upstream, gateway(ours, upstream, tmp_path) as port:
        direct = ours.ask("get", f"coap://127.0.0.1:{upstream}{where}")
        through = ours.ask("get", f"coap://127.0.0.1:{port}/up{where}")
        assert (through.code, through.payload) == (direct.code, direct.payload)
        named = f"Proxy-Uri=coap://127.0.0.1:{upstream}{where}"
        assert ours.ask("get", f"coap://127.0.0.1:{port}", "--option", named).payload == direct.payload


def test_a_server_is_observed_through_it(ours: Ours, peer: Peer, tmp_path: Path) -> None:
    where = path(peer.name, "count")
    with peer.serving() as upstream, gateway(ours, upstream, tmp_path) as port:
        assert len(ours.observe(f"coap://127.0.0.1:{port}/up{where}")) >= 3


@contextlib.contextmanager
def aiocoap_proxy(*rules: str) -> Iterator[int]:
    """The proxy that comes with aiocoap."""
    try:
        Aiocoap().command()
    except Missing as missing:
        pytest.skip(str(missing))
    port = free_port()
    program = [str(TOOLS / "venv" / "bin" / "python"), "-m", "aiocoap.cli.proxy", "--bind", f"127.0.0.1:{port}", *rules]
    with subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        try:
            wait_for_pong(port)
            yield port
        finally:
            running.kill()


def test_aiocoaps_proxy_before_it(ours: Ours, folder: Path, tmp_path: Path) -> None:
    with (
        ours.serving(folder) as upstream,
        gateway(ours, upstream, tmp_path) as port,
        aiocoap_proxy("--reverse", "--unconditional", f"127.0.0.1:{port}") as first,
    ):
        assert ours.ask("get", f"coap://127.0.0.1:{first}/up/down").payload == LARGE
        assert ours.ask("get", f"coap://127.0.0.1:{first}/up/nowhere").code == "4.04"


def test_aiocoaps_proxy_behind_it(ours: Ours, folder: Path, tmp_path: Path) -> None:
    with (
        ours.serving(folder) as upstream,
        aiocoap_proxy("--reverse", "--unconditional", f"127.0.0.1:{upstream}") as last,
        gateway(ours, last, tmp_path) as port,
    ):
        assert ours.ask("get", f"coap://127.0.0.1:{port}/up/down").payload == LARGE
        assert ours.ask("put", f"coap://127.0.0.1:{port}/up/up", payload=LARGE).code[0] == "2"
    assert (folder / "up").read_bytes() == LARGE


def test_libcoaps_client_names_whom_it_asks(ours: Ours, folder: Path, tmp_path: Path) -> None:
    try:
        client = Libcoap.program("client")
    except Missing as missing:
        pytest.skip(str(missing))
    with ours.serving(folder) as upstream, gateway(ours, upstream, tmp_path) as port:
        ours.ask("get", f"coap://127.0.0.1:{port}/up/down")
        body = tmp_path / "body"
        via = ["-P", f"coap://127.0.0.1:{port}", "-o", str(body), f"coap://127.0.0.1:{upstream}/down"]
        done = subprocess.run([client, "-B", "60", *via], capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        assert body.read_bytes() == LARGE


def test_libcoaps_proxy_before_it(ours: Ours, folder: Path, tmp_path: Path) -> None:
    try:
        server = Libcoap.program("server")
    except Missing as missing:
        pytest.skip(str(missing))
    first = free_port()
    # It hands on what is not for the name that it is called by.
    arguments = [server, "-A", "127.0.0.1", "-p", str(first), "-P", ",proxy.example"]
    with (
        ours.serving(folder) as upstream,
        gateway(ours, upstream, tmp_path) as port,
        subprocess.Popen(arguments, stderr=subprocess.DEVNULL) as running,
    ):
        try:
            wait_for_pong(first)
            named = f"Proxy-Uri=coap://127.0.0.1:{port}/up/hello"
            assert ours.ask("get", f"coap://127.0.0.1:{first}", "--option", named).code == "2.05"
        finally:
            running.kill()
