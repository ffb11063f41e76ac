"""Every peer's client against our server at another address than the loopback, which nobody trusts by default."""

import contextlib
import re
import subprocess
import sys
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


def requests(trace: bytes) -> int:
    """How many GETs a trace has, without copies."""
    return len(set(re.findall(r" -> \w+ GET id (\d+)", trace.decode())))


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
    assert requests(done.stderr) == 6, done.stderr


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


NETWORKS = {"trusted": ["192.0.2.0/24"], "not": ["192.0.2.9", "198.51.100.0/24"]}
"""Networks that a gateway trusts: the client's, and others."""
REGISTERING = """
import socket, sys
device = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
device.connect((sys.argv[1], 5683))
# POST /rd?ep=a, with a base of its own address and nothing else
device.send(b"\\x40\\x02\\0\\x01\\xb2rd\\x44ep=a")
# A ping may come before.
while (answer := device.recv(1500))[1] == 0:
    pass
# The option Echo has the number 252, written as 13 and what is beyond it.
print(f"{answer[1] >> 5}.{answer[1] & 31:02}", answer[4] >> 4 == 13 and answer[5] == 252 - 13)
"""


@contextlib.contextmanager
def gateway(ours: Ours, host: Host, folder: Path, networks: list[str]) -> Iterator[None]:
    """Our gateway on that host, with a directory, before our server on the same host."""
    file = folder / "gateway.toml"
    rule = '[directory]\n[[rule]]\npath = "/up/{*rest}"\nto = "coap://127.0.0.1:5700/{*rest}"\n'
    trust = ", ".join(f'"{network}"' for network in networks)
    file.write_text(f'[listen]\ncoap = ["{host.address}:5683"]\ntrust = [{trust}]\n{rule}', encoding="utf-8")
    (folder / "body").write_bytes(BODY)
    upstream = [*host.within, ours.program, "serve", "--quiet", str(folder), "--bind", "127.0.0.1:5700"]
    running = [*host.within, ours.program, "gateway", str(file)]
    with subprocess.Popen(upstream, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            assert "listening" in server.stdout.readline(), "our server does not start"
            with subprocess.Popen(running, stdout=subprocess.PIPE, text=True) as forwarding:
                try:
                    assert forwarding.stdout is not None
                    assert "listening" in forwarding.stdout.readline(), "our gateway does not start"
                    yield
                finally:
                    forwarding.kill()
        finally:
            server.kill()


@pytest.mark.parametrize("client_is", NETWORKS)
def test_a_gateway_answers_whom_it_trusts_at_length_and_lets_it_register_at_once(
    ours: Ours, hosts: tuple[Host, Host], tmp_path: Path, client_is: str
) -> None:
    server, client = hosts
    asking = [*client.within, ours.program, "get", "--trace", f"coap://{server.address}/up/body"]
    registering = [*client.within, sys.executable, "-c", REGISTERING, server.address]
    with gateway(ours, server, tmp_path, NETWORKS[client_is]):
        registered = subprocess.run(registering, capture_output=True, check=True, text=True).stdout.split()
        done = subprocess.run(asking, capture_output=True, check=True)
    assert done.stdout == BODY
    # Others get a small block with Echo first, and 4.01 with Echo.
    told = (requests(done.stderr), registered)
    assert told == ((5, ["2.01", "False"]) if client_is == "trusted" else (6, ["4.01", "True"]))
