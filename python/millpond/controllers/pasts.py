"""Peers with a past: what a controller has seen of a peer before a probe asks it."""

from __future__ import annotations

from collections.abc import Iterator

from millpond.controllers.peer import HIGHEST, LOWEST, SECOND, Make, Peer

RTT = SECOND // 2
"""The usual round-trip time: well below every first wait."""
CAP_FLOOR = 60 * SECOND
"""The least that a cap may be (RFC 8961 §4)."""
FAR = 2 * CAP_FLOOR
"""How far a first wait is followed upwards."""
STEADY = 100
"""Answers after which an estimate stands still."""
UNKNOWN = "to an unknown peer"


def measured(make: Make) -> Peer:
    """A peer that answered ten times at once."""
    return Peer(make).steady(10, RTT)


def seasoned(make: Make) -> Peer:
    """A peer that answered many times, now and then only after two retransmissions."""
    peer = measured(make)
    for _ in range(10):
        peer.ask(RTT // 10, lost=2, named=False)
        peer.steady(3, RTT)
    return peer


def climbed(make: Make) -> Peer:
    """A peer whose every answer took as long as it could without a retransmission, until first waits grew no more.

    No answer takes longer than a first wait must be able to last.
    """
    peer = Peer(make)
    before = 0
    for _ in range(STEADY):
        first = peer.first_us()
        if first <= before or first > FAR:
            break
        before = first
        peer.chance = HIGHEST
        peer.ask(min(peer.first_us() - 1, CAP_FLOOR))
        peer.chance = LOWEST
    return peer


def backed_off(make: Make) -> Peer:
    """A peer of which two answers in turn came only after three retransmissions."""
    peer = measured(make)
    for _ in range(2):
        peer.ask(RTT // 10, lost=3, named=False)
    return peer


def states(make: Make) -> Iterator[tuple[str, Peer]]:
    """The pasts after which series of waits are looked at, each with its name."""
    yield UNKNOWN, Peer(make)
    yield f"after answers of {seconds(RTT)}", measured(make)
    for often, name in ((1, "one answer"), (2, "two answers"), (3, "three answers")):
        peer = measured(make)
        for _ in range(often):
            peer.ask(RTT // 10, lost=2, named=False)
        yield f"after {name} with 2 retransmissions", peer
    peer = Peer(make)
    peer.fail()
    yield "after an exchange given up", peer


def seconds(us: float) -> str:
    """A length of time in seconds, with two decimals, or more where it is very short."""
    digits = 2 if us >= 100_000 or us == 0 else 3 if us >= 1_000 else 6
    return f"{us / SECOND:.{digits}f} s"
