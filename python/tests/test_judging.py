from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from published_rows import MakeRows

from millpond.judge import judging
from millpond.judge.compare import Verdict
from millpond.measure.measures import Measures
from millpond.plan.study import Plan

# In the stand-in's results clients from 100 on make so many unnecessary retransmissions, whatever the buffer:
# Default 196, CoCoA 9, every Full Backoff variant 60.
HERE = {
    "kind": "claim",
    "claim_id": "x-c1",
    "clients": "400",
    "buffer_bytes": "1410000",
    "workload": "continuous",
    "metric": "unnecessary_retx_per_client",
}

Judge = Callable[..., Verdict]


@pytest.fixture
def judge(rows: MakeRows, fake: Measures, plan: Plan) -> Judge:
    def of(**change: str) -> Verdict:
        published = rows(HERE | change)
        return judging.judge("x-c1", list(published.rows), fake, plan.reading)

    return of


LOADS = {"clients": "", "metric": "fct"}
BUFFERS = {"buffer_bytes": ""}
WORKLOADS = {"workload": ""}
PER_EXCHANGE = {"metric": "unnecessary_retx_per_exchange"}


@pytest.mark.parametrize(
    ("comparator", "baseline", "direction", "change", "verdict"),
    [
        ("default_fb1", "default", "lower", {}, "holds"),
        ("cocoa_fb1", "cocoa", "lower", {}, "fails"),
        ("cocoa_fb1;cocoa_fb2", "default", "lower", {}, "holds"),
        ("default_fb1;default_fb2", "default;cocoa", "lower", {}, "holds"),
        ("default_fb1;cocoa_fb1", "default;cocoa", "lower", {}, "fails"),
        ("full backoff variants", "default", "lower", {}, "holds"),
        ("default_fb2", "default_fb1", "equal", {}, "holds"),
        ("default_fb2", "default_fb1", "not_higher", {}, "holds"),
        ("default", "cocoa", "worse", {}, "holds"),
        ("default", "default", "equal", {"metric": "fct;unnecessary_retx_per_client"}, "holds"),
        ("default", "cocoa", "not_lower", {"clients": "", "bin": "buffer>=14100", **BUFFERS}, "holds"),
        ("cocoa", "", "few", {}, "fails"),
        ("default", "", "collapse", {}, "holds"),
        ("default", "", "collapse", {"clients": "", "buffer_bytes": ""}, "holds"),
        ("cocoa", "", "collapse", {"clients": "", "buffer_bytes": ""}, "fails"),
        ("default", "", "collapse", {"clients": "1;400"}, "fails"),
        ("default_fb1", "default", "lower", {"clients": ""}, "holds"),
        ("cocoa_fb1;cocoa_fb2", "cocoa", "no_collapse", {}, "holds"),
        ("default", "", "zero", {"metric": "packet_losses"}, "holds"),
        ("default", "", "about 4", PER_EXCHANGE, "holds"),
        ("default", "", "about 3", PER_EXCHANGE, "fails"),
        ("clients=200;400", "clients=100", "higher", LOADS, "holds"),
        ("clients=10", "clients=50", "higher", LOADS, "fails"),
        ("buffer_bytes=2500", "buffer_bytes>=14100", "equal", BUFFERS, "holds"),
        ("workload=random", "workload=continuous", "similar", WORKLOADS, "holds"),
    ],
)
def test_directions(
    judge: Judge, comparator: str, baseline: str, direction: str, change: dict[str, str], verdict: str
) -> None:
    found = judge(comparator=comparator, baseline=baseline, direction=direction, **change)
    assert found.verdict == verdict, found
    assert found.measured


@pytest.mark.parametrize(
    ("printed", "qualifier", "verdict"),
    [
        ("-0.68", "", "holds"),  # ours: -0.694
        ("-0.73", "", "holds"),
        ("-0.75", "", "fails"),
        ("-0.78", "approx", "holds"),
        ("-0.80", "approx", "fails"),
        ("-0.80", "nearly", "holds"),
        ("-0.60", "nearly", "fails"),
        ("-0.70", "up_to", "holds"),
        ("-0.88", "up_to", "fails"),
        ("-0.60", "up_to", "fails"),
        ("-0.60", "gt", "holds"),
        ("-0.70", "gt", "fails"),
        ("-0.70", "lt", "holds"),
        ("0.68", "", "fails"),
    ],
)
def test_relative_changes(judge: Judge, printed: str, qualifier: str, verdict: str) -> None:
    found = judge(
        comparator="default_fb1", baseline="default", direction="lower", relative_change=printed, qualifier=qualifier
    )
    assert found.verdict == verdict, found


@pytest.mark.parametrize(
    ("comparator", "baseline", "change", "verdict"),
    [
        ("default beside default_fb1", "default", {}, "holds"),
        ("default mixed with default_fb1", "default alone", {}, "holds"),
        ("Default CoAP beside FB1", "Default CoAP", {}, "holds"),
        ("default (with default_fb1)", "default_fb1 with default", {}, "fails"),
        ("default", "default_fb1", {"config": "half default and half default_fb1"}, "fails"),
        ("default", "default", {"bin": "mixed with default_fb1"}, "holds"),
        ("default (mixed)", "default", {}, "holds"),
        ("default", "Full Backoff", {"traffic": "mixed populations"}, "fails"),
    ],
)
def test_mixes_of_populations(
    judge: Judge, comparator: str, baseline: str, change: dict[str, str], verdict: str
) -> None:
    found = judge(comparator=comparator, baseline=baseline, direction="equal", **change)
    assert "default (beside default_fb1) 196" in found.measured
    assert found.verdict == verdict


def test_a_mix_without_a_name_means_every_one_that_was_run(judge: Judge) -> None:
    found = judge(comparator="default in the mix", baseline="default", direction="equal")
    assert len(found.points) == 2
    assert "default (beside default_fb2)" in found.points[1]


def test_an_algorithm_in_a_mix_is_put_beside_itself_alone(judge: Judge) -> None:
    change = {"comparator": "default_fb1;default_fb2", "baseline": "default_fb1;default_fb2", "bin": "half default"}
    found = judge(direction="equal", **change)
    assert found.verdict == "holds"
    assert [point.split(" with ")[0] for point in found.points] == [
        "default_fb1 (beside default) 60 against default_fb1 60 (+0.0%)",
        "default_fb2 (beside default) 60 against default_fb2 60 (+0.0%)",
    ]


def test_larger_and_smaller_go_step_by_step(judge: Judge) -> None:
    found = judge(
        comparator="larger buffer", baseline="smaller buffer", direction="equal", algorithm="cocoa", **BUFFERS
    )
    assert found.verdict == "holds"
    assert len(found.points) == 3
    assert "cocoa 9 against [14100 B] 9" in found.points[1]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"comparator": "fasor", "baseline": "default", "direction": "lower"}, "comparator: fasor was not run"),
        ({"comparator": "default", "baseline": "50 x rtt", "direction": "equal"}, "'50 x rtt' is not something"),
        ({"comparator": "default", "baseline": "cocoa", "direction": "staircase"}, "direction 'staircase'"),
        ({"comparator": "default", "direction": "lower"}, "'lower' needs a baseline"),
        ({"comparator": "default", "direction": "zero", "metric": "energy"}, "metric 'energy' is not measured"),
        ({"comparator": "default", "direction": "zero", "clients": "25"}, "not run: clients=25"),
        ({"comparator": "default", "direction": "zero", "bin": "light load"}, "condition 'light load'"),
        (
            {"comparator": "default beside cocoa", "baseline": "default", "direction": "lower"},
            "no mix of default beside",
        ),
        (
            {"comparator": "default", "baseline": "cocoa median", "direction": "lower"},
            "'cocoa median' is not something",
        ),
        ({"comparator": "default", "direction": "zero", "category": "cited"}, "evaluations by others"),
        ({"comparator": "default", "direction": "zero", "category": "algorithm"}, "about the algorithm"),
        ({"comparator": "default", "direction": "zero", "suspect": "1", "note": "a slip"}, "suspect.*a slip"),
    ],
)
def test_what_cannot_be_read_is_left_unjudged(judge: Judge, change: dict[str, str], told: str) -> None:
    found = judge(**change)
    assert found.verdict == "unjudged"
    assert re.search(told, found.reason), found.reason


def test_every_row_of_a_claim_must_hold(rows: MakeRows, fake: Measures, plan: Plan) -> None:
    good = HERE | {"comparator": "default_fb1", "baseline": "default", "direction": "lower"}
    published = rows(good, good | {"direction": "higher"})
    assert judging.judge("x-c1", list(published.rows), fake, plan.reading).verdict == "fails"
