"""coaps: our client and server with those of libcoap under DTLS, by pre-shared keys and by certificates."""

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from sides import Ours, free_port, wait_for_pong

IDENTITY, KEY = "sensor", "secretPSK"
LARGE = bytes(65 + i % 26 for i in range(20_000))


@dataclass(frozen=True)
class Credentials:
    """A pre-shared key, an authority, and a certificate for 127.0.0.1."""

    shared: Path
    authority: Path
    certificate: Path
    key: Path


@pytest.fixture(scope="session")
def credentials(tmp_path_factory: pytest.TempPathFactory) -> Credentials:
    """Made once by OpenSSL, as docs/security.md has it."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the keys, and is not installed")
    place = tmp_path_factory.mktemp("credentials")
    made = Credentials(place / "psk", place / "ca.pem", place / "server.pem", place / "server.key")
    made.shared.write_text(f"{IDENTITY}:{KEY}\n")
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-days", "2"]
    authority = ["-subj", "/CN=our authority", "-keyout", str(place / "ca.key"), "-out", str(made.authority)]
    subprocess.run([*make, *authority], check=True, capture_output=True)
    server = ["-subj", "/CN=our server", "-keyout", str(made.key), "-out", str(made.certificate)]
    server += ["-CA", str(made.authority), "-CAkey", str(place / "ca.key")]
    server += ["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"]
    subprocess.run([*make, *server], check=True, capture_output=True)
    return made


@pytest.fixture(params=["openssl", "gnutls"])
def build(request: pytest.FixtureRequest) -> str:
    """Which library of TLS a build of libcoap has."""
    name: str = request.param
    if shutil.which(f"coap-client-{name}") is None or shutil.which(f"coap-server-{name}") is None:
        pytest.skip(f"libcoap with {name} is not installed (Debian: libcoap3-bin)")
    return name


@contextlib.contextmanager
def libcoap_serving(build: str, credentials: Credentials) -> Iterator[int]:
    """Its server, with both kinds of credentials; DTLS is at the port after the one that it is given."""
    port = free_port()
    arguments = ["-A", "127.0.0.1", "-p", str(port), "-d", "10", "-k", KEY, "-n"]
    arguments += ["-c", str(credentials.certificate), "-j", str(credentials.key)]
    with subprocess.Popen(
        [f"coap-server-{build}", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        try:
            wait_for_pong(port)
            yield port + 1
        finally:
            server.kill()


@contextlib.contextmanager
def our_serving(ours: Ours, directory: Path, credentials: Credentials) -> Iterator[int]:
    """Our server, with both kinds of credentials. A client that shows no certificate of its own may write as well."""
    port, secure = free_port(), free_port()
    rights = credentials.shared.with_name("rights.toml")
    rights.write_text('[[rule]]\nnetwork = "127.0.0.0/8"\npaths = { "/**" = ["*"] }\n')
    arguments = [ours.program, "serve", str(directory), "--bind", "127.0.0.1", "--port", str(port), "--write"]
    arguments += ["--also-plain", "--secure-port", str(secure), "--psk-file", str(credentials.shared)]
    arguments += ["--rights", str(rights)]
    arguments += ["--cert", str(credentials.certificate), "--key", str(credentials.key)]
    with subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=sys.stderr) as server:
        try:
            wait_for_pong(port)
            yield secure
        finally:
            server.kill()


def ours_asks(ours: Ours, credentials: Credentials, kind: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """One request of our client, by a key or a certificate."""
    flags = {
        "key": ["--psk-file", str(credentials.shared)],
        "certificate": ["--ca", str(credentials.authority)],
        "no authority": [],
    }
    method, *rest = arguments
    return subprocess.run([ours.program, method, *flags[kind], *rest], capture_output=True, check=False)


def libcoap_asks(build: str, credentials: Credentials, kind: str, *arguments: str) -> bytes:
    """What its client was told, by a key or a certificate."""
    flags = {"key": ["-u", IDENTITY, "-k", KEY], "certificate": ["-C", str(credentials.authority)]}
    program = [f"coap-client-{build}", "-B", "30", *flags[kind]]
    for _ in range(3):
        done = subprocess.run([*program, *arguments], capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        # 4.3.1 takes no body whose first block comes in a separate response, which a slow server makes of it.
        if "-o" not in arguments or Path(arguments[arguments.index("-o") + 1]).exists():
            break
    return done.stdout


@pytest.mark.parametrize("kind", ["key", "certificate"])
def test_our_client_asks_under_dtls(ours: Ours, build: str, credentials: Credentials, kind: str) -> None:
    with libcoap_serving(build, credentials) as port:
        there = f"coaps://127.0.0.1:{port}"
        done = ours_asks(ours, credentials, kind, "get", f"{there}/.well-known/core")
        assert (done.returncode, b"</time>" in done.stdout) == (0, True), done.stderr
        done = ours_asks(ours, credentials, kind, "put", f"{there}/example_data", LARGE.decode())
        assert done.returncode == 0, done.stderr
        done = ours_asks(ours, credentials, kind, "get", f"{there}/example_data")
        assert (done.returncode, done.stdout) == (0, LARGE), done.stderr


def test_our_client_refuses_a_server_of_an_unknown_issuer(ours: Ours, build: str, credentials: Credentials) -> None:
    with libcoap_serving(build, credentials) as port:
        done = ours_asks(ours, credentials, "no authority", "get", f"coaps://127.0.0.1:{port}/")
        assert done.returncode == 8
        assert b"issuer that is not trusted" in done.stderr
        assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("kind", ["key", "certificate"])
def test_our_server_answers_under_dtls(
    ours: Ours, build: str, credentials: Credentials, kind: str, tmp_path: Path
) -> None:
    (tmp_path / "large.txt").write_bytes(LARGE)
    with our_serving(ours, tmp_path, credentials) as port:
        there = f"coaps://127.0.0.1:{port}"
        assert libcoap_asks(build, credentials, kind, f"{there}/hello").startswith(b"Hello")
        body = tmp_path / "body"
        libcoap_asks(build, credentials, kind, "-o", str(body), f"{there}/large.txt")
        assert body.read_bytes() == LARGE
        sent = tmp_path / "sent"
        sent.write_bytes(LARGE)
        libcoap_asks(build, credentials, kind, "-m", "put", "-f", str(sent), f"{there}/new.txt")
        assert (tmp_path / "new.txt").read_bytes() == LARGE
        told = libcoap_asks(build, credentials, kind, "-s", "8", f"{there}/count").split()
        assert len(told) >= 3, told
