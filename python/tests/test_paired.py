"""Verdicts know how sure they are: intervals over runs, paired by replication."""

from __future__ import annotations

import numpy as np
import pytest
from hand_made import results

from millpond.judge.checks import Check, carry_out
from millpond.judge.claims import conclude
from millpond.judge.words import STATES, Bounds
from millpond.measure.measures import Measures
from millpond.measure.paired import interval
from millpond.measure.population import Population

MINE, THEIRS = Population.of("mine"), Population.of("theirs")


def test_what_both_sides_met_alike_cancels_out() -> None:
    luck = [0.0, 10.0, 20.0, 30.0]
    mine = {run: 100 + value for run, value in enumerate(luck)}
    theirs = {run: 101 + value for run, value in enumerate(luck)}
    alone = interval("value", 115, mine)
    beside = interval("difference", -1, mine, theirs)
    assert alone is not None
    assert beside is not None
    assert (beside.low, beside.high, beside.n) == (-1, -1, 4)
    # t(3) = 3.182, and the standard deviation 12.91 over the root of 4
    assert alone.high - 115 == pytest.approx(3.182446 * 12.909944 / 2)


def test_a_ratio_is_as_sure_as_its_runs_depart_from_it() -> None:
    theirs = {0: 10.0, 1: 20.0, 2: 40.0}
    exact = interval("relative", 0.5, {run: 1.5 * value for run, value in theirs.items()}, theirs)
    assert exact is not None
    assert (exact.low, exact.high) == pytest.approx((0.5, 0.5))
    # a run without anything to compare with does not undo the others
    assert interval("relative", 0.5, {0: 0.0, 1: 3.0}, {0: 0.0, 1: 2.0}) is not None
    assert interval("relative", 0.5, {0: 1.0, 1: 3.0}, {0: 0.0, 1: 0.0}) is None


def test_runs_are_paired_by_replication_and_one_is_too_few() -> None:
    found = interval("difference", 1, {0: 1.0, 1: 2.0, 5: 9.0}, {1: 1.0, 0: 0.0, 7: 9.0})
    assert found is not None
    assert (found.low, found.high, found.n) == (1, 1, 2)
    assert interval("value", 1, {0: 1.0}) is None
    assert interval("value", float("nan"), {0: 1.0, 1: 2.0}) is None


def measures(mine: list[float], theirs: list[float]) -> Measures:
    """One client a run: its completion times in s."""
    runs = len(mine)
    flows = [{"run": number, "flow": 0, "fct_us": seconds * 1e6} for number, seconds in enumerate([*mine, *theirs])]
    return Measures(results([({}, ["mine"]), ({}, ["theirs"])], flows=flows, replications=runs))


def lower(bounds: Bounds = STATES["lower"].bounds, statistic: str = "median", needed: str = "all") -> Check:
    return Check("fct", ((MINE, THEIRS),), bounds, "difference", (statistic,), needed, word="lower")


@pytest.mark.parametrize(
    ("mine", "theirs", "verdict"),
    [
        ([9, 19, 29], [10, 20, 30], "holds"),  # by a second in every run, however much these differ
        ([11, 21, 31], [10, 20, 30], "fails"),
        ([9, 22, 29], [10, 20, 30], "noise"),
        ([10, 20, 30], [10, 20, 30], "fails"),  # strictly lower is not the same
        ([9], [10], "unjudged"),
    ],
)
def test_a_point_is_judged_by_its_whole_interval(mine: list[float], theirs: list[float], verdict: str) -> None:
    finding = carry_out(lower(), measures(mine, theirs))
    assert finding.verdict == verdict, finding
    if verdict == "noise":
        assert "'lower' (below 0) or not, the runs do not tell: " in finding.reason
        assert finding.reason.endswith("over 3 runs")
    if verdict == "unjudged":
        assert finding.reason == "one run does not tell how much runs differ: it takes at least two"


def test_an_extreme_speaks_of_every_run() -> None:
    finding = carry_out(lower(statistic="max"), measures([9, 22, 29], [10, 20, 30]))
    assert (finding.verdict, finding.points[0].interval) == ("holds", None)


def test_where_any_point_is_enough_each_must_be_the_surer() -> None:
    told = measures([9.0, 9.5, 9.4, 9.6], [10, 10, 10, 10])
    one, many = lower(needed="some"), Check("fct", ((MINE, THEIRS),) * 40, lower().bounds, "difference", (), "some")
    assert carry_out(one, told).verdict == "holds"
    assert many.confidence == pytest.approx(1 - 0.05 / 40)
    assert carry_out(many, told).verdict == "noise"


def test_a_verdict_carries_the_point_it_hangs_on() -> None:
    check = Check("fct", ((MINE, THEIRS),), STATES["clearly lower"].bounds, "relative")
    finding = carry_out(check, measures([14.9, 15, 15.2], [20.1, 20, 19.9]))
    verdict = conclude("c", "so", [finding])
    assert (verdict.verdict, verdict.outcome, verdict.n) == ("holds", "holds", 3)
    # a quarter lower: 15 against 20
    assert verdict.quantity == pytest.approx(-0.25)
    assert verdict.margin == pytest.approx(0.10)
    assert verdict.interval is not None
    assert verdict.interval.low < -0.25 < verdict.interval.high
    told = verdict.to_json()
    assert told["interval"] == [verdict.interval.low, verdict.interval.high]
    assert (told["outcome"], told["n"]) == ("holds", 3)


def test_a_variance_of_one_value_a_run_is_parted_among_the_runs() -> None:
    # variances 1 and 400 of the same five runs
    seconds = np.array([10.0, 11.0, 12.0, 11.0, 11.0])
    told = measures(list(11 + 20 * (seconds - 11)), list(seconds))
    check = Check("fct", ((MINE, THEIRS),), STATES["higher"].bounds, "difference", ("variance",))
    point = carry_out(check, told).points[0]
    assert point.interval is not None
    assert point.interval.low < point.quantity < point.interval.high


def test_completion_times_say_how_many_clients_they_cover() -> None:
    flows = [{"run": run, "flow": flow, "fct_us": 5e6 if flow else None} for run in (0, 1) for flow in range(4)]
    told = Measures(results([({}, ["mine"])], flows=flows, replications=2))
    finding = carry_out(Check("fct", ((MINE, None),), Bounds(at_most=6)), told)
    assert "mine 5 s (of 75 % of the clients)" in finding.measured
