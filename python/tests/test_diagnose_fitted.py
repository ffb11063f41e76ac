"""Figures that a capture does not show are fitted, so that runs repeat it; what it shows stays as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from manual import drawn
from millpond.diagnose import analysis, repeat, written
from millpond.diagnose.analysis import Diagnosis
from millpond.diagnose.fitted import fitted
from millpond.plan import scenario as scenarios
from millpond.run import capture

FIGURES = [f"path.{link}.{key}" for link in ("uplink", "downlink") for key in ("rate_bps", "buffer_bytes", "loss")]


def found_in(number: int) -> Diagnosis:
    scenario = scenarios.build(drawn.scenario("development", number), "drawn")
    return analysis.of_capture(capture.of_run(scenario, 1), "server")


def off(found: Diagnosis, shown: Diagnosis, folder: Path) -> float:
    written.write(written.of(shown, "drawn"), folder)
    return max(abs(one.off) for one in repeat.check(found, folder, range(1, 6)))


@pytest.mark.parametrize("number", [6, 9, 65])
def test_runs_with_fitted_figures_repeat_what_others_do_not(number: int, tmp_path: Path) -> None:
    found = found_in(number)
    assert off(found, found, tmp_path / "before") > repeat.NEAR
    steps: list[None] = []
    shown = fitted(found, "drawn", lambda: steps.append(None))
    assert steps
    assert off(found, shown, tmp_path / "after") <= repeat.NEAR
    changed = {place for place in FIGURES if shown.figure(place) != found.figure(place)}
    assert changed
    for place in changed:
        assert found.figure(place).grade != "exact"
        assert "fitted" in shown.figure(place).because


def test_what_repeats_is_left_as_it_is() -> None:
    found = found_in(18)
    assert fitted(found, "drawn") is found
