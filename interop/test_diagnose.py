"""What `millpond diagnose` says of every peer's client behind an emulated path, beside what became of each packet."""

import csv
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from millpond.diagnose import truth
from millpond.diagnose.ends import ENDS, End
from sides import Ours, Peer

REQUESTS, DEVICES = 8, 4
SERVER = "10.77.0.2"
ASKS_AT_ONCE = {"aiocoap", "go-coap"}
"""Clients whose next request leaves when an answer came, from the same port: a server sees which one it was."""
FIRST_TIMERS = {"aiocoap-calm": (0.2, 10.0), "go-coap": (2.0, 4.5)}
"""Seconds, where they are not RFC 7252's: calm measures, and go-coap looks at its timers every now and then."""


@dataclass(frozen=True)
class Way:
    """A path, and what retransmissions behind it can be."""

    delay: str
    loss: float
    words: frozenset[str]


PATHS = {
    # all five transmissions of a request are lost once in 100,000 times: a client that gives up fails the test
    # the round trip is longer than any first timer, and shorter than two
    "bloat": Way("1700 ms", 0.0, frozenset({"spurious"})),
    "loss": Way("100 ms", 0.05, frozenset({"needed"})),
    "both": Way("1700 ms", 0.05, frozenset({"spurious", "needed"})),
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    (folder / "r").write_bytes(bytes(55))
    return folder


@pytest.mark.usefixtures("hosts")  # emulating wants namespaces, too
@pytest.mark.parametrize("name", PATHS)
def test_each_retransmission_is_told_as_what_it_was(
    ours: Ours, peer: Peer, served: Path, tmp_path: Path, name: str
) -> None:
    path, capture = PATHS[name], tmp_path / "capture.pcapng"
    lost = f'{{ kind = "bernoulli", rate = {path.loss} }}'
    link = f'{{ rate = "60 kbit/s", delay = "{path.delay}", queue = "100 kB", loss = {lost} }}'
    (tmp_path / "path.toml").write_text(f"[path]\nuplink = {link}\ndownlink = {link}\n")
    server = f"{ours.program} serve --quiet --only-files --bind {SERVER} {served}"
    asking = peer.asking_often(REQUESTS)(f"coap://{SERVER}:5683/r")
    emulate = ["emulate", "--quiet", str(tmp_path / "path.toml"), "--devices", str(DEVICES), "--capture", str(capture)]
    # The capture has the times at which packets left: what a busy machine made late is judged as it was.
    done = ours.run(*emulate, "--lateness", "1h", "--server", server, "--", *asking)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    for end in ENDS:
        true = truth.of(capture.read_bytes(), {}).labels(end)
        assert set(true.values()) <= path.words
        told = diagnosed(ours, peer, capture, end, tmp_path / f"{end}.csv")
        wrong = Counter((said, label) for seen, label in true.items() if (said := told[seen]) not in ("unknown", label))
        if end == "devices":
            assert true, "nothing was sent again"
            assert not wrong
        elif peer.name in ASKS_AT_ONCE:
            # measured in virtual time on 400 such captures: never more than three
            assert wrong.total() <= 3 + 0.2 * len(true), wrong


def diagnosed(ours: Ours, peer: Peer, capture: Path, end: End, rows: Path) -> dict[tuple[str, int, int], str]:
    """What is told of each transmission that an end saw; the timers that are told at the devices are theirs."""
    done = ours.run("diagnose", "--json", "--side", end, "--exchanges", str(rows), str(capture))
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    timers = json.loads(done.stdout)["timers"]
    wait, factor = timers["ack_timeout_s"]["value"], timers["random_factor"]["value"]
    if end == "devices" and wait is not None:
        shortest, longest = FIRST_TIMERS.get(peer.name, (2.0, 3.0))
        assert 0.98 * shortest <= wait <= wait * factor <= 1.02 * longest
    with rows.open(newline="") as lines:
        return {
            (row["peer"], int(row["message_id"]), round(float(row["time_s"]) * 1e6)): row["verdict"]
            for row in csv.DictReader(lines)
        }
