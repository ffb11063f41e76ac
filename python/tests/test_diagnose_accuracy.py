"""How right the diagnosis is on drawn scenarios for development, and that no figure is wrong by what its grade says."""

from __future__ import annotations

from pathlib import Path

import pytest

from manual import accuracy
from millpond.diagnose.ends import End
from millpond.diagnose.score import Accuracy

#: Scenarios of each workload in turn.
COUNT = 60

#: Loops where what a link seems to have is the other's, or both have a part of it.
HARD = {
    24: "both links are full and the radio loses besides",
    420: "answers wait in a downlink that drops, and requests in an uplink that is full at times",
    624: "the downlink is slower than the uplink, which is full of retransmissions",
    840: "the downlink's queue by replay is longer than any loop",
    972: "requests come as far apart as a downlink lets answers through, and nothing else",
    1302: "so they do, with a hundred devices",
    1572: "the downlink drops far less than a replay without drops holds",
    1824: "a deep downlink behind an uplink that is full most of the time",
}


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> Accuracy:
    folder = tmp_path_factory.mktemp("scores")
    return Accuracy([one for number in range(COUNT) for one in accuracy.scored("development", number, folder, 0)])


def test_no_figure_is_wrong_by_what_its_grade_says(scores: Accuracy) -> None:
    assert [(one.name, one.end, place) for one, place in scores.violations()] == []


@pytest.mark.parametrize("number", HARD)
def test_no_figure_of_a_hard_loop_is_wrong_by_its_grade(number: int, tmp_path: Path) -> None:
    assert [one.violations for one in accuracy.scored("development", number, tmp_path, 0)] == [[], []]


@pytest.mark.parametrize("number", [21, 27, 33])
def test_reports_of_all_within_a_jitter_have_their_period(number: int, tmp_path: Path) -> None:
    for one in accuracy.scored("development", number, tmp_path, 0):
        period = one.figures["period_s"]
        assert period.value == pytest.approx(period.truth, rel=0.01), one.end


@pytest.mark.parametrize(
    ("end", "spurious", "needed", "cannot_tell"),
    [("devices", (0.999, 0.999), (0.999, 0.96), 0.013), ("server", (0.98, 0.975), (0.97, 0.84), 0.034)],
)
def test_retransmissions_are_told_as_well_as_was_measured(
    scores: Accuracy, end: End, spurious: tuple[float, float], needed: tuple[float, float], cannot_tell: float
) -> None:
    """Precision and recall at least, and what cannot be told at most."""
    of_end = Accuracy([one for one in scores.scores if one.end == end])
    for word, (precision, recall) in {"spurious": spurious, "needed": needed}.items():
        assert sum(one.labels.true[word] for one in of_end.scores) > 1000
        assert of_end.share("precision", word) >= precision
        assert of_end.share("recall", word) >= recall
    assert of_end.cannot_tell <= cannot_tell
