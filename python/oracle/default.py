"""The timer of RFC 7252, with and without Full Backoff (RFC 7252 §4.2; ANRW 2018, §4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from oracle.approx import Approx, Unstated, approx, between
from oracle.calls import SECOND, Algorithm, Cx, End, Exchange, Reason, Sample, View
from oracle.parts import Carried, Carry, backed_off, dithered


@dataclass(frozen=True)
class Rules:
    """The parameters, under the names of the settings. Times in microseconds; a cap of `None` is none."""

    ack_timeout: int = 2 * SECOND
    random_factor: Fraction = Fraction(3, 2)
    backoff_factor: Fraction = Fraction(2)
    max_wait: int | None = None
    carry: Carry = "none"


class Default(Algorithm[Exchange]):
    """Learns nothing, except the carried wait of Full Backoff."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.carried = Carried()

    def start(self, cx: Cx) -> Exchange:
        wait, reason = self._first(cx)
        return Exchange(cx.now, wait, reason, wait)

    def _first(self, cx: Cx) -> tuple[Approx, Reason]:
        low, high = dithered(approx(self.rules.ack_timeout), self.rules.random_factor)
        draw = between(cx.chance, low, high)
        carried = self.carried.wait
        if carried is None:
            return draw, "initial"
        if self.rules.carry == "full-backoff-2":
            # D13: a halved wait is measured against a fresh draw. Of a wait just backed off nothing is said.
            if draw.value == carried.value:
                raise Unstated
            if draw.above(carried):
                if not self.carried.halved:
                    raise Unstated
                self.carried.drop()
                return draw, "initial"
        return carried, "carried"

    def timeout(self, exchange: Exchange, cx: Cx) -> tuple[Approx, Reason]:
        wait = backed_off(exchange.current, self.rules.backoff_factor, self.rules.max_wait)
        return exchange.advance(wait), "backed-off"

    def reply(self, exchange: Exchange, sample: Sample, cx: Cx) -> None:
        # A separate response is an answer too; only the number of copies counts here.
        if self.rules.carry == "none":
            return
        if sample.retransmissions > 0:
            self.carried.keep(exchange.current, cx.open > 1)
        elif self.rules.carry == "full-backoff-2":
            self.carried.halve(self.rules.ack_timeout)
        else:
            self.carried.drop()

    def end(self, exchange: Exchange, why: End, cx: Cx) -> None:
        if self.rules.carry != "none":
            self.carried.ended(exchange, why == "gave-up", cx.open > 1)

    def view(self) -> View:
        return View(rto=approx(self.rules.ack_timeout), carried=self.carried.wait)
