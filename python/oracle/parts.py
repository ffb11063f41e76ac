"""Rules that several algorithms share."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from oracle.approx import HALF, Approx, Unstated, approx, largest, smallest
from oracle.calls import SECOND, Exchange

GRANULARITY = 1
"""The clock granularity G of RFC 6298, one microsecond (E9)."""

ZERO_TIME = approx(0)

Carry = Literal["none", "full-backoff-1", "full-backoff-2"]


class Estimator:
    """SRTT and RTTVAR of RFC 6298 §2."""

    def __init__(self, gains: Literal["rfc6298", "swapped"] = "rfc6298", first_variation: Fraction = HALF) -> None:
        # D1: some implementations exchange the two gains.
        self.alpha, self.beta = {
            "rfc6298": (Fraction(1, 8), Fraction(1, 4)),
            "swapped": (Fraction(1, 4), Fraction(1, 8)),
        }[gains]
        self.first_variation = first_variation
        self.srtt: Approx | None = None
        self.rttvar: Approx | None = None
        self.samples = 0

    def update(self, sample: Approx) -> None:
        """Take a sample."""
        self.samples += 1
        if self.srtt is None or self.rttvar is None:
            self.srtt = sample
            self.rttvar = (sample * self.first_variation).rounded()
            return
        deviation = self.srtt.distance(sample)
        self.rttvar = (self.rttvar * (1 - self.beta) + deviation * self.beta).rounded()
        self.srtt = (self.srtt * (1 - self.alpha) + sample * self.alpha).rounded()

    def timeout(self, k: int) -> Approx:
        """SRTT + max(G, K·RTTVAR)."""
        if self.srtt is None or self.rttvar is None:
            raise ValueError("no sample yet")
        return (self.srtt + largest(GRANULARITY, self.rttvar * k)).in_reach()


def limited(wait: Approx, cap: int | None) -> Approx:
    """Not above the cap, if there is one."""
    return wait if cap is None else smallest(wait, cap)


def backed_off(wait: Approx, factor: Fraction, cap: int | None) -> Approx:
    """The next wait: multiplied, limited, and never shorter than the one before (D9)."""
    longer = (wait * factor).rounded()
    return longer if cap is None else smallest(longer, largest(cap, wait))


def dithered(base: Approx, factor: Fraction) -> tuple[Approx, Approx]:
    """The interval of a first wait, [base, factor·base] (D4)."""
    return base, (base * factor).rounded().in_reach()


class Carried:
    """A backed-off wait that outlives its exchange (Full Backoff, ANRW 2018 §4.2)."""

    def __init__(self) -> None:
        self.wait: Approx | None = None
        self.halved = False

    def keep(self, wait: Approx, others_open: bool) -> None:
        """A wait was backed off. While other exchanges are open the longer of old and new stays."""
        if others_open and self.wait is not None:
            self.halved = self.halved and self.wait.above(wait)
            self.wait = largest(self.wait, wait)
        else:
            self.wait, self.halved = wait, False

    def drop(self) -> None:
        """Nothing is carried any more."""
        self.wait, self.halved = None, False

    def halve(self, initial: int) -> None:
        """A clean exchange under Full Backoff 2: half of it, or nothing once that reaches the initial timeout."""
        if self.wait is None:
            return
        half = (self.wait / 2).rounded()
        if half.above(initial):
            self.wait, self.halved = half, True
        else:
            self.drop()

    def ended(self, exchange: Exchange, gave_up: bool, others_open: bool) -> None:
        """No answer: giving up always leaves the wait in force, reset and cancel only a backed-off one (D3, E14)."""
        if gave_up or exchange.retransmissions > 0:
            self.keep(exchange.current, others_open)


Aged = tuple[Approx, Approx]
"""A timeout, and when it became that. Silence is counted from there (E15)."""


def aged(rule: str, rto: Approx, changed: Approx, now: int) -> Aged:
    """What silence made of the timeout by now. Every comparison is strict."""
    match rule:
        case "none":
            return rto, changed
        case "draft-03":
            return _aged_in_steps(rto, changed, now, large_too=True)
        case "cocoa-00-doubling":
            return _aged_in_steps(rto, changed, now, large_too=False)
        case "cocoa+":
            return _aged_as_cocoa_plus(rto, changed, now)
        case "cocoa-00":
            return _aged_to_a_second(rto, changed, now)
        case "cocoa-00-eighth":
            return _aged_to_an_eighth(rto, changed, now)
    raise ValueError(rule)


def _aged_in_steps(rto: Approx, changed: Approx, now: int, *, large_too: bool) -> Aged:
    """Below 1 s doubled after 16 times itself; above 3 s 1 s + half after 4 times itself; step after step (D10)."""
    while True:
        if rto.below(SECOND):
            silence, next_rto = rto * 16, rto * 2
        elif large_too and rto.above(3 * SECOND):
            silence, next_rto = rto * 4, (rto / 2 + SECOND).rounded()
        else:
            return rto, changed
        if not (approx(now) - changed).above(silence):
            return rto, changed
        rto, changed = next_rto, changed + silence


def _aged_to_a_second(rto: Approx, changed: Approx, now: int) -> Aged:
    """Below 1 s to 1 s after more than 16 times itself (E2)."""
    if rto.below(SECOND) and (approx(now) - changed).above(rto * 16):
        return approx(SECOND), approx(now)
    return rto, changed


def _aged_as_cocoa_plus(rto: Approx, changed: Approx, now: int) -> Aged:
    """The same, and above 2 s half-way to 2 s after more than 30 s; one step per first transmission (D7)."""
    if rto.above(2 * SECOND) and (approx(now) - changed).above(30 * SECOND):
        return (rto / 2 + SECOND).rounded(), approx(now)
    return _aged_to_a_second(rto, changed, now)


def _aged_to_an_eighth(rto: Approx, changed: Approx, now: int) -> Aged:
    """Below 1 s to an eighth of the silence, if that is longer, after more than 16 times itself (E2)."""
    silence = approx(now) - changed
    if rto.below(SECOND) and silence.above(rto * 16):
        return largest(rto, (silence / 8).rounded()), approx(now)
    return rto, changed


def whole_milliseconds(time: int) -> int:
    """A time as a count of milliseconds; how a fraction of one is rounded nobody says."""
    milliseconds, rest = divmod(time, 1_000)
    if rest:
        raise Unstated
    return milliseconds


def half_up(value: Fraction) -> int:
    """The nearest whole number, halves up."""
    return (value + HALF).__floor__()
