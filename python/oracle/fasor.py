"""FASOR: a fast and a slow timeout and the order in which they are tried (draft-ietf-core-fasor-02 §4)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction
from typing import Literal

from oracle.approx import HALF, Approx, approx, between, largest
from oracle.calls import SECOND, Algorithm, Class, Cx, End, Exchange, Pacing, Reason, Sample, View
from oracle.parts import ZERO_TIME, Estimator, backed_off, limited


class State(IntEnum):
    """Which series the next exchange gets. One step down is one more."""

    FAST = 0
    FAST_SLOW_FAST = 1
    SLOW_FAST = 2


@dataclass(frozen=True)
class Rules:
    """The parameters, under the names of the settings. Times in microseconds; a limit of `None` is none."""

    ack_timeout: int = 2 * SECOND
    fasor_init: Literal["text", "pseudocode"] = "text"
    dither: Literal["text", "none"] = "text"
    slow_factor: Fraction = Fraction(3, 2)
    max_wait: int | None = 60 * SECOND
    max_slow: int | None = 247 * SECOND
    give_up: Literal["step-down", "keep"] = "step-down"
    echo: Literal["trusted", "exact-only"] = "trusted"
    naming: Literal["none", "token", "count"] = "none"


@dataclass
class FasorExchange(Exchange):
    """Holds its series, fixed when it began (D16)."""

    series: State = State.FAST
    fast: Approx = ZERO_TIME
    slow: Approx = ZERO_TIME


class Fasor(Algorithm[FasorExchange]):
    """Shared by the exchanges with a peer: FastRTO, SlowRTO and the state."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        # D15: R/8 and K = 4 from the start, or R/2 and K = 1 for the first timeout only.
        self.fast = Estimator(first_variation=Fraction(1, 8) if rules.fasor_init == "text" else HALF)
        self.slow = ZERO_TIME
        self.state = State.FAST
        self.last_sample: Approx | None = None
        self.pacing = Pacing(byte_a_second=True)

    def _rto(self) -> Approx:
        if self.fast.samples == 0:
            return approx(self.rules.ack_timeout)
        first_of_pseudocode = self.fast.samples == 1 and self.rules.fasor_init == "pseudocode"
        return self.fast.timeout(1 if first_of_pseudocode else 4)

    def _draw(self, chance: int) -> Approx:
        """FastRTO for one exchange, from [RTO + SRTT/4, RTO + SRTT]."""
        base = self._rto()
        if self.last_sample is not None:
            base = largest(base, self.last_sample)
        if self.rules.dither == "none":
            return base
        srtt = self.fast.srtt
        if srtt is None:
            srtt = (approx(self.rules.ack_timeout) / 3).rounded()
        return between(chance, base + (srtt / 4).rounded(), base + srtt)

    def start(self, cx: Cx) -> FasorExchange:
        fast = self._draw(cx.chance)
        if self.rules.max_wait is not None and self.rules.max_slow is not None:
            # No wait lies above the larger of the two caps, or no lifetime of an exchange could be expressed (D6, E9).
            fast = limited(fast, max(self.rules.max_wait, self.rules.max_slow))
        if self.state is State.SLOW_FAST:
            return FasorExchange(cx.now, self.slow, "slow", self.slow, series=self.state, fast=fast, slow=self.slow)
        reason: Reason = "initial" if self.fast.samples else "blind"
        return FasorExchange(cx.now, fast, reason, fast, series=self.state, fast=fast, slow=self.slow)

    def timeout(self, exchange: FasorExchange, cx: Cx) -> tuple[Approx, Reason]:
        copy = exchange.retransmissions + 1
        # FAST goes on from F, the others go back to F once: every member is F doubled so many times, each limited.
        doublings = copy if exchange.series is State.FAST else copy - 1
        if exchange.series is State.FAST_SLOW_FAST and copy == 1:
            doublings = 1
        wait = exchange.fast
        for _ in range(doublings):
            wait = self._doubled(wait)
        reason: Reason = "backed-off"
        if exchange.series is State.FAST_SLOW_FAST and copy == 1:
            if exchange.slow.above(wait):
                reason = "slow"
            wait = largest(exchange.slow, wait)
        return exchange.advance(wait), reason

    def _doubled(self, wait: Approx) -> Approx:
        return backed_off(wait, Fraction(2), self.rules.max_wait)

    def reply(self, exchange: FasorExchange, sample: Sample, cx: Cx) -> None:
        if sample.kind == "separate":
            self.last_sample = None
            return
        rtt = self._unambiguous(sample)
        if rtt is None:
            self._slower(sample.since_first)
            self.last_sample = None
            return
        self.fast.update(approx(rtt))
        self.state = State.FAST
        if self.rules.naming != "none":
            self.last_sample = approx(rtt)

    def _unambiguous(self, sample: Sample) -> int | None:
        """E9, E10: a clean exchange, or a copy told by its name."""
        if sample.retransmissions == 0:
            return sample.since_first
        if self.rules.naming == "none" or not isinstance(sample.copy, int):
            return None
        if sample.grade == "echoed" and self.rules.echo == "exact-only":
            return None
        return sample.age

    def _slower(self, elapsed: int) -> None:
        self.slow = limited((approx(elapsed) * self.rules.slow_factor).rounded(), self.rules.max_slow)
        self.state = State(min(self.state + 1, State.SLOW_FAST))

    def end(self, exchange: FasorExchange, why: End, cx: Cx) -> None:
        self.last_sample = None
        if why == "gave-up" and self.rules.give_up == "step-down":
            self._slower(cx.now - exchange.started)

    def plain(self, length: int, cx: Cx) -> None:
        self.pacing.sent(length, self._rto(), cx.now)

    def admit(self, kind: Class, cx: Cx) -> Approx | None:
        return self.pacing.admit(cx.now) if kind == "plain" else None

    def view(self) -> View:
        return View(rto=self._rto(), srtt=self.fast.srtt, rttvar=self.fast.rttvar)
