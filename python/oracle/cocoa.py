"""CoCoA from its first draft (draft-bormann-core-cocoa-00) to its last, its variants, and Full Backoff over it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from oracle.approx import Approx, approx, between, largest, smallest
from oracle.calls import SECOND, Algorithm, Class, Cx, End, Exchange, Pacing, Reason, Sample, View
from oracle.parts import ZERO_TIME, Carried, Carry, Estimator, aged, backed_off, dithered, limited


@dataclass(frozen=True)
class Rules:
    """The parameters, under the names of the settings. Times in microseconds; a limit of `None` is none."""

    ack_timeout: int = 2 * SECOND
    random_factor: Fraction = Fraction(3, 2)
    max_wait: int | None = 32 * SECOND
    max_estimate: int | None = 32 * SECOND
    carry: Carry = "none"
    gains: Literal["rfc6298", "swapped"] = "rfc6298"
    strong_k: int = 4
    strong_share: Fraction = Fraction(1, 2)
    weak_k: int = 1
    weak_share: Fraction = Fraction(1, 4)
    weak_retransmissions: int = 2
    vbf: Literal["stepwise", "per-exchange", "by-estimate"] = "stepwise"
    vbf_low: Fraction = Fraction(3)
    vbf_middle: Fraction = Fraction(2)
    vbf_high: Fraction = Fraction(3, 2)
    vbf_short: int = SECOND
    vbf_long: int = 3 * SECOND
    blind: Literal["per-open", "doubling", "plain"] = "per-open"
    ageing: str = "draft-03"
    learns_from: Literal["copies", "echo", "number", "flag"] = "copies"


@dataclass
class CocoaExchange(Exchange):
    """Also holds what its backoff factor hangs on."""

    factor: Fraction | None = None
    """Fixed for the whole exchange, or `None` if chosen anew at every expiry (D8)."""


class Cocoa(Algorithm[CocoaExchange]):
    """Two estimators and the average of both."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.strong = Estimator(rules.gains)
        self.weak = Estimator(rules.gains)
        self.rto = approx(rules.ack_timeout)
        self.changed = ZERO_TIME
        self.measured = False
        self.longest_rtt = ZERO_TIME
        self.carried = Carried()
        self.pacing = Pacing(byte_a_second=True)

    # Waits.

    def start(self, cx: Cx) -> CocoaExchange:
        if self.measured:
            self.rto, self.changed = aged(self.rules.ageing, self.rto, self.changed, cx.now)
        reason: Reason
        if self.carried.wait is not None:
            # Not dithered again: it contains a draw already.
            base = wait = self.carried.wait
            reason = "carried"
        else:
            base = limited(self._base(cx.open), self.rules.max_estimate)
            wait = between(cx.chance, *dithered(base, self.rules.random_factor))
            reason = "initial" if self.measured else "blind"
        factor = None
        if self.rules.vbf == "per-exchange":
            factor = self._factor(wait)
        elif self.rules.vbf == "by-estimate":
            factor = self._factor(base)
        return CocoaExchange(cx.now, wait, reason, wait, factor=factor)

    def _base(self, exchanges: int) -> Approx:
        """The timeout, or what stands in for it before the first sample (E2, E3)."""
        if self.measured or self.rules.blind == "plain":
            return self.rto
        if self.rules.blind == "per-open":
            return self.rto * exchanges
        return self.rto * (1 << exchanges - 1)

    def _factor(self, wait: Approx) -> Fraction:
        if wait.below(self.rules.vbf_short):
            return self.rules.vbf_low
        return self.rules.vbf_high if wait.above(self.rules.vbf_long) else self.rules.vbf_middle

    def _step(self, wait: Approx, exchange: CocoaExchange) -> Approx:
        factor = self._factor(wait) if exchange.factor is None else exchange.factor
        return backed_off(wait, factor, self.rules.max_wait)

    def timeout(self, exchange: CocoaExchange, cx: Cx) -> tuple[Approx, Reason]:
        return exchange.advance(self._step(exchange.current, exchange)), "backed-off"

    # Evidence.

    def reply(self, exchange: CocoaExchange, sample: Sample, cx: Cx) -> None:
        # D14: a persisted backoff was this exchange's timeout; one of the estimators is read through its limit (D9).
        before = exchange.first if exchange.reason == "carried" else limited(self.rto, self.rules.max_estimate)
        updated = self._learn(exchange, sample)
        if updated:
            self.changed = approx(cx.now)
            self.measured = True
        if self.rules.carry == "none":
            return
        if sample.retransmissions == 0:
            self.carried.drop()
            return
        kept = exchange.current
        if self.rules.carry == "full-backoff-2":
            kept = largest(before, limited(self.rto, self.rules.max_estimate)) if updated else before
            for _ in range(sample.retransmissions):
                kept = self._step(kept, exchange)
        self.carried.keep(kept, cx.open > 1)

    def _learn(self, exchange: CocoaExchange, sample: Sample) -> bool:
        """Moves estimators and timeout; says whether anything moved. A separate response moves nothing (D2, E14)."""
        if sample.kind == "separate":
            return False
        if sample.retransmissions == 0:
            return self._strong(sample.since_first)
        match self.rules.learns_from:
            case "copies":
                if sample.retransmissions > self.rules.weak_retransmissions:
                    return False
                return self._weak(approx(sample.since_first))
            case "echo":
                return isinstance(sample.copy, int) and self._strong(sample.age)
            case "number":
                return self._learn_from_number(sample)
            case "flag":
                return self._learn_from_flag(exchange, sample)

    def _learn_from_number(self, sample: Sample) -> bool:
        """E7."""
        if sample.copy == 0:
            return self._congested(sample.since_first)
        return isinstance(sample.copy, int) and self._strong(sample.age)

    def _learn_from_flag(self, exchange: CocoaExchange, sample: Sample) -> bool:
        """E8."""
        if sample.copy is None:
            return False
        if sample.copy == 0:
            return self._congested(sample.since_first)
        guess = largest(ZERO_TIME, approx(sample.since_first) - exchange.first)
        if self.strong.srtt is not None:
            guess = (smallest if sample.retransmissions == 1 else largest)(guess, self.strong.srtt)
        return self._weak(guess)

    def _congested(self, rtt: int) -> bool:
        """The first copy was answered and copied all the same: the timeout was too short."""
        self.longest_rtt = largest(self.longest_rtt, rtt)
        self.rto = self.longest_rtt
        return True

    def _strong(self, rtt: int) -> bool:
        return self._mix(self.strong, approx(rtt), self.rules.strong_k, self.rules.strong_share)

    def _weak(self, rtt: Approx) -> bool:
        return self._mix(self.weak, rtt, self.rules.weak_k, self.rules.weak_share)

    def _mix(self, estimator: Estimator, rtt: Approx, k: int, share: Fraction) -> bool:
        estimator.update(rtt)
        self.longest_rtt = largest(self.longest_rtt, rtt)
        self.rto = (estimator.timeout(k) * share + self.rto * (1 - share)).rounded()
        return True

    def end(self, exchange: CocoaExchange, why: End, cx: Cx) -> None:
        if self.rules.carry != "none":
            self.carried.ended(exchange, why == "gave-up", cx.open > 1)

    # Everything else.

    def plain(self, length: int, cx: Cx) -> None:
        rto = self.rto
        if self.measured:
            rto, _ = aged(self.rules.ageing, rto, self.changed, cx.now)
        self.pacing.sent(length, rto, cx.now)

    def admit(self, kind: Class, cx: Cx) -> Approx | None:
        return self.pacing.admit(cx.now) if kind == "plain" else None

    def view(self) -> View:
        return View(self.rto, self.strong.srtt, self.strong.rttvar, self.weak.srtt, self.weak.rttvar, self.carried.wait)
