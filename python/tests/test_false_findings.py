"""Where nothing differs, `compare` and claims find a difference as rarely as they promise, whatever runs look like.

Both sides are drawn from one distribution, again and again, and go through the calls that users make. Of 400 places
at most so many may differ as a binomial of 5 % exceeds once in ten thousand.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hand_made import results
from scipy.stats import binom, ttest_ind

import millpond
from millpond import Results
from millpond.judge import side_by_side
from millpond.judge.checks import Check, carry_out
from millpond.judge.words import STATES
from millpond.measure.estimate import Difference, holm
from millpond.measure.measures import Measures
from millpond.measure.population import Population
from millpond.measure.statistics import Floats

PLACES = 400
MOST = int(binom.ppf(0.9999, PLACES, 0.05))
CLIENTS = 3

Draw = Callable[[np.random.Generator, tuple[int, ...]], Floats]


def two_modes(chance: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """A run collapses or it does not, and all of its clients with it."""
    collapsed = chance.random((*shape[:-1], 1)) < 0.4
    found: Floats = np.where(collapsed, 300.0, 60.0) + chance.normal(0, 3, shape)
    return found


DISTRIBUTIONS: dict[str, Draw] = {
    "normal": lambda chance, shape: chance.normal(100, 5, shape),
    "poisson 0.7": lambda chance, shape: chance.poisson(0.7, shape).astype(np.float64),
    "poisson 1.7": lambda chance, shape: chance.poisson(1.7, shape).astype(np.float64),
    "two modes": two_modes,
    "lognormal": lambda chance, shape: chance.lognormal(0, 1.5, shape),
    "pareto": lambda chance, shape: chance.pareto(1.5, shape) + 1,
}


def without_difference(name: str, runs: int) -> Results:
    """Two controllers at many places, of which times and retransmissions have the same distribution."""
    chance = np.random.default_rng(list(f"{name} {runs}".encode()))
    drawn = DISTRIBUTIONS[name](chance, (2 * PLACES, runs, CLIENTS))
    cells = [({"place": place}, [side]) for place in range(PLACES) for side in ("one", "other")]
    flows = [
        {"run": cell * runs + run, "flow": client, "fct_us": value * 1e6, "retransmissions": value}
        for cell, of_cell in enumerate(drawn.tolist())
        for run, of_run in enumerate(of_cell)
        for client, value in enumerate(of_run)
    ]
    makespans = [{"run": n, "makespan_us": 1e6 * value} for n, value in enumerate(drawn[:, :, 0].ravel().tolist())]
    return results(cells, flows=flows, runs=makespans, replications=runs)


@pytest.mark.parametrize("runs", [3, 5, 20])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_what_does_not_differ_is_rarely_found_to(name: str, runs: int) -> None:
    told = without_difference(name, runs)
    for metric in ("fct", "retransmissions_per_client", "makespan"):
        lines = millpond.compare(told, "one", "other", metrics=metric).lines
        assert len(lines) == PLACES
        found = sum(line.verdict in ("more", "less") for line in lines)
        assert found <= MOST, f"{metric}: {found} of {PLACES}"
        for line in lines:
            assert line.low is not None
            assert line.high is not None
            assert line.low <= line.difference <= line.high
            assert line.difference == pytest.approx(line.one - line.other)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("quantity", ["difference", "relative"])
def test_claims_are_as_careful(name: str, quantity: str) -> None:
    measures = Measures(without_difference(name, 5))
    found = 0
    for place in range(PLACES):
        points = ((Population.of("one", place=place), Population.of("other", place=place)),)
        for word in ("lower", "higher"):
            check = Check("fct", points, STATES[word].bounds, quantity, word=word)  # type: ignore[arg-type]
            found += carry_out(check, measures).verdict == "holds"
    assert found <= MOST, f"{found} of {PLACES}"


def test_a_difference_of_two_runs_is_none() -> None:
    """Of two runs that collapse or not both often differ alike: one comparison in seven would find something."""
    lines = millpond.compare(without_difference("two modes", 2), "one", "other", metrics="fct").lines
    assert {line.verdict for line in lines} == {"fewer than 3 runs"}


def test_a_run_without_a_value_shifts_no_other() -> None:
    """In the third run of one side nobody finished: what is left is compared with its own seeds."""
    seconds = [10.0, 20.0, None, 40.0, 50.0]
    flows = [{"run": run, "flow": 0, "fct_us": None if s is None else s * 1e6} for run, s in enumerate(seconds)]
    flows += [{"run": 5 + run, "flow": 0, "fct_us": s * 1e6} for run, s in enumerate([11.0, 21.0, 31.0, 41.0, 51.0])]
    told = results([({}, ["one"]), ({}, ["other"])], flows=flows, replications=5)
    (line,) = millpond.compare(told, "one", "other", metrics="fct").lines
    assert (line.difference, line.low, line.high, line.runs) == (-1, -1, -1, 4)
    assert (line.one, line.other) == (30, 31)


def test_halves_of_a_mix_are_paired_by_seed() -> None:
    """What is taken from neighbours is told against the run of the same seed, though one run has no value."""

    def half(run: int, group: int, answered: int | None) -> dict[str, object]:
        return {"run": run, "flow": group, "group": group, "fct_us": None, "answered": answered, "completed": answered}

    mixed = [half(run, group, 10 * (run + 1)) for run in range(3) for group in (0, 1)]
    alone = [half(3, 0, None), half(4, 0, 40), half(5, 0, 60)]
    told = results([({}, ["a", "b"]), ({}, ["b"])], flows=[*mixed, *alone], replications=3)
    sample = Measures(told).sample("share_taken_from_neighbours", Population.of("a", "b"))
    assert dict(zip(sample.runs.tolist(), sample.values.tolist(), strict=True)) == {1: 0.5, 2: 0.5}


def pairs(name: str, runs: int) -> Floats:
    """Many pairs of sides of one distribution, a value a run."""
    chance = np.random.default_rng(list(f"pairs {name} {runs}".encode()))
    return DISTRIBUTIONS[name](chance, (10 * PLACES, 2, runs, 1))[..., 0]


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_probabilities_are_as_rare_as_they_say_and_agree_with_intervals(name: str, paired: bool) -> None:
    found = [Difference.of(one, other, paired=paired) for one, other in pairs(name, 8)]
    ps = np.array([one.p for one in found])
    differs = [not low <= 0 <= high for low, high in (one.estimate().interval or (0, 0) for one in found)]
    assert ((ps < 0.05) == differs).all()
    for level in (0.05, 0.01):
        assert (ps < level).sum() <= binom.ppf(0.9999, len(ps), level), level


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_of_many_comparisons_none_is_found_in_nineteen_of_twenty_families(name: str) -> None:
    ps = [Difference.of(one, other, paired=True).p for one, other in pairs(name, 8)]
    families = np.array_split(np.array(ps), PLACES)
    assert sum(min(holm(list(family))) < 0.05 for family in families) <= MOST
    # without a correction every third family of ten has one
    if name == "normal":
        assert sum(min(family) < 0.05 for family in families) > MOST


def test_holm_is_holms() -> None:
    assert holm([0.01, 0.04, 0.03, math.nan, 0.005]) == pytest.approx([0.03, 0.06, 0.06, math.nan, 0.02], nan_ok=True)
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_what_is_worse_by_the_margin_is_rarely_called_no_worse(name: str) -> None:
    """One side is worse by just the margin, so `no worse` is false: at most one in forty may be called so."""
    runs = 5
    drawn = pairs(name, runs)[:PLACES]
    cells = [({"place": place}, [side]) for place in range(PLACES) for side in ("one", "other")]
    values = np.stack([1.1 * drawn[:, 0], drawn[:, 1]], axis=1).reshape(2 * PLACES, runs)
    flows = [
        {"run": cell * runs + run, "flow": 0, "fct_us": value * 1e6}
        for cell, of_cell in enumerate(values.tolist())
        for run, value in enumerate(of_cell)
    ]
    told = results(cells, flows=flows, replications=runs)
    lines = side_by_side.compare(told, "one", "other", ["fct"], margin=0.1).lines
    assert len(lines) == PLACES
    assert sum(line.beside_margin == "no worse" for line in lines) <= binom.ppf(0.9999, PLACES, 0.025)
    assert {line.beside_margin for line in lines} <= {"no worse", "worse", "inconclusive"}


def test_the_size_of_an_effect_is_hedges() -> None:
    one, other = np.array([3.0, 4.0, 5.0, 6.0]), np.array([1.0, 2.0, 3.0, 4.0])
    # two standard deviations of sqrt(5/3), times 1 - 3/(4*6-1)
    assert Difference.of(one, other, paired=False).effect == pytest.approx(2 / math.sqrt(5 / 3) * (1 - 3 / 23))
    theirs = ttest_ind(one, other, equal_var=False)
    assert Difference.of(one, other, paired=False).p == pytest.approx(theirs.pvalue)
    assert Difference.of(one, other, paired=True).p == 0
