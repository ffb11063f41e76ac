"""What the ports make of other implementations: copies that have names, waits that adapt."""

import subprocess
from pathlib import Path

import pytest

import fleets
from millpond.errors import LABORATORY
from relay import CLIENT_TO_SERVER, Relay
from sides import CalmAiocoap, Missing, Ours, client_on_libcoap


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


def test_the_adapter_of_aiocoap_loads_nothing_of_the_laboratory(calm_aiocoap: CalmAiocoap) -> None:
    *python, _peer = calm_aiocoap.command()
    code = "import sys, millpond.aiocoap; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([*python, "-c", code], capture_output=True, check=True, text=True)
    assert not LABORATORY & set(done.stdout.split())
    assert "aiocoap" in done.stdout.split()


@pytest.fixture(scope="session")
def calm_libcoap(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The client of the port to libcoap; its tests are skipped without libcoap's headers."""
    try:
        return client_on_libcoap(tmp_path_factory.mktemp("libcoap"))
    except Missing as missing:
        pytest.skip(str(missing))


def waits(client: Path, *arguments: str) -> list[int]:
    """The first waits of its requests, which are all answered; milliseconds."""
    *first, port, path = arguments
    done = subprocess.run([str(client), *first, "127.0.0.1", port, path], capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("waits")]


def test_libcoap_waits_as_calm_says(ours: Ours, calm_libcoap: Path, tmp_path: Path) -> None:
    """After round trips of the loopback its waits are the shortest that libcoap takes. The last request is lost."""
    with ours.serving(tmp_path) as port, Relay(port, lambda way, n: (way, n) == (CLIENT_TO_SERVER, 5)) as relay:
        first, *later = waits(calm_libcoap, "6", str(relay.port), "hello")
        assert 2_000 <= first <= 3_000
        assert min(later) == 1_000
        assert len([passed for passed in relay.passed if passed.way == CLIENT_TO_SERVER]) >= 7


def test_libcoap_under_the_rfcs_timer_does_not_adapt(ours: Ours, calm_libcoap: Path, tmp_path: Path) -> None:
    with ours.serving(tmp_path) as port:
        assert all(2_000 <= wait <= 3_000 for wait in waits(calm_libcoap, "-r", "6", str(port), "hello"))


def test_libcoap_takes_separate_responses(ours: Ours, calm_libcoap: Path, tmp_path: Path) -> None:
    with ours.serving(tmp_path) as port:
        assert len(waits(calm_libcoap, "2", str(port), "slow")) == 2


@pytest.mark.usefixtures("hosts")  # emulating wants namespaces, too
@pytest.mark.parametrize("peer", fleets.ADOPTERS)
def test_a_fleet_is_served_and_its_retransmissions_are_judged(peer: str, tmp_path: Path) -> None:
    """In small what `fleets.py` measures: three devices, two requests each."""
    fleet = fleets.Fleet(peer, "14100 B", "all")
    try:
        fleets.run(fleet, devices=3, count=2, payload=fleets.PAYLOAD, seed=1, into=tmp_path)
    except Missing as missing:
        pytest.skip(str(missing))
    told = fleets.told(fleet, tmp_path)
    assert told is not None
    assert (told.requests, told.failed, len(told.seconds)) == (6, 0, 3)
    assert 0 <= told.unneeded <= told.retransmissions + told.requests
