"""A custom congestion controller: the class to derive from.

A controller holds what is known about one peer and answers two questions: may this message leave, and how long until
its next copy. An object is made for every peer. It is called for one exchange after the other, or for several at a
time, and always in the order of time:

    import millpond

    class Patient(millpond.Controller):
        def __init__(self, first_s: float = 3.0) -> None:
            self.first_us = first_s * 1e6

        def on_start(self, exchange, length, cx):
            return cx.between(self.first_us, 1.5 * self.first_us)

        def on_timeout(self, exchange, cx):
            return min(2 * exchange.current_us, 60_000_000)

        def on_reply(self, exchange, sample, cx):
            if sample.exact_us is not None:
                self.first_us = max(1_000_000, 4 * sample.exact_us)

A scenario calls it `patient.py:Patient`, with the parameters of `__init__` as settings.

All times are microseconds. A wait is a number, rounded to the nearest whole one, or a `Wait`, which says too why it is
so long and whether a retransmission follows. Neither clocks nor `random` are used: the time is `cx.now_us`, chance
is `cx.chance`, so that a run gives the same results each time.

A controller that only changes another one keeps a `BuiltIn` and passes the calls on, with the same exchange.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal, SupportsFloat, SupportsIndex, TypeAlias

from millpond._engine import Controller as BuiltIn
from millpond._engine import Cx, Exchange, Feedback, Sample, View, Wait, Wishes

__all__ = [
    "Admit",
    "AnyWait",
    "BuiltIn",
    "Controller",
    "Cx",
    "Exchange",
    "Feedback",
    "Sample",
    "View",
    "Wait",
    "Wishes",
]

AnyWait: TypeAlias = Wait | SupportsIndex | SupportsFloat
"""A wait: a number of microseconds, or a `Wait`."""
Admit: TypeAlias = Literal["now", "when-one-ends"] | int
"""Whether a message may leave: now, when an exchange with the peer ends, or not before this point in time."""


class Controller(ABC):
    """One peer's congestion controller.

    Per exchange there is one `on_start`, any number of `on_timeout`, then either `on_reply` or `on_end`. An exception,
    or an answer that makes no sense, ends the run with one line that names the class, the call and the value.
    """

    @abstractmethod
    def on_start(self, exchange: Exchange, length: int, cx: Cx) -> AnyWait:
        """The first copy of a confirmable message of `length` bytes leaves now. How long until the second?"""

    @abstractmethod
    def on_timeout(self, exchange: Exchange, cx: Cx) -> AnyWait:
        """The timer expired and a retransmission leaves now. How long is the next wait? Asked for the last one, too."""

    @abstractmethod
    def on_reply(self, exchange: Exchange, sample: Sample, cx: Cx) -> None:
        """The exchange ended with an answer."""

    def on_end(self, exchange: Exchange, why: str, cx: Cx) -> None:  # noqa: B027 - nothing to do is a fair answer
        """The exchange ended without an answer: `gave-up`, `reset` or `cancelled`."""

    def on_plain_send(self, length: int, cx: Cx) -> None:  # noqa: B027
        """A message of `length` bytes that nobody will acknowledge left now."""

    def on_feedback(self, feedback: Feedback, cx: Cx) -> None:  # noqa: B027
        """It became known what happened to such a message. Of most of them nothing does, so nothing may wait for it."""

    def admit(self, kind: str, length: int, cx: Cx) -> Admit:  # noqa: ARG002
        """May a message of this kind (`confirmable` or `plain`) leave now? Asking must change nothing.

        Retransmissions are not asked about, nor is NSTART, which is the endpoint's or a wish.
        """
        return "now"

    def wishes(self) -> Wishes:
        """What the algorithm asks of the endpoint. Asked once for all peers."""
        return Wishes()

    def view(self) -> View:
        """Numbers for traces and reports."""
        return View()

    def base_rtt_us(self) -> SupportsIndex | SupportsFloat | None:
        """The round trip of the path without a queue, in microseconds, as far as measured: what outlives a restart.

        None before the first sample, and if it keeps none.
        """
        return None

    def recall(self, base_rtt_us: int) -> None:  # noqa: B027
        """A base round trip from an earlier life, in microseconds. It may be old, of another path, or forged.

        It comes before the first exchange or not at all, and is no more than a bound that samples correct.
        """

    def shortest_wait_us(self) -> int:
        """The shortest wait that it ever answers, 1 ms unless overridden: less is most likely meant as seconds.

        Asked once for all peers. A shorter wait is refused.
        """
        return 1_000

    def longest_wait_us(self, copy: int, previous_us: int) -> int:  # noqa: ARG002
        """The longest wait that it ever answers for this copy (0 is the first): ten minutes unless overridden.

        Asked once for all peers, copy by copy; `previous_us` is the answer for the copy before, 0 for the first. A
        longer wait is refused. Endpoints sum these to know for how long a copy may still be under way (RFC 7252
        §4.8.2).
        """
        return 600_000_000
