"""The numbers that drawings of a controller show, all of them from driving it.

They are the waits of an exchange nobody answers, what answers leave behind, and first waits on a path that changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from millpond.controllers.peer import HIGHEST, LOWEST, MIDDLE, SECOND, START_US, Make, Peer

RTT_US = SECOND // 2
"""The round-trip time of a path on which all is well."""
COPIES = 8
"""Copies drawn of an exchange that nobody answers: past MAX_RETRANSMIT = 4, so that caps are seen."""
RETRANSMISSIONS = (0, 1, 2, 4)
"""Answers after so many retransmissions are drawn."""
FOLLOWING = 5
"""Exchanges drawn after such an answer, each of them answered at once."""


@dataclass(frozen=True)
class Unanswered:
    """The waits of an exchange that nobody answers."""

    past: str
    lowest_us: tuple[int, ...]
    """With the lowest draw, copy by copy."""
    highest_us: tuple[int, ...]
    """With the highest draw."""


@dataclass(frozen=True)
class Aftermath:
    """What an answer after some retransmissions leaves to the exchanges that follow."""

    retransmissions: int
    before_us: int
    """The first wait of the exchange that was answered."""
    in_force_us: int
    """Its wait in force when the answer came."""
    first_us: tuple[int, ...]
    """The first waits of the exchanges that follow, each of them answered at once."""
    second_us: tuple[int, ...]
    """The second waits they would have had if they had not been answered."""


@dataclass(frozen=True)
class Phase:
    """A stretch of the path's story."""

    until_s: int
    rtt_us: int | None
    """The round-trip time; none: nothing is sent."""
    title: str


@dataclass(frozen=True)
class Point:
    """One exchange on the path that changes."""

    at_s: float
    rtt_us: int
    first_us: int
    retransmissions: int
    lost: int
    """Copies that the path lost."""
    answered: bool


STORY = (
    Phase(100, RTT_US, "calm"),
    Phase(200, RTT_US, "losses"),
    Phase(350, 4 * SECOND, "full queue"),
    Phase(450, RTT_US, "drained"),
    Phase(750, None, "silence"),
    Phase(850, SECOND, "slower"),
)
"""The path: short round trips, losses, a queue of twice the default timeout that drains, silence, a slower path."""
LOSSES = {110: 1, 140: 3}
"""The first exchange from this second on loses its first so many copies."""
EVERY_S = 5
"""An exchange begins every so many seconds, or when the one before has ended."""


def unanswered(make: Make) -> tuple[Unanswered, ...]:
    """An exchange that nobody answers, to an unknown peer and to one that answered ten times at once."""
    return tuple(
        Unanswered(
            past,
            *(
                tuple(wait.us for wait in Peer(make, chance).steady(answers, RTT_US).series(COPIES))
                for chance in (LOWEST, HIGHEST)
            ),
        )
        for past, answers in (("to an unknown peer", 0), (f"after ten answers of {RTT_US / SECOND:g} s", 10))
    )


def aftermaths(make: Make) -> tuple[Aftermath, ...]:
    """What answers after 0, 1, 2 and 4 retransmissions leave behind, with a peer that answered ten times before."""
    return tuple(_aftermath(make, retransmissions) for retransmissions in RETRANSMISSIONS)


def _aftermath(make: Make, retransmissions: int) -> Aftermath:
    peer = Peer(make, MIDDLE).steady(10, RTT_US)
    course = peer.ask(min(RTT_US, peer.series(retransmissions + 1)[-1].us), lost=retransmissions)
    firsts, seconds = [], []
    for _ in range(FOLLOWING):
        first, second = peer.pair_us()
        firsts.append(first)
        seconds.append(second)
        peer.ask(min(RTT_US, first))
    return Aftermath(retransmissions, course.first_us, course.in_force_us, tuple(firsts), tuple(seconds))


def trace(make: Make) -> tuple[Point, ...]:
    """The exchanges of the story, with the middle draw throughout."""
    return tuple(_points(Peer(make, MIDDLE)))


def _points(peer: Peer) -> Iterator[Point]:
    losses = dict(LOSSES)
    due = 0.0
    while True:
        now = (peer.now_us - START_US) / SECOND
        phase = next((phase for phase in STORY if max(now, due) < phase.until_s), None)
        if phase is None:
            return
        due = max(now, due)
        if phase.rtt_us is None:
            due = phase.until_s
            continue
        peer.rest(round((due - now) * SECOND))
        lost = next((losses.pop(at) for at in list(losses) if at <= due), 0)
        course = peer.ask(phase.rtt_us, lost)
        yield Point(due, phase.rtt_us, course.first_us, course.retransmissions, lost, course.answered)
        due = (int(due) // EVERY_S + 1) * EVERY_S
