"""The arena's comparison by closed forms: what chance alone does to a ratio, and what it does not."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pytest

from millpond.arena.verdict import MEASURES, METRICS, Beside, Half, Outcome, Score, beside, best, halves, of_place
from millpond.measure.sample import Ints, Sample
from millpond.measure.statistics import Floats

PRESETS = ("one", "two", "three", "four")
TWIN = "twin"


def outcome(took: Floats) -> Outcome:
    """Clients that took so long: a row for each run."""
    runs = np.repeat(np.arange(took.shape[0]), took.shape[1])
    ones = Sample.of(np.ones(took.size), runs)
    return Outcome({**dict.fromkeys(METRICS, ones), "fct_of_complete": Sample.of(took.ravel(), runs)})


def medians(cells: Iterable[Mapping[str, Floats]]) -> list[Score]:
    """The twin's median in each cell."""
    found: list[Score] = []
    for number, took in enumerate(cells):
        runs = next(iter(took.values())).shape[0]
        own = {name: outcome(times) for name, times in took.items()}
        told = of_place(f"cell-{number}", "made", own, {}, runs, PRESETS, None)
        found.extend(score for score in told if (score.candidate, score.measure) == (TWIN, "median"))
    return found


def alike(runs: int, clients: int, cells: int) -> Iterator[dict[str, Floats]]:
    """Four presets and a fifth controller whose times have one distribution, and random streams of their own."""
    generator = np.random.default_rng(20261)
    for _ in range(cells):
        yield {name: np.exp(0.5 * generator.standard_normal((runs, clients))) for name in (*PRESETS, TWIN)}


def crossed(took: Mapping[str, Floats], share: float) -> Beside:
    """The twin beside the best of the presets, by one percentile of all clients."""

    def values(runs: Ints) -> dict[str, dict[str, float]]:
        every = np.quantile(np.array([took[name][runs] for name in took]).reshape(len(took), -1), share, axis=1)
        return {name: {"median": float(value), "lost": 0.0} for name, value in zip(took, every, strict=True)}

    runs, clients = took[TWIN].shape
    cell = [Half(values(np.concatenate(half)), [values(batch) for batch in half]) for half in halves(runs, clients)]
    return beside(MEASURES[0], TWIN, [best(MEASURES[0], half.values, PRESETS) for half in cell], cell)


@pytest.mark.parametrize(("share", "runs", "clients"), [(0.5, 40, 5), (0.95, 40, 5), (0.5, 4, 60), (0.5, 16, 3)])
def test_a_twin_of_the_best_comes_out_at_one(share: float, runs: int, clients: int) -> None:
    cells = list(alike(runs, clients, 600))
    found = [crossed(took, share) for took in cells]
    assert np.mean([math.log(one.beside) for one in found]) == pytest.approx(0, abs=0.01)
    # a mean of ratios is above that of their logarithms by half of what they vary
    assert np.mean([one.beside for one in found]) == pytest.approx(1, abs=0.025)
    # 95 % of six hundred, give or take 0.9 points, and as many for what the rule is worth
    assert 0.92 <= np.mean([one.low <= 1 <= one.high for one in found]) <= 0.975
    best_by_chance = [
        np.quantile(took[TWIN], share) / min(np.quantile(took[name], share) for name in PRESETS) for took in cells
    ]
    # beside the best by chance of four in the same runs it looks worse than it is
    assert np.mean(best_by_chance) > 1.04


def test_what_is_worse_by_more_than_chance_is_seen() -> None:
    found = [crossed({**took, TWIN: 1.4 * took[TWIN]}, 0.5) for took in alike(40, 5, 100)]
    assert np.mean([one.beside for one in found]) == pytest.approx(1.4, abs=0.03)
    assert np.mean([one.low > 1.05 for one in found]) > 0.9


def test_chance_that_all_meet_alike_cancels() -> None:
    """Runs differ a hundredfold, and the candidate takes a tenth longer in each of them."""
    generator = np.random.default_rng(7)
    run = np.exp(2 * generator.standard_normal((8, 1))) * np.ones((8, 3))
    took = {name: run * by for name, by in zip((*PRESETS, TWIN), (1, 2, 2, 2, 1.1), strict=True)}
    (score,) = medians([took])
    assert [score.beside, score.low, score.high] == pytest.approx([1.1, 1.1, 1.1])
    assert score.best_preset == "one"


def test_each_half_is_judged_by_the_best_of_the_other() -> None:
    """The first preset is the best of even runs, the second of odd ones: neither is judged by its own chance."""
    even, odd = np.array([[1.0], [4.0]] * 2), np.array([[4.0], [1.0]] * 2)
    slow = np.full((4, 1), 9.0)
    took = {"one": even, "two": odd, "three": slow, "four": slow, TWIN: np.full((4, 1), 2.0)}
    (score,) = medians([took])
    assert score.beside == pytest.approx(0.5)
    assert score.best_preset == "one / two"


def test_one_run_has_no_halves_and_no_interval() -> None:
    took = {name: np.array([[by]]) for name, by in zip((*PRESETS, TWIN), (2.0, 3.0, 4.0, 5.0, 3.0), strict=True)}
    (score,) = medians([took])
    assert score.beside == pytest.approx(1.5)
    assert score.best_preset == "one"
    assert math.isnan(score.low)
    assert math.isnan(score.high)


def test_who_alone_comes_to_an_end_counts_a_tenth_and_who_alone_does_not_ten() -> None:
    endless, done = np.full((4, 3), np.inf), np.ones((4, 3))
    (alone,) = medians([{**dict.fromkeys(PRESETS, endless), TWIN: done}])
    (never,) = medians([{**dict.fromkeys(PRESETS, done), TWIN: endless}])
    (nobody,) = medians([{**dict.fromkeys(PRESETS, endless), TWIN: endless}])
    assert [alone.beside, never.beside] == pytest.approx([0.1, 10])
    assert math.isnan(nobody.beside)


@pytest.mark.parametrize(("runs", "clients"), [(1, 1), (2, 500), (3, 30), (7, 30), (16, 1), (40, 1), (40, 7)])
def test_every_run_is_in_one_batch_of_one_half(runs: int, clients: int) -> None:
    parts = halves(runs, clients)
    assert len(parts) == min(2, runs)
    assert all(len(half) <= 5 for half in parts)
    # a batch has enough clients, or it is the whole half
    assert all(len(batch) * clients >= 20 or len(half) == 1 for half in parts for batch in half)
    every = [int(run) for half in parts for batch in half for run in batch]
    assert sorted(every) == list(range(runs))
