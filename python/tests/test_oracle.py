"""The call lists of the oracle: that they are what it writes, and that the native controllers agree with them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from random import Random
from typing import Any

import pytest

from millpond import _engine
from oracle.__main__ import VECTORS
from oracle.approx import Approx, TooClose, approx, between, largest, smallest
from oracle.cases import FAMILIES
from oracle.layout import render
from oracle.parts import Estimator, half_up
from oracle.presets import FAMILIES as PRESETS


@pytest.fixture(scope="module", params=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_the_files_are_what_the_oracle_writes(family: str) -> None:
    written = (VECTORS / f"{family}.json").read_text(encoding="utf-8")
    assert render(family, FAMILIES[family]()) == written, "run `python -m oracle` in python/"


def test_every_preset_is_played(family: str) -> None:
    document = json.loads((VECTORS / f"{family}.json").read_text(encoding="utf-8"))
    assert {case["preset"] for case in document["cases"]} == set(PRESETS[family])
    names = [(case["preset"], case["name"]) for case in document["cases"]]
    assert len(names) == len(set(names))


def test_every_preset_is_known() -> None:
    native = {row[0] for row in _engine.presets()}
    assert native == {preset for presets in PRESETS.values() for preset in presets}


def test_every_setting_is_turned(family: str) -> None:
    """Each setting of the family has, in some case, a value other than its preset's own."""
    document = json.loads((VECTORS / f"{family}.json").read_text(encoding="utf-8"))
    turned = set()
    for case in document["cases"]:
        own = in_force(case["preset"], {})
        turned |= {name for name, value in in_force(case["preset"], case["settings"]).items() if value != own[name]}
    assert turned == {name for preset in PRESETS[family] for name in in_force(preset, {})}


def in_force(preset: str, settings: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    return {name: value for name, value, _ in Player(preset, settings).controller.settings}


def test_the_native_controllers_agree(family: str) -> None:
    document = json.loads((VECTORS / f"{family}.json").read_text(encoding="utf-8"))
    assert document["format"] == 1
    assert document["family"] == family
    calls = values = 0
    differences = []
    for case in document["cases"]:
        player = Player(case["preset"], case["settings"])
        for call in case["calls"]:
            calls += 1
            player.play(call)
            if player.differences:
                # What follows in this case would only repeat it.
                differences.append(f"{case['preset']} {case['name']}, call {calls}: {player.differences}\n{call}")
                break
        values += player.values
    assert not differences, "\n".join(differences[:12])
    assert calls > 0
    assert values > calls


class Player:
    """One case under way in the native module."""

    def __init__(self, preset: str, settings: Mapping[str, Mapping[str, Any]]) -> None:
        self.controller = _engine.Controller(preset, {name: as_scenario(value) for name, value in settings.items()})
        self.exchanges: dict[int, _engine.Exchange] = {}
        self.values = 0
        self.differences: list[str] = []

    def play(self, call: Mapping[str, Any]) -> None:
        cx = _engine.Cx(call["now"], call["chance"], call["open"], call["waiting"])
        match call["call"]:
            case "start":
                exchange = self.exchanges[call["exchange"]] = _engine.Exchange()
                self.judge_wait(self.controller.on_start(exchange, call["len"], cx), call)
            case "timeout":
                self.judge_wait(self.controller.on_timeout(self.exchanges[call["exchange"]], cx), call)
            case "reply":
                since_named = call["since_named"]
                sample = _engine.Sample(
                    call["kind"],
                    call["since_first"],
                    call["since_last"],
                    call["retransmissions"],
                    call["named"],
                    since_named,
                )
                self.controller.on_reply(self.exchanges.pop(call["exchange"]), sample, cx)
                self.judge_view(call["view"])
            case "end":
                self.controller.on_end(self.exchanges.pop(call["exchange"]), call["why"], cx)
                self.judge_view(call["view"])
            case "plain":
                self.controller.on_plain_send(call["len"], cx)
            case "feedback":
                told = (call[key] for key in ("message", "fate", "since", "len", "reply_len", "number"))
                self.controller.on_feedback(_engine.Feedback(*told), cx)
                self.judge_view(call["view"])
            case "admit":
                self.judge_admit(self.controller.admit(call["class"], call["len"], cx), call)
            case other:
                pytest.fail(f"no call {other}")

    def judge_wait(self, wait: _engine.Wait, call: Mapping[str, Any]) -> None:
        self.near("wait", wait.us, call["wait_ns"], call["within_ns"])
        self.demand(wait.reason == call["reason"], f"reason {wait.reason}")

    def judge_view(self, expected: Mapping[str, list[int] | None]) -> None:
        view = self.controller.view()
        for name, number in expected.items():
            ours = getattr(view, f"{name}_us")
            if ours is None or number is None:
                self.demand(ours is None and number is None, f"{name} {ours}")
            else:
                self.near(name, ours, *number)

    def judge_admit(self, admit: str | int, call: Mapping[str, Any]) -> None:
        if isinstance(admit, int) and call["admit"] == "at":
            self.near("at", admit, call["at"] * 1_000, call["within_ns"])
        else:
            self.demand(admit == call["admit"], f"admit {admit}")

    def near(self, what: str, ours: int, nanos: int, within: int) -> None:
        self.demand(abs(ours * 1_000 - nanos) <= within, f"{what} {ours} us, not within {within} ns of {nanos} ns")

    def demand(self, holds: bool, difference: str) -> None:
        self.values += 1
        if not holds:
            self.differences.append(difference)


def as_scenario(value: Mapping[str, Any]) -> object:
    """A setting as a scenario writes it."""
    ((kind, content),) = value.items()
    return {"us": f"{content} us", "thousandths": content / 1_000 if kind == "thousandths" else None}.get(kind, content)


# The bounds: whatever an implementation in whole microseconds does, it stays within them.


def test_a_bound_holds_for_numbers_rounded_at_every_step() -> None:
    chance = Random("bounds")
    for gains, alpha, beta in (("rfc6298", 8, 4), ("swapped", 4, 8)):
        estimator = Estimator(gains)  # type: ignore[arg-type]
        whole: tuple[int, int] | None = None
        worst = 0.0
        for _ in range(2_000):
            sample = chance.randrange(1, 3_000_000)
            estimator.update(approx(sample))
            if whole is None:
                whole = sample, half_up(Fraction(sample, 2))
            else:
                srtt, rttvar = whole
                rttvar = half_up(Fraction((beta - 1) * rttvar + abs(srtt - sample), beta))
                whole = half_up(Fraction((alpha - 1) * srtt + sample, alpha)), rttvar
            assert estimator.srtt is not None
            assert estimator.rttvar is not None
            for exact, ours in zip((estimator.srtt, estimator.rttvar), whole, strict=True):
                assert abs(exact.value - ours) <= exact.bound
                worst = max(worst, float(abs(exact.value - ours)))
        # The bounds of `vectors/README.md`, and that they are not idle.
        assert estimator.srtt is not None
        assert estimator.rttvar is not None
        assert estimator.srtt.bound <= Fraction(alpha, 2)
        assert estimator.rttvar.bound <= Fraction(alpha + beta, 2)
        assert worst > 0.5


def test_a_draw_is_the_formula_or_within_its_bound() -> None:
    chance = Random("draws")
    for _ in range(2_000):
        low = Fraction(chance.randrange(1, 10_000_000), 7)
        high = low + Fraction(chance.randrange(1, 10_000_000), 7)
        word = chance.choice([0, (1 << 32) - 1, chance.getrandbits(32)])
        whole_low, whole_high = half_up(low), half_up(high)
        drawn = whole_low + ((whole_high - whole_low + 1) * word >> 32)
        assert between(word, approx(whole_low), approx(whole_high)) == approx(drawn)
        bounded = between(word, approx(low).rounded(), approx(high).rounded())
        assert abs(bounded.value - drawn) <= bounded.bound


def test_a_branch_that_rounding_decides_is_refused() -> None:
    half = Fraction(1, 2)
    assert Approx(Fraction(3), half).above(2)
    assert not approx(2).above(2)
    for value in ("2", "2.5", "1.5"):
        with pytest.raises(TooClose):
            Approx(Fraction(value), half).above(2)


def test_the_larger_of_two_has_the_bound_of_whichever_may_win() -> None:
    rough, fine = Approx(Fraction(10), Fraction(3)), approx(12)
    assert largest(rough, fine) == Approx(Fraction(12), Fraction(3))
    assert largest(rough, 14) == approx(14)
    assert smallest(rough, fine) == rough
    assert smallest(rough, 6) == approx(6)
