from __future__ import annotations

from millpond.measure.population import USUAL, FactorWords, Population, Wording
from millpond.results.directory import Factor


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


def test_a_place_tells_what_leads_then_what_differs_then_the_reading_of_the_path() -> None:
    words = Wording({"devices": FactorWords("{} meters", values={1: "one meter"})}, leading=("devices",))
    here = Population.of("mine", devices=400, jitter="30 s", hops=2, path="as-typed")
    assert words.place(here, ("jitter", "path")) == "400 meters, 30 s, as typed"
    assert words.place(here.but(devices=1), ("hops", "jitter")) == "one meter, 2, 30 s, as typed"


def test_a_factor_that_follows_from_another_is_not_told() -> None:
    here = Population.of("default", clients=1, buffer_bytes=2500, workload="bulk", payload=102400, path="fixed")
    assert USUAL.place(here, ("payload",)) == "1 client, 2500 B, bulk"
    assert USUAL.place(here.but(workload="random"), ("payload",)) == "1 client, 2500 B, random, 102400 B payload"


def test_a_plan_may_have_words_of_its_own() -> None:
    factors = {
        "jitter_s": Factor("jitter_s", "jitter", "s", words={"0": "no jitter"}),
        "clients": Factor("clients", unit="devices"),
        "kind": Factor("kind"),
    }
    words = USUAL.and_of(factors)
    assert [words.word("jitter_s", value) for value in (0, 0.5, 30)] == ["no jitter", "jitter 0.5 s", "jitter 30 s"]
    assert words.word("kind", "meters") == "meters"
    # what all studies have in common keeps its words
    assert words.word("clients", 10) == "10 clients"
