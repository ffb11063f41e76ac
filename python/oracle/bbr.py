"""BBR version 1 for confirmable messages, with the readings B1 to B6."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from oracle.approx import Approx, TooClose, approx, between, largest, smallest
from oracle.calls import SECOND, Algorithm, Class, Cx, End, Exchange, Moment, Reason, Sample, View
from oracle.coap_plus import UNIT, over
from oracle.parts import Estimator, backed_off, dithered

HIGH = Fraction(739, 256)
DRAIN = Fraction(88, 256)
CYCLE = (Fraction(5, 4), Fraction(3, 4), *[Fraction(1)] * 6)
EPOCH = 5
LEAST, MOST = 4, 256
MIN_RTT_LASTS = 10 * SECOND
PROBE_RTT = SECOND // 5


class Mode(Enum):
    """What BBR is doing."""

    PROBE = 0
    START_UP = 1
    DRAIN = 2
    PROBE_RATE = 3
    PROBE_RTT = 4


@dataclass(frozen=True)
class Rules:
    """The parameters, under the names of the settings. Times in microseconds."""

    ack_timeout: int = 2 * SECOND
    random_factor: Fraction = Fraction(3, 2)
    max_wait: int | None = 60 * SECOND


@dataclass
class PathExchange(Exchange):
    """Knows what was delivered when it began, whether anything waited behind it, and whether it was alone."""

    delivered: int = 0
    limited: bool = False
    alone: bool = False


class Bbr(Algorithm[PathExchange]):
    """Rates in millionths of a message per second."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.paths = Estimator()
        self.mode = Mode.PROBE
        self.last: int | None = None
        self.since: int | None = 0
        self.min_rtt: int | None = None
        self.min_rtt_at = 0
        self.best = self.best_before = self.full = approx(0)
        self.delivered = self.round_ends = self.rounds = self.stalled = self.phase = 0
        self.window = LEAST
        self.has_round = False

    # The path.

    def _rate(self) -> Approx:
        return largest(self.best, self.best_before)

    def _target(self, gain: Fraction) -> int:
        if self.min_rtt is None:
            raise ValueError("no round-trip time yet")
        product = self._rate() * self.min_rtt / UNIT
        # In thousandths, cut.
        low, high = ((product.value + sign * product.bound) * 1_000 // 1 for sign in (-1, 1))
        counts = {-(-thousandths * gain // 1_000) for thousandths in (low, high)}
        if len(counts) > 1:
            raise TooClose
        messages = int(counts.pop()) + 3
        messages += messages % 2
        if self.mode is Mode.PROBE_RATE and gain > 1:
            messages += 2
        return min(messages, MOST)

    def _gain(self) -> Fraction:
        gains = {Mode.START_UP: HIGH, Mode.DRAIN: DRAIN, Mode.PROBE_RATE: CYCLE[self.phase]}
        return gains.get(self.mode, Fraction(1))

    def _base(self) -> Approx:
        if self.paths.samples == 0:
            return approx(self.rules.ack_timeout)
        return smallest(largest(self.paths.timeout(4), SECOND), 60 * SECOND)

    # The calls.

    def admit(self, kind: Class, cx: Cx) -> Moment:
        if kind == "plain":
            return None
        allowed = {Mode.PROBE: 1, Mode.PROBE_RTT: min(self.window, LEAST)}.get(self.mode, self.window)
        if cx.open > allowed:
            return "when-one-ends"
        if self.mode is Mode.PROBE or self.last is None:
            return None
        at = over(UNIT, (self._rate() * self._gain()).rounded()).rounded() + self.last
        return at if at.above(cx.now) else None

    def start(self, cx: Cx) -> PathExchange:
        low, high = dithered(self._base(), self.rules.random_factor)
        first = between(cx.chance, low, high)
        self.last = cx.now
        limited, alone = cx.waiting == 0, cx.open <= 1
        return PathExchange(cx.now, first, "initial", first, delivered=self.delivered, limited=limited, alone=alone)

    def timeout(self, exchange: PathExchange, cx: Cx) -> tuple[Approx, Reason]:
        if exchange.retransmissions == 0 and self.mode is not Mode.PROBE:
            self.window, self.full = 1, approx(0)
        self.last = cx.now
        return exchange.advance(backed_off(exchange.current, Fraction(2), self.rules.max_wait)), "backed-off"

    def reply(self, exchange: PathExchange, sample: Sample, cx: Cx) -> None:
        self.delivered += 1
        clean = sample.retransmissions == 0 and sample.grade == "exact"
        rtt = max(sample.since_first, 1)
        starts = False
        if clean:
            self.paths.update(approx(sample.since_first))
            starts = self._measure(exchange, rtt)
        if self.mode is Mode.PROBE_RATE and self._phase_is_over(cx):
            self._next_phase(cx)
        if starts and not exchange.limited:
            self._check_growth()
        if self.mode is Mode.START_UP and self.stalled >= 3:
            self.mode = Mode.DRAIN
        if self.mode is Mode.DRAIN and cx.open - 1 <= self._target(Fraction(1)):
            self._probe_rate(cx)
        if clean:
            self._take_min_rtt(rtt, exchange, cx)
        if self.mode is Mode.PROBE_RTT:
            self._probe_rtt(starts, cx)
        self._grow()

    def _measure(self, exchange: PathExchange, rtt: int) -> bool:
        starts = exchange.delivered >= self.round_ends
        if starts:
            self.round_ends = self.delivered
            self.rounds += 1
            if self.rounds >= EPOCH:
                self.best_before, self.best, self.rounds = self.best, approx(0), 0
        rate = over((self.delivered - exchange.delivered) * UNIT, approx(rtt)).rounded()
        if not exchange.limited or not rate.below(self._rate()):
            self.best = largest(self.best, rate)
        if self.mode is Mode.PROBE:
            self.mode = Mode.START_UP
        return starts

    def _phase_is_over(self, cx: Cx) -> bool:
        if self.since is None or self.min_rtt is None:
            raise ValueError("no phase has begun")
        gain, is_long = CYCLE[self.phase], cx.now - self.since > self.min_rtt
        if gain > 1:
            return is_long and cx.open >= self._target(gain)
        if gain < 1:
            return is_long or cx.open <= self._target(Fraction(1))
        return is_long

    def _next_phase(self, cx: Cx) -> None:
        self.phase = (self.phase + 1) % len(CYCLE)
        self.since = cx.now

    def _probe_rate(self, cx: Cx) -> None:
        self.mode = Mode.PROBE_RATE
        # One of seven, each as likely.
        self.phase = len(CYCLE) - 1 - (7 * cx.chance >> 32)
        self._next_phase(cx)

    def _check_growth(self) -> None:
        if self.stalled >= 3:
            return
        if self._rate().below((self.full * Fraction(5, 4)).rounded()):
            self.stalled += 1
        else:
            self.full, self.stalled = self._rate(), 0

    def _take_min_rtt(self, rtt: int, exchange: PathExchange, cx: Cx) -> None:
        old = cx.now - self.min_rtt_at > MIN_RTT_LASTS
        if self.min_rtt is None or rtt <= self.min_rtt or old:
            self.min_rtt, self.min_rtt_at = rtt, cx.now
        if old and not exchange.alone and self.mode is not Mode.PROBE_RTT:
            self.mode, self.since, self.has_round = Mode.PROBE_RTT, None, False

    def _probe_rtt(self, starts: bool, cx: Cx) -> None:
        if self.since is None:
            if cx.open - 1 <= LEAST:
                self.since, self.round_ends = cx.now + PROBE_RTT, self.delivered
            return
        self.has_round |= starts
        if self.has_round and cx.now > self.since:
            self.min_rtt_at = cx.now
            if self.stalled >= 3:
                self._probe_rate(cx)
            else:
                self.mode = Mode.START_UP

    def _grow(self) -> None:
        if self.mode in (Mode.PROBE, Mode.PROBE_RTT):
            return
        target = self._target(Fraction(2) if self.mode is Mode.PROBE_RATE else HIGH)
        grown = min(self.window + 1, target)
        self.window = grown if self.stalled >= 3 else max(grown, self.window)
        self.window = min(max(self.window, LEAST), MOST)

    def end(self, exchange: PathExchange, why: End, cx: Cx) -> None:
        """Nothing is learnt."""

    def view(self) -> View:
        return View(rto=self._base(), srtt=self.paths.srtt, rttvar=self.paths.rttvar)
