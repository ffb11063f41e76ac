"""Timers brought to CoAP from TCP, in the frame of Eclipse Californium.

Linux (Sarolahti and Kuznetsov 2002), Peak-Hopper (Ekström and Ludwig, INFOCOM 2004), and Californium's own Basic RTO.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from oracle.approx import Approx, Unstated, approx, between, largest, smallest
from oracle.calls import MILLISECOND, SECOND, Algorithm, Class, Cx, End, Exchange, Pacing, Reason, Sample, View
from oracle.parts import ZERO_TIME, Carried, backed_off, dithered, half_up, limited, whole_milliseconds


@dataclass(frozen=True)
class FrameRules:
    """What the three have in common, under the names of the settings. Times in microseconds."""

    ack_timeout: int = 2 * SECOND
    random_factor: Fraction = Fraction(1)
    backoff_factor: Fraction = Fraction(2)
    max_wait: int | None = 60 * SECOND
    max_estimate: int | None = 32 * SECOND
    blind: Literal["per-open", "doubling", "plain"] = "per-open"
    carry: Literal["none", "until-clean"] = "until-clean"


class Frame(Algorithm[Exchange]):
    """Californium's frame: an undithered timeout, doubled, and carried until a clean exchange."""

    def __init__(self, frame: FrameRules) -> None:
        self.frame = frame
        self.rto = approx(frame.ack_timeout)
        self.measured = False
        self.carried = Carried()
        self.pacing = Pacing(byte_a_second=False)

    def start(self, cx: Cx) -> Exchange:
        reason: Reason
        if self.carried.wait is not None:
            # Read through the same limit as the estimate.
            wait, reason = limited(self.carried.wait, self.frame.max_estimate), "carried"
        else:
            base = self.rto
            if not self.measured and self.frame.blind != "plain":
                base = base * (cx.open if self.frame.blind == "per-open" else 1 << cx.open - 1)
            base = limited(base, self.frame.max_estimate)
            wait = between(cx.chance, *dithered(base, self.frame.random_factor))
            reason = "initial" if self.measured else "blind"
        return Exchange(cx.now, wait, reason, wait)

    def timeout(self, exchange: Exchange, cx: Cx) -> tuple[Approx, Reason]:
        wait = backed_off(exchange.current, self.frame.backoff_factor, self.frame.max_wait)
        return exchange.advance(wait), "backed-off"

    def reply(self, exchange: Exchange, sample: Sample, cx: Cx) -> None:
        if sample.kind != "separate" and self.accepts(sample):
            self.update(sample.since_first)
            self.measured = True
        if self.frame.carry == "none":
            return
        if sample.retransmissions > 0:
            self.carried.keep(exchange.current, cx.open > 1)
        else:
            self.carried.drop()

    def accepts(self, sample: Sample) -> bool:
        """Whether the exchange is a sample: only a clean one."""
        return sample.retransmissions == 0

    @abstractmethod
    def update(self, rtt: int) -> None:
        """Take a sample, in microseconds."""

    def end(self, exchange: Exchange, why: End, cx: Cx) -> None:
        if self.frame.carry != "none":
            self.carried.ended(exchange, why == "gave-up", cx.open > 1)

    def plain(self, length: int, cx: Cx) -> None:
        self.pacing.sent(length, self.rto, cx.now)

    def admit(self, kind: Class, cx: Cx) -> Approx | None:
        return self.pacing.admit(cx.now) if kind == "plain" else None

    def view(self) -> View:
        return View(rto=self.rto, carried=self.carried.wait)


@dataclass(frozen=True)
class LinuxRules:
    """Parameters of the Linux estimator."""

    order: Literal["kernel", "californium"] = "kernel"
    least_variation: int = 50 * MILLISECOND


class Linux(Frame):
    """SRTT, mdev, mdev_max and RTTVAR (E11). Every sample closes a window."""

    def __init__(self, frame: FrameRules, rules: LinuxRules) -> None:
        super().__init__(frame)
        self.rules = rules
        self.srtt = self.mdev = self.mdev_max = self.rttvar = ZERO_TIME

    def update(self, rtt: int) -> None:
        if self.rules.order == "californium":
            self._in_milliseconds(whole_milliseconds(rtt))
        elif self.measured:
            self._in_kernel_order(approx(rtt))
        else:
            self.srtt = approx(rtt)
            self.mdev = (self.srtt / 2).rounded()
            self.mdev_max = self.rttvar = largest(self.mdev, self.rules.least_variation)
        self.rto = self.srtt + self.rttvar * 4

    def _in_kernel_order(self, rtt: Approx) -> None:
        deviation = self.srtt.distance(rtt)
        falls_sharply = rtt.below(self.srtt - self.mdev)
        # SRTT + err/8, written so that the bound of SRTT counts once.
        self.srtt = (self.srtt * Fraction(7, 8) + rtt / 8).rounded()
        gain = Fraction(1, 32) if falls_sharply else Fraction(1, 4)
        self.mdev = (self.mdev * (1 - gain) + deviation * gain).rounded()
        # RTTVAR is never below mdev_max, so that taking the larger is the same as taking it where mdev grew.
        self.mdev_max = largest(self.mdev_max, self.mdev)
        self.rttvar = largest(self.rttvar, self.mdev_max)
        # And where they are equal, the end of the window changes nothing.
        self.rttvar = (self.rttvar * Fraction(3, 4) + self.mdev_max / 4).rounded()
        self.mdev_max = approx(self.rules.least_variation)

    def _in_milliseconds(self, rtt: int) -> None:
        least = whole_milliseconds(self.rules.least_variation)
        if not self.measured:
            srtt, mdev = rtt, half_up(Fraction(rtt, 2))
            mdev_max = rttvar = max(mdev, least)
        else:
            srtt, mdev, mdev_max, rttvar = (
                int(number.value) // MILLISECOND for number in (self.srtt, self.mdev, self.mdev_max, self.rttvar)
            )
            srtt += half_up(Fraction(rtt - srtt, 8))
            deviation = abs(rtt - srtt)
            gain = Fraction(1, 32) if rtt < srtt - mdev else Fraction(1, 4)
            mdev = half_up(mdev * (1 - gain)) + half_up(deviation * gain)
            mdev_max = max(mdev_max, mdev)
            rttvar = max(rttvar, mdev_max)
            if mdev_max < rttvar:
                rttvar = half_up(rttvar * Fraction(3, 4)) + half_up(Fraction(mdev_max, 4))
            mdev_max = least
        self.srtt, self.mdev, self.mdev_max, self.rttvar = (
            approx(number * MILLISECOND) for number in (srtt, mdev, mdev_max, rttvar)
        )

    def view(self) -> View:
        if not self.measured:
            return super().view()
        return View(rto=self.rto, srtt=self.srtt, rttvar=self.rttvar, carried=self.carried.wait)


@dataclass(frozen=True)
class PeakHopperRules:
    """Parameters of Peak-Hopper."""

    order: Literal["californium", "original"] = "californium"
    previous: Literal["zero", "first-sample"] = "zero"
    first_bonus: Fraction = Fraction(0)


class PeakHopper(Frame):
    """The larger of the last two samples and a bonus for change, both decaying (E12)."""

    DECAY = Fraction(23, 24)
    FIRST = Fraction(7, 4)
    HEADROOM = 100 * MILLISECOND
    GRAIN = Fraction(1, 1 << 23)
    """Fractions are kept with at least 24 fractional bits, rounded or cut: off by at most half of this."""

    def __init__(self, frame: FrameRules, rules: PeakHopperRules) -> None:
        super().__init__(frame)
        self.rules = rules
        self.bonus = approx(0)
        self.previous = 0

    def update(self, rtt: int) -> None:
        if rtt == 0:
            raise Unstated
        if not self.measured:
            self._first(rtt)
            return
        original = self.rules.order == "original"
        if original:
            if self.previous == 0:
                raise Unstated
            change = approx(Fraction(rtt - self.previous, self.previous)).rounded(self.GRAIN)
        else:
            change = approx(Fraction(abs(rtt - self.previous), rtt)).rounded(self.GRAIN) * 2
        self.bonus = largest(change, (self.bonus * self.DECAY).rounded(self.GRAIN))
        if not original:
            self.bonus = smallest(self.bonus, 1)
        longest = max(rtt, self.previous)
        decayed = (self.rto * self.DECAY).rounded()
        raised = ((self.bonus + 1) * longest).rounded()
        floor = MILLISECOND if original else longest + self.HEADROOM
        self.rto = largest(decayed, raised, floor)
        self.previous = rtt

    def _first(self, rtt: int) -> None:
        self.rto = (approx(rtt) * self.FIRST).rounded()
        if self.rules.order == "original":
            self.rto = largest(self.rto, MILLISECOND)
        elif self.rto.below(rtt + self.HEADROOM):
            raise Unstated  # Whether the floor holds for the first timeout.
        self.bonus = approx(self.rules.first_bonus)
        if self.rules.previous == "first-sample":
            self.previous = rtt


@dataclass(frozen=True)
class BasicRules:
    """Parameters of Basic RTO."""

    weak_retransmissions: int = 2


class Basic(Frame):
    """One and a half times the last sample, which may be ambiguous by two retransmissions (E13)."""

    def __init__(self, frame: FrameRules, rules: BasicRules) -> None:
        super().__init__(frame)
        self.rules = rules

    def accepts(self, sample: Sample) -> bool:
        return sample.retransmissions <= self.rules.weak_retransmissions

    def update(self, rtt: int) -> None:
        self.rto = (approx(rtt) * Fraction(3, 2)).rounded()
