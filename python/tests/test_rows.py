from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from published_rows import MakeRows

from millpond.judge import rows as claim_rows
from millpond.judge.compare import Verdict
from millpond.measure.measures import Measures
from millpond.plan.study import Plan

# In invented results clients from 100 on make so many unnecessary retransmissions, whatever the buffer:
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
        return claim_rows.judge("x-c1", list(published.rows), fake, plan.reading)

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
        ("default_fb1;default_fb2", "default;cocoa", "lower", {}, "fails"),  # every one beside every one
        ("default_fb1;cocoa_fb1", "default;cocoa", "lower", {}, "fails"),
        ("default_fb2", "default_fb1", "equal", {}, "holds"),
        ("default_fb2", "default_fb1", "not_higher", {}, "holds"),
        ("default", "cocoa", "worse", {}, "holds"),
        ("default_fb2", "default_fb1", "equal", {"metric": "fct;unnecessary_retx_per_client"}, "holds"),
        ("default", "", "many", {}, "holds"),
        ("cocoa", "", "many", {}, "fails"),
        ("default", "cocoa", "not_lower", {"clients": "", "bin": "buffer>=14100", **BUFFERS}, "holds"),
        ("cocoa", "", "few", {}, "fails"),
        ("default", "", "collapse", {}, "holds"),
        ("default", "", "collapse", {"clients": "", "buffer_bytes": ""}, "holds"),
        ("cocoa", "", "collapse", {"clients": "", "buffer_bytes": ""}, "fails"),
        ("default", "", "collapse", {"clients": "1;400"}, "fails"),
        ("default_fb1", "default", "lower", {"clients": ""}, "fails"),  # nothing is sent again by 1 and by 10 clients
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
    ("change", "told"),
    [
        ({"comparator": "fasor", "baseline": "default", "direction": "lower"}, "comparator: fasor was not run"),
        (
            {"comparator": "default", "baseline": "50 x rtt", "direction": "equal"},
            "'50 x rtt' is neither",
        ),
        (
            {"comparator": "full backoff variants", "baseline": "default", "direction": "lower"},
            "is neither an algorithm",
        ),
        (
            {"comparator": "larger buffer", "baseline": "smaller buffer", "direction": "higher"},
            "is neither an algorithm",
        ),
        ({"comparator": "clients with retx", "baseline": "", "direction": "majority"}, "is neither"),
        ({"comparator": "default", "direction": "zero", "config": "half default"}, "config=half default is no part"),
        ({"comparator": "default", "baseline": "cocoa", "direction": "staircase"}, "direction 'staircase'"),
        ({"comparator": "default", "direction": "lower"}, "'lower' needs a baseline"),
        ({"comparator": "default", "direction": "zero", "metric": "energy"}, "metric 'energy' is not measured"),
        ({"comparator": "default", "direction": "zero", "clients": "25"}, "not run: clients=25"),
        ({"comparator": "default", "direction": "zero", "bin": "light load"}, "condition 'light load'"),
        (
            {"comparator": "default beside cocoa", "baseline": "default", "direction": "lower"},
            "'default beside cocoa' is neither an algorithm",
        ),
        (
            {"comparator": "default", "baseline": "cocoa median", "direction": "lower"},
            "'cocoa median' is neither an algorithm nor a condition",
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
    assert claim_rows.judge("x-c1", list(published.rows), fake, plan.reading).verdict == "fails"
