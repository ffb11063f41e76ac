"""The oracle against worked examples, exactly: FASOR, and the timers of TCP.

Letters and numbers like D1 or E7 are the readings of `docs/appendix/interpretations.md`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from oracle_scripts import FASOR_BARE, HIGHEST, first, printed, rto, s, series, to_us, view

from oracle.approx import Approx
from oracle.calls import SECOND, View
from oracle.parts import half_up
from oracle.presets import Settings, micros, ratio, word
from oracle.script import Script

# draft-ietf-core-fasor-02


def test_vector_a_of_fasor() -> None:
    """The last row is printed with eight decimals."""
    script = Script("", "fasor")
    rows = []
    for rtt in ("0.6", "0.7", "1.0", "0.7"):
        script.clean(micros(rtt))
        rows.append([s(view(script).srtt), s(view(script).rttvar), rto(script)])
    assert rows[:3] == list(map(printed, ["0.6 0.075 0.9", "0.6125 0.08125 0.9375", "0.6609375 0.1578125 1.2921875"]))
    assert list(map(eight_decimals, rows[3])) == [0.66582031, 0.128125, 1.17832031]


def test_vector_a_of_fasor_as_its_pseudocode_starts() -> None:
    script = Script("", "fasor", {"fasor-init": word("pseudocode")})
    timeouts = []
    for rtt in ("0.6", "0.7", "1.0", "0.7"):
        script.clean(micros(rtt))
        timeouts.append(rto(script))
    assert timeouts[:3] == printed("0.9 1.6125 1.7984375")
    assert eight_decimals(timeouts[3]) == 1.55800781


def eight_decimals(number: Fraction) -> float:
    return float(half_up(number * 10**8) / 10**8)


def test_where_the_first_wait_of_fasor_is_drawn_from() -> None:
    script = Script("", "fasor")
    ranges = [(first(script), first(script, HIGHEST))]
    for rtt in ("0.6", "0.7", "1.0", "0.7"):
        script.clean(micros(rtt))
        ranges.append((first(script), first(script, HIGHEST)))
    # The last row and the initial one stand there with eight and four decimals.
    assert ranges[0] == (Fraction(13, 6), Fraction(8, 3))
    assert ranges[1:4] == [tuple(printed(row)) for row in ("1.05 1.5", "1.090625 1.55", "1.457421875 1.953125")]
    assert [eight_decimals(end) for end in ranges[4]] == [1.34477539, 1.84414063]


def after_two_samples() -> Script:
    script = Script("", "fasor-token", FASOR_BARE)
    script.clean(micros("0.6"))
    script.clean(micros("0.7"))
    assert rto(script) == Fraction("0.9375")
    return script


def test_vector_b_of_fasor() -> None:
    script = after_two_samples()
    exchange = script.start()
    script.expire(exchange, times=2)
    started, *copies = script.exchanges[exchange].sent
    assert [Fraction(t - started, SECOND) for t in copies] == printed("0.9375 2.8125")
    assert script.deadline(exchange) - started == to_us("6.5625")
    assert script.answer(exchange, micros("3.5")) == 2
    assert s(_fasor(script).slow) == Fraction("5.25")
    assert series(script, 4) == printed("0.9375 5.25 1.875 3.75")
    assert script.answered(micros(2)) == 1
    assert s(_fasor(script).slow) == 3
    assert series(script, 3) == printed("3 0.9375 1.875")
    assert script.answered(micros(1)) == 0
    assert rto(script) == Fraction("1.2921875")
    assert series(script, 2) == [rto(script), 2 * rto(script)]


def _fasor(script: Script) -> Any:
    return script.algorithm


def test_vector_c_of_fasor() -> None:
    """A cold start where every answer takes nine seconds."""
    script = Script("", "fasor", FASOR_BARE)
    assert script.answered(micros(9)) == 2
    assert s(_fasor(script).slow) == Fraction("13.5")
    assert series(script, 2) == printed("2 13.5")
    assert script.answered(micros(9)) == 1
    assert s(_fasor(script).slow) == Fraction("13.5")
    assert series(script, 1) == printed("13.5")
    assert script.answered(micros(9)) == 0
    assert [s(view(script).srtt), s(view(script).rttvar), rto(script)] == printed("9 1.125 13.5")
    assert script.answered(micros(9)) == 0
    assert rto(script) == Fraction("12.375")


@pytest.mark.parametrize(
    ("named", "rtt", "row"),
    [(2, "0.6875", "0.621875 0.0796875 0.940625"), (0, "3.5", "0.9734375 0.7828125 4.1046875")],
)
def test_vector_d_of_fasor(named: int, rtt: str, row: str) -> None:
    script = after_two_samples()
    exchange = script.start()
    script.expire(exchange, times=2)
    started = script.exchanges[exchange].sent[0]
    script.now = started + micros("3.5")
    assert script.now - script.exchanges[exchange].sent[named] == to_us(rtt)
    script.reply(exchange, named=named)
    assert [s(view(script).srtt), s(view(script).rttvar), rto(script)] == printed(row)
    assert series(script, 2) == [rto(script), 2 * rto(script)]


# Timers of TCP, in milliseconds

SAMPLES = (800, 1000, 600, 600, 2400, 800)


def samples_of(preset: str, settings: Settings) -> list[View]:
    script = Script("", preset, settings)
    found = []
    for sample in SAMPLES:
        script.clean(sample * 1_000)
        found.append(view(script))
    return found


def milliseconds(number: Approx | None, decimals: int) -> float:
    assert number is not None
    return round(float(number.value / 1_000), decimals)


def test_linux_in_kernel_order() -> None:
    script = Script("", "linux-rto")
    rows = []
    for sample in SAMPLES:
        script.clean(sample * 1_000)
        algorithm: Any = script.algorithm
        numbers = (algorithm.srtt, algorithm.mdev, algorithm.rttvar, algorithm.rto)
        rows.append(tuple(number.value / 1_000 for number in numbers))
    exact = ["800 400 400 2400", "825 350 400 2425", "796.875 318.75 379.6875 2315.625"]
    exact += ["772.265625 288.28125 356.8359375 2199.609375"]
    assert rows[:4] == [tuple(printed(row)) for row in exact]
    assert [tuple(round(float(number), 3) for number in row) for row in rows[4:]] == [
        (975.732, 623.145, 623.145, 3468.311),
        (953.766, 511.292, 595.181, 3334.491),
    ]


def test_linux_in_the_order_of_californium() -> None:
    script = Script("", "linux-rto", {"order": word("californium")})
    rows = []
    for sample in SAMPLES:
        script.clean(sample * 1_000)
        algorithm: Any = script.algorithm
        numbers = (algorithm.srtt, algorithm.mdev, algorithm.rttvar, algorithm.rto)
        rows.append(" ".join(str(number.value / 1_000) for number in numbers))
    assert rows == [
        "800 400 400 2400",
        "825 344 400 2425",
        "797 307 377 2305",
        "772 273 351 2176",
        "976 561 561 3220",
        "954 460 536 3098",
    ]


ORIGINAL: Settings = {"order": word("original"), "previous": word("first-sample")}


@pytest.mark.parametrize(
    ("settings", "timeouts"),
    [
        (ORIGINAL, [1400, 1341.667, 1285.764, 1232.190, 9600, 9300]),
        ({**ORIGINAL, "first-bonus": ratio("0.75")}, [1400, 1718.75, 1688.802, 1618.435, 9600, 9300]),
        # Printed in whole milliseconds, cut.
        ({}, [1400, 2000, 2000, 1916, 4800, 4800]),
    ],
)
def test_peak_hopper(settings: Settings, timeouts: list[float]) -> None:
    found = [v.rto for v in samples_of("peak-hopper", settings)]
    if settings:
        assert [milliseconds(number, 3) for number in found] == timeouts
    else:
        assert [int(s(number) * 1_000) for number in found] == timeouts


def test_basic() -> None:
    script = Script("", "basic-rto")
    assert first(script, HIGHEST, opened=3) == 2
    script.learn(0, micros("0.8"))
    assert rto(script) == Fraction("1.2")
    script.learn(2, micros(7))
    assert rto(script) == Fraction("10.5")
    script.learn(3, micros(9))
    assert rto(script) == Fraction("10.5")
