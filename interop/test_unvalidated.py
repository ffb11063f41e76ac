"""Every peer's client against our server at another address than the loopback, which nobody trusts by default."""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from links import Host
from resources import LARGE
from sides import Libcoap, Missing, Ours, Peer

BODY = LARGE[:5_000]


@contextlib.contextmanager
def serving(ours: Ours, host: Host, directory: Path, *flags: str) -> Iterator[Path]:
    """Our server on that host with a file of 5 kB, and where its log is."""
    (directory / "body").write_bytes(BODY)
    log = directory.parent / "log"
    arguments = [*host.within, ours.program, "serve", str(directory), "--bind", host.address, *flags]
    with log.open("wb") as err, subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=err, text=True) as server:
        try:
            assert server.stdout is not None
            assert "listening" in server.stdout.readline(), "our server does not start"
            yield log
        finally:
            server.kill()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    served = tmp_path / "served"
    served.mkdir()
    return served


def test_every_client_gets_five_kilobytes(ours: Ours, peer: Peer, hosts: tuple[Host, Host], directory: Path) -> None:
    server, client = hosts
    with serving(ours, server, directory) as log:
        answer = peer.ask("get", f"coap://{server.address}:5683/body", within=client.within)
    assert answer.payload == BODY
    told = log.read_text()
    assert "the address is not validated: Echo asked; blocks of 64 bytes" in told, told


def test_our_own_client_goes_on_with_large_blocks(ours: Ours, hosts: tuple[Host, Host], directory: Path) -> None:
    server, client = hosts
    arguments = [*client.within, ours.program, "get", "--trace", f"coap://{server.address}:5683/body"]
    with serving(ours, server, directory):
        done = subprocess.run(arguments, capture_output=True, check=True)
    assert done.stdout == BODY
    # A small block, and five large ones.
    assert sum(" -> " in line and "GET" in line for line in done.stderr.decode().splitlines()) == 6, done.stderr


def test_a_trusted_network_gets_large_blocks_at_once(
    ours: Ours, peer: Peer, hosts: tuple[Host, Host], directory: Path
) -> None:
    server, client = hosts
    with serving(ours, server, directory, "--trust", "192.0.2.0/24") as log:
        assert peer.ask("get", f"coap://{server.address}:5683/body", within=client.within).payload == BODY
    assert "not validated" not in log.read_text()


def test_libcoap_sends_small_blocks_non_confirmably_as_fast_as_they_are_answered(
    ours: Ours, hosts: tuple[Host, Host], directory: Path
) -> None:
    try:
        program = Libcoap.program("client")
    except Missing as missing:
        pytest.skip(str(missing))
    server, client = hosts
    # 313 blocks: with answers 3 s apart it gives up after a minute.
    arguments = [*client.within, program, "-N", "-b", "64", "-B", "60", "-m", "put", "-f", "-"]
    with serving(ours, server, directory, "--write"):
        subprocess.run([*arguments, f"coap://{server.address}:5683/up"], input=LARGE, capture_output=True, check=True)
    assert (directory / "up").read_bytes() == LARGE
