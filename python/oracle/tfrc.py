"""TFRC (RFC 5348) for non-confirmable requests, with the readings T1 to T8."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import isqrt

from oracle.approx import Approx, approx, between, largest, smallest
from oracle.calls import SECOND, Algorithm, Class, Cx, End, Exchange, Feedback, Moment, Reason, Sample, View
from oracle.coap_plus import UNIT, over
from oracle.parts import backed_off, dithered

ACK_TIMEOUT = 2 * SECOND
SLOWEST = Fraction(10**6, 64)
"""1/t_mbi, in millionths of a message per second."""
WEIGHTS = tuple(Fraction(weight, 5) for weight in (5, 5, 5, 5, 4, 3, 2, 1))
NDUPACK = 3
FINE = 10**24


@dataclass(frozen=True)
class Rules:
    """The parameters, under the names of the settings."""

    initial_window: int = 4


def root(number: Fraction) -> Fraction:
    """The square root, cut to more digits than anything here is told in."""
    return Fraction(isqrt(int(number * FINE * FINE)), FINE)


def equation(p: Fraction, rtt: Approx) -> Approx:
    """X of section 3.1 in millionths of a message per second, with b = 1 and t_RTO = 4R."""
    per_rtt = 1 / (root(2 * p / 3) + 4 * 3 * root(3 * p / 8) * p * (1 + 32 * p * p))
    exact = over(approx(per_rtt * UNIT), rtt)
    # The implementation's own root and shares.
    return Approx(exact.value, exact.bound + exact.value * Fraction(4, 10**6)).rounded()


@dataclass
class Loss:
    """One loss event: its first message, and when that left."""

    number: int
    left: Approx


class Tfrc(Algorithm[Exchange]):
    """Rates in millionths of a message per second. Knows every request that arrived, and every loss event."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.last: int | None = None
        self.rate = approx(10**6)
        self.rtt: Approx | None = None
        self.arrived: dict[int, int] = {}
        """When those left that arrived, by number."""
        self.decided: int | None = None
        """All up to this one have arrived or are lost."""
        self.events: list[Loss] = []
        self.made_up = 0
        """The loss interval before the first loss event."""
        self.received: list[Approx | None] = []
        """X_recv_set, the newest first; `None` stands for no limit."""
        self.since = approx(0)
        self.in_round = 0
        self.sent = self.held_back = self.silence = self.lossy = False

    # Losses.

    def _take(self, number: int, left: int, rtt: Approx, now: int) -> bool:
        if self.decided is None:
            self.decided = number
            self.arrived[number] = left
            return False
        if number in self.arrived or number <= self.decided:
            return False
        self.arrived[number] = left
        # The first one stands for those before it.
        newest = sorted(self.arrived)[-NDUPACK:]
        if len(newest) < NDUPACK:
            return False
        before, after = self.decided, newest[0]
        if after <= before:
            return False
        self.decided = after
        found = False
        first, last = self.arrived[before], self.arrived[after]
        for lost in range(before + 1, after):
            at = first + Fraction((last - first) * (lost - before), after - before)
            # Within a run the distances are exact; from one run to another they are rounded once.
            if self.events and not (approx(at) - self.events[-1].left).above(rtt):
                continue
            if not self.events:
                self.made_up = self._first_interval(rtt, now)
            self.events.append(Loss(lost, approx(at)))
            found = True
        if found:
            event = self.events[-1]
            event.left = event.left.rounded()
        return found

    def _first_interval(self, rtt: Approx, now: int) -> int:
        counted = largest(approx(now) - self.since, rtt)
        target = largest(self._highest(), over(self.in_round * UNIT, counted).rounded())
        low, high = 1, (1 << 16) - 1
        while low < high:
            middle = (low + high) // 2
            if equation(Fraction(1, middle), rtt).below(target):
                low = middle + 1
            else:
                high = middle
        return low

    def _loss_event_rate(self) -> Fraction | None:
        if not self.events:
            return None
        numbers = [event.number for event in self.events]
        closed = [self.made_up, *(later - sooner for sooner, later in pairwise(numbers))]
        closed = closed[::-1][: len(WEIGHTS)]
        running = max(self.arrived) - numbers[-1] + 1
        weights = WEIGHTS[: len(closed)]
        with_open = sum((weight * each for weight, each in zip(weights, [running, *closed], strict=False)), Fraction(0))
        without = sum((weight * each for weight, each in zip(weights, closed, strict=True)), Fraction(0))
        return sum(weights, Fraction(0)) / max(with_open, without)

    # Rates.

    def _initial(self) -> Approx:
        if self.rtt is None:
            raise ValueError("no round-trip time yet")
        return largest(over(max(self.rules.initial_window, 1) * UNIT, self.rtt).rounded(), SLOWEST)

    def _highest(self) -> Approx:
        return largest(0, *(rate for rate in self.received if rate is not None))

    def _by_equation(self) -> Approx | None:
        p = self._loss_event_rate()
        return None if p is None or self.rtt is None else equation(p, self.rtt)

    def _allowed(self, limit: Approx | None) -> Approx:
        by_equation = self._by_equation()
        rate = self.rate * 2 if by_equation is None else by_equation
        floor = self._initial() if by_equation is None else approx(SLOWEST)
        return largest(rate if limit is None else smallest(rate, limit), floor)

    def _limit(self) -> Approx | None:
        return None if None in self.received else self._highest() * 2

    def _report(self, sample: int | None, now: int) -> None:
        if self.rtt is None:
            raise ValueError("no round-trip time yet")
        lasted = self.rtt if self.silence else approx(now) - self.since
        received = over(self.in_round * UNIT, lasted).rounded()
        limit: Approx | None
        if self.silence or not self.held_back:
            if self.lossy:
                half = (self._highest() / 2).rounded()
                limit = largest(half, (received * Fraction(85, 100)).rounded())
                self.received = [limit]
            else:
                most = largest(self._highest(), received)
                self.received, limit = [most], most * 2
        else:
            kept = [] if lasted.above(self.rtt * 2) else self.received[:1]
            self.received = [received, *kept]
            limit = self._limit()
        if sample is not None:
            self.rtt = (self.rtt * Fraction(9, 10) + Fraction(sample, 10)).rounded()
        self.rate = self._allowed(limit)
        self._begin(approx(now), silence=False)

    def _begin(self, now: Approx, *, silence: bool) -> None:
        self.since, self.in_round, self.silence = now, 0, silence
        self.sent = self.held_back = self.lossy = False

    # The nofeedback timer.

    def _catch_up(self, now: int) -> None:
        while self.last is not None:
            gap = over(UNIT, self.rate).rounded()
            timer = gap * 2 if self.rtt is None else largest(gap * 2, self.rtt * 4)
            due = self.since + timer
            if due.above(now):
                return
            self._expire()
            self._begin(due, silence=True)

    def _expire(self) -> None:
        idle, half = not self.sent, (self.rate / 2).rounded()
        by_equation = self._by_equation()
        if self.rtt is None:
            if not idle:
                self.rate = largest(half, SLOWEST)
        elif by_equation is None:
            if not idle or not self.rate.below(self._initial() * 2):
                self.rate = largest(half, SLOWEST)
        elif not idle or not self._highest().below(self._initial()):
            received = self._highest()
            limit = received if by_equation.above(received * 2) else (by_equation / 2).rounded()
            self.received = [(largest(limit, SLOWEST) / 2).rounded()]
            self.rate = smallest(self.rate, self._allowed(self._limit()))

    # The calls.

    def admit(self, kind: Class, cx: Cx) -> Moment:
        if kind == "confirmable" or self.last is None:
            return None
        self._catch_up(cx.now)
        at = over(UNIT, self.rate).rounded() + self.last
        return at if at.above(cx.now) else None

    def plain(self, length: int, cx: Cx) -> None:
        self._catch_up(cx.now)
        if self.last is None:
            self._begin(approx(cx.now), silence=True)
        elif not self.sent and self.rtt is not None and (approx(cx.now) - self.since).above(self.rtt):
            self.silence = True
        self.last = cx.now
        self.sent = True
        self.held_back |= cx.waiting > 0

    def feedback(self, feedback: Feedback, cx: Cx) -> None:
        self._catch_up(cx.now)
        if feedback.fate == "lost" or feedback.message != "request":
            return
        self.in_round += 1
        self.held_back |= cx.waiting > 0
        rtt = approx(0) if self.rtt is None else self.rtt
        loss = self._take(feedback.number, cx.now - feedback.since, rtt, cx.now)
        self.lossy |= loss
        sample = feedback.since if feedback.fate == "answered" else None
        if self.rtt is None:
            if sample is not None:
                self.rtt = approx(max(sample, 1))
                self.rate, self.received = self._initial(), [None]
                self._begin(approx(cx.now), silence=False)
        elif not (approx(cx.now) - self.since).below(self.rtt):
            self._report(sample, cx.now)
        elif loss:
            self.rate = self._allowed(self._limit())

    # Confirmable messages: the timer of RFC 7252.

    def start(self, cx: Cx) -> Exchange:
        low, high = dithered(approx(ACK_TIMEOUT), Fraction(3, 2))
        first = between(cx.chance, low, high)
        return Exchange(cx.now, first, "initial", first)

    def timeout(self, exchange: Exchange, cx: Cx) -> tuple[Approx, Reason]:
        return exchange.advance(backed_off(exchange.current, Fraction(2), None)), "backed-off"

    def reply(self, exchange: Exchange, sample: Sample, cx: Cx) -> None:
        """Nothing is learnt."""

    def end(self, exchange: Exchange, why: End, cx: Cx) -> None:
        """Nothing is learnt."""

    def view(self) -> View:
        return View(rto=approx(ACK_TIMEOUT), srtt=self.rtt)
