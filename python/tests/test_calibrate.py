"""The setting under which a study's rows would come out: declared, searched, judged."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from millpond.calibrate import answer, description, page, search, trial
from millpond.cli import main
from millpond.errors import UsageError
from millpond.plan import study
from millpond.show import html, terminal

#: The uplink's rate and which algorithm it was are what the paper does not print.
PLAN = """
name = "hidden"
published = "published.csv"
claims = "claims.toml"
replications = 3
[scenario]
clients = [ { count = 4, controller = "rfc7252", exchanges = 20 } ]
[scenario.path]
uplink = { rate = "60 kbit/s", delay = "1 ms", queue = "20 packets" }
downlink = { rate = "1 Mbit/s", delay = "1 ms", queue = "20 packets" }
[matrix]
"clients[0].count" = [4, 8]
algorithm = ["rfc7252"]
[quick]
replications = 3
"""
CLAIMS = """
[[claim]]
id = "hidden-c01"
says = "Eight clients take longer than four."
[[claim.check]]
metric = "fct"
each = { algorithm = "rfc7252" }
of = { "clients[0].count" = 8 }
against = { "clients[0].count" = 4 }
is = "higher"
"""
CALIBRATION = """
tries = 40
quick = 14
[cells]
"clients[0].count" = [4]
[rows]
fit = ["a", "b"]
test = ["c"]
[[parameter]]
name = "rate"
label = "rate of the uplink"
unit = "kbit/s"
from = 4
to = 400
scale = "log"
first = 300
set = { "path.uplink.rate" = "{} kbit/s" }
[[parameter]]
name = "payload"
first = "small"
choices.small = {}
choices.large = { "server.payload" = "900 B" }
"""
HEADER = "id,source,locator,category,kind,metric,statistic,value,unit,algorithm,clients[0].count\n"


def hidden(folder: Path, four: float, quickest: float, eight: float, calibration: str = CALIBRATION) -> Path:
    """A study whose rows have these times of completion: mean and least of four clients, mean of eight."""
    folder.mkdir(exist_ok=True)
    row = "{},hidden,here,result,table,fct,{},{},s,rfc7252,{}\n"
    rows = row.format("a", "mean", four, 4) + row.format("b", "min", quickest, 4) + row.format("c", "mean", eight, 8)
    for name, text in (("plan.toml", PLAN), ("claims.toml", CLAIMS), ("published.csv", HEADER + rows)):
        (folder / name).write_text(text, encoding="utf-8")
    (folder / description.FILE).write_text(calibration, encoding="utf-8")
    return folder


def times(calibration: description.Calibration, rate: float) -> dict[str, float]:
    """What the rows would be at a rate."""
    found = trial.judged(calibration, {"rate": rate, "payload": "small"}, quick=False).figures
    return {name: float(figure.ours or 0) for name, figure in found.items()}


def test_a_distance_is_a_difference_as_a_share_of_the_sum() -> None:
    assert trial.distance(2, 1) == trial.distance(1, 2) == pytest.approx(1 / 3)
    assert (trial.distance(0, 0), trial.distance(0, 3), trial.distance(3, None)) == (0, 1, trial.FARTHEST)
    # of 99 % one in a hundred is missing, of 97 % three
    assert trial.distance(99, 97, "percent") == 0.5
    assert trial.misfit([0.3, 0.4]) == pytest.approx((0.25 / 2) ** 0.5)
    assert trial.fits(100, 109)
    assert not trial.fits(100, 111)
    assert not trial.fits(0, 1)
    assert trial.fits(0, 0)


def test_a_parameter_is_a_range_or_a_choice() -> None:
    plan = study.load(study.find("burst23"))
    known = {parameter.name: parameter for parameter in description.read(plan).parameters}
    rate, queue = known["rate"], known["queue"]
    assert [rate.at(0), rate.at(0.5), rate.at(1)] == [2, 44.72, 1000]
    assert rate.place(44.72) == pytest.approx(0.5, abs=1e-4)
    assert isinstance(queue.at(0.3), int)
    assert queue.changes(7)["network.links.bs-up.queue"] == "7 packets"
    assert known["window"].changes(12) == {"clients[0].nstart": 12}
    for parameter in known.values():
        first = parameter.first if parameter.choices else pytest.approx(parameter.first, rel=1e-3)
        assert parameter.at(parameter.place(parameter.first)) == first


def test_each_cell_has_the_changes_of_all_parameters_that_are_for_it() -> None:
    calibration = description.read(study.load(study.find("cocoaplus15")))
    setting = {**calibration.first, "sink": "edge", "ratios": "even", "message": "message"}
    places = {"mesh.sinks", "mesh.delivery", "clients[0].request_payload", "clients[1].request_payload"}

    def changed(topology: str, ldr: str, traffic: str) -> set[str]:
        cell = {"topology": topology, "ldr": ldr, "traffic": traffic}
        return places & next(path.changes.keys() for path in calibration.paths(setting) if path.only.covers(cell))

    assert changed("grid-6x6", "lossy", "mixed") == places
    assert changed("grid-6x6", "100", "mixed") == places - {"mesh.delivery"}
    assert changed("chain", "lossy", "global event") == {"mesh.delivery", "clients[0].request_payload"}
    assert changed("chain", "100", "constant") == {"clients[0].request_payload"}


def test_what_is_for_one_algorithm_changes_its_half_of_a_mix() -> None:
    calibration = description.read(study.load(study.find("burst23")))
    paths = calibration.paths({**calibration.first, "window": 9, "queue": 3})
    mixes = (
        planned.cell for planned in study.unfold(replace(calibration.plan, paths=paths)).cells if planned.cell.mixed
    )
    cell = next(cell for cell in mixes if cell.columns["algorithm"] == "default;coap_plus")
    assert [group.get("nstart") for group in cell.scenario["clients"]] == [None, 9]
    assert cell.scenario["network"]["links"]["bs-up"]["queue"] == "3 packets"


def test_rows_of_a_mix_are_measured_in_the_mix(tmp_path: Path) -> None:
    folder = hidden(tmp_path, 30, 20, 30)
    for name, old, new in (
        ("plan.toml", '["rfc7252"]', '["rfc7252", "cocoa-03"]'),
        ("published.csv", "algorithm,", "algorithm,partner,"),
        ("published.csv", "rfc7252,", "rfc7252,cocoa-03,"),
    ):
        (folder / name).write_text((folder / name).read_text().replace(old, new))
    with pytest.raises(UsageError, match=r"cells: a is of a mix of rfc7252 and cocoa-03: there is none"):
        description.read(study.load(folder))
    with (folder / "plan.toml").open("a") as file:
        file.write('[[mix]]\nalgorithms = ["rfc7252", "cocoa-03"]\n')
    calibration = description.read(study.load(folder))
    setting: dict[str, str | int | float] = {"rate": 30.0, "payload": "small"}
    together = trial.judged(calibration, setting, quick=True).figures
    assert {name: figure.n for name, figure in together.items()} == {"a": 6, "b": 6, "c": 12}  # halves, three runs
    assert all(value is not None for value in trial.tried(calibration, setting).ours.values())


@pytest.mark.parametrize("name", ["burst23", "cocoaplus15", "tcp20", "upc19"])
def test_studies_declare_rows_that_can_be_measured_under_the_reading_chosen_before(name: str) -> None:
    calibration = description.read(study.load(study.find(name)))
    found = trial.tried(calibration, calibration.first)
    assert not found.refused
    assert all(value is not None for value in found.ours.values())


def test_a_hidden_setting_is_found_and_tested_on_other_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth = times(description.read(study.load(hidden(tmp_path, 1, 1, 1))), 25)
    folder = hidden(tmp_path, truth["a"], truth["b"], truth["c"])
    out = tmp_path / "out"
    with pytest.raises(SystemExit) as ended:
        main(["calibrate", str(folder), "--out", str(out), "--jobs", "2", "--json"])
    assert ended.value.code == 0
    told = json.loads(capsys.readouterr().out)
    assert told["explains"]
    assert all(row["fits"] for row in told["rows"]["test"])
    assert told["best"]["setting"]["payload"] == "small"
    assert told["best"]["setting"]["rate"] == pytest.approx(25, rel=0.15)
    assert told["best"]["misfit"] < 0.05 < told["before"]["misfit"]
    assert [claim["calibrated"] for claim in told["claims"]] == ["holds"]
    assert told["tried"] == 40
    assert len((out / search.TRIALS).read_text().splitlines()) == 40
    assert "Distance over each parameter" in (out / page.PAGE).read_text(encoding="utf-8")


def test_a_search_that_was_stopped_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    calibration = description.read(study.load(hidden(tmp_path, 3, 2, 5)))
    folders = tmp_path / "whole", tmp_path / "stopped"
    for folder in folders:
        folder.mkdir()
    whole = search.search(calibration, 12, folders[0], 1, lambda _number, _best: None)
    file = folders[1] / search.TRIALS
    # the last line was being written
    file.write_text(
        "".join((folders[0] / search.TRIALS).read_text().splitlines(keepends=True)[:7]) + '{"setting": {"ra'
    )
    begun = file.read_text()
    counted = []
    assert search.search(calibration, 12, folders[1], 1, lambda number, _best: counted.append(number)) == whole
    assert counted == list(range(1, 13))
    assert file.read_text().startswith(begun.rpartition("\n")[0])
    assert len(search.search(calibration, 12, folders[1], 1, lambda _number, _best: None)) == 12


def test_rows_that_contradict_each_other_are_explained_by_nothing(tmp_path: Path) -> None:
    # the mean of four clients is nine times their least
    plan = study.load(hidden(tmp_path, 27, 3, 30))
    found = answer.calibrate(plan, tmp_path / "out", quick=True, jobs=2)
    assert not found.explains
    assert found.best.misfit > 0.3
    assert page.lead(found)[0].startswith("No setting of 14 explains the 2 rows together")
    shown = page.document(found)
    assert "No setting of 14" in html.render(shown)
    assert terminal.render(shown) is not None
    [summary, flat, rows, claims] = shown.sections
    assert [row[0] for row in summary.listings[0].rows] == ["rate of the uplink (kbit/s)", "payload"]
    assert len(flat.pictures[0].plot().rows.rows) == 14
    assert flat.pictures[0].plot().draw() is not None
    assert [len(row) for row in rows.listings[0].rows] == [1, 6, 6, 1, 6]
    assert len(claims.listings[0].rows) == 1


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('test = ["c"]', 'test = ["c", "b"]', "rows: b would both choose the setting and test it"),
        ('test = ["c"]', 'test = ["a", "b"]', "rows: a and 1 more would both choose"),
        ('fit = ["a", "b"]', "fit = []", "rows.fit: an empty list"),
        ('fit = ["a", "b"]', 'fit = ["a", "bb"]', "rows.fit: unknown row 'bb'"),
        ('fit = ["a", "b"]', 'fit = ["a", "a"]', "rows.fit: a stands there twice"),
        ("from = 4", "from = 4000", "parameter[0]: a range needs `from` below `to`"),
        ("from = 4", "from = 0", "parameter[0].from: 0 on a scale of doublings"),
        ("first = 300", "first = 500", "parameter[0].first: 500 is not within the range"),
        ("{} kbit/s", "9 kbit/s", "parameter[0].set: write {} where the value goes"),
        ('first = "small"', 'first = "smal"', "parameter[1].first: unknown choice 'smal': did you mean 'small'?"),
        ('name = "payload"', 'name = "rate"', "parameter: two are called 'rate'"),
        ("= [4]", "= [5]", "cells: no matrix of the plan has such cells"),
        ("tries = 40", "tries = 0", "tries: expected"),
        ('first = "small"', 'first = "small"\nwhere.nowhere = {}', "parameter[1].where: unknown place 'nowhere'"),
        ("tries = 40", "trys = 30", "unknown key 'trys': did you mean 'tries'?"),
    ],
)
def test_what_is_declared_wrongly_is_told_in_one_line(tmp_path: Path, old: str, new: str, told: str) -> None:
    assert old in CALIBRATION
    folder = hidden(tmp_path, 1, 1, 1, CALIBRATION.replace(old, new, 1))
    with pytest.raises(UsageError) as caught:
        description.read(study.load(folder))
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
    assert description.FILE in str(caught.value)


def test_a_claim_is_a_row_where_it_states_a_change(tmp_path: Path) -> None:
    shutil.copytree(study.find("upc19"), folder := tmp_path / "upc19")
    file = folder / description.FILE
    file.write_text(file.read_text().replace('test = ["upc19-r0171"', 'test = ["upc19-r0187", "upc19-r0171"'))
    with pytest.raises(UsageError, match=r"rows.test: upc19-r0187 cannot be compared: it is no measured number"):
        description.read(study.load(folder))


def test_a_setting_that_cannot_be_run_is_as_far_away_as_can_be(tmp_path: Path) -> None:
    calibration = description.read(study.load(hidden(tmp_path, 1, 1, 1, CALIBRATION.replace("900 B", "900 kB"))))
    found = trial.tried(calibration, {"rate": 30.0, "payload": "large"})
    assert found.misfit == trial.FARTHEST
    assert "server.payload" in found.refused


def test_a_study_without_a_calibration_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, told in (
        (["anrw18"], "its folder holds no calibration.toml"),
        (["burst23", "--tries", "0"], "--tries: 0 makes no sense here"),
        (["burst23", "--out", str(tmp_path)], "--resume goes on with them"),
    ):
        (tmp_path / search.TRIALS).write_text("")
        with pytest.raises(SystemExit) as ended:
            main(["calibrate", *words])
        complaint = capsys.readouterr().err
        assert ended.value.code == 2
        assert told in complaint
        assert complaint.count("\n") == 1
