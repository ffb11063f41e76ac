"""What `millpond diagnose` says of every peer's client behind an emulated path, beside what became of each packet."""

import contextlib
import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ParamSpec

import pytest

from diagnosed import PATHS, SERVER, SIDES, Captured, Side, Told, Way, captured, serving_files
from millpond.diagnose.ends import ENDS, End
from resources import path
from sides import PEERS, Californium, Missing, Ours, Peer, installed

REQUESTS, DEVICES, FEW = 8, 4, 3
P = ParamSpec("P")
ASKS_AT_ONCE = {"aiocoap", "go-coap", "Californium"}
"""Clients whose next request leaves when an answer came, from the same port: a server sees which one it was."""
FIRST_TIMERS = {"aiocoap-calm": (0.2, 10.0), "measures": (0.2, 10.0), "go-coap": (2.0, 4.5)}
"""Seconds, where they are not RFC 7252's: calm measures, and go-coap looks at its timers every now and then."""
SHORT_TIMERS = {("aiocoap-calm", "loss"): {"spurious"}}
"""What retransmissions can be as well, where a timer is a little longer than the round trip."""
OPENS_MANY = {"node-coap", "go-coap", "Californium"}
"""Clients that send all at once that they are asked for; aiocoap keeps to an NSTART of 1."""
CANNOT = {
    ("go-coap", "blocks", "loss"): "go-coap sends a request for a further block once alone",
    ("libcoap", "separate", "loss"): "libcoap acknowledges a separate response once alone",
}
"""Where one loss is not made good, so that a client waits for its own timeout."""
CANNOT_ACKNOWLEDGE_FIRST = {
    "go-coap": "go-coap answers in the acknowledgement, however long its handler takes",
    "Californium": "Californium's server takes seconds for its first requests, as a long path would",
}

pytestmark = pytest.mark.usefixtures("hosts")  # emulating wants namespaces, too


def thrice(test: Callable[P, None]) -> Callable[P, None]:
    """Captures and checks up to three times: on a busy machine a program may be late by as much as its timers."""

    @functools.wraps(test)
    def trying(*args: P.args, **kwargs: P.kwargs) -> None:
        for _ in range(2):
            with contextlib.suppress(AssertionError):
                return test(*args, **kwargs)
        return test(*args, **kwargs)

    return trying


@pytest.fixture(params=[*PEERS, Californium()], ids=lambda peer: peer.name)
def peer(request: pytest.FixtureRequest) -> Peer:
    return installed(request.param)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    (folder / "r").write_bytes(bytes(55))
    (folder / "long").write_bytes(bytes(3000))
    return folder


@pytest.mark.parametrize("name", PATHS)
@thrice
def test_each_retransmission_is_told_as_what_it_was(
    ours: Ours, peer: Peer, served: Path, tmp_path: Path, name: str
) -> None:
    way = PATHS[name]
    words = way.words | SHORT_TIMERS.get((peer.name, name), set())
    asking = peer.asking_often(REQUESTS)(f"coap://{SERVER}:5683/r")
    capture = captured(ours, way, DEVICES, serving_files(ours, served), asking, tmp_path)
    for end in ENDS:
        true = capture.true.labels(end)
        assert set(true.values()) <= words
        told = capture.told(end)
        wrong = told.wrong(capture.true, end)
        if end == "devices":
            assert true, "nothing was sent again"
            assert not wrong
            timers_are_told(told, peer.name)
        elif peer.name in ASKS_AT_ONCE:
            # measured in virtual time on 400 such captures: never more than three
            assert wrong.total() <= 3 + 0.2 * len(true), wrong
        if (peer.name, end) != ("libcoap", "server"):
            # Its next request follows its own last transmission, and is taken for one that follows an answer.
            is_told(told, capture, end)


def timers_are_told(told: Told, peer: str) -> None:
    """The timers that are told at the devices are theirs."""
    timers = told.figures["timers"]
    wait, factor = timers["ack_timeout_s"]["value"], timers["random_factor"]["value"]
    if wait is not None:
        shortest, longest = FIRST_TIMERS.get(peer, (2.0, 3.0))
        assert 0.98 * shortest <= wait <= wait * factor <= 1.02 * longest


def is_told(told: Told, capture: Captured, side: Side) -> None:
    """Transmissions, NSTART and the verdict are those that a capture has, or the server does not know that last one."""
    end: End = "server" if side == "server" else "devices"
    assert told.figures["verdict"] in capture.verdicts(end) | ({"unknown"} if side == "server" else set())
    assert told.figures["transmissions"] == capture.true.transmissions(end)
    nstart = told.figures["nstart"]
    assert nstart["value"] is None or nstart["value"] <= capture.open_at_once, nstart


def until_all_is_answered(asking: Sequence[str], seconds: int) -> list[str]:
    """A command that goes on so long, in which answers to duplicates come."""
    return ["sh", "-c", f'"$@" && sleep {seconds}', "sh", *asking]


def is_right(capture: Captured, way: Way, peer: str = "") -> None:
    """Everything that is told from the devices, from both ends and from the server, each as the capture has it."""
    for side in SIDES:
        end: End = "server" if side == "server" else "devices"
        assert set(capture.true.labels(end).values()) <= way.words
        told = capture.told(side)
        if side != "server":
            assert not told.wrong(capture.true, end)
            timers_are_told(told, peer)
        is_told(told, capture, side)


@pytest.fixture
def other(peer: Peer) -> Peer:
    """A peer, but no port of another one."""
    if peer.name == "aiocoap-calm":
        pytest.skip("its timers are its own; the rest is aiocoap's, which is tried")
    return peer


@pytest.mark.parametrize("name", ["bloat", "loss"])
@thrice
def test_requests_that_are_not_confirmable_are_not_sent_again(
    ours: Ours, other: Peer, served: Path, tmp_path: Path, name: str
) -> None:
    way = replace(PATHS[name], words=frozenset())
    asking = other.asking_often(2, "non")(f"coap://{SERVER}:5683/r")
    capture = captured(ours, way, FEW, serving_files(ours, served), asking, tmp_path)
    assert len(capture.true.exchanges) >= FEW
    is_right(capture, way)
    assert {word for side in SIDES for word in capture.told(side).labels.values()} == {"first"}


@pytest.mark.parametrize("name", ["bloat", "loss"])
@pytest.mark.parametrize("kind", ["separate", "observe", "blocks", "open"])
@thrice
def test_clients_that_do_more_are_told_right(
    ours: Ours, other: Peer, served: Path, tmp_path: Path, kind: str, name: str
) -> None:
    if (other.name, kind, name) in CANNOT:
        pytest.skip(CANNOT[other.name, kind, name])
    # An address that it does not know gets a first notification once at most, and small blocks.
    server = serving_files(ours, served, "--trust", "10.77.0.0/16")
    server.remove("--only-files")
    at = f"coap://{SERVER}:5683"
    try:
        asking = {
            "separate": lambda: other.asking_often(2)(f"{at}/slow"),
            "observe": lambda: other.observing(f"{at}/count"),
            "blocks": lambda: other.asking_often(1)(f"{at}/long"),
            "open": lambda: other.asking_often(3, "open")(f"{at}/r"),
        }[kind]()
    except Missing as missing:
        pytest.skip(str(missing))
    asking = until_all_is_answered(asking, 4) if kind == "open" else asking
    capture = captured(ours, PATHS[name], FEW, server, asking, tmp_path)
    is_right(capture, PATHS[name], other.name)
    if kind == "open" and other.name in OPENS_MANY:
        assert capture.open_at_once == 3
        assert capture.told("devices").figures["nstart"]["value"] > 1


@pytest.mark.parametrize("name", ["bloat", "loss"])
@thrice
def test_servers_that_acknowledge_first_are_told_right(ours: Ours, other: Peer, tmp_path: Path, name: str) -> None:
    if other.name in CANNOT_ACKNOWLEDGE_FIRST:
        pytest.skip(CANNOT_ACKNOWLEDGE_FIRST[other.name])
    asking = [ours.program, "load", "--json", "--controller", "rfc7252", "--count", "3"]
    asking.append(f"coap://{SERVER}:5683{path(other.name, 'separate')}")
    capture = captured(ours, PATHS[name], FEW, other.serving_at(SERVER), asking, tmp_path)
    is_right(capture, PATHS[name])


@pytest.mark.parametrize("controller", ["cocoa-03", "calm"])
@thrice
def test_timers_that_measure_are_recognised(ours: Ours, served: Path, tmp_path: Path, controller: str) -> None:
    way = replace(PATHS["both"], delay="300 ms", loss=0.15)
    asking = [
        ours.program,
        "load",
        "--json",
        "--controller",
        controller,
        "--max-retransmit",
        "8",
        "--count",
        "5",
        f"coap://{SERVER}/r",
    ]
    capture = captured(ours, way, 10, serving_files(ours, served), asking, tmp_path)
    is_right(capture, way, "measures")
    presets = capture.told("devices").figures["presets"]
    assert presets["verdict"] == "fits", presets
    assert controller in presets["names"], presets


def test_a_collapse_is_told(ours: Ours, served: Path, tmp_path: Path) -> None:
    # Behind a round trip of 22 s a request is sent four times: at 0, 2 to 3, 6 to 9, and 14 to 21 s.
    way = replace(PATHS["bloat"], delay="11 s")
    asking = [ours.program, "load", "--json", "--controller", "rfc7252", "--clients", "5", "--count-each", "1"]
    asking = until_all_is_answered([*asking, f"coap://{SERVER}/r"], 22)
    capture = captured(ours, way, FEW, serving_files(ours, served), asking, tmp_path)
    assert capture.verdicts("devices") == {"collapse"}
    is_right(capture, way)
