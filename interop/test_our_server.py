"""Every peer's client against our server."""

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from relay import CLIENT_TO_SERVER, SERVER_TO_CLIENT, Relay
from resources import LARGE
from sides import Libcoap, Missing, Ours, Peer


def at(port: int, path: str) -> str:
    return f"coap://127.0.0.1:{port}{path}"


def test_every_method(ours: Ours, peer: Peer, tmp_path: Path) -> None:
    with ours.serving(tmp_path) as port:
        for method in peer.methods:
            answer = peer.ask(method, at(port, "/echo"), None if method in ("get", "delete") else b"hi")
            assert answer.code[0] == "2", method


def test_a_separate_response(ours: Ours, peer: Peer, tmp_path: Path) -> None:
    with ours.serving(tmp_path) as port, Relay(port) as relay:
        assert peer.ask("get", at(relay.port, "/slow")).code[0] == "2"
        down = [passed for passed in relay.messages if passed.way == SERVER_TO_CLIENT]
        assert [(passed.kind, passed.code) for passed in down[:2]] == [("ACK", "0.00"), ("CON", "2.05")]


@pytest.mark.parametrize(
    ("way", "number"),
    [(CLIENT_TO_SERVER, 0), (SERVER_TO_CLIENT, 0), (SERVER_TO_CLIENT, 1), (CLIENT_TO_SERVER, 1)],
    ids=["request", "its-acknowledgement", "response", "its-acknowledgement-back"],
)
def test_the_loss_of_each_message_is_made_good(ours: Ours, peer: Peer, tmp_path: Path, way: str, number: int) -> None:
    with ours.serving(tmp_path) as port, Relay(port, lambda w, n: (w, n) == (way, number)) as relay:
        assert peer.ask("get", at(relay.port, "/slow")).code[0] == "2"


def test_twenty_kilobytes_both_ways(ours: Ours, peer: Peer, tmp_path: Path) -> None:
    (tmp_path / "down").write_bytes(LARGE)
    with ours.serving(tmp_path) as port:
        assert peer.ask("get", at(port, "/down")).payload == LARGE
        assert peer.ask("put", at(port, "/up"), LARGE).code[0] == "2"
    assert (tmp_path / "up").read_bytes() == LARGE


def test_a_resource_is_observed(ours: Ours, peer: Peer, tmp_path: Path) -> None:
    with ours.serving(tmp_path) as port:
        assert len(peer.observe(at(port, "/time"))) >= 3


@pytest.mark.parametrize(
    ("way", "number"),
    [(CLIENT_TO_SERVER, 0), (SERVER_TO_CLIENT, 0), (SERVER_TO_CLIENT, 1), (CLIENT_TO_SERVER, 1)],
    ids=["registration", "its-response", "notification", "its-acknowledgement"],
)
def test_the_loss_of_each_message_of_an_observation_is_made_good(
    ours: Ours, peer: Peer, tmp_path: Path, way: str, number: int
) -> None:
    with ours.serving(tmp_path) as port, Relay(port, lambda w, n: (w, n) == (way, number)) as relay:
        assert peer.observe(at(relay.port, "/count"))


def test_requests_that_come_twice_are_handled_once(ours: Ours, peer: Peer, tmp_path: Path) -> None:
    with ours.serving(tmp_path) as port, Relay(port, doubles=lambda way, _number: way == CLIENT_TO_SERVER) as relay:
        assert peer.ask("post", at(relay.port, "/"), b"once").code[0] == "2"
        assert len(list(tmp_path.iterdir())) == 1
        if peer.name == "node-coap":
            # Its client ends an upload with an error of its own once an acknowledgement comes twice.
            return
        assert peer.ask("put", at(relay.port, "/up"), LARGE).code[0] == "2"
    assert (tmp_path / "up").read_bytes() == LARGE


@pytest.mark.parametrize("length", range(1, 9))
def test_tokens_of_libcoap(ours: Ours, tmp_path: Path, length: int) -> None:
    try:
        client = Libcoap.program("client")
    except Missing as missing:
        pytest.skip(str(missing))
    token = "abcdefgh"[:length]
    with ours.serving(tmp_path) as port, Relay(port) as relay:
        done = subprocess.run([client, "-T", token, at(relay.port, "/hello")], capture_output=True, check=False)
        assert done.stdout.startswith(b"Hello"), done.stderr
        assert len({passed.token for passed in relay.passed if passed.code != "0.00"}) == 1


def test_a_file_that_is_not_there(ours: Ours, peer: Peer, tmp_path: Path) -> None:
    with ours.serving(tmp_path) as port:
        try:
            code = peer.ask("get", at(port, "/nothing")).code
        except AssertionError as error:
            # Some clients call an answer of class 4 a failure.
            code = "4.04" if "4.04" in str(error) or "NotFound" in str(error) else str(error)
        assert code == "4.04"


@pytest.fixture
def wire(ours: Ours, tmp_path: Path) -> Iterator[socket.socket]:
    """A socket that speaks bytes to our server."""
    with ours.serving(tmp_path) as port, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        end.connect(("127.0.0.1", port))
        end.settimeout(10)
        yield end


HELLO = b"\xb5hello"


def answer(wire: socket.socket) -> bytes:
    """What comes next and is not empty: an acknowledgement may come first."""
    while (datagram := wire.recv(2_000))[1] == 0:
        pass
    return datagram


def test_a_copy_of_a_request_gets_the_same_reply(wire: socket.socket) -> None:
    request = b"\x41\x01\x12\x34\x07" + HELLO
    wire.send(request)
    first = answer(wire)
    wire.send(request)
    assert answer(wire) == first


def test_ping_is_answered_by_a_reset(wire: socket.socket) -> None:
    wire.send(b"\x40\x00\x12\x34")
    assert wire.recv(64) == b"\x70\x00\x12\x34"


def test_an_unknown_critical_option_is_refused(wire: socket.socket) -> None:
    # Option 9 (0x09 after Uri-Path would go back, so before it): critical, unknown.
    wire.send(b"\x40\x01\x12\x35\x91\x01\x25hello")
    assert wire.recv(2_000)[:4] == b"\x60\x82\x12\x35"


def test_a_token_of_eight_bytes_comes_back(wire: socket.socket) -> None:
    wire.send(b"\x48\x01\x12\x36abcdefgh" + HELLO)
    assert answer(wire)[4:12] == b"abcdefgh"


@pytest.mark.parametrize("header", [b"\x4d\x01\x12\x3a\x00", b"\x4e\x01\x12\x3a\x00\x00"], ids=["13", "269"])
def test_a_token_longer_than_eight_bytes_is_reset(wire: socket.socket, header: bytes) -> None:
    # RFC 8974 §2.2.2: that is how a client learns that its extended tokens are not spoken here.
    wire.send(header + bytes(269) + HELLO)
    assert wire.recv(64) == b"\x70\x00\x12\x3a"


def test_a_confirmable_response_that_nobody_waits_for_is_reset(wire: socket.socket) -> None:
    wire.send(b"\x41\x45\x12\x37\x09")
    assert wire.recv(64) == b"\x70\x00\x12\x37"


def test_a_reset_is_not_answered(wire: socket.socket) -> None:
    wire.send(b"\x70\x00\x12\x38")
    wire.send(b"\x40\x00\x12\x39")
    # The next thing that comes answers the ping.
    assert wire.recv(64) == b"\x70\x00\x12\x39"
