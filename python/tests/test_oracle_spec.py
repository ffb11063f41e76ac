"""The oracle against worked examples, exactly: those in the sources, and others that were worked out apart from it.

Letters and numbers like D1 or E7 are the readings of `docs/appendix/interpretations.md`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from oracle_scripts import (
    DRAFT_01,
    HIGHEST,
    MIDDLE,
    NO_DITHER,
    SWAPPED,
    WEAK_ALL,
    S,
    first,
    learnt,
    printed,
    rto,
    s,
    series,
    to_us,
    view,
)

from oracle.approx import Approx
from oracle.calls import SECOND, Cx
from oracle.parts import aged, half_up
from oracle.presets import Settings, micros, secs, word
from oracle.script import Script

# The common vector


@pytest.mark.parametrize(
    ("preset", "settings", "timeouts"),
    [
        ("cocoa-00", {}, "2.2 2.2125 6.35625 9.521875 19.04609375 10.671484375"),
        ("cocoa-00", SWAPPED, "2.2 2.275 6.3875 9.31875 16.1515625 9.28828125"),
        ("cocoa-00", DRAFT_01, "2.2 2.2125 3.73125 4.928125 8.26484375 5.280859375"),
        ("cocoa-plus", {}, "2.2 2.2125 2.971875 2.971875 2.971875 2.634375"),
        ("cocoa-plus", SWAPPED, "2.2 2.275 3.01875 3.01875 3.01875 2.721875"),
        ("cocoa-03", {}, "2.2 2.2125 2.971875 3.76015625 3.76015625 3.028515625"),
        ("cocoa-03", SWAPPED, "2.2 2.275 3.01875 3.85 3.85 3.1375"),
        ("cocoa-s", {}, "2.2 2.2125 2.2125 2.2125 2.2125 2.2546875"),
        ("cocoa-weak-all", WEAK_ALL, "2.2 2.2125 2.971875 3.76015625 5.7205078125 4.00869140625"),
        ("cocoa-weak-all", {}, "2.2 2.275 3.01875 3.85 5.8767578125 4.15087890625"),
    ],
)
def test_the_common_estimator_vector(preset: str, settings: Settings, timeouts: str) -> None:
    # The vector knows no silence.
    assert learnt(preset, {**settings, "ageing": word("none")}) == printed(timeouts)


def test_the_common_vector_in_whole_milliseconds() -> None:
    """Californium 4: every value a whole number of milliseconds, halves up; the clock's granularity is 100 ms."""
    rto, estimators, timeouts = 2_000, dict[bool, tuple[int, int]](), []
    for retransmissions, elapsed in S:
        if retransmissions <= 2:
            rtt, weak = int(to_us(elapsed)) // 1_000, retransmissions > 0
            if weak in estimators:
                srtt, rttvar = estimators[weak]
                rttvar = half_up(Fraction(7 * rttvar + abs(srtt - rtt), 8))
                srtt = half_up(Fraction(3 * srtt + rtt, 4))
            else:
                srtt, rttvar = rtt, rtt // 2
            estimators[weak] = srtt, rttvar
            share = Fraction(1, 4 if weak else 2)
            rto = half_up(share * (srtt + max(100, (1 if weak else 4) * rttvar)) + (1 - share) * rto)
        timeouts.append(rto)
    assert timeouts == [2200, 2275, 3019, 3850, 3850, 3138]
    ours = learnt("cocoa-03", {**SWAPPED, "ageing": word("none")})
    assert [half_up(timeout * 1_000) for timeout in ours] == timeouts


def test_the_intermediate_values_of_the_common_vector() -> None:
    script = Script("", "cocoa-weak-all", WEAK_ALL)
    strong, weak = [], []
    for retransmissions, elapsed in S:
        script.learn(retransmissions, micros(elapsed))
        now = view(script)
        strong.append((now.srtt, now.rttvar))
        weak.append((now.weak_srtt, now.weak_rttvar))
    assert [tuple(map(s, strong[i])) for i in (0, 1, 5)] == [
        tuple(printed("0.8 0.4")),
        tuple(printed("0.825 0.35")),
        tuple(printed("0.871875 0.35625")),
    ]
    assert [tuple(map(s, weak[i])) for i in (2, 3, 4)] == [
        tuple(printed("3.5 1.75")),
        tuple(printed("3.9375 2.1875")),
        tuple(printed("5.9453125 5.65625")),
    ]


# RFC 7252


@pytest.mark.parametrize(("chance", "waits"), [(MIDDLE, "2.5 5 10 20 40"), (HIGHEST, "3 6 12 24 48")])
def test_the_timer_of_rfc_7252(chance: int, waits: str) -> None:
    assert series(Script("", "rfc7252"), 5, chance) == printed(waits)


def test_copies_and_end_of_the_timer_of_rfc_7252() -> None:
    for chance, copies, end in ((MIDDLE, "2.5 7.5 17.5 37.5", "77.5"), (HIGHEST, "3 9 21 45", "93")):
        script = Script("", "rfc7252")
        exchange = script.start(chance)
        script.expire(exchange, times=4)
        assert [Fraction(t, SECOND) for t in script.exchanges[exchange].sent[1:]] == printed(copies)
        script.give_up(exchange)
        assert script.now == to_us(end)


def test_the_timer_capped_at_sixty_seconds() -> None:
    script = Script("", "rfc7252", {"max-wait": secs(60)})
    assert series(script, 7, MIDDLE) == printed("2.5 5 10 20 40 60 60")
    assert script.answered(micros("48.5"), MIDDLE) == 4


@pytest.mark.parametrize(
    ("preset", "settings", "first_wait", "retransmissions", "span", "whole"),
    [
        ("rfc7252", {}, "3", 4, "45", "93"),
        ("rfc7252", {}, "3", 20, "3145725", "6291453"),
        ("rfc7252", {"max-wait": secs(60)}, "3", 20, "993", "1053"),
        ("rfc7252", {"max-wait": secs(60)}, "2.5", 20, "977.5", "1037.5"),
        ("rfc7252", {"max-wait": secs(60)}, "2", 20, "962", "1022"),
        ("cocoa-03", {}, "3", 20, "530.125", "562.125"),
        ("cocoa-03", {}, "2.5", 20, "516.4375", "548.4375"),
        ("cocoa-03", {}, "2", 20, "501.125", "533.125"),
        ("cocoa-03", {}, "48", 20, "960", "1008"),
        ("cocoa-03", {}, "48", 4, "192", "240"),
    ],
)
def test_how_long_all_copies_take(
    preset: str, settings: Settings, first_wait: str, retransmissions: int, span: str, whole: str
) -> None:
    """The waits alone, past what an implementation could tell as a length of time."""
    algorithm: Any = Script("", preset, {**settings, **NO_DITHER}).algorithm
    exchange = algorithm.start(Cx(0))
    exchange.current = Approx(to_us(first_wait))
    waits = [exchange.current]
    for _ in range(retransmissions):
        wait, _ = algorithm.timeout(exchange, Cx(0))
        waits.append(wait)
    assert sum(map(s, waits[:-1])) == Fraction(span)
    assert sum(map(s, waits)) == Fraction(whole)


# draft-bormann-core-cocoa-00


def test_the_blind_rule_of_the_first_draft() -> None:
    for exchanges, wait in enumerate(printed("2 4 8 16 32"), 1):
        assert first(Script("", "cocoa-00"), opened=exchanges) == wait


def test_the_backoff_of_the_first_draft() -> None:
    assert series(Script("", "cocoa-00", {"ack-timeout": secs(6)}), 5) == printed("6 12 24 32 32")


@pytest.mark.parametrize(
    ("rule", "expected"), [("cocoa-00-doubling", "1.2"), ("cocoa-00-eighth", "7.5"), ("cocoa-00", "1.0")]
)
def test_the_choices_of_ageing_in_the_first_draft(rule: str, expected: str) -> None:
    assert aged_after(rule, "0.3", "60")[0] == Fraction(expected)


def aged_after(rule: str, timeout: str, silence: str) -> tuple[Fraction, Fraction]:
    after, at = aged(rule, Approx(to_us(timeout)), Approx(Fraction(0)), micros(silence))
    return s(after), s(at)


# CoCoA+


@pytest.mark.parametrize(
    ("preset", "first_wait", "waits", "sum_printed"),
    [
        ("cocoa-00", "0.25", "0.25 0.5 1 2 4", "7.75"),
        ("cocoa-plus", "0.25", "0.25 0.75 2.25 6.75 20.25", "30.25"),
        ("cocoa-00", "0.5", "0.5 1 2 4 8", "15.5"),
        ("cocoa-plus", "0.5", "0.5 1.5 4.5 13.5 40.5", "60.5"),
        ("cocoa-00", "1.5", "1.5 3 6 12 24", "46.5"),
        ("cocoa-plus", "1.5", "1.5 3 6 12 24", "46.5"),
        ("cocoa-00", "6", "6 12 24 48 96", "186"),
        ("cocoa-plus", "6", "6 7.8 10.14 13.182 17.1366", "54.2586"),
    ],
)
def test_backoff_of_cocoa_plus(preset: str, first_wait: str, waits: str, sum_printed: str) -> None:
    # The table leaves the cap of the first draft out.
    settings = {"ack-timeout": secs(first_wait), "max-wait": word("none")}
    found = series(Script("", preset, settings), 5)
    assert found == printed(waits)
    assert sum(found) == Fraction(sum_printed)


def test_ageing_of_cocoa_plus() -> None:
    timeout, found = "8", []
    for _ in range(4):
        after, at = aged_after("cocoa+", timeout, "30.000001")
        assert at == Fraction("30.000001")
        timeout = str(after)
        found.append(after)
    assert found == printed("5 3.5 2.75 2.375")
    assert aged_after("cocoa+", "8", "30")[0] == 8


# draft-ietf-core-cocoa-03


def test_the_example_of_the_draft() -> None:
    """Appendix C.1: the weak estimator says 3 s time after time."""
    timeout, found = Fraction("1.5"), []
    for _ in range(3):
        timeout = Fraction(1, 4) * 3 + Fraction(3, 4) * timeout
        found.append(timeout)
    assert found == printed("1.875 2.15625 2.3671875")
    # The first of them through the algorithm: 1.5 s is the initial timeout, the sample 2 s with a variation of 1 s.
    assert learnt("cocoa-03", {"ack-timeout": secs("1.5")}, ((1, "2"),)) == printed("1.875")


@pytest.mark.parametrize(
    ("timeout", "silence", "expected", "at"),
    [
        ("0.3", "15", "1.2", "14.4"),
        ("0.3", "14.4", "0.6", "4.8"),
        ("0.3", "4.8", "0.3", "0"),
        ("9", "100", "2.875", "73"),
        ("9", "73", "3.75", "58"),
        ("9", "58", "5.5", "36"),
        ("4.5", "18.1", "3.25", "18"),
        ("4", "16.1", "3", "16"),
    ],
)
def test_ageing_of_the_last_draft(timeout: str, silence: str, expected: str, at: str) -> None:
    assert aged_after("draft-03", timeout, silence) == (Fraction(expected), Fraction(at))


@pytest.mark.parametrize(
    ("first_wait", "stepwise", "per_exchange"),
    [
        ("0.25", "0.25 0.75 2.25 4.5 6.75", "0.25 0.75 2.25 6.75 20.25"),
        ("0.5", "0.5 1.5 3 6 9", "0.5 1.5 4.5 13.5 32"),
        ("0.9", "0.9 2.7 5.4 8.1 12.15", "0.9 2.7 8.1 24.3 32"),
        ("2", "2 4 6 9 13.5", "2 4 8 16 32"),
        ("2.5", "2.5 5 7.5 11.25 16.875", "2.5 5 10 20 32"),
        ("3", "3 6 9 13.5 20.25", "3 6 12 24 32"),
        ("6", "6 9 13.5 20.25 30.375", "6 9 13.5 20.25 30.375"),
    ],
)
def test_the_variable_backoff_factor(first_wait: str, stepwise: str, per_exchange: str) -> None:
    for vbf, waits in (("stepwise", stepwise), ("per-exchange", per_exchange)):
        settings = {"ack-timeout": secs(first_wait), "vbf": word(vbf)}
        assert series(Script("", "cocoa-03", settings), 5) == printed(waits)


def test_copies_of_a_client_that_starts_from_two_and_a_half_seconds() -> None:
    for vbf, copies in (("stepwise", "2.5 7.5 15 26.25 43.125 68.4375"), ("per-exchange", "2.5 7.5 17.5 37.5 69.5")):
        script = Script("", "cocoa-03", {"vbf": word(vbf)})
        exchange = script.start(MIDDLE)
        script.expire(exchange, times=len(printed(copies)))
        assert [Fraction(t, SECOND) for t in script.exchanges[exchange].sent[1:]] == printed(copies)
    # Ten seconds.
    script = Script("", "cocoa-03", {"ack-timeout": secs(10)})
    exchange = script.start()
    script.expire(exchange, times=4)
    assert [Fraction(t, SECOND) for t in script.exchanges[exchange].sent[1:]] == printed("10 25 47.5 79.5")
    script.give_up(exchange)
    assert script.now == to_us("111.5")


def test_the_blind_rule_of_the_last_draft() -> None:
    for exchanges in range(1, 6):
        assert first(Script("", "cocoa-03"), opened=exchanges) == 2 * exchanges


def test_the_longest_first_wait_of_the_last_draft() -> None:
    script = Script("", "cocoa-03", {"ack-timeout": secs(100)})
    assert first(script, HIGHEST) == 48


def test_plain_messages_keep_a_timeout_apart() -> None:
    script = Script("", "cocoa-03", {"ack-timeout": secs("2.5")})
    script.plain(40)
    assert not script.admit()
    script.pass_time(micros("2.499999"))
    assert not script.admit()
    script.pass_time(1)
    assert script.admit()


# L. Aldana Parra, 2019


def test_a_timestamp_in_every_copy() -> None:
    """§4.2.5, with the gains of RFC 6298."""
    script = Script("", "cocoa-echo", WEAK_ALL)
    script.learn(0, micros("0.8"))
    script.learn(0, micros("1.0"))
    assert (s(view(script).srtt), s(view(script).rttvar), rto(script)) == tuple(printed("0.825 0.35 2.2125"))
    exchange = script.start()
    script.expire(exchange)
    script.now = script.exchanges[exchange].sent[0] + micros("3.5")
    assert script.now - script.exchanges[exchange].sent[1] == to_us("1.2875")
    script.reply(exchange, named=1)
    found = (s(view(script).rttvar), s(view(script).srtt), rto(script))
    assert found == tuple(printed("0.378125 0.8828125 2.30390625"))


@pytest.mark.parametrize(("retransmissions", "guess"), [(1, "0.7"), (2, "0.9")])
def test_a_flag_in_every_further_copy(retransmissions: int, guess: str) -> None:
    """§7.2.2: the guess between what went by since the first wait and the strong round-trip time."""
    script = Script("", "cocoa-flag", {"ack-timeout": secs("2.5"), **NO_DITHER, "strong-share": word("1/8")})
    script.learn(0, micros("0.7"))
    algorithm: Any = script.algorithm
    algorithm.rto = Approx(to_us("2.5"))
    exchange = script.start()
    assert s(script.exchanges[exchange].exchange.first) == Fraction("2.5")
    script.pass_time(micros("2.5"))
    for _ in range(retransmissions):
        script.timeout(exchange)
    script.pass_time(micros("0.9"))
    script.reply(exchange, named="further")
    assert s(view(script).weak_srtt) == Fraction(guess)


# Full Backoff: ANRW 2018, §4.2


def test_default_with_full_backoff_1() -> None:
    script = Script("", "default-fb1")
    assert script.answered(micros(12), MIDDLE) == 2
    assert s(view(script).carried) == 10
    assert script.answered(micros(11), MIDDLE) == 1
    assert s(view(script).carried) == 20
    assert first(script, MIDDLE) == 20
    assert script.answered(micros(5)) == 0
    assert view(script).carried is None
    assert first(script, MIDDLE) == Fraction("2.5")


def test_default_with_full_backoff_2() -> None:
    script = Script("", "default-fb2")
    assert script.answered(micros(12), MIDDLE) == 2
    assert script.answered(micros(11), MIDDLE) == 1
    draw = (800_000 << 32) // 1_000_001 + 1
    for wait in printed("20 10 5 2.8"):
        assert first(script, draw) == wait
        script.clean(SECOND)
    assert view(script).carried is None


FULL_BACKOFF = [("cocoa-03", "4.284375"), ("cocoa-fb1", "6.6375"), ("cocoa-fb2", "9.63984375")]


@pytest.mark.parametrize(("preset", "next_wait"), FULL_BACKOFF)
def test_cocoa_with_full_backoff_after_two_retransmissions(preset: str, next_wait: str) -> None:
    script = Script("", preset)
    script.learn(0, micros("0.8"))
    script.learn(0, micros("1.0"))
    assert script.answered(micros(7)) == 2
    assert rto(script) == Fraction("4.284375")
    assert first(script) == Fraction(next_wait)


@pytest.mark.parametrize(
    ("preset", "next_wait"), [("cocoa-03", "2.2125"), ("cocoa-fb1", "14.934375"), ("cocoa-fb2", "14.934375")]
)
def test_cocoa_with_full_backoff_after_four_retransmissions(preset: str, next_wait: str) -> None:
    script = Script("", preset)
    script.learn(0, micros("0.8"))
    script.learn(0, micros("1.0"))
    exchange = script.start()
    waits = [script.exchanges[exchange].exchange.current]
    for _ in range(4):
        script.expire(exchange)
        waits.append(script.exchanges[exchange].exchange.current)
    assert list(map(s, waits)) == printed("2.2125 4.425 6.6375 9.95625 14.934375")
    started, *copies = script.exchanges[exchange].sent
    # The last copy as a whole number of microseconds; the exact point is printed.
    assert [Fraction(t - started, SECOND) for t in copies] == printed("2.2125 6.6375 13.275 23.23125")
    assert script.answer(exchange, micros(30)) == 4
    assert rto(script) == Fraction("2.2125")
    assert first(script) == Fraction(next_wait)
