"""The studies that ship: their plans load, every published claim is judged, and each can be rerun in small."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from invented import Invented

import millpond
from millpond.judge import claim_file
from millpond.judge.compare import Comparison
from millpond.judge.published import read
from millpond.measure.measures import Measures
from millpond.plan import study
from millpond.run.campaign import Watcher
from millpond.studies import reproduction

#: Claims of each study that no run can judge.
UNJUDGED = {
    "anrw18": {"anrw18-c40"},
    "upc19": {"upc19-c35", "upc19-c36"},
    "fasor18": set(),
    # reports of other papers: judged by the studies that rerun these, or about test beds that are not
    # about moments of single runs whose load is not printed
    "burst23": {"burst23-c02", "burst23-c06", "burst23-c07"},
    "tcp20": {f"tcp20-c{number:02d}" for number in range(1, 27)},
}
#: Published figures that no run measures: stories of single flows and the like. The plan gives each a reason.
UNMEASURED = {"tcp20": 49, "burst23": 70}
#: What is not invented: later batches and timers.
NOT_INVENTED = {"anrw18-c41", "tcp20-c25"}


@cache
def plan(name: str) -> study.Plan:
    return study.load(study.find(name))


def published(name: str) -> Path:
    file = plan(name).published
    assert file is not None
    return file


@pytest.fixture(scope="module", params=list(UNJUDGED))
def fake(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Comparison]:
    """The whole matrix of a study as invented, three replications, and what comes of it."""
    name = str(request.param)
    out = tmp_path_factory.mktemp(name) / "out"
    done = millpond.reproduce(name, replications=3, out=out, report=False, on=Invented())
    return name, reproduction.compare(done.results, measures=Measures(done.results))


@pytest.mark.parametrize("name", list(UNJUDGED))
def test_every_published_claim_has_an_entry_that_says_it(name: str) -> None:
    file = plan(name).claims
    assert file is not None
    written = claim_file.read(file, plan(name).factors, plan(name).columns).claims
    assert set(written) == set(read(published(name)).claims())
    assert {claim.id for claim in written.values() if claim.unjudged} == UNJUDGED[name]
    assert all(claim.says.endswith(".") for claim in written.values())


@pytest.mark.parametrize("name", list(UNJUDGED))
def test_the_engine_takes_every_cell(name: str) -> None:
    cells = [planned.cell for planned in study.unfold(plan(name)).cells]
    assert len({cell.id for cell in cells}) == len(cells)
    assert all(sum(group.count for group in cell.groups) == cell.columns["clients"] for cell in cells)


def test_no_claim_asks_for_what_the_plan_does_not_run(fake: tuple[str, Comparison]) -> None:
    name, comparison = fake
    for claim in comparison.claims:
        for verdict in claim.variants.values() or [claim]:
            assert "not run" not in verdict.reason, verdict
            assert verdict.verdict == "unjudged" or verdict.measured
    unjudged = {claim.id for claim in comparison.claims if claim.verdict == "unjudged"}
    assert UNJUDGED[name] <= unjudged <= UNJUDGED[name] | NOT_INVENTED


def test_no_published_figure_of_a_result_is_left_out(fake: tuple[str, Comparison]) -> None:
    name, comparison = fake
    left_out = [figure for figure in comparison.figures if figure.ours is None]
    reasons = set(plan(name).reading.unmeasured.values())
    assert [figure for figure in left_out if figure.note not in reasons] == []
    assert len(left_out) == UNMEASURED.get(name, 0)


@pytest.mark.parametrize("name", ["upc19", "fasor18"])
def test_a_study_is_rerun_in_small(name: str, tmp_path: Path) -> None:
    done = millpond.reproduce(name, quick=True, replications=3, out=tmp_path / "out", report=False)
    assert done.results.manifest["unfinished_flows"] == 0
    judged = [claim for claim in done.comparison.claims if claim.points]
    assert len(judged) >= len(done.comparison.claims) - len(UNJUDGED[name])
    again = millpond.api.open_results(tmp_path / "out")
    assert isinstance(again, millpond.Reproduction)
    assert again.comparison.to_json() == done.comparison.to_json()


def test_commands_as_typed_and_as_meant_differ() -> None:
    cells = {planned.cell.id: planned.cell for planned in study.unfold(plan("upc19")).cells}

    def downlink(name: str) -> dict[str, Any]:
        return dict(cells[name].scenario["path"]["downlink"])

    typed, meant = (
        downlink("cocoa-200-2500-random-four-host-68-medium-as-typed"),
        downlink("cocoa-200-2500-random-four-host-68-medium-as-meant"),
    )
    assert (typed["queue"], meant["queue"]) == ("2500 packets", "2500 B")
    # bad with p / (p + r), and then half of the packets are lost
    assert [loss["p"] / (loss["p"] + loss["r"]) * loss["1-h"] for loss in (typed["loss"], meant["loss"])] == [0.4, 0.1]
    rates = [downlink(f"cocoa-400-2500-random-two-host-68-{path}")["rate"] for path in ("as-typed", "as-meant")]
    assert rates == ["240 kbit/s", "30 kbit/s"]
    assert "cocoa-400-2500-random-two-host-68-as-typed-but-30kbit" in cells
    echo = cells["cocoa_accurate_rtt-200-2500-random-four-host-69-30-loss and bufferbloat-as-typed"].scenario
    assert (echo["path"]["downlink"]["rate"], echo["clients"][0]["request_payload"]) == ("10 kbit/s", "79 B")


def test_rows_of_the_thesis_are_kept_as_they_were() -> None:
    with published("fasor18").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["category"] for row in rows} == {"cited"}
    assert {row["claim_id"] for row in rows} == {f"tcp20-c{number}" for number in range(10, 27)}


def test_a_preset_that_a_study_gives_settings_is_told_and_known_by_its_name(tmp_path: Path) -> None:
    said: list[str] = []

    class Told(Watcher):
        def say(self, line: str) -> None:
            said.append(line)

    few: Any = {"clients": [1], "buffer_bytes": [2500], "workload": ["continuous"]}
    done = millpond.reproduce(
        "anrw18", controllers=["cocoa-03", "rfc7252"], factors=few, replications=1, out=tmp_path / "out", report=False,
        watcher=Told(),
    )  # fmt: skip
    assert said == [
        "cocoa-03 runs as cocoa of the study, which is cocoa-03 with ageing = none",
        "rfc7252 runs as default of the study, which is rfc7252 with max-wait = 60 s",
    ]
    found = millpond.compare(done.results, "cocoa-03", "rfc7252", metrics="fct")
    assert (found.one, found.other) == ("cocoa", "default")
