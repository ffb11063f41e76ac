"""The arena: cells that are drawn, what is compared with what, and what the verb says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from own_controllers import Standard

from millpond import UsageError
from millpond.arena import cells, contest, drawn, search
from millpond.arena.verdict import Score, scores, summaries
from millpond.cli import program
from millpond.controllers.own import OwnControllers
from millpond.plan import scenario as scenarios

AGAINST = ("rfc7252", "cocoa-s")


def hold(out: Path, **options: Any) -> contest.Contest:
    return contest.hold(**{"against": AGAINST, "drawn": 3, "runs": 2, "out": out, **options})


def test_the_lots_have_no_cell_in_common_and_are_the_same_every_time() -> None:
    training, held_out = (drawn.cells(split, 40) for split in drawn.SPLITS)
    assert drawn.cells("training", 40) == training
    assert training[:10] == drawn.cells("training", 10)
    texts = [json.dumps(one.scenario, sort_keys=True) for one in (*training, *held_out)]
    assert len(set(texts)) == 80
    assert {one.family for one in training} == {"one-cell", *drawn.USUAL}


def test_families_that_are_named_are_drawn_in_turn_and_the_others_keep_their_numbers() -> None:
    named = drawn.cells("training", 6, ("windows", "bursts"))
    assert [one.name for one in named] == [f"{family}-{n}" for n in (1, 2, 3) for family in ("windows", "bursts")]
    usual = {one.name: one for one in drawn.cells("training", 20)}
    assert drawn.cells("training", 2, ("mesh",)) == [usual["mesh-1"], usual["mesh-2"]]
    windows = [one.scenario["clients"][0] for one in named if one.family == "windows"]
    assert all(group["nstart"] > 1 and group["workload"]["kind"] == "backlog" for group in windows)
    others = [one.scenario["clients"][1] for one in named if one.family == "bursts"]
    assert {group["transfer"]["kind"] for group in others} == {"bursts"}


def test_every_drawn_cell_is_a_scenario() -> None:
    for split in drawn.SPLITS:
        for one in [*drawn.cells(split, 200), *drawn.cells(split, 60, ("windows", "bursts"))]:
            built = scenarios.build(one.scenario, one.name)
            groups = scenarios.in_full(built)["clients"]
            assert groups[0]["count"] == one.clients, one.name
            assert len(groups) == (2 if one.family in ("neighbours", "bursts") else 1)


def test_what_is_drawn_spans_wide_ranges() -> None:
    found = [one.scenario for one in drawn.cells("training", 300) if one.family != "mesh"]
    counts = [one["clients"][0]["count"] for one in found]
    rates = [int(one["path"]["downlink"]["rate"].split()[0]) for one in found]
    assert min(counts) == 1
    assert max(counts) > 500
    assert min(rates) < 4_000
    assert max(rates) > 1_000_000
    assert {one["server"]["duplicates"] for one in found} == {"stored", "afresh"}


def test_candidates_and_presets_meet_the_same_cells(tmp_path: Path) -> None:
    patient = {"preset": "rfc7252", "ack-timeout": "4 s"}
    done = hold(tmp_path / "out", candidates={"mine": Standard, "patient": patient})
    places = {score.place for score in done.scores}
    assert len(places) == 3
    for place in places:
        medians = {score.candidate: score for score in done.scores if (score.place, score.measure) == (place, "median")}
        assert set(medians) == {"mine", "patient", *AGAINST}
        best = min(medians[name].value for name in AGAINST)
        assert all(score.best <= max(best, score.best) for score in medians.values())
        # a custom standard is the built-in one
        assert medians["mine"].value == medians["rfc7252"].value
    for name in ("scores.csv", "scores.parquet", "summary.csv", "summary.parquet", "arena.html", "manifest.json"):
        assert (done.directory / name).is_file(), name
    assert done.page is not None
    page = done.page.read_text(encoding="utf-8")
    assert "patient" in page
    assert "2 candidates beside the published presets" in page
    assert "held-out" not in page


def test_nothing_is_below_the_bound(tmp_path: Path) -> None:
    done = hold(tmp_path / "out", candidates=["fasor-token"], drawn=8)
    over = [score.over_bound for score in done.scores if score.measure == "slowest" and score.over_bound > 0]
    assert over
    assert min(over) >= 0.99
    assert done.page is not None
    assert "1 candidate beside the published presets in 8 cells" in done.page.read_text(encoding="utf-8")


def test_what_was_run_is_kept(tmp_path: Path) -> None:
    first = hold(tmp_path / "out", candidates=["fasor-token"])
    again = hold(tmp_path / "out", candidates=["fasor-token"], resume=True)
    assert again.scores == first.scores


def test_the_worst_cell_is_named() -> None:
    found = [
        Score("a", place, "f", "median", value, 1.0, "b", value, low, value + 0.1, float("nan"))
        for place, value, low in (("x", 0.9, 0.8), ("y", 1.3, 1.2))
    ]
    (told,) = summaries(found)
    assert (told.mean, told.worst, told.worst_place, told.above, told.far_above) == (1.1, 1.3, "y", 1, 1)
    assert (told.surely_above, told.surely_far_above) == (1, 0)


def test_cells_of_few_clients_have_more_runs() -> None:
    found = cells.places("drawn", "training", range(60), 40, OwnControllers())
    clients = {one.name: one.clients for one in drawn.cells("training", 60)}
    assert all(place.replications * clients[place.name] >= 200 or place.replications == 40 for place in found)
    assert all(4 <= place.replications <= max(4, 200 / clients[place.name] + 1) for place in found)
    assert {4, 40} <= {place.replications for place in found}
    capped = cells.places("drawn", "training", range(60), 3, OwnControllers())
    assert {place.replications for place in capped} == {3}


def test_further_cells_are_drawn_by_their_numbers() -> None:
    every = cells.places("drawn", "training", range(12), 1, OwnControllers())
    later = cells.places("drawn", "training", contest.numbers("9..12"), 1, OwnControllers())
    assert later == every[8:]
    assert contest.numbers("120") == contest.numbers(120) == range(120)


def test_scores_are_read_from_the_results_alone(tmp_path: Path) -> None:
    done = hold(tmp_path / "out", candidates=["fasor-token"])
    assert scores(type(done.results).open(done.directory), AGAINST) == list(done.scores)


def test_cells_on_every_reading_of_a_test_bed_are_an_explicit_choice() -> None:
    first, every = (cells.places("studies", "training", range(1), 2, OwnControllers(), of) for of in cells.READINGS)
    names = [place.name for place in every]
    assert len(set(names)) == len(names)
    assert [name for name in names if name in {place.name for place in first}] == [place.name for place in first]
    of_upc19 = [place.name for place in every if place.family == "upc19"]
    assert not any("four-host" in place.name for place in first)
    assert (len(first), len(every), len(of_upc19)) == (174, 412, 128)
    assert sum("-as-typed" in name and "30kbit" not in name for name in of_upc19) == 16 + 40
    assert {place.scenario["path"]["downlink"]["rate"] for place in every if place.family == "upc19"} >= {
        "240 kbit/s", "30 kbit/s",
    }  # fmt: skip


def test_the_studies_give_cells_too() -> None:
    found = cells.places("studies", "training", range(1), 2, OwnControllers())
    families = {place.family for place in found}
    assert {"anrw18", "fasor18", "upc19"} <= families
    assert len({place.name for place in found}) == len(found)
    assert all("controller" in place.scenario["clients"][0] for place in found)


def test_clients_that_report_and_notify_are_all_the_candidates() -> None:
    found = cells.places("studies", "training", range(1), 1, OwnControllers())
    mesh = [place for place in found if place.family == "cocoaplus15"]
    assert {len(place.scenario["clients"]) for place in mesh} == {1, 2}
    made = cells.program({"mine": "calm"}, ("rfc7252",), mesh, "training", OwnControllers())
    presets = {"mine": "calm", "rfc7252": "rfc7252"}
    for planned in made.cells:
        name = planned.cell.columns["algorithm"]
        assert {group.algorithm for group in planned.cell.groups} == {name}
        told = [group["controller"] for group in planned.cell.scenario["clients"]]
        assert all(presets[str(name)] in str(controller) for controller in told), told


def test_where_requests_come_in_a_rhythm_times_are_those_from_birth_to_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten requests, one a minute, over a path of a second: a client is done after more than nine minutes."""
    link = {"rate": "1 Mbit/s", "delay": "500 ms", "queue": "10 packets"}
    group = {
        "count": 3,
        "controller": "rfc7252",
        "workload": {"kind": "periodic", "period": "1 min", "requests": 10},
    }
    steady = {"path": {"uplink": link, "downlink": link}, "clients": [group]}
    place = cells.Place("steady", "made", steady, 1)
    monkeypatch.setattr(cells, "places", lambda *_: [place])
    told = {score.measure: score.value for score in hold(tmp_path / "out", candidates=["calm"]).scores}
    assert 1 < told["median"] <= told["p95"] < 1.2
    assert told["lost"] == 0
    assert "slowest" not in told


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"candidates": ["fasorr-token"]}, "did you mean"),
        ({"candidates": []}, "--candidate: none"),
        ({"candidates": {"alone": "fasor-token"}}, "'alone' is the arena's own name"),
        ({"against": ("fasorr",)}, "--against: unknown preset 'fasorr': did you mean 'fasor'"),
        ({"cells_of": "draw"}, "--cells: unknown kind 'draw': did you mean 'drawn'"),
        ({"seeds": "test"}, "--seeds: unknown split 'test'"),
        ({"drawn": 0}, "--drawn: 0: at least 1"),
        ({"drawn": "9..4"}, "--drawn: 9..4: no cells"),
        ({"drawn": "few"}, "--drawn: 'few' is no number of cells"),
        ({"families": ("window",)}, "--families: unknown family 'window': did you mean 'windows'"),
        ({"families": ("mesh", "mesh")}, "--families"),
        ({"families": ("mesh",), "cells_of": "studies"}, "--families: studies' cells are of none"),
        ({"runs": 0}, "--runs: 0: at least 1"),
        ({"jobs": -1}, "--jobs: -1"),
        ({"candidates": ["nowhere.py:Mine"]}, "nowhere.py"),
    ],
)
def test_what_makes_no_sense_is_one_line(tmp_path: Path, options: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError) as caught:
        hold(tmp_path / "out", **{"candidates": ["fasor-token"], **options})
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_the_verb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["arena", "--candidate", "fasor-token,rfc7252?ack-timeout=4 s", "--against", "rfc7252"]
    program.main(
        [*words, "--drawn", "2", "--runs", "1", "--out", str(tmp_path / "out"), "--json"], standalone_mode=False
    )
    told = json.loads(capsys.readouterr().out)
    assert {one["candidate"] for one in told["summary"]} == {"fasor-token", "rfc7252?ack-timeout=4 s", "rfc7252"}


def test_a_key_can_be_set_in_every_cell(tmp_path: Path) -> None:
    changes = {"clients[0].naming": "none", "server.duplicates": "stored"}
    done = hold(tmp_path / "out", candidates=["fasor-token"], drawn="1..6", changes=changes)
    manifest = json.loads((done.directory / "manifest.json").read_text(encoding="utf-8"))
    on_paths = [cell["scenario"] for cell in manifest["cells"]]
    assert len({cell["columns"]["place"] for cell in manifest["cells"]}) == 6
    assert {scenario["server"]["duplicates"] for scenario in on_paths} == {"stored"}
    assert {scenario["clients"][0]["naming"] for scenario in on_paths} == {"none"}


def test_a_search_keeps_the_best_of_each_rung_and_goes_on_where_it_was(tmp_path: Path) -> None:
    within = search.ranges(["patience=1 s..60 s"])
    settings = search.draw("calm", within, 4)
    assert settings == search.draw("calm", within, 4)
    assert all(1_000 <= int(one["patience"].split()[0]) <= 60_000 for one in settings)

    def held() -> list[search.Found]:
        return search.search("calm", within, 4, tmp_path, rungs=((2, 1), (3, 1)), against=("rfc7252",))

    found = held()
    last = [one for one in found if one.rung == 2]
    assert found[: len(last)] == sorted(last, key=lambda one: (one.worst, one.mean))
    assert len(last) == 2
    assert "calm" in {one.candidate for one in last}
    assert {one.candidate for one in found} == {"calm", *(f"calm-{number}" for number in range(1, 5))}
    before = {file: file.stat().st_mtime_ns for file in tmp_path.glob("*/runs.parquet")}
    assert len(before) == 2
    assert held() == found
    assert {file: file.stat().st_mtime_ns for file in before} == before


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--search", "patience"], "write it as"),
        (["--search", "patience=9 s..1 s"], "write it as"),
        (["--search", "patience=1 s..9 s", "--draws", "0"], "at least 1"),
        (["--search", "patience=1 s..9 s", "--seeds", "held-out"], "leave --seeds out"),
        (["--search", "patience=1 s..9 s", "--candidate", "calm,rfc7252"], "one candidate"),
        (["--search", "speed=1 s..9 s"], "speed"),
        (["--search", "patience=1 s..9 s", "--cells", "all"], "leave --cells out"),
        (["--search", "patience=1 s..9 s", "--runs", "4"], "leave --runs out"),
        (["--search", "patience=1 s..9 s", "--set", "server.duplicates=stored"], "leave --set out"),
        (["--set", "server.duplicate=stored"], "duplicate"),
        (["--set", "clients[7].naming=none"], "clients[7].naming"),
        (["--draws", "9"], "--draws: it goes with --search alone"),
        (["--readings", "all"], "--readings: drawn cells have none: choose --cells studies, or all"),
        (["--cells", "studies", "--readings", "al"], "--readings: unknown choice 'al'"),
    ],
)
def test_a_search_that_makes_no_sense_is_one_line(words: list[str], part: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        program.main(["arena", *words, "--out", str(tmp_path / "out")], standalone_mode=False)
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)
