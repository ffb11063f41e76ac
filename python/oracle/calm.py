"""Calm: graded evidence, and a backoff that only proven congestion keeps (docs/calm.md)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from oracle.approx import HALF, Approx, Unstated, approx, between, largest, smallest
from oracle.calls import MILLISECOND, SECOND, Algorithm, Class, Cx, End, Exchange, Reason, Sample, View
from oracle.parts import ZERO_TIME, limited

ALL = 1_000
"""All copies, in the unit of the loss rate."""
MANY = 350
GAIN = 12
FEW_SAMPLES = 4
NEAR = 2 * SECOND
FORGET = 600 * SECOND


@dataclass(frozen=True)
class Rules:
    """The parameters, under the names of the settings. Times in microseconds; a limit of `None` is none."""

    ack_timeout: int = 2 * SECOND
    max_wait: int | None = 120 * SECOND
    patience: int | Literal["none"] = 4 * SECOND
    least_wait: int = 200 * MILLISECOND
    without: str = "nothing"


UNLIMITED = Rules(patience="none", least_wait=0)


def moved(average: int, gain: int, value: int) -> int:
    """An average in whole thousandths, cut off."""
    return (average * (gain - 1) + value) // gain


class Calm(Algorithm[Exchange]):
    """What exchanges with a peer share."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.plain_opens: Approx | None = None
        self._forget()

    def _forget(self) -> None:
        self.srtt = self.rttvar = self.falls = ZERO_TIME
        self.latest: list[int] = []
        """Up to four samples, the newest first."""
        self.least: Approx | None = None
        self.samples = 0
        self.lost, self.seen = 200, 4
        self.kept = ZERO_TIME
        self.ended: int | None = None
        self.hold = ZERO_TIME

    # What is derived from the state.

    def _stale(self, now: int) -> bool:
        return self.ended is not None and now - self.ended > FORGET

    def _left(self, now: int) -> Approx:
        if self.ended is None or not self.hold.above(0):
            return ZERO_TIME
        return largest(self.hold + self.ended - now, 0)

    def _rto(self) -> Approx:
        if self.samples == 0:
            return approx(self.rules.ack_timeout)
        rto = self.srtt + largest(self.rttvar * 4, 20 * MILLISECOND)
        if self.rules.without == "last-bound":
            return rto
        return largest(rto, (approx(self.latest[0]) * Fraction(11, 10)).rounded())

    def _congested(self, further: int) -> bool:
        if self.samples == 0:
            return True
        lost = self.lost
        for _ in range(min(further, 3)):
            lost = moved(lost, GAIN, ALL)
        if lost < MANY:
            return False
        return self.samples < FEW_SAMPLES or (self.least is not None and self.srtt.above(self.least * Fraction(21, 20)))

    def _of_last(self, sample: Sample) -> bool:
        """It came when the answer to the last copy was due."""
        if self.least is None:
            return False
        age = approx(sample.since_last)
        return not (age * 10).below(self.least * 9) and not age.above(self.least * 2)

    def _is_near(self, rtt: int) -> bool:
        """A round trip that shows no long queue."""
        if self.least is None or approx(rtt).above(self.least * 2):
            return False
        return rtt < NEAR or approx(4 * rtt).below(self.least * 5)

    # What changes it.

    def _count(self, lost: int, *, answered: bool) -> None:
        for value in [ALL] * lost + [0] * answered:
            self.seen = min(self.seen + 1, GAIN)
            self.lost = moved(self.lost, self.seen, value)

    def _first(self, rtt: int) -> None:
        self.srtt, self.rttvar = approx(rtt), (approx(rtt) / 4).rounded()
        self.latest = [rtt]

    def _take(self, rtt: int) -> None:
        if self.least is None:
            self._first(rtt)
            self.least = approx(rtt)
        else:
            fall = max(0, self.latest[0] - rtt)
            self.falls = (self.falls * Fraction(3, 4) + approx(fall) / 4).rounded()
            self.rttvar = (self.rttvar * Fraction(3, 4) + self.srtt.distance(approx(rtt)) / 4).rounded()
            self.srtt = (self.srtt * Fraction(7, 8) + approx(rtt) / 8).rounded()
            self.latest = [rtt, *self.latest[:3]]
            # What was the shortest once may be so no more.
            aged = (self.least * Fraction(63, 64) + self.srtt / 64).rounded()
            self.least = smallest(aged, rtt)
        self.samples += 1

    def _pause(self) -> Approx:
        if self.least is None or self.rules.without == "delay-pause":
            return ZERO_TIME
        falls = ZERO_TIME if self.rules.without == "falls" else self.falls * 6
        standing = largest(approx(min(self.latest)) - falls, 0)
        base = largest((self.least * Fraction(3, 2)).rounded(), NEAR)
        return smallest(largest(standing - base, 0) * 16, standing * 8, 240 * SECOND)

    def _hold_back(self, pause: Approx, cx: Cx) -> None:
        drawn = between(cx.chance, (pause / 2).rounded(), (pause * Fraction(3, 2)).rounded())
        self.hold, self.ended = largest(drawn, self._left(cx.now)), cx.now

    # The calls.

    def admit(self, kind: Class, cx: Cx) -> Approx | Literal["when-one-ends"] | None:
        narrow = self.samples > 0 and not self._stale(cx.now) and self._congested(0)
        if kind == "confirmable" and cx.open > 1 and narrow and self.rules.without != "window":
            return "when-one-ends"
        # What is stale holds nothing back: no pause is longer than what makes it stale.
        left = self._left(cx.now)
        at = left + cx.now if left.above(0) else None
        if kind == "plain" and self.plain_opens is not None and self.plain_opens.above(cx.now):
            at = self.plain_opens if at is None else largest(at, self.plain_opens)
        return at

    def start(self, cx: Cx) -> Exchange:
        if self._stale(cx.now):
            self._forget()
        reason: Reason
        if self.samples == 0:
            low = approx(self.rules.ack_timeout)
            high, reason = (low * Fraction(3, 2)).rounded(), "blind"
        else:
            low = self._rto()
            high, reason = low + (self.srtt / 10).rounded(), "initial"
        wait = between(cx.chance, low, high)
        if self.kept.above(wait):
            wait, reason = self.kept, "carried"
        cap = self.rules.max_wait
        if cap is not None:
            wait = smallest(wait, max(247 * SECOND, cap, self.rules.least_wait, self.rules.ack_timeout * 3 // 2))
        wait = largest(wait, self.rules.least_wait)
        return Exchange(cx.now, wait, reason, wait)

    def timeout(self, exchange: Exchange, cx: Cx) -> tuple[Approx, Reason]:
        before, current, without = exchange.retransmissions, exchange.current, self.rules.without
        spreads = False
        if self.samples == 0 and before == 0:
            factor, spreads = Fraction(2), True
        elif before >= 3:
            factor = Fraction(3, 2)
        elif without != "long-steps" and self._congested(before):
            factor, spreads = Fraction(4), True
        elif before == 0 and without != "short-steps":
            factor = Fraction(3, 2)
        else:
            factor = Fraction(2)
        if self.rules.patience != "none" and not current.below(self.rules.patience):
            factor, spreads = min(factor, Fraction(2)), False
        following = (current * factor).rounded()
        if spreads:
            following = between(cx.chance, following, (following * Fraction(5, 4)).rounded())
        if self.rules.max_wait is not None:
            following = smallest(following, largest(current, self.rules.max_wait))
        return exchange.advance(largest(following, self.rules.least_wait)), "backed-off"

    def reply(self, exchange: Exchange, sample: Sample, cx: Cx) -> None:
        if sample.grade == "none":
            self._hold_back(ZERO_TIME, cx)
            return
        believes = self.rules.without == "grades"
        self._count(self._proven(sample, believes=believes), answered=True)
        wait = limited(exchange.current, self.rules.max_wait)
        pause = ZERO_TIME
        rtt = self._certain(sample, believes=believes)
        if rtt is not None:
            self._take(rtt)
            late = sample.retransmissions > 0 and not self._is_near(rtt)
            self.kept = wait if late else ZERO_TIME
            pause = self._pause()
        elif sample.grade == "echoed" and self.least is None:
            self._first(sample.age)
            self.samples += 1
            self.kept = ZERO_TIME
        else:
            self.kept = ZERO_TIME if self._of_last(sample) else largest(self.kept, wait)
        self._hold_back(pause, cx)

    def _proven(self, sample: Sample, *, believes: bool) -> int:
        copies = sample.retransmissions
        if sample.copy == copies or (self._of_last(sample) and not believes):
            return copies
        return sample.copy if isinstance(sample.copy, int) else 0

    def _certain(self, sample: Sample, *, believes: bool) -> int | None:
        if sample.grade == "exact":
            return sample.since_first if sample.retransmissions == 0 else sample.age
        return sample.age if sample.grade == "echoed" and believes else None

    def end(self, exchange: Exchange, why: End, cx: Cx) -> None:
        if why == "gave-up":
            self._count(exchange.retransmissions + 1, answered=False)
            self.kept = limited(exchange.current * 2, self.rules.max_wait)
            self._hold_back(ZERO_TIME, cx)
        elif why == "cancelled" and exchange.retransmissions > 0:
            self.kept = largest(self.kept, limited(exchange.current, self.rules.max_wait))

    def plain(self, length: int, cx: Cx) -> None:
        if self.plain_opens is not None and self.plain_opens.above(cx.now):
            raise Unstated  # It should not have left.
        rto = self._rto()
        self.plain_opens = (largest(rto, 3 * SECOND) if self.samples == 0 else rto) + cx.now

    def view(self) -> View:
        known = self.samples > 0
        return View(
            rto=self._rto(),
            srtt=self.srtt if known else None,
            rttvar=self.rttvar if known else None,
            carried=self.kept if self.kept.value > HALF else None,
        )
