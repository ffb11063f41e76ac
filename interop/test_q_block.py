"""Bodies in bursts (RFC 9177), with libcoap's programs built with Q-Block (`libcoap-from-source`)."""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sides import HERE, Ours, free_port, wait_for_pong

BODY = b"".join(f"{number:07d}\n".encode() for number in range(5_000))
"""40,000 bytes: 40 blocks of 1024, four sets."""

MODE = str(1 + 2 + 4)
"""COAP_BLOCK_USE_LIBCOAP, COAP_BLOCK_SINGLE_BODY and COAP_BLOCK_TRY_Q_BLOCK."""


@pytest.fixture(scope="session")
def programs() -> Path:
    """Where libcoap's programs lie."""
    built = subprocess.run([str(HERE / "libcoap-from-source")], capture_output=True, check=False, text=True)
    if built.returncode:
        pytest.skip(built.stderr.strip())
    return Path(built.stdout.strip())


@contextlib.contextmanager
def libcoap_serving(programs: Path) -> Iterator[int]:
    """Its server, which makes resources by PUT."""
    port = free_port()
    arguments = [str(programs / "coap-server"), "-A", "127.0.0.1", "-p", str(port), "-d", "10", "-L", MODE]
    with subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            wait_for_pong(port)
            yield port
        finally:
            server.kill()


@contextlib.contextmanager
def serving(ours: Ours, directory: Path, *flags: str) -> Iterator[int]:
    """Our server."""
    port = free_port()
    arguments = [ours.program, "serve", str(directory), "--bind", "127.0.0.1", "--port", str(port), "--write", *flags]
    with subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            wait_for_pong(port)
            yield port
        finally:
            server.kill()


def asked(programs: Path, *arguments: str) -> str:
    """What its client says of one request, with a line for each message."""
    command = [str(programs / "coap-client"), "-L", MODE, "-v", "7", "-B", "60", *arguments]
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_our_client_sends_and_fetches_bursts(programs: Path, ours: Ours) -> None:
    """Both ways, and nothing goes block by block."""
    with libcoap_serving(programs) as port:
        where = f"coap://127.0.0.1:{port}/body"
        put = ours.run("put", "--q-block", "--trace", where, "-", payload=BODY)
        assert put.returncode == 0, put.stderr.decode()
        got = ours.run("get", "--q-block", "--raw", "--trace", where)
        assert got.returncode == 0, got.stderr.decode()
        assert got.stdout == BODY


def test_our_client_asks_a_server_without_q_block_block_by_block(programs: Path, ours: Ours) -> None:
    """Their server knows the options only where it is told to use them."""
    port = free_port()
    arguments = [str(programs / "coap-server"), "-A", "127.0.0.1", "-p", str(port), "-d", "10", "-L", "3"]
    with subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            wait_for_pong(port)
            where = f"coap://127.0.0.1:{port}/body"
            assert ours.run("put", "--q-block", where, "-", payload=BODY).returncode == 0
            assert ours.run("get", "--q-block", "--raw", where).stdout == BODY
        finally:
            server.kill()


@pytest.mark.parametrize("flags", [("--q-block",), ()], ids=["in bursts", "block by block"])
def test_their_client_sends_and_fetches(programs: Path, ours: Ours, tmp_path: Path, flags: tuple[str, ...]) -> None:
    """Their client asks ours for bursts, and goes on as RFC 7959 has it where ours does not take them."""
    (tmp_path / "down").write_bytes(BODY)
    (tmp_path / "body").write_bytes(BODY)
    with serving(ours, tmp_path, *flags) as port:
        got = tmp_path / "got"
        # It uses Q-Block2 where it is told the size of blocks.
        said = asked(programs, "-b", "1024", "-m", "get", "-o", str(got), f"coap://127.0.0.1:{port}/down")
        assert got.read_bytes() == BODY
        assert ("Q-Block2:9/" in said) == bool(flags)
        asked(programs, "-m", "put", "-f", str(tmp_path / "body"), f"coap://127.0.0.1:{port}/up")
        assert (tmp_path / "up").read_bytes() == BODY
