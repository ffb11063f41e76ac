"""One controller driven through exchanges with a peer, in invented time: what verdicts and drawings are made of.

The controller itself answers every call, as if an endpoint made it: nothing here knows an algorithm. The path is as
simple as can be: the first copies of an exchange may be lost; the next one is answered after one round trip.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from millpond import _engine

Make: TypeAlias = "Callable[[], _engine.Controller]"
"""Gives a controller for a peer about which nothing is known."""

SECOND = 1_000_000
"""Microseconds of a second."""
LOWEST, MIDDLE, HIGHEST = 0, 1 << 31, (1 << 32) - 1
"""Words of chance: the ends of every draw, and its middle."""
COPIES = 21
"""Copies of an exchange at most: MAX_RETRANSMIT = 20 as in the published experiments, plus the first."""
LENGTH = 40
"""Bytes of every message."""
START_US = 10 * SECOND
"""When the first call is made."""


@dataclass(frozen=True)
class Course:
    """One exchange from its first copy to its end."""

    waits: tuple[_engine.Wait, ...]
    """The wait after each copy."""
    elapsed_us: int
    """From the first copy to the end."""
    answered: bool

    @property
    def retransmissions(self) -> int:
        """Copies after the first."""
        return len(self.waits) - 1

    @property
    def first_us(self) -> int:
        """The first wait."""
        return self.waits[0].us

    @property
    def in_force_us(self) -> int:
        """The wait in force when the exchange ended."""
        return self.waits[-1].us


class Peer:
    """A controller and its peer. Every exchange is done before the next begins."""

    def __init__(self, make: Make, chance: int = LOWEST) -> None:
        self.controller = make()
        self.chance = chance
        """The word of chance of every call; it may be changed in between."""
        self.now_us = START_US

    def fork(self) -> Peer:
        """A peer with the same past, which goes its own way."""
        twin = Peer(self.controller.copy, self.chance)
        twin.now_us = self.now_us
        return twin

    # ------------------------------------------------------------------------------------------- what happens

    def ask(self, rtt_us: int, lost: int = 0, named: bool = True) -> Course:
        """One exchange over a path with this round-trip time that loses the first `lost` copies.

        Copies leave until the answer comes. It names the copy it answers, if the controller wishes so and `named` is
        true; an empty acknowledgement, or a server that knows no option, would name none.
        """
        return self._exchange(lost, rtt_us, named, COPIES)

    def fail(self, copies: int = 5) -> Course:
        """One exchange whose copies are all lost, and which is given up after this many."""
        return self._exchange(copies, 0, False, copies)

    def rest(self, us: int) -> None:
        """Nothing happens for a while."""
        self.now_us += us

    def steady(self, times: int, rtt_us: int) -> Peer:
        """So many exchanges over a path that loses nothing; gives the peer itself."""
        for _ in range(times):
            self.ask(rtt_us)
        return self

    # ------------------------------------------------------------------------------------------- what would happen

    def series(self, copies: int = COPIES) -> tuple[_engine.Wait, ...]:
        """The waits of the next exchange, if nobody answered it."""
        return self.fork().fail(copies).waits

    def pair_us(self) -> tuple[int, int]:
        """The first two waits of the next exchange, if nobody answers; the first one twice if it is abandoned then."""
        waits = self.series(2)
        return waits[0].us, waits[-1].us

    def first(self, chance: int | None = None, open_exchanges: int = 1) -> _engine.Wait:
        """The first wait of the next exchange, with this word of chance, and so many exchanges open."""
        cx = _engine.Cx(self.now_us, chance=self.chance if chance is None else chance, open=open_exchanges)
        return self.controller.copy().on_start(_engine.Exchange(), LENGTH, cx)

    def first_us(self, chance: int | None = None) -> int:
        """The same, as microseconds."""
        return self.first(chance).us

    def plain_gap_us(self, length: int = LENGTH) -> int:
        """How long the controller holds back an unacknowledged message that follows another at once.

        One that is to wait for the end of an exchange waits as long as an exchange at least lasts: a first wait.
        """
        controller = self.controller.copy()
        cx = _engine.Cx(self.now_us, chance=self.chance, open=0)
        controller.on_plain_send(length, cx)
        told = controller.admit("plain", length, cx)
        if isinstance(told, int):
            return told - self.now_us
        return 0 if told == "now" else self.first_us()

    # ------------------------------------------------------------------------------------------- calls

    def _cx(self) -> _engine.Cx:
        return _engine.Cx(self.now_us, chance=self.chance)

    def _exchange(self, lost: int, rtt_us: int, named: bool, copies: int) -> Course:
        record = _engine.Exchange()
        begun = self.now_us
        waits = [self.controller.on_start(record, LENGTH, self._cx())]
        sent = [begun]
        while True:
            expires = sent[-1] + waits[-1].us
            answer = sent[lost] + rtt_us if lost < len(sent) else None
            if answer is not None and answer <= expires:
                self.now_us = answer
                self.controller.on_reply(record, self._sample(sent, lost, named), self._cx())
                return Course(tuple(waits), answer - begun, answered=True)
            self.now_us = expires
            if len(sent) >= copies or waits[-1].then == "abandon":
                self.controller.on_end(record, "gave-up", self._cx())
                return Course(tuple(waits), expires - begun, answered=False)
            waits.append(self.controller.on_timeout(record, self._cx()))
            sent.append(expires)

    def _sample(self, sent: list[int], copy: int, named: bool) -> _engine.Sample:
        """What an endpoint says of an answer to this copy that comes now."""
        name: int | str | None = None
        naming = self.controller.wishes().naming
        if named and naming != "none" and len(sent) > 1:
            name = "further" if naming == "flag" and copy > 0 else copy
        return _engine.Sample(
            "piggybacked",
            self.now_us - sent[0],
            self.now_us - sent[-1],
            len(sent) - 1,
            name,
            None if name is None else self.now_us - sent[copy],
        )


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
