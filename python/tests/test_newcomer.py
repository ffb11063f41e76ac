"""What newcomers get wrong: each is told in one line, with the place and the fix."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import millpond
from millpond import cli

SCENARIO = """path = "nbiot-anrw18"
[[clients]]
count = 2
controller = "rfc7252"
exchanges = 1
"""
PLAN = """scenario = "s.toml"
replications = 1
[matrix]
"clients[0].count" = [1, 2]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text(SCENARIO)
    (tmp_path / "p.toml").write_text(PLAN)
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], *words: str, code: int = 2) -> str:
    with pytest.raises(SystemExit) as ended:
        cli.main(list(words))
    error = capsys.readouterr().err
    assert ended.value.code == code, error
    assert error.startswith("millpond: ")
    assert error.count("\n") == 1
    return error.removeprefix("millpond: ").strip()


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("run p.toml", "p.toml: a plan of many runs, which `millpond sweep` takes"),
        (
            "sweep s.toml",
            "s.toml: a scenario, which `millpond run` takes: a plan names it as `scenario`, and has a [matrix]",
        ),
        ("results s.toml", "s.toml: a file, and no folder with results"),
        ("report s.toml", "s.toml: a file, and no folder with results"),
        (
            "run s.toml --set clients[0].count=3 --clients 4",
            "--set clients[0].count: --clients sets it too: give one of the two",
        ),
        (
            "run s.toml --set clients[0].controller.ack-timeout=3 --controller fasor",
            "--set clients[0].controller.ack-timeout: --controller sets it too: give one of the two",
        ),
        (
            "run s.toml --controller mine.py",
            "--controller: mine.py names no class: write mine.py:Mine, as it is called there",
        ),
        ("fleet --devices 9 --set devices=8", "--set devices: --devices sets it too: give one of the two"),
        (
            "fleet --after hourly --set event.kind=firmware",
            "--set event.kind: --after sets it too: give one of the two",
        ),
        (
            "fleet --set horizon=1min",
            '--set horizon: 1 min ends before the time that the goal gives: write at least "300 s"',
        ),
        (
            "fleet --within 0%\N{NO-BREAK SPACE}within\N{NO-BREAK SPACE}5min",
            "--within: 0% of the devices are none: write a share such as 99 %",
        ),
        ("arena --drawn 1 --candidate calm,calm", "--candidate: calm stands there twice: leave one out"),
        ("arena --drawn 1 --against rfc7252,rfc7252", "--against: rfc7252 stands there twice: leave one out"),
        (
            "arena --search patience=1s..2s --search patience=2s..3s",
            "--search: patience has two ranges: give one",
        ),
    ],
)
@pytest.mark.usefixtures("folder")
def test_the_line(capsys: pytest.CaptureFixture[str], words: str, line: str) -> None:
    assert told(capsys, *words.split(" ")) == line


@pytest.mark.parametrize(
    ("words", "begins", "says"),
    [
        ("arena --drawn 1 --candidate nosuch", "--candidate nosuch: ", "unknown controller `nosuch`"),
        ("arena --drawn 1 --candidate calm?patienc=3", "--candidate calm?patienc=3: ", "did you mean `patience`?"),
        ("arena --search patience=1s..2s --candidate rfc7252", "--search: ", "unknown setting `patience`"),
        ("arena --search patience=1s..2s --candidate calmer", "--candidate calmer: ", "did you mean `calm`?"),
    ],
)
def test_who_is_to_blame(folder: Path, capsys: pytest.CaptureFixture[str], words: str, begins: str, says: str) -> None:
    line = told(capsys, *words.split(" "))
    assert line.startswith(begins)
    assert says in line
    assert not any(file.is_dir() for file in folder.iterdir())


def test_a_manifest_that_lacks_something_is_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["sweep", "p.toml", "--out", "out", "--no-report"])
    capsys.readouterr()
    file = folder / "out" / "manifest.json"
    manifest = json.loads(file.read_text())
    assert told(capsys, "capture", "out", "x.pcapng").endswith("name one, such as --cell '1-fixed'")
    for key in ("cells", "files", "state"):
        file.write_text(json.dumps({name: value for name, value in manifest.items() if name != key}))
        line = told(capsys, "report", "out", code=1)
        assert line == f"out/manifest.json: damaged (it has no '{key}'): run the study again"


@pytest.mark.parametrize(
    ("key", "text", "line"),
    [
        ("published", None, "p.toml: published: p.x: no such file"),
        ("claims", None, "p.toml: claims: p.x: no such file"),
        ("claims", "[claims.c01]\nsay = 3\n", "p.x: "),
        ("published", "a,b\n1,2\n", "p.x: "),
    ],
)
def test_what_cannot_be_judged_is_told_before_anything_runs(
    folder: Path, capsys: pytest.CaptureFixture[str], key: str, text: str | None, line: str
) -> None:
    if text is not None:
        (folder / "p.x").write_text(text)
    (folder / "p.toml").write_text(f'{key} = "p.x"\n{PLAN}')
    for words in (("sweep", "p.toml"), ("reproduce", "./p.toml")):
        assert line in told(capsys, *words)
    assert not any(file.is_dir() for file in folder.iterdir())


def test_a_place_that_is_misspelt_is_told_with_its_factor(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    vary = '[vary.queue]\nplaces = ["path.uplink.queue", "path.downlink.quue"]\n'
    (folder / "q.toml").write_text(f'scenario = "s.toml"\n[matrix]\nqueue = ["2 kB"]\n{vary}')
    line = told(capsys, "sweep", "q.toml")
    assert line.startswith("q.toml: vary.queue: path.downlink.quue: unknown key `quue`: did you mean `queue`?")


@pytest.mark.parametrize(
    ("key", "more", "place"),
    [("scenario", "", "scenario"), ("title", '[[matrix]]\nscenario = "t.toml"\n', "matrix[0].scenario")],
)
def test_a_scenario_that_is_missing_is_told_with_the_key_that_names_it(
    folder: Path, capsys: pytest.CaptureFixture[str], key: str, more: str, place: str
) -> None:
    plan = f'{key} = "t.toml"\n' + (more or "[matrix]\n") + '"clients[0].count" = [1, 2]\n'
    (folder / "t.plan").write_text(plan if key == "scenario" else f'scenario = "s.toml"\n{plan}')
    assert told(capsys, "sweep", "t.plan") == f"t.plan: {place}: t.toml: no such file"


def test_one_table_in_place_of_a_list_is_told_with_its_name(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "one.toml").write_text(SCENARIO.replace("[[clients]]", "[clients]"))
    where = "clients: a single table, where there may be several"
    assert told(capsys, "run", "one.toml") == f"one.toml: {where}: write [[clients]], with two brackets"
    (folder / "plan.toml").write_text(PLAN.replace("s.toml", "one.toml").replace('"clients[0].count"', '"path.header"'))
    assert where in told(capsys, "sweep", "plan.toml")
    with pytest.raises(millpond.MillpondError, match=where):
        millpond.run({"path": "nbiot-anrw18", "clients": {"count": 2, "controller": "rfc7252"}})


def test_what_a_notebook_shows_says_what_was_run_and_where(folder: Path) -> None:
    once = millpond.run("s.toml", out=folder / "once", report=False)
    assert repr(once) == f"<Run of s: 1 setting, 1 run in {folder / 'once'}>"
    swept = millpond.sweep("p.toml", out=folder / "swept", report=False)
    assert repr(swept) == f"<Run of p: 2 settings, 2 runs in {folder / 'swept'}>"
