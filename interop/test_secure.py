"""coaps+tcp: our client and server with those of the peers that speak TLS, by an authority of our own."""

import contextlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sides import HERE, TOOLS, WORKER, Answer, Missing, Ours, free_port

LARGE = bytes(65 + i % 26 for i in range(20_000))
OWN_ADDRESS = f"127.0.0.{2 + WORKER}"
"""Of a worker of pytest alone, whose ports are all its own."""


class Keys:
    """An authority, and a certificate for localhost, 127.0.0.1 and this worker's own address."""

    def __init__(self, directory: Path) -> None:
        self.authority = directory / "ca.pem"
        self.certificate = directory / "server.pem"
        self.key = directory / "server.key"
        by_authority = ["-CA", str(self.authority), "-CAkey", str(directory / "ca.key")]
        names = f"subjectAltName=DNS:localhost,IP:127.0.0.1,IP:{OWN_ADDRESS}"
        self.make(self.authority, directory / "ca.key", f"authority of {directory.name}")
        extensions = ["-addext", names, "-addext", "basicConstraints=critical,CA:FALSE"]
        self.make(self.certificate, self.key, "localhost", *by_authority, *extensions)

    @staticmethod
    def make(certificate: Path, key: Path, name: str, *more: str) -> None:
        """As docs/security.md has it."""
        common = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc"]
        files = ["-days", "2", "-subj", f"/CN={name}", "-keyout", str(key), "-out", str(certificate)]
        subprocess.run([*common, *files, *more], check=True, capture_output=True)


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    """Made once by OpenSSL."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the keys, and is not installed")
    return Keys(tmp_path_factory.mktemp("keys"))


class SecurePeer:
    """A program with `serve PORT CERTIFICATE KEY` and `METHOD URI AUTHORITY`, where put carries its body."""

    name = ""
    # What goes up and down.
    body = LARGE
    answers_pings = True

    def command(self) -> list[str]:
        """The program and what stands before its verb."""
        raise NotImplementedError

    @contextlib.contextmanager
    def serving(self, keys: Keys) -> Iterator[tuple[str, int]]:
        """Its server on an address and a port of the loopback, while the block runs."""
        port = free_port()
        arguments = [*self.command(), "serve", str(port), str(keys.certificate), str(keys.key)]
        with subprocess.Popen(arguments, stdout=subprocess.DEVNULL) as server:
            try:
                wait_for_connection(port)
                yield "127.0.0.1", port
            finally:
                server.kill()

    def ask(self, method: str, uri: str, keys: Keys) -> Answer:
        """One request of its client."""
        done = subprocess.run([*self.command(), method, uri, str(keys.authority)], capture_output=True, check=False)
        assert done.returncode == 0, f"{self.name}: {done.stderr.decode(errors='replace')}"
        code, _, body = done.stdout.partition(b"\n")
        return Answer(code.decode(), body)


class Aiocoap(SecurePeer):
    """aiocoap over the TLS of Python."""

    name = "aiocoap"

    def command(self) -> list[str]:
        python = TOOLS / "venv" / "bin" / "python"
        if not python.exists():
            raise Missing("aiocoap is not installed (make interop)")
        return [str(python), str(HERE / "peers" / "aiocoap_secure.py")]


class GoCoap(SecurePeer):
    """go-coap over the TLS of Go."""

    name = "go-coap"
    # Over TCP it takes messages of 1152 bytes and no blocks, unless set up otherwise.
    body = LARGE[:1_000]

    def command(self) -> list[str]:
        program = TOOLS / "go" / "secure-peer"
        if not program.exists():
            raise Missing("go-coap is not installed (make interop, with Go)")
        return [str(program)]


class Libcoap(SecurePeer):
    """libcoap, built with one of the libraries for TLS that it can be built with."""

    # 4.3.1 is silent over plain TCP as well.
    answers_pings = False

    def __init__(self, build: str) -> None:
        self.build = build
        self.name = f"libcoap-{build}"
        # 4.3.1 with GnuTLS cannot send what is longer than a record of TLS.
        self.body = LARGE[:8_000] if build == "gnutls" else LARGE

    def program(self, side: str) -> str:
        """Its client or server."""
        found = shutil.which(f"coap-{side}-{self.build}")
        if found is None:
            raise Missing(f"{self.name} is not installed (Debian: libcoap3-bin)")
        return found

    def command(self) -> list[str]:
        return [self.program("client")]

    @contextlib.contextmanager
    def serving(self, keys: Keys) -> Iterator[tuple[str, int]]:
        # With GnuTLS 4.3.1 knows no ALPN, so that it must have the port of the scheme (RFC 8323 §8.2).
        address, port = (OWN_ADDRESS, 5684) if self.build == "gnutls" else ("127.0.0.1", second_of_two())
        # It listens for TLS on the next port.
        flags = ["-A", address, "-p", str(port - 1), "-d", "10", "-n", "-v", "0"]
        files = ["-c", str(keys.certificate), "-j", str(keys.key), "-C", str(keys.authority)]
        with subprocess.Popen(
            [self.program("server"), *flags, *files], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as server:
            try:
                wait_for_connection(port, address)
                yield address, port
            finally:
                server.kill()

    def ask(self, method: str, uri: str, keys: Keys) -> Answer:
        with tempfile.TemporaryDirectory() as directory:
            body = Path(directory) / "body"
            arguments = [self.program("client"), "-B", "30", "-m", method, "-o", str(body), "-R", str(keys.authority)]
            if method == "put":
                arguments += ["-f", "-"]
            done = subprocess.run(
                [*arguments, uri], input=self.body if method == "put" else None, capture_output=True, check=False
            )
            said = (done.stdout + done.stderr).decode(errors="replace")
            assert done.returncode == 0, f"{self.name}: {said}"
            assert method == "put" or body.exists(), f"{self.name}: {said}"
            # Its client prints an error's code, and nothing for a success.
            return Answer("2.xx", body.read_bytes() if body.exists() else b"")


SECURE_PEERS: tuple[SecurePeer, ...] = (Libcoap("openssl"), Libcoap("gnutls"), Aiocoap(), GoCoap())


@pytest.fixture(params=SECURE_PEERS, ids=lambda peer: peer.name)
def secure_peer(request: pytest.FixtureRequest) -> SecurePeer:
    """One of the other implementations; the test is skipped where it is not installed."""
    peer: SecurePeer = request.param
    try:
        peer.command()
    except Missing as missing:
        pytest.skip(str(missing))
    return peer


def second_of_two() -> int:
    """A port of the loopback that nobody holds, nor the one before it, over UDP and TCP."""
    while True:
        port = free_port()
        with contextlib.suppress(OSError), contextlib.ExitStack() as held:
            for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
                for one in (port - 1, port):
                    held.enter_context(socket.socket(socket.AF_INET, kind)).bind(("127.0.0.1", one))
            return port


def wait_for_connection(port: int, address: str = "127.0.0.1") -> None:
    """Connects until somebody accepts."""
    for _ in range(600):
        with socket.socket() as probe:
            if probe.connect_ex((address, port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"no server accepts on port {port}")


@contextlib.contextmanager
def our_server(ours: Ours, keys: Keys, directory: Path) -> Iterator[int]:
    """Our server with its test resources, over TLS."""
    port = free_port()
    flags = ["--bind", "127.0.0.1", "--secure-port", str(port), "--write", "--quiet"]
    files = ["--cert", str(keys.certificate), "--key", str(keys.key)]
    with subprocess.Popen(
        [ours.program, "serve", str(directory), *flags, *files], stdout=subprocess.DEVNULL, stderr=sys.stderr
    ) as server:
        try:
            wait_for_connection(port)
            yield port
        finally:
            server.kill()


def test_our_client_asks_over_tls(ours: Ours, secure_peer: SecurePeer, keys: Keys, tmp_path: Path) -> None:
    trust = ("--ca", str(keys.authority))
    with secure_peer.serving(keys) as (address, port):
        where = f"coaps+tcp://{address}:{port}/store"
        assert ours.ask("put", where, *trust, payload=secure_peer.body).code in ("2.01", "2.04")
        assert ours.ask("get", where, *trust).payload == secure_peer.body
        if secure_peer.answers_pings:
            assert ours.run("ping", *trust, where).returncode == 0
        # Whom it does not trust it refuses.
        others = Keys(tmp_path)
        done = ours.run("get", "--ca", str(others.authority), where)
        assert done.returncode == 8
        refusal = f"millpond: no secure session with {address}:{port}: the server's certificate"
        assert done.stderr.startswith(refusal.encode()), done.stderr
        assert done.stderr.count(b"\n") == 1


def test_our_server_answers_over_tls(ours: Ours, secure_peer: SecurePeer, keys: Keys, tmp_path: Path) -> None:
    with our_server(ours, keys, tmp_path) as port:
        where = f"coaps+tcp://127.0.0.1:{port}"
        assert secure_peer.ask("get", f"{where}/hello", keys).payload == b"Hello from Millpond.\n"
        assert secure_peer.ask("put", f"{where}/kept", keys).code in ("2.01", "2.04", "2.xx")
        assert (tmp_path / "kept").read_bytes() == secure_peer.body
        assert secure_peer.ask("get", f"{where}/kept", keys).payload == secure_peer.body
