"""Estimates know how sure they are, and verdicts by them: intervals over runs, paired by seed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hand_made import results

from millpond.judge.checks import Check, carry_out
from millpond.judge.claims import conclude
from millpond.judge.words import STATES, Bounds
from millpond.measure.estimate import AMOUNT, Taken, compared, mean, pooled, taken
from millpond.measure.measures import Measures
from millpond.measure.metrics import METRICS
from millpond.measure.population import Population
from millpond.measure.sample import Sample

MINE, THEIRS = Population.of("mine"), Population.of("theirs")


def runs(*values: float) -> Taken:
    return Taken(dict(enumerate(values)))


def test_what_both_sides_met_alike_cancels_out() -> None:
    noise = [0.0, 10.0, 20.0, 30.0]
    mine, theirs = runs(*(100 + value for value in noise)), runs(*(101 + value for value in noise))
    alone, beside = compared("value", mine), compared("difference", mine, theirs)
    assert (beside.value, beside.interval, beside.n) == (-1, (-1, -1), 4)
    assert alone.value == 115
    # t(3) = 3.182, and the standard deviation 12.91 over the root of 4
    assert alone.half == pytest.approx(3.182446 * 12.909944 / 2)


def test_a_ratio_is_as_sure_as_its_runs_depart_from_it() -> None:
    theirs = runs(10, 20, 40)
    exact = compared("relative", runs(15, 30, 60), theirs)
    assert exact.value == 0.5
    assert exact.interval == pytest.approx((0.5, 0.5))
    # a run without anything to compare with does not undo the others
    assert compared("relative", runs(0, 3, 4), runs(0, 2, 3)).interval is not None
    # beside nothing at all there is no telling how much more it is, but that it is more
    assert compared("relative", runs(1, 3, 2), runs(0, 0, 0)).interval == (-1, math.inf)
    assert compared("relative", runs(1, 1.1, 1), runs(0, 0, 0)).interval == (math.inf, math.inf)
    assert compared("relative", runs(0, 0, 0), runs(0, 0, 0)).interval == (0, 0)


def test_runs_are_paired_by_their_seeds_and_two_are_too_few() -> None:
    mine, theirs = Taken({0: 1.0, 1: 2.0, 2: 4.0, 5: 9.0}), Taken({2: 3.0, 1: 1.0, 0: 0.0, 7: 9.0})
    found = compared("difference", mine, theirs)
    assert (found.value, found.interval, found.n) == (1, (1, 1), 3)
    assert compared("value", runs(1, 2)).interval is None
    assert compared("value", runs(1, 2)).value == 1.5
    assert compared("value", runs(1, math.nan, 2)).n == 2
    assert math.isnan(compared("value", runs()).value)


@pytest.mark.parametrize("metric", ["answered_share", "retransmissions_per_client", "fct", "wasted_share"])
def test_an_interval_ends_where_its_quantity_does(metric: str) -> None:
    limits = METRICS[metric].within(METRICS[metric].usual)
    found = compared("value", runs(0, 0, 0, 0, 1), within=limits)
    assert found.interval is not None
    assert (found.value, found.interval[0]) == (0.2, 0)
    assert found.interval[1] == pytest.approx(0.2 + 2.776445 * math.sqrt(0.2 / 5))
    near_one = compared("value", runs(1, 1, 1, 0.9), within=(0.0, 1.0))
    assert near_one.interval is not None
    assert near_one.interval[1] == 1
    # a difference of two shares lies within a whole, a relative change above the loss of all
    wide = compared("difference", runs(1, 1, 0), runs(0, 0, 0), within=(0.0, 1.0))
    assert wide.interval == pytest.approx((2 / 3 - 4.302653 / 3, 1))
    less = compared("relative", runs(0, 0, 1), runs(8, 9, 9), within=AMOUNT)
    assert less.interval is not None
    assert less.interval[0] == -1


def test_equal_runs_are_told_as_such() -> None:
    # the mean of five times this number is not this number
    found = mean(np.full(5, 13.4424))
    assert (found.value, found.same, str(found)) == (13.4424, True, "the same in all 5 runs")


def test_t_intervals_are_those_of_the_printed_table() -> None:
    # t(0.975, 3) = 3.18245; mean 10, standard deviation sqrt(10/3)
    half = 3.18245 * math.sqrt(10 / 3) / 2
    assert mean(np.array([8.0, 9.0, 11.0, 12.0])).interval == pytest.approx((10 - half, 10 + half), rel=1e-5)


def test_a_percentile_of_runs_with_one_value_each_is_one_over_the_runs() -> None:
    values = np.arange(1.0, 21.0)
    found = taken(Sample.of(values, np.arange(20)), "p90").estimate()
    assert found.value == pytest.approx(18.1)
    assert found.interval is not None
    # 18 of 20 lie below: 0.9, and 2.093 times the deviation of such shares over the root of 20
    half = 2.093024 * math.sqrt(0.9 * 0.1 * 20 / 19 / 20)
    assert found.interval == pytest.approx((1 + 19 * (0.9 - half), 20), rel=1e-4)
    # of runs with many it is that of each run, and its mean
    many = taken(Sample.of(values, np.repeat(np.arange(4), 5)), "p90")
    assert many.value == pytest.approx(np.mean([4.6, 9.6, 14.6, 19.6]))


def test_what_is_printed_is_of_all_values_and_lies_in_its_own_interval() -> None:
    chance = np.random.default_rng(7)
    for _ in range(50):
        sample = Sample.of(chance.pareto(1.2, 60), np.repeat(np.arange(6), 10))
        for statistic in ("p10", "median", "p90"):
            found = pooled(sample, statistic).estimate()
            assert found.value == sample.take(statistic)
            assert found.interval is not None
            assert found.interval[0] <= found.value <= found.interval[1]


def measures(mine: list[float], theirs: list[float]) -> Measures:
    """One client a run: its completion times in s."""
    runs = len(mine)
    flows = [{"run": number, "flow": 0, "fct_us": seconds * 1e6} for number, seconds in enumerate([*mine, *theirs])]
    return Measures(results([({}, ["mine"]), ({}, ["theirs"])], flows=flows, replications=runs))


def lower(bounds: Bounds = STATES["lower"].bounds, statistic: str = "", needed: str = "all") -> Check:
    named = (statistic,) if statistic else ()
    return Check("fct", ((MINE, THEIRS),), bounds, "difference", named, needed, word="lower")


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
        assert finding.reason == "so few runs do not tell how much runs differ: it takes at least 3"


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
    # a quarter lower: the mean of 15.03 against 20
    assert verdict.quantity == pytest.approx(45.1 / 60 - 1)
    assert verdict.margin == pytest.approx(0.85 - 45.1 / 60)
    assert verdict.interval is not None
    ends = verdict.interval.interval
    assert ends is not None
    assert ends[0] < -0.25 < ends[1]
    told = verdict.to_json()
    assert told["interval"] == list(ends)
    assert (told["outcome"], told["n"]) == ("holds", 3)


def test_a_variance_of_one_value_a_run_is_parted_among_the_runs() -> None:
    # variances 1 and 400 of the same five runs
    seconds = np.array([10.0, 11.0, 12.0, 11.0, 11.0])
    told = measures(list(11 + 20 * (seconds - 11)), list(seconds))
    check = Check("fct", ((MINE, THEIRS),), STATES["higher"].bounds, "difference", ("variance",))
    point = carry_out(check, told).points[0]
    assert point.interval is not None
    assert point.interval.value == point.quantity
    assert point.interval.half > 0


def test_completion_times_say_how_many_clients_they_cover() -> None:
    flows = [{"run": run, "flow": flow, "fct_us": 5e6 if flow else None} for run in (0, 1) for flow in range(4)]
    told = Measures(results([({}, ["mine"])], flows=flows, replications=2))
    finding = carry_out(Check("fct", ((MINE, None),), Bounds(at_most=6)), told)
    assert "mine 5 s (of 75 % of the clients)" in finding.measured
