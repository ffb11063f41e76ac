"""Every peer's client and server through our gateway, and other stacks' proxies on either side of it."""

import contextlib
import subprocess
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from relay import SERVER_TO_CLIENT, Relay
from resources import LARGE, path
from sides import (
    PEERS,
    TOOLS,
    Aiocoap,
    Californium,
    Libcoap,
    Missing,
    Ours,
    Peer,
    free_port,
    installed,
    wait_for_pong,
)


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


@pytest.fixture(params=(*PEERS, Californium()), ids=lambda peer: peer.name)
def uploader(request: pytest.FixtureRequest) -> Peer:
    """One whose client sends long bodies; the test is skipped where it is not installed."""
    return installed(request.param)


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


@pytest.mark.parametrize("length", [20_000, 70_000])
def test_a_body_goes_up_to_a_slow_server(ours: Ours, uploader: Peer, folder: Path, tmp_path: Path, length: int) -> None:
    if uploader.name == "go-coap" and length > 65_536:
        pytest.skip("go-coap 3.5.4 sends the block after a 2.31 of its own message as an acknowledgement")
    body = bytes(65 + i % 26 for i in range(length))

    def is_slow(way: str, _number: int) -> bool:
        # Longer than the gateway waits before it acknowledges a block by itself: 2.31 comes in a response of its own.
        time.sleep(0.15 if way == SERVER_TO_CLIENT else 0)
        return False

    with (
        ours.serving(folder) as server,
        Relay(server, loses=is_slow) as relay,
        gateway(ours, relay.port, tmp_path) as port,
    ):
        assert uploader.ask("put", f"coap://127.0.0.1:{port}/up/up", body).code[0] == "2"
    assert (folder / "up").read_bytes() == body


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


@pytest.mark.parametrize("following", [False, True], ids=["asks it", "hands Proxy-Uri on to it"])
def test_libcoaps_proxy_before_it(ours: Ours, folder: Path, tmp_path: Path, *, following: bool) -> None:
    try:
        server = Libcoap.program("server")
    except Missing as missing:
        pytest.skip(str(missing))
    first = free_port()
    with ours.serving(folder) as upstream, gateway(ours, upstream, tmp_path) as port:
        # It hands on what is not for the name that it is called by: to whom that is for, or to another proxy.
        other = f"coap://127.0.0.1:{port}" if following else ""
        arguments = [server, "-A", "127.0.0.1", "-p", str(first), "-P", f"{other},proxy.example"]
        with subprocess.Popen(arguments, stderr=subprocess.DEVNULL) as running:
            try:
                wait_for_pong(first)
                at = f"127.0.0.1:{upstream}/hello" if following else f"127.0.0.1:{port}/up/hello"
                answer = ours.ask("get", f"coap://127.0.0.1:{first}", "--option", f"Proxy-Uri=coap://{at}")
                assert (answer.code, answer.payload) == ("2.05", b"Hello from Millpond.\n")
            finally:
                running.kill()
