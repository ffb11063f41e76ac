"""What the calls of a controller take and give, and the frame that every algorithm here fills."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from oracle.approx import Approx, Unstated, approx

SECOND = 1_000_000
MILLISECOND = 1_000

Kind = Literal["empty-ack", "piggybacked", "separate"]
End = Literal["gave-up", "reset", "cancelled"]
Class = Literal["confirmable", "plain"]
Reason = Literal["initial", "backed-off", "slow", "carried", "blind"]
Grade = Literal["exact", "echoed", "ambiguous", "none"]
Fate = Literal["answered", "arrived", "lost"]
Message = Literal["request", "further", "block"]
Named = int | Literal["further"] | None
Moment = Approx | Literal["when-one-ends"] | None
"""When a message may leave; `None` if now."""


@dataclass(frozen=True)
class Cx:
    """What a call may know. Times are whole microseconds."""

    now: int
    chance: int = 0
    open: int = 1
    waiting: int = 0


@dataclass(frozen=True)
class Sample:
    """What ended an exchange. Times are whole microseconds."""

    kind: Kind
    since_first: int
    since_last: int
    retransmissions: int
    named: Named = None
    since_named: int | None = None

    @property
    def copy(self) -> Named:
        """Which copy the reply names, after what needs no naming: the only further copy is copy 1."""
        if self.named == "further":
            return {0: None, 1: 1}.get(self.retransmissions, "further")
        return self.named

    @property
    def age(self) -> int:
        """Time since the copy that the reply names."""
        if self.named == "further":
            return self.since_last
        if self.since_named is None:
            raise ValueError("the reply names no copy")
        return self.since_named

    @property
    def grade(self) -> Grade:
        """How far it can be trusted."""
        if self.kind == "separate":
            return "none"
        if self.retransmissions == 0 or self.copy == self.retransmissions:
            return "exact"
        return "echoed" if isinstance(self.copy, int) else "ambiguous"


@dataclass(frozen=True)
class Feedback:
    """What became known of a message that nobody acknowledges."""

    message: Message
    fate: Fate
    since: int
    number: int = 0


@dataclass
class Exchange:
    """What an algorithm remembers of one exchange."""

    started: int
    first: Approx
    reason: Reason
    current: Approx
    retransmissions: int = 0
    #: No retransmission follows the first wait.
    abandons: bool = False

    def advance(self, wait: Approx) -> Approx:
        """A further copy leaves and waits this long."""
        self.retransmissions += 1
        self.current = wait
        return wait


@dataclass(frozen=True)
class View:
    """What a controller knows; `None` where it knows nothing."""

    rto: Approx | None = None
    srtt: Approx | None = None
    rttvar: Approx | None = None
    weak_srtt: Approx | None = None
    weak_rttvar: Approx | None = None
    carried: Approx | None = None


X = TypeVar("X", bound=Exchange)


class Algorithm(ABC, Generic[X]):
    """One peer's controller, exactly."""

    @abstractmethod
    def start(self, cx: Cx) -> X:
        """The first copy leaves."""

    @abstractmethod
    def timeout(self, exchange: X, cx: Cx) -> tuple[Approx, Reason]:
        """The wait ran out and a further copy leaves."""

    @abstractmethod
    def reply(self, exchange: X, sample: Sample, cx: Cx) -> None:
        """The exchange ended with an answer."""

    @abstractmethod
    def end(self, exchange: X, why: End, cx: Cx) -> None:
        """The exchange ended without one."""

    @abstractmethod
    def view(self) -> View:
        """What is known."""

    def plain(self, length: int, cx: Cx) -> None:
        """A message that nobody acknowledges left."""

    def feedback(self, feedback: Feedback, cx: Cx) -> None:
        """It became known what happened to one."""

    def admit(self, kind: Class, cx: Cx) -> Moment:
        """When a message may leave; `None` if now. NSTART is not asked about here, and asking changes nothing."""
        return None


class Pacing:
    """At most one non-confirmable message per timeout (draft-ietf-core-cocoa-03 §5).

    The timeout is that of the moment of sending, and one byte a second is always allowed where the source says so.
    """

    def __init__(self, *, byte_a_second: bool) -> None:
        self.byte_a_second = byte_a_second
        self.opens: Approx | None = None

    def sent(self, length: int, rto: Approx, now: int) -> None:
        """A message of `length` bytes left."""
        if self.opens is not None and self.opens.above(now):
            raise Unstated  # It should not have left.
        by_bytes = length * SECOND
        if rto.above(by_bytes):
            if not self.byte_a_second:
                raise Unstated
            rto = approx(by_bytes)
        self.opens = rto + now

    def admit(self, now: int) -> Approx | None:
        """When the next may leave; `None` if now."""
        if self.opens is None or not self.opens.above(now):
            return None
        return self.opens
