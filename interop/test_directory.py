"""aiocoap's devices, registered with our resource directory (RFC 9176)."""

import contextlib
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sides import HERE, Aiocoap, Missing, Ours, free_port


@contextlib.contextmanager
def directory(ours: Ours, port: int, file: Path) -> Iterator[str]:
    """Our gateway with a directory."""
    with ours.gateway(file.parent, f'[directory]\nfile = "{file.name}"\n', coap=port):
        yield f"coap://127.0.0.1:{port}"


@contextlib.contextmanager
def registrant(port: int, at: str, name: str, how: str) -> Iterator[subprocess.Popen[str]]:
    """A device of aiocoap that is registered, until the block ends. One that was killed meanwhile removes nothing."""
    try:
        python, _ = Aiocoap().command()
    except Missing as missing:
        pytest.skip(str(missing))
    arguments = [python, str(HERE / "peers" / "aiocoap_registrant.py"), str(port), at, name, how]
    with subprocess.Popen(
        arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=sys.stderr, text=True
    ) as device:
        assert device.stdout is not None
        assert device.stdin is not None
        try:
            assert device.stdout.readline().strip() == "registered"
            yield device
            if device.poll() is None:
                device.stdin.close()
                assert device.wait() == 0
        finally:
            device.kill()


def look_up(ours: Ours, at: str, query: str) -> list[dict[str, str]]:
    """The links that a look-up finds."""
    done = ours.run("discover", "--json", f"{at}/rd-lookup/{query}")
    assert done.returncode == 0, done.stderr.decode()
    links: list[dict[str, str]] = json.loads(done.stdout)["links"]
    return links


def test_a_device_registers_refreshes_outlives_a_restart_and_is_removed(ours: Ours, tmp_path: Path) -> None:
    port, home, file = free_port(), free_port(), tmp_path / "directory.redb"
    with directory(ours, home, file) as at:
        began = time.monotonic()
        with registrant(port, at, "node1", "20"):
            (endpoint,) = look_up(ours, at, "ep?ep=node1")
            assert re.fullmatch(r"/rd/\d+", endpoint["href"])
            assert endpoint["base"] == f"coap://127.0.0.1:{port}"
            (resource,) = look_up(ours, at, "res?rt=reading")
            assert ours.ask("get", resource["href"]).payload == b"21.5"
            time.sleep(max(0.0, began + 21 - time.monotonic()))
            assert look_up(ours, at, "ep?ep=node1") == [endpoint], "it refreshes every fifteen seconds"
        assert look_up(ours, at, "ep") == []
        with registrant(port, at, "node2", "90000") as device:
            (endpoint,) = look_up(ours, at, "ep")
            device.kill()
            device.wait()
    with directory(ours, home, file) as at:
        assert look_up(ours, at, "ep") == [endpoint], "after a restart"


def test_a_device_registers_simply(ours: Ours, tmp_path: Path) -> None:
    port = free_port()
    with directory(ours, free_port(), tmp_path / "directory.redb") as at, registrant(port, at, "simple", "simple"):
        (resource,) = look_up(ours, at, "res?ep=simple&rt=reading")
        assert ours.ask("get", resource["href"]).payload == b"21.5"
