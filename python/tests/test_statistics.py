from __future__ import annotations

import math

import numpy as np
import pytest

from millpond.measure.statistics import (
    alike,
    bulk,
    bulk_range,
    known,
    one_ahead,
    one_behind,
    percentile,
    spread,
    take,
)


def test_percentiles_stand_at_rank_p_times_n_minus_1() -> None:
    values = np.array([30.0, 10.0, 20.0, 40.0])
    assert percentile(values, 0.0) == 10
    assert percentile(values, 0.5) == 25  # rank 1.5
    assert percentile(values, 0.9) == pytest.approx(37)  # rank 2.7
    assert percentile(values, 1.0) == 40


def test_percentiles_are_those_of_numpy_to_the_last_bit() -> None:
    chance = np.random.default_rng(1)
    for n in (1, 2, 3, 4, 7, 50, 1001):
        for values in (
            chance.random(n) * 1e3,
            chance.integers(0, 9, n).astype(np.float64),
            np.full(n, 0.1),
            np.append(chance.random(n), np.nan),
        ):
            for p in (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0):
                assert np.array_equal(percentile(values, p), np.quantile(values, p), equal_nan=True)
    assert math.isnan(percentile(np.empty(0), 0.5))


def test_the_percentiles_of_fifty_clients_fall_between_the_right_two() -> None:
    # the row of Table 1 with 14100 B: client i of 50 ends 25.0667 ms after the one before
    values = np.array([62.077 + 0.0250667 * i for i in range(50)])
    assert take(values, "p10") == pytest.approx(62.077 + 4.9 * 0.0250667)
    assert take(values, "median") == pytest.approx(62.077 + 24.5 * 0.0250667)


@pytest.mark.parametrize(
    ("statistic", "expected"), [("mean", 1.75), ("typical", 1.0), ("max-min", 5.0), ("count", 4.0)]
)
def test_other_statistics(statistic: str, expected: float) -> None:
    assert take(np.array([1.0, 0.0, 5.0, 1.0]), statistic) == expected


def test_no_values_have_no_statistic() -> None:
    assert math.isnan(take(np.empty(0), "median"))
    assert math.isnan(take(np.empty(0), "mean"))


def test_an_unknown_statistic_is_refused() -> None:
    assert not known("p98")
    with pytest.raises(KeyError):
        take(np.array([1.0]), "p98")


def test_bulk_of_the_published_histogram_is_five_and_six() -> None:
    counts = dict(enumerate([1982, 14500, 13915, 8713, 18510, 245248, 97132]))
    assert bulk(counts) == (5, 6)


def test_bulk_takes_the_fuller_of_two_equally_short_ranges() -> None:
    assert bulk({1: 40, 2: 45, 3: 46}, share=0.6) == (2, 3)
    assert bulk({}) is None
    assert bulk({4: 10}) == (4, 4)


def test_bulk_range_leaves_out_stragglers() -> None:
    assert bulk_range(np.array([1.0, 5.0, 5.1, 5.2, 5.3])) == (5.0, 5.3)
    assert all(math.isnan(end) for end in bulk_range(np.empty(0)))


def test_a_flow_stands_out_from_15_per_cent_on() -> None:
    assert spread(np.array([90.0, 100.0, 130.0])) == pytest.approx(0.4)
    assert [one_ahead(np.array(flows)) for flows in ([85.0, 100.0, 120.0], [86.0, 100.0, 300.0])] == [1, 0]
    assert [one_behind(np.array(flows)) for flows in ([10.0, 100.0, 115.0], [10.0, 100.0, 114.0])] == [1, 0]
    assert [alike(np.array(flows)) for flows in ([100.0, 114.0, 101.0], [100.0, 116.0])] == [1, 0]


@pytest.mark.parametrize("flows", [[1.0], [1.0, math.nan]])
def test_a_single_flow_and_one_that_never_ended_stand_beside_nobody(flows: list[float]) -> None:
    assert all(math.isnan(function(np.array(flows))) for function in (one_ahead, one_behind, alike))
