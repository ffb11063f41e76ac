from __future__ import annotations

import pytest
from published_rows import MakeRows

from millpond.judge import figures
from millpond.judge.compare import Figure
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
    "comparator": "default_fb1",
    "baseline": "default",
    "direction": "lower",
    "relative_change": "-0.68",
}


def _matched(rows: MakeRows, fake: Measures, plan: Plan, change: dict[str, str]) -> Figure:
    return figures.match(rows(HERE | change), fake, plan.reading)[0]


@pytest.mark.parametrize(
    ("change", "percent", "points"),
    [
        ({}, 100 * (196 - 60) / 196, 1),
        ({"comparator": "cocoa_fb1;cocoa_fb2"}, 100 * (196 - 60) / 196, 2),
        ({"comparator": "default_fb1;default_fb2", "baseline": "cocoa"}, -100 * (60 - 9) / 9, 2),
        ({"clients": "", "bin": "clients>=200"}, 100 * (196 - 60) / 196, 2),
        ({"buffer_bytes": "", "bin": "buffer>=14100"}, 100 * (196 - 60) / 196, 3),
        ({"comparator": "clients=400", "baseline": "clients=200", "clients": "", "algorithm": "default"}, 0, 1),
        ({"comparator": "buffer_bytes=2500", "baseline": "buffer_bytes>=14100", "buffer_bytes": "",
          "algorithm": "default"}, 0, 3),
        ({"comparator": "workload=random", "baseline": "workload=continuous", "workload": "",
          "algorithm": "default"}, 0, 1),
        ({"qualifier": "up_to"}, 100 * (196 - 60) / 196, 1),
    ],
)  # fmt: skip
def test_a_change_is_that_of_its_two_sides(
    rows: MakeRows, fake: Measures, plan: Plan, change: dict[str, str], percent: float, points: int
) -> None:
    found = _matched(rows, fake, plan, change)
    assert found.ours == pytest.approx(percent, abs=1e-9)
    assert (found.n, found.published) == (points, 68)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"comparator": "fasor"}, "comparator: fasor was not run"),
        ({"comparator": "default", "baseline": "50 x rtt"}, "'50 x rtt' is neither"),
        ({"comparator": "full backoff variants"}, "is neither an algorithm"),
        ({"comparator": "larger buffer", "baseline": "smaller buffer"}, "is neither an algorithm"),
        ({"comparator": "default beside cocoa"}, "'default beside cocoa' is neither an algorithm"),
        ({"baseline": "cocoa median"}, "'cocoa median' is neither an algorithm nor a condition"),
        ({"baseline": ""}, "a change needs a baseline"),
        ({"config": "half default"}, "config=half default is no part"),
        ({"metric": "energy"}, "metric 'energy' is not measured"),
        ({"clients": "25"}, "not run: clients=25"),
        ({"bin": "light load"}, "condition 'light load'"),
        ({"statistic": "mode"}, "statistic 'mode' is not one"),
    ],
)
def test_what_cannot_be_read_has_none_of_ours(
    rows: MakeRows, fake: Measures, plan: Plan, change: dict[str, str], told: str
) -> None:
    found = _matched(rows, fake, plan, change)
    assert found.ours is None
    assert told in found.note
