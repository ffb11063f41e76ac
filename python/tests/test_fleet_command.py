"""The verb `fleet`: what it prints, what it writes, and what it refuses."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from manual import fleet as fleet_page
from millpond import cli
from millpond.fleet import answer, page

SMALL = ["--devices", "20", "--seeds", "2", "--set", "everyday.others=2", "--set", "try_controllers=['cocoa-03']"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        cli.main(["fleet", *words])
    return int(ended.value.code or 0)


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--example") == 0
    Path("mine.toml").write_text(capsys.readouterr().out, encoding="utf-8")
    assert run("mine.toml", *SMALL, "--no-report") == 0
    assert capsys.readouterr().out.startswith("Safe: 400 meters after a power cut\n")


def test_flags_alone_are_a_fleet(capsys: pytest.CaptureFixture[str]) -> None:
    words = [*SMALL, "--profile", "nbiot-anrw18", "--after", "hourly", "--every", "1 h", "--within", "90% within 1min"]
    assert run(*words, "--old-firmware", "0.5", "--json") == 0
    out = json.loads(capsys.readouterr().out)
    assert out["goal"] == {"share": 0.9, "within_s": 60.0, "copies": 3.0, "useful": 0.8}
    assert out["devices"] == 20
    assert out["answer"]["verdict"] == "safe"
    assert out["answer"]["probability"]["safe"]["share"] == 1.0
    assert sorted(out["answer"]["done_s"]) == ["100 %", "50 %", "90 %", "99 %"]
    assert Path("results/fleet/report.html").is_file()
    assert json.loads(Path("results/fleet/answer.json").read_text(encoding="utf-8")) == out


def test_everyday_reports_may_be_the_published_mix(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*SMALL, "--every", "tr45820", "--no-report") == 0
    assert capsys.readouterr().out.startswith("Safe: ")


def test_markdown_is_for_a_ticket(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*SMALL, "--markdown", "--no-report") == 0
    out = capsys.readouterr().out
    assert out.startswith("## Safe: 20 devices after a power cut, cell nbiot-anrw18\n")
    assert "\n| remedy | needs | verdict |" in out
    assert "\n| a calm server | your server | safe | 2/2 |" in out
    assert out.isascii()


def test_the_report_answers_first_and_opens_offline() -> None:
    assert run(*SMALL, "--largest", "--within", "99 % in 4 s", "--out", "out") == 0
    text = Path("out/report.html").read_text(encoding="utf-8")
    titles = [text.index(f"<h2>{title}</h2>") for title in ("In short", "What happens", "What would help",
              "How far it is to the edge", "What was assumed")]  # fmt: skip
    assert titles == sorted(titles)
    for name in ("done", "collapse", "edge"):
        assert f'<figure id="{name}">' in text
    assert 'class="missing"' not in text
    assert "http://" not in text.replace("http://www.w3.org", "")
    assert "https://" not in text
    # again into the same folder
    assert run(*SMALL, "--out", "out") == 0


def test_a_gateway_that_helps_comes_with_its_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*SMALL, "--set", "try_gateway=true", "--out", "out", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    file = Path("out/gateway.toml")
    assert file.read_text(encoding="utf-8") == told["gateway"]
    (remedy,) = (one for one in told["remedies"] if one["change"]["name"] == "asking-gateway")
    assert f"nstart = {remedy['change']['asks']}\n" in told["gateway"]
    checked = subprocess.run(
        [sys.executable, "-m", "millpond", "gateway", "--check", str(file)], capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stderr) == (0, "")
    assert run(*SMALL, "--out", "out", "--json") == 0
    assert json.loads(capsys.readouterr().out)["gateway"] is None
    assert not file.exists()


def test_equal_answers_give_equal_reports(here: Path) -> None:
    for name in ("one", "other"):
        assert run(*SMALL, "--out", name) == 0
    assert (here / "one/report.html").read_bytes() == (here / "other/report.html").read_bytes()


@pytest.mark.parametrize("where", ["simulate", "render"])
def test_ctrl_c_leaves_no_half_written_report(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(answer if where == "simulate" else page, where, interrupted)
    assert run(*SMALL, "--out", "out") == 130
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "which fleet? name its file, or --devices N"),
        (["none.toml"], "none.toml: no such file"),
        (["--devices", "0"], "--devices: expected a whole number >= 1"),
        (["--after", "storm"], "--after: unknown word 'storm'"),
        (["--devices", "5", "--seeds", "1"], "--seeds: 1 makes no sense here"),
        (["--devices", "5", "--seed", "-1"], "--seed: -1 is out of range"),
        (["--devices", "5", "--json", "--markdown"], "--json and --markdown: only one of them"),
        (["--devices", "5", "--no-report", "--out", "x"], "--no-report and --out: only one of them"),
        (["--devices", "5", "--within", "soon"], "--within: 'soon' is no goal"),
        (["--devices", "5", "--within", "99 % in 2 d"], "--within: horizon: 1 h ends before the time that the goal"),
        (["--devices", "5", "--set", "cell.rate=5"], "--set cell.rate: cell: unknown key 'rate'"),
        (["--devices", "5", "--set", "event.arrival.over=60 s"], "event.arrival: missing key `kind`"),
        (["--devices", "5", "--set", "group[0].reconnect=5 x"], "--set group[0].reconnect: unknown unit `x`"),
        (["--devices", "5", "--set", "group[0].controller=calmer"], "--set group[0].controller: unknown"),
        (["--devices", "5", "--profile", "moon"], "--profile: unknown path 'moon': known: nbiot-anrw18"),
        (["--devices", "5", "--profile", "moon.toml"], "--profile: moon.toml: no such file"),
        (["--devices", "5", "--every", "1 ms"], "fleet: everyday.every: the reports of 5 devices are 128 times what"),
        (["--devices", "5", "--every", "1 mo"], "--every: unknown unit `mo`"),
        (["--set", "try_gateway=true", "--after", "command"], "try_gateway: not modelled of the event 'command'"),
        (
            ["--set", "try_gateway=true", "--profile", "nbiot-ce0"],
            "try_gateway: random access of its own is not modelled",
        ),
    ],
)
def test_what_makes_no_sense_is_one_line(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*words) == 2
    err = capsys.readouterr().err
    assert told in err
    assert err.count("\n") == 1


def test_a_folder_with_something_else_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine").mkdir()
    Path("mine/thesis.tex").write_text("all of it", encoding="utf-8")
    assert run(*SMALL, "--out", "mine") == 2
    assert "mine holds something else" in capsys.readouterr().err


def test_the_page_of_the_manual_is_what_comes_out() -> None:
    page = (Path(__file__).parents[2] / "docs" / "fleet.md").read_text(encoding="utf-8")
    # if not: python -m manual.fleet
    assert fleet_page.written(page) == page
    first = re.search(r"^    millpond fleet (.*)$", page, re.MULTILINE)
    assert first is not None
    flags = {"--devices": "devices", "--profile": "cell.profile", "--after": "event.kind", "--every": "everyday.every"}
    words = shlex.split(first[1])
    assert {flags[flag]: value for flag, value in zip(words[::2], words[1::2], strict=True)} == {
        place: str(value) for place, value in fleet_page.FIRST.items()
    }
    assert f"millpond fleet --devices 400 --set cell.buffer='{fleet_page.DEEP['cell.buffer']}'" in page
