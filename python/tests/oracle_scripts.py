"""What tests of the oracle against worked examples have in common: scripts of calls, numbers as sources print them."""

from __future__ import annotations

from fractions import Fraction

from oracle.approx import Approx
from oracle.calls import SECOND, View
from oracle.presets import Settings, count, micros, ratio, word
from oracle.script import Script

HIGHEST = (1 << 32) - 1
MIDDLE = 1 << 31
NO_DITHER: Settings = {"random-factor": ratio("1")}
FASOR_BARE: Settings = {"dither": word("none")}

S = ((0, "0.8"), (0, "1.0"), (1, "3.5"), (2, "7.0"), (3, "20.0"), (0, "1.2"))
"""The common vector of all forms of CoCoA: retransmissions and elapsed time."""


def to_us(printed: str) -> Fraction:
    return Fraction(printed) * SECOND


def s(number: Approx | None) -> Fraction:
    """A number of microseconds in seconds."""
    assert number is not None
    return number.value / SECOND


def printed(text: str) -> list[Fraction]:
    return [Fraction(figure) for figure in text.split()]


def view(script: Script) -> View:
    return script.algorithm.view()


def rto(script: Script) -> Fraction:
    return s(view(script).rto)


def learnt(preset: str, settings: Settings | None = None, events: tuple[tuple[int, str], ...] = S) -> list[Fraction]:
    script = Script("", preset, settings)
    timeouts = []
    for retransmissions, elapsed in events:
        script.learn(retransmissions, micros(elapsed))
        timeouts.append(rto(script))
    return timeouts


def series(script: Script, copies: int, chance: int = 0) -> list[Fraction]:
    """The waits of an exchange that nobody answers."""
    exchange = script.start(chance)
    waits = [s(script.exchanges[exchange].exchange.current)]
    while len(waits) < copies:
        script.expire(exchange)
        waits.append(s(script.exchanges[exchange].exchange.current))
    script.end(exchange, "cancelled")
    return waits


def first(script: Script, chance: int = 0, opened: int = 1) -> Fraction:
    exchange = script.start(chance, opened=opened)
    wait = s(script.exchanges[exchange].exchange.first)
    script.end(exchange, "cancelled")
    return wait


SWAPPED: Settings = {"gains": word("swapped")}
DRAFT_01: Settings = {"weak-k": count(1)}
WEAK_ALL: Settings = {"gains": word("rfc6298")}
