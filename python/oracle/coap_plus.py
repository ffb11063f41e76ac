"""The rate control of CoAP+ (study burst23, sections 3.1 and 3.2), with the readings P1 to P14."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Literal

from oracle.approx import Approx, TooClose, approx, between, largest, smallest
from oracle.calls import SECOND, Algorithm, Class, Cx, End, Exchange, Moment, Reason, Sample, View
from oracle.parts import GRANULARITY, Estimator, backed_off, dithered

UNIT = 10**12
"""A message in a microsecond, in millionths of a message per second."""
FASTEST = 1_000 * 10**6
SLOWEST = Fraction(10**6, 64)
START_RTTS = 2


class Phase(Enum):
    """Where a peer stands."""

    PROBE = 0
    START_UP = 1
    STEADY = 2
    BACKOFF = 3
    RESTART = 4


@dataclass(frozen=True)
class Rules:
    """The parameters, under the names of the settings. Times in microseconds."""

    ack_timeout: int = 2 * SECOND
    random_factor: Fraction = Fraction(3, 2)
    alpha: Fraction = Fraction(1)
    restart_after: int = 93 * SECOND
    loss_signal: Literal["exhausted", "first-timeout"] = "exhausted"
    start_rate: Literal["4-per-rtt", "1-per-rtt", "1-per-second"] = "4-per-rtt"
    first_rtt: Literal["probe", "default"] = "probe"
    smoothing: Literal["last"] | Fraction = Fraction(1, 8)
    leftover: Literal["retransmitted", "dropped"] = "retransmitted"
    window: Literal["none", "alpha-t-lambda"] = "none"
    start_count: Literal["2-rtts", "1-rtt"] = "2-rtts"
    increase: Literal["per-rtt", "per-ack"] = "per-rtt"
    slowest: Literal["1-per-64-s", "1-per-timeout"] = "1-per-64-s"
    in_backoff: Literal["held", "paced"] = "held"
    timer: Literal["fixed", "rfc6298"] = "fixed"
    ends_backoff: Literal["any-answer", "clean-answer"] = "any-answer"


@dataclass
class RateExchange(Exchange):
    """Knows whether it began in the start-up."""

    of_start_up: bool = False


def over(number: int | Approx, divisor: Approx) -> Approx:
    """A quotient of two numbers neither of which need be exact."""
    number = approx(number)
    value = number.value / divisor.value
    highest = (number.value + number.bound) / (divisor.value - divisor.bound)
    return Approx(value, highest - value)


def whole_times(length: Approx, unit: Approx) -> tuple[int, int]:
    """How many times the unit goes into the length, at least and at most."""
    fewest = (length.value - length.bound) // (unit.value + unit.bound)
    return int(fewest), int((length.value + length.bound) // (unit.value - unit.bound))


class CoapPlus(Algorithm[RateExchange]):
    """Shared by the exchanges with a peer: the rate, in millionths of a message per second."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self._forget()

    def _forget(self) -> None:
        self.phase = Phase.PROBE
        self.paths = Estimator()
        if self.rules.smoothing == "last":
            self.paths.alpha = Fraction(1)
        self.rate = approx(0)
        self.answers = 0
        self.busy = False
        # When the phase began (in STEADY the running period, in RESTART when it ends).
        self.since: Approx | None = None
        # From when the next departure keeps its distance, and when the rate was last lowered.
        self.last: int | None = None
        self.lowered: int | None = None

    # Times and rates.

    def _rtt(self) -> Approx:
        srtt = self.paths.srtt
        return approx(self.rules.ack_timeout) if srtt is None else largest(srtt, GRANULARITY)

    def _begun(self) -> Approx:
        if self.since is None:
            raise ValueError("the phase has no beginning")
        return self.since

    def _bounded(self, rate: Approx) -> Approx:
        slowest = approx(SLOWEST)
        if self.rules.slowest == "1-per-timeout":
            slowest = over(UNIT, approx(self.rules.ack_timeout)).rounded()
        return smallest(largest(rate, slowest), FASTEST)

    def _increased(self) -> Approx:
        return self._bounded(self.rate + over(UNIT, self._rtt()).rounded())

    def _rate_at(self, now: int) -> Approx:
        if self.phase is not Phase.BACKOFF:
            return self.rate
        fewest, most = whole_times(approx(now) - self._begun(), self._rtt())
        rates = {self._bounded((self.rate / 2**silent).rounded()) for silent in (fewest, most)}
        if len(rates) > 1:
            raise TooClose
        return rates.pop()

    def _start_end(self) -> Approx:
        return self._begun() + self._rtt() * START_RTTS

    # What time alone does.

    def _catch_up(self, now: int) -> None:
        if self.phase is Phase.RESTART and not self._begun().above(now):
            self._forget()
        if self.phase is Phase.PROBE and self.rules.first_rtt == "default":
            self._start_up()
        if self.phase is Phase.START_UP and self.answers > 0 and not self._start_end().above(now):
            self._end_start_up(self._start_end())
        if self.phase is Phase.STEADY:
            elapsed, rtt = approx(now) - self._begun(), self._rtt()
            if not elapsed.below(rtt):
                if self.busy and self.rules.increase == "per-rtt":
                    self.rate = self._increased()
                self.busy = False
                self.since = self._begun() + rtt if elapsed.below(rtt * 2) else approx(now)

    def _start_up(self) -> None:
        self.phase, self.since, self.answers = Phase.START_UP, None, 0
        rates = {"4-per-rtt": over(4 * UNIT, self._rtt()), "1-per-rtt": over(UNIT, self._rtt())}
        self.rate = self._bounded(rates.get(self.rules.start_rate, approx(10**6)).rounded())

    def _end_start_up(self, at: Approx) -> None:
        rtts = START_RTTS if self.rules.start_count == "2-rtts" else 1
        self.rate = self._bounded(over(self.answers * UNIT, self._rtt() * rtts).rounded())
        self._steady(at)

    def _steady(self, at: Approx) -> None:
        self.phase, self.since, self.busy = Phase.STEADY, at, False

    def _has_failed(self, now: int) -> bool:
        started = self.phase is Phase.START_UP and self.since is not None and self.answers == 0
        return started and not self._start_end().above(now)

    def _is_over(self, now: int) -> bool:
        if self.phase is Phase.BACKOFF:
            return not (self._begun() + self.rules.restart_after).above(now)
        return self._has_failed(now)

    def _restart(self, cx: Cx) -> None:
        low, high = dithered(approx(self.rules.ack_timeout), self.rules.random_factor)
        pause = between(cx.chance, low, high)
        self._forget()
        self.phase, self.since = Phase.RESTART, pause + cx.now

    def _mark_loss(self, now: int) -> None:
        if self.phase is not Phase.STEADY:
            return
        if self.lowered is not None and self._rtt().above(now - self.lowered):
            return
        thousandths = self.rules.alpha * 1_000
        self.rate = self._bounded((self.rate * (thousandths / (thousandths + 1_000))).rounded())
        self.phase, self.since, self.lowered = Phase.BACKOFF, approx(now), now

    # The calls.

    def admit(self, kind: Class, cx: Cx) -> Moment:
        if kind == "plain":
            return None
        self._catch_up(cx.now)
        if self.phase is Phase.RESTART:
            return self._begun()
        if self.phase is Phase.PROBE:
            return "when-one-ends" if cx.open > 1 else None
        held = self.phase is Phase.BACKOFF and self.rules.in_backoff == "held"
        if held or self._has_failed(cx.now) or self._is_full(cx):
            return "when-one-ends"
        if self.last is None:
            return None
        at = over(UNIT, self._rate_at(cx.now)).rounded() + self.last
        if self.phase is Phase.STEADY and self.busy and self.rules.increase == "per-rtt":
            turn = self._begun() + self._rtt()
            if at.above(turn):
                # One more period ends before: then it leaves at the higher rate.
                at = largest(turn, over(UNIT, self._increased()).rounded() + self.last)
        return at if at.above(cx.now) else None

    def _is_full(self, cx: Cx) -> bool:
        if self.rules.window == "none":
            return False
        product = self._rate_at(cx.now).times(self._rtt()) / UNIT
        # In thousandths, cut.
        most = Approx(product.value, product.bound + Fraction(1, 1_000)) * self.rules.alpha
        return cx.open > 1 and most.below(cx.open)

    def start(self, cx: Cx) -> RateExchange:
        self._catch_up(cx.now)
        if self.phase is Phase.RESTART or self._has_failed(cx.now):
            self._forget()
            self._catch_up(cx.now)
        low, high = dithered(self._base(), self.rules.random_factor)
        first = between(cx.chance, low, high)
        of_start_up, abandons = self.phase is Phase.START_UP, False
        if of_start_up:
            if self.since is None:
                self.since = approx(cx.now)
            most = dithered(approx(self.rules.ack_timeout), self.rules.random_factor)[1] * 2
            left = self._start_end() - cx.now
            # Not retransmitted before the start-up ends.
            abandons = self.rules.leftover == "dropped" or left.above(most)
            first = largest(first, smallest(left, most))
        self.busy |= self.phase is Phase.STEADY and cx.waiting > 0
        self.last = cx.now
        return RateExchange(cx.now, first, "initial", first, abandons=abandons, of_start_up=of_start_up)

    def timeout(self, exchange: RateExchange, cx: Cx) -> tuple[Approx, Reason]:
        self._catch_up(cx.now)
        if exchange.retransmissions == 0 and not exchange.of_start_up and self.rules.loss_signal == "first-timeout":
            self._mark_loss(cx.now)
        self.last = cx.now
        if self._is_over(cx.now):
            self._restart(cx)
        return exchange.advance(backed_off(exchange.current, Fraction(2), None)), "backed-off"

    def reply(self, exchange: RateExchange, sample: Sample, cx: Cx) -> None:
        self._catch_up(cx.now)
        clean = sample.retransmissions == 0
        rtt = approx(sample.since_first) if clean and sample.grade == "exact" else None
        before = self.phase
        match before:
            case Phase.RESTART:
                return
            case Phase.PROBE:
                if rtt is not None:
                    self.paths.update(rtt)
                    self._start_up()
                return
            case Phase.BACKOFF:
                if self.rules.ends_backoff == "any-answer" or clean:
                    self.rate = self._rate_at(cx.now)
                    self._steady(approx(cx.now))
                    self.last = None
                elif cx.open <= 1:
                    self._restart(cx)
        if rtt is not None:
            self.paths.update(rtt)
        if self.phase is Phase.START_UP:
            self.answers += exchange.of_start_up and self.since is not None
            if self.answers > 0 and not self._start_end().above(cx.now):
                self._end_start_up(approx(cx.now))
        elif before is Phase.STEADY and self.rules.increase == "per-ack":
            self.rate = self._increased()

    def end(self, exchange: RateExchange, why: End, cx: Cx) -> None:
        self._catch_up(cx.now)
        if why == "gave-up" and not exchange.of_start_up and self.rules.loss_signal == "exhausted":
            self._mark_loss(cx.now)
        if self._is_over(cx.now) or (self.phase is Phase.BACKOFF and cx.open <= 1):
            self._restart(cx)

    def _base(self) -> Approx:
        if self.rules.timer == "fixed" or self.paths.samples == 0:
            return approx(self.rules.ack_timeout)
        return smallest(largest(self.paths.timeout(4), SECOND), 60 * SECOND)

    def view(self) -> View:
        return View(rto=self._base(), srtt=self.paths.srtt, rttvar=self.paths.rttvar)
