"""TCP, TLS and DTLS through our gateway: every peer's client on one side, and its server on the other."""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from resources import LARGE, path
from sides import PEERS, Missing, Ours, Peer, free_port, installed
from test_datagram_tls import Credentials, build, credentials, libcoap_asks, libcoap_serving
from test_secure import GoCoap, Keys, SecurePeer, keys, secure_peer, wait_for_connection

__all__ = ["build", "credentials", "keys", "secure_peer"]


@contextlib.contextmanager
def before_ours(ours: Ours, folder: Path, listen: str, lines: str = "") -> Iterator[Path]:
    """Our gateway that listens so as well, before our server, and what that one serves."""
    served = folder / "served"
    served.mkdir()
    (served / "down").write_bytes(LARGE)
    with ours.serving(served) as upstream:
        rule = f'[[rule]]\npath = "/up/{{*rest}}"\nto = "coap://127.0.0.1:{upstream}/{{*rest}}"\n'
        with ours.gateway(folder, f"{listen}\n{lines}{rule}"):
            yield served


@contextlib.contextmanager
def before(ours: Ours, folder: Path, upstream: str, lines: str = "") -> Iterator[str]:
    """Our gateway before this server, at which path its resources are."""
    with ours.gateway(folder, f'{lines}[[rule]]\npath = "/up/{{*rest}}"\nto = "{upstream}/{{*rest}}"\n') as port:
        yield f"coap://127.0.0.1:{port}/up"


def test_a_client_over_tls(ours: Ours, secure_peer: SecurePeer, keys: Keys, tmp_path: Path) -> None:
    port = free_port()
    own = f'[credentials]\ncertificate = "{keys.certificate}"\nkey = "{keys.key}"\n'
    with before_ours(ours, tmp_path, f'coaps-tcp = ["127.0.0.1:{port}"]', own) as served:
        where = f"coaps+tcp://127.0.0.1:{port}/up"
        assert secure_peer.ask("get", f"{where}/hello", keys).payload == b"Hello from Millpond.\n"
        assert secure_peer.ask("put", f"{where}/kept", keys).code in ("2.01", "2.04", "2.xx")
        assert (served / "kept").read_bytes() == secure_peer.body
        assert secure_peer.ask("get", f"{where}/kept", keys).payload == secure_peer.body


def test_a_server_over_tls(ours: Ours, secure_peer: SecurePeer, keys: Keys, tmp_path: Path) -> None:
    with (
        secure_peer.serving(keys) as (address, port),
        before(ours, tmp_path, f"coaps+tcp://{address}:{port}", f'[upstream]\nca = "{keys.authority}"\n') as where,
    ):
        assert ours.ask("put", f"{where}/store", payload=secure_peer.body).code in ("2.01", "2.04")
        assert ours.ask("get", f"{where}/store").payload == secure_peer.body


@pytest.mark.parametrize("kind", ["key", "certificate"])
def test_a_client_under_dtls(ours: Ours, build: str, credentials: Credentials, kind: str, tmp_path: Path) -> None:
    port = free_port()
    own = f'[credentials]\ncertificate = "{credentials.certificate}"\nkey = "{credentials.key}"\n'
    own += f'psk-file = "{credentials.shared}"\n'
    with before_ours(ours, tmp_path, f'coaps = ["127.0.0.1:{port}"]', own) as served:
        where, body, sent = f"coaps://127.0.0.1:{port}/up", tmp_path / "body", tmp_path / "sent"
        # Kept from now on: libcoap 4.3.1 takes no blocks in a separate response.
        libcoap_asks(build, credentials, kind, "-o", str(body), "-N", f"{where}/down")
        libcoap_asks(build, credentials, kind, "-o", str(body), f"{where}/down")
        assert body.read_bytes() == LARGE
        sent.write_bytes(LARGE)
        libcoap_asks(build, credentials, kind, "-m", "put", "-f", str(sent), f"{where}/kept")
        assert (served / "kept").read_bytes() == LARGE
        assert len(libcoap_asks(build, credentials, kind, "-s", "8", f"{where}/count").split()) >= 3


@pytest.mark.parametrize("kind", ["key", "certificate"])
def test_a_server_under_dtls(ours: Ours, build: str, credentials: Credentials, kind: str, tmp_path: Path) -> None:
    own = {"key": f'psk-file = "{credentials.shared}"', "certificate": f'ca = "{credentials.authority}"'}
    with (
        libcoap_serving(build, credentials) as port,
        before(ours, tmp_path, f"coaps://127.0.0.1:{port}", f"[upstream]\n{own[kind]}\n") as where,
    ):
        assert ours.ask("put", f"{where}/example_data", payload=LARGE).code in ("2.01", "2.04")
        assert ours.ask("get", f"{where}/example_data").payload == LARGE
        assert len(ours.observe(f"{where}/time")) >= 3


@pytest.fixture(params=[peer for peer in PEERS if peer.name in ("libcoap", "aiocoap")], ids=lambda peer: peer.name)
def peer_over_tcp(request: pytest.FixtureRequest) -> Peer:
    """One whose program speaks TCP where it is asked so; the test is skipped where it is not installed."""
    return installed(request.param)


def test_a_client_over_tcp(ours: Ours, peer_over_tcp: Peer, tmp_path: Path) -> None:
    port = free_port()
    with before_ours(ours, tmp_path, f'coap-tcp = ["127.0.0.1:{port}"]') as served:
        where = f"coap+tcp://127.0.0.1:{port}/up"
        assert peer_over_tcp.ask("get", f"{where}/down").payload == LARGE
        assert peer_over_tcp.ask("put", f"{where}/kept", LARGE).code[0] == "2"
        assert (served / "kept").read_bytes() == LARGE
        assert len(peer_over_tcp.observe(f"{where}/time")) >= 3


def test_a_server_over_tcp(ours: Ours, peer_over_tcp: Peer, tmp_path: Path) -> None:
    store, count = path(peer_over_tcp.name, "store"), path(peer_over_tcp.name, "count")
    with (
        peer_over_tcp.serving() as port,
        before(ours, tmp_path, f"coap+tcp://127.0.0.1:{port}") as where,
    ):
        assert ours.ask("put", f"{where}{store}", payload=LARGE).code in ("2.01", "2.04")
        assert ours.ask("get", f"{where}{store}").payload == LARGE
        assert len(ours.observe(f"{where}{count}")) >= 3


def test_go_coap_over_tcp(ours: Ours, tmp_path: Path) -> None:
    try:
        command, port = GoCoap().command(), free_port()
    except Missing as missing:
        pytest.skip(str(missing))

    def asks(method: str, uri: str) -> bytes:
        done = subprocess.run([*command, method, uri], capture_output=True, check=True)
        return done.stdout.partition(b"\n")[2]

    with before_ours(ours, tmp_path, f'coap-tcp = ["127.0.0.1:{port}"]') as served:
        where = f"coap+tcp://127.0.0.1:{port}/up"
        assert asks("get", f"{where}/hello") == b"Hello from Millpond.\n"
        asks("put", f"{where}/kept")
        assert (served / "kept").read_bytes() == GoCoap.body
    at = free_port()
    with subprocess.Popen([*command, "serve", str(at)], stdout=subprocess.DEVNULL) as server:
        try:
            wait_for_connection(at)
            with before(ours, tmp_path, f"coap+tcp://127.0.0.1:{at}") as through:
                assert ours.ask("put", f"{through}/store", payload=GoCoap.body).code in ("2.01", "2.04")
                assert ours.ask("get", f"{through}/store").payload == GoCoap.body
        finally:
            server.kill()
