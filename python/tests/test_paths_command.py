"""`millpond paths`: the list, the file of one, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from manual import cells
from millpond import cli
from millpond.errors import UsageError
from millpond.plan import scenario as scenarios
from millpond.plan import single, study
from millpond.studies.reproduction import kept_files

ROOT = Path(__file__).parents[2]


def said(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as end:
        cli.main(["paths", *arguments])
    out, err = capfd.readouterr()
    return end.value.code, out, err


def test_every_named_path_is_told_with_its_source(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capfd)
    assert code == 0
    assert "nbiot-anrw18\n    " in out
    told = json.loads(said(capfd, "--json")[1])
    assert {"nbiot-anrw18", "nbiot-upc", "nbiot-tcp20-high"} <= {path["name"] for path in told}
    assert all(path["title"] in out and path["source"] in out and path["text"] for path in told)


def test_the_file_of_a_path_can_be_laid_into_a_scenario(capfd: pytest.CaptureFixture[str]) -> None:
    text = said(capfd, "nbiot-anrw18")[1]
    assert "[uplink]" in text
    assert json.loads(said(capfd, "nbiot-anrw18", "--json")[1])[0]["text"] == text


def test_an_unknown_path_is_answered_with_the_nearest(capfd: pytest.CaptureFixture[str]) -> None:
    code, _, err = said(capfd, "nbiot-anrw8")
    assert code == 2
    assert err.count("\n") == 1
    assert "did you mean 'nbiot-anrw18'?" in err


CELL = """title = "My cell"
source = "a capture"
[uplink]
rate = "20 kbit/s"
delay = "100 ms"
queue = "3000 B"
loss = { kind = "bernoulli", rate = "2 %" }
[downlink]
rate = "10 kbit/s"
delay = "300 ms"
queue = "9000 B"
"""


def test_the_file_of_a_path_is_checked_and_told_as_one_that_has_a_name(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "cell.toml"
    file.write_text(CELL, encoding="utf-8")
    assert said(capfd, str(file)) == (0, CELL, "")
    told = json.loads(said(capfd, str(file), "--json")[1])
    assert told == [{"name": str(file), "title": "My cell", "source": "a capture", "text": CELL}]
    file.write_text(CELL.replace('delay = "100 ms"\n', ""), encoding="utf-8")
    code, _, err = said(capfd, str(file))
    assert (code, err) == (2, f"millpond: {file}: uplink: missing key `delay`\n")
    assert said(capfd, str(tmp_path / "none.toml"))[2] == f"millpond: {tmp_path}/none.toml: no such file\n"


def test_a_scenario_names_the_file_of_its_path(tmp_path: Path) -> None:
    (tmp_path / "cell.toml").write_text(CELL, encoding="utf-8")
    clients = '[[clients]]\ncount = 1\ncontroller = "rfc7252"\n'
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(f'path = "cell.toml"\n{clients}', encoding="utf-8")
    path = scenarios.in_full(scenarios.load(scenario))["path"]
    assert [path[link][key] for link in ("uplink", "downlink") for key in ("rate", "delay", "queue")] == [
        "20 kbit/s", "100 ms", "3000 B", "10 kbit/s", "300 ms", "9000 B",
    ]  # fmt: skip
    assert path["uplink"]["loss"] != "none"
    # keys are laid over those of the file, each direction by itself
    scenario.write_text(
        f'path = {{ profile = "cell.toml", uplink = {{ loss = "none", queue = "5 kB" }} }}\n{clients}', encoding="utf-8"
    )
    laid = scenarios.in_full(scenarios.load(scenario))["path"]
    assert laid["downlink"] == path["downlink"]
    assert laid["uplink"] == {**path["uplink"], "loss": {"kind": "none"}, "queue": "5000 B"}
    # so is what an option sets, which lies where it is typed
    changed = single.program(scenario, changes={"path": str(tmp_path / "cell.toml"), "path.uplink.rate": "7 kbit/s"})
    there = changed.cells[0].cell.scenario["path"]
    assert (there["uplink"]["rate"], there["uplink"]["queue"]) == ("7 kbit/s", "3000 B")
    scenario.write_text(f'path = "other.toml"\n{clients}', encoding="utf-8")
    with pytest.raises(UsageError, match=r"other\.toml: no such file"):
        scenarios.load(scenario)
    scenario.write_text(f'path = "nbiot-anrw8"\n{clients}', encoding="utf-8")
    with pytest.raises(UsageError, match=r"did you mean .nbiot-anrw18."):
        scenarios.load(scenario)


def test_a_plan_keeps_the_file_of_its_path(tmp_path: Path) -> None:
    (tmp_path / "cell.toml").write_text(CELL, encoding="utf-8")
    (tmp_path / "scenario.toml").write_text(
        'path = "cell.toml"\n[[clients]]\ncount = 1\ncontroller = "rfc7252"\n', encoding="utf-8"
    )
    (tmp_path / "plan.toml").write_text(
        'scenario = "scenario.toml"\n[matrix]\nalgorithm = ["rfc7252", "cocoa-03"]\nplace = ["cell.toml"]\n'
        '[vary.place]\nplaces = ["path"]\n',
        encoding="utf-8",
    )
    plan = study.load(tmp_path)
    assert kept_files(plan)["study/cell.toml"] == tmp_path / "cell.toml"
    assert {planned.cell.scenario["path"]["uplink"]["rate"] for planned in study.unfold(plan).cells} == {"20 kbit/s"}


def test_the_page_of_networks_names_every_path_and_has_a_row_for_each_cell(capfd: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "networks.md").read_text(encoding="utf-8")
    head, _, measured = page.partition("<!-- measured: cells -->")
    named = {path["name"] for path in json.loads(said(capfd, "--json")[1])}
    shortened = {"nbiot-tcp20-medium", "nbiot-tcp20-high"}
    assert named - set(re.findall(r"`([a-z0-9-]+)`", head)) == shortened
    assert tuple(re.findall(r"^\| `([^`]+)` \|", measured, re.MULTILINE)) == cells.CELLS
