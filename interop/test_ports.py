"""What the ports make of other implementations: copies that have names, waits that adapt."""

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from relay import CLIENT_TO_SERVER, Relay
from sides import ROOT, CalmAiocoap, Missing, Ours


@pytest.fixture
def calm_aiocoap() -> CalmAiocoap:
    """The port on aiocoap; the test is skipped without aiocoap."""
    peer = CalmAiocoap()
    try:
        peer.command()
    except Missing as missing:
        pytest.skip(str(missing))
    return peer


def test_copies_have_one_message_id_and_tokens_that_end_with_their_numbers(
    ours: Ours, calm_aiocoap: CalmAiocoap, tmp_path: Path
) -> None:
    with ours.serving(tmp_path) as port, Relay(port, lambda way, n: way == CLIENT_TO_SERVER and n < 2) as relay:
        assert calm_aiocoap.ask("get", f"coap://127.0.0.1:{relay.port}/hello").code == "2.05"
        up = [passed for passed in relay.passed if passed.way == CLIENT_TO_SERVER]
        assert len(up) >= 3
        assert len({passed.message_id for passed in up}) == 1
        assert [passed.token[-1] for passed in up] == list(range(len(up)))
        assert len({passed.token[:-1] for passed in up}) == 1


@pytest.fixture(scope="session")
def calm_libcoap(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The client of the port to libcoap; its tests are skipped without libcoap's headers."""
    found = subprocess.run(["pkg-config", "--cflags", "--libs", "libcoap-3-notls"], capture_output=True, check=False)
    if found.returncode != 0 or shutil.which("cc") is None:
        pytest.skip("no headers of libcoap 3 or no C compiler (Debian: libcoap3-dev)")
    program = tmp_path_factory.mktemp("libcoap") / "client"
    port = ROOT / "ports" / "libcoap"
    sources = [str(file) for file in (port / "client.c", port / "calm_libcoap.c", ROOT / "c" / "calm.c")]
    strict = ["-std=c99", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Wconversion", "-Werror"]
    flags = shlex.split(found.stdout.decode())
    subprocess.run(["cc", *strict, *sources, "-o", str(program), *flags], check=True)
    return program


def waits(client: Path, *arguments: str) -> list[int]:
    """The first waits of its requests, which are all answered; milliseconds."""
    done = subprocess.run([str(client), *arguments], capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("waits")]


def test_libcoap_waits_as_calm_says(ours: Ours, calm_libcoap: Path, tmp_path: Path) -> None:
    """After round trips of the loopback its waits are the shortest that libcoap takes. The last request is lost."""
    with ours.serving(tmp_path) as port, Relay(port, lambda way, n: (way, n) == (CLIENT_TO_SERVER, 5)) as relay:
        first, *later = waits(calm_libcoap, "6", str(relay.port), "hello")
        assert 2_000 <= first <= 3_000
        assert later[1:] == [1_000] * 4
        assert len([passed for passed in relay.passed if passed.way == CLIENT_TO_SERVER]) >= 7


def test_libcoap_under_the_rfcs_timer_does_not_adapt(ours: Ours, calm_libcoap: Path, tmp_path: Path) -> None:
    with ours.serving(tmp_path) as port:
        assert all(2_000 <= wait <= 3_000 for wait in waits(calm_libcoap, "-r", "6", str(port), "hello"))


def test_libcoap_takes_separate_responses(ours: Ours, calm_libcoap: Path, tmp_path: Path) -> None:
    with ours.serving(tmp_path) as port:
        assert len(waits(calm_libcoap, "2", str(port), "slow")) == 2
