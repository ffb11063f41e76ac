from __future__ import annotations

import pytest

from millpond.measure.population import Population
from millpond.results.factor import Factor


def test_factors_may_have_any_names() -> None:
    here = Population.of("mine", jitter="30 s", devices=400)
    assert here == Population.of("mine", devices=400, jitter="30 s")
    assert (here.column("devices"), here.column("algorithm"), here.column("clients")) == (400, "mine", None)
    beside = here.but(devices=10, partner="other", hops=2)
    assert dict(beside.factors) == {"devices": 10, "hops": 2, "jitter": "30 s"}
    assert (here.who, beside.who) == ("mine", "mine (beside other)")


def test_a_factor_of_zero_has_a_value() -> None:
    here = Population.of("default", loss=0)
    assert (here.value("loss"), here.value("algorithm"), here.value("clients")) == (0, "default", "")


def test_a_plan_has_words_for_its_factors() -> None:
    jitter = Factor("jitter_s", "jitter", "s", words={"0": "no jitter"})
    assert [jitter.say(value) for value in (0.5, 30)] == [
        "jitter 0.5\N{NARROW NO-BREAK SPACE}s",
        "jitter 30\N{NARROW NO-BREAK SPACE}s",
    ]
    assert Factor("kind").say("meters") == "meters"
    assert Factor("clients", "clients", "clients", words={"1": "1 client"}).say(10) == "10 clients"
    assert Factor("clients", "clients", "clients", words={"1": "1 client"}).say(1) == "1 client"


@pytest.mark.parametrize(
    ("factor", "value", "words"),
    [
        (Factor("payload", unit="B"), 176, "payload 176\N{NARROW NO-BREAK SPACE}B"),
        (Factor("payload", unit="B", words={"102400": ""}), 102400, ""),
        (Factor("error_profile", "losses"), "none", "no losses"),
        (Factor("error_profile", "losses"), "high", "high losses"),
        (Factor("config"), "two-host", "two-host"),
        (Factor("path"), "as-typed", "as typed"),
        (Factor("path", words={"fixed": ""}), "fixed", ""),
    ],
)
def test_values_in_words(factor: Factor, value: str | int, words: str) -> None:
    assert factor.say(value) == words
