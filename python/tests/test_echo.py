"""The study `echo` by the engine that ships: what replies name beside theory, timers that believe them, its page."""

from __future__ import annotations

import io
import math
from pathlib import Path

import numpy as np
import pytest
import rich.console

import millpond
from millpond.measure.evidence import KINDS
from millpond.measure.population import Population
from millpond.studies.echo.naming import rightly_named

LATE = (1.5, 2, 3, 5)


@pytest.fixture(scope="session")
def fixed(tmp_path_factory: pytest.TempPathFactory) -> millpond.Reproduction:
    """A first wait that never changes, at every loss and ratio, with both kinds of server."""
    out = tmp_path_factory.mktemp("fixed") / "out"
    return millpond.reproduce("echo", controllers=["fixed"], replications=3, out=out)


@pytest.fixture(scope="session")
def believing(tmp_path_factory: pytest.TempPathFactory) -> millpond.Reproduction:
    """FASOR with tokens, believing every named copy or the last alone."""
    out = tmp_path_factory.mktemp("believing") / "out"
    names = ["fasor_token", "fasor_token_exact"]
    return millpond.reproduce("echo", controllers=names, clients=[40], replications=3, out=out)


def populations(done: millpond.Reproduction, **columns: object) -> list[Population]:
    found = [p for p in done.measures.populations() if all(p.column(name) == v for name, v in columns.items())]
    assert found, columns
    return found


def share(done: millpond.Reproduction, kind: str, population: Population) -> float:
    return done.measures.sample(kind, population).take("mean")


# ----------------------------------------------------------------------------------------------- theory


def test_theory_knows_its_limits() -> None:
    assert rightly_named(1e-9, 4) == pytest.approx(0.5)
    assert rightly_named(0.1, 1) == pytest.approx(1 / 1.9)
    # only requests are lost: a copy that failed never arrived; only responses: it always did
    assert rightly_named(0.0, 4, request_loss=0.3) == pytest.approx(1)
    assert rightly_named(0.3, 4, request_loss=0.0) == 0
    assert rightly_named(0.3, 4) < rightly_named(0.1, 4) < 0.5


def test_half_of_the_replies_mislead_as_theory_says(fixed: millpond.Reproduction) -> None:
    for loss in (1, 2, 5, 10, 20, 30):
        expected = rightly_named(loss / 100, 4)
        # of 2 · 100 · 100 exchanges so many are retransmitted
        replies = 20_000 * (1 - (1 - loss / 100) ** 2)
        error = math.sqrt(expected * (1 - expected) / replies)
        for ratio in LATE:
            (population,) = populations(fixed, error_profile=loss, ratio=ratio, server="stored")
            assert share(fixed, "names_last_rightly", population) == pytest.approx(expected, abs=4 * error)


def test_every_reply_is_of_one_kind(fixed: millpond.Reproduction) -> None:
    for population in populations(fixed):
        if population.column("error_profile") != 0:
            assert sum(share(fixed, kind, population) for kind in KINDS) == pytest.approx(1)


def test_a_mistake_is_at_least_one_first_wait(fixed: millpond.Reproduction) -> None:
    for population in populations(fixed, server="stored"):
        sample = fixed.measures.sample("naming_error", population)
        if population.column("error_profile") == 0:
            assert (sample.n, sample.missing) == (0, 3)
        else:
            ratio = population.column("ratio")
            assert isinstance(ratio, int | float)
            # to send a packet takes each link a microsecond beside the round trip that the wait was chosen for
            assert np.all(sample.values >= ratio * (1 - 3e-6))


def test_who_answers_afresh_never_misleads(fixed: millpond.Reproduction) -> None:
    for population in populations(fixed, server="afresh"):
        assert fixed.measures.sample("naming_error", population).n == 0
        for kind in ("names_last_wrongly", "names_earlier_wrongly"):
            assert not np.any(fixed.measures.sample(kind, population).values)


# ----------------------------------------------------------------------------------------------- timers


def test_believing_the_last_copy_alone_changes_nothing_where_it_is_the_one(believing: millpond.Reproduction) -> None:
    for loss in (0, 2, 10, 30):
        both = populations(believing, error_profile=loss, ratio=3, server="afresh", bottleneck="none")
        first, second = (believing.measures.sample("fct", population).values for population in both)
        assert np.array_equal(first, second)


def test_believing_every_copy_runs_away(believing: millpond.Reproduction) -> None:
    median = {
        population.algorithm: believing.measures.sample("rto_in_rtts", population).take("median")
        for population in populations(believing, error_profile=20, ratio=3, server="stored", bottleneck="none")
    }
    assert median["fasor_token"] > 20 * median["fasor_token_exact"]


# ----------------------------------------------------------------------------------------------- shown


def test_the_claims_judge_what_was_run(fixed: millpond.Reproduction, believing: millpond.Reproduction) -> None:
    verdicts = {claim.id: claim.verdict for claim in fixed.comparison.claims}
    assert verdicts["echo-c02"] == "holds"
    assert verdicts["echo-c06"] == "unjudged"
    assert "fails" not in verdicts.values()
    assert len(verdicts) == len(believing.comparison.claims) == 14


def test_the_page_shows_what_was_run_and_says_what_was_not(
    fixed: millpond.Reproduction, believing: millpond.Reproduction
) -> None:
    pages = [Path(str(done.report)).read_text(encoding="utf-8") for done in (fixed, believing)]
    for name in ("named-copies", "naming-errors"):
        assert f'<figure id="{name}">' in pages[0]
        assert f'<p class="missing" id="{name}">' in pages[1]
    for name in ("timers-late", "timers-early", "bottleneck"):
        assert f'<figure id="{name}">' in pages[1]
        assert f'<p class="missing" id="{name}">' in pages[0]
    assert "No reply named the last copy wrongly" in pages[0]
    assert "feeds on its own mistakes" in pages[1]


def test_the_terminal_shows_wrong_names_and_timers(
    fixed: millpond.Reproduction, believing: millpond.Reproduction
) -> None:
    shown = []
    for done in (fixed, believing):
        out = io.StringIO()
        console = rich.console.Console(file=out, width=140)
        for table in done.tables:
            console.print(table)
        shown.append(" ".join(out.getvalue().split()))
    assert "answered afresh: not one names a wrong copy" in shown[0]
    assert "that name a wrong copy / their error in round trips" in shown[0]
    assert "First wait in round trips / median completion time in s" in shown[1]
    assert "1 claim holds, 3 are within the noise" in shown[0]
