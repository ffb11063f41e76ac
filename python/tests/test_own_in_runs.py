"""Controllers of the reader's own on the command line, in calls, beside a study's, and in what results say of them."""

# ruff: noqa: ARG002 - controllers take what they are given

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from own_controllers import PATIENT, SECOND, Standard, groups, odd, text

import millpond
from millpond import api, cli
from millpond.controller import AnyWait, Cx, Exchange
from millpond.controllers import own
from millpond.errors import MillpondError, UsageError
from millpond.results.directory import read_manifest
from millpond.show import labels


@pytest.mark.parametrize(
    ("chosen", "named"),
    [
        ("folder/patient.py:Patient", ["patient.py:Patient, exchanges 20", "patient.py:Patient, exchanges 50"]),
        ("cocoa-03,folder/patient.py:Patient", ["cocoa-03", "patient.py:Patient"]),
        ("cocoa-03", ["cocoa-03, exchanges 20", "cocoa-03, exchanges 50"]),
    ],
)
def test_a_run_takes_another_controller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: str, named: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "patient.py").write_text(PATIENT)
    (tmp_path / "folder" / "s.toml").write_text(
        text('"rfc7252"') + '[[clients]]\ncount = 2\ncontroller = { own = "patient.py:Patient", first-s = 9 }\n'
    )
    with pytest.raises(SystemExit) as ended:
        cli.main(["run", "folder/s.toml", "--controller", chosen, "--out", "out", "--no-report"])
    assert ended.value.code == 0
    assert groups(tmp_path / "out") == named


@pytest.mark.parametrize("where", ["proxies[0]", "server"])
def test_nodes_on_the_way_and_the_server_may_have_one_too(tmp_path: Path, where: str) -> None:
    """Each is loaded and asked; what is wrong with one is told with its place."""
    (tmp_path / "patient.py").write_text(PATIENT)
    scenario = (
        (Path(millpond.__file__).parent / "scenarios" / "proxy.toml").read_text().replace("count = 400", "count = 2")
    )
    if where == "server":
        head, _, tail = scenario.partition("[[proxies]]\nname")
        scenario = head.replace('"radio-up"]', '"radio-up", "cell-up"]').replace(
            '"radio-down"]', '"cell-down", "radio-down"]'
        )
        scenario += tail[tail.index("[[clients]]") :].replace('via = "gateway"', "")
        scenario += 'commands = { workload = { kind = "after-event", arrival = "at-once" } }\n'
        scenario += '[server]\ncontroller = "cocoa-03"\n'

    def run(name: str, first: str) -> millpond.Run:
        own = f'controller = {{ own = "{name}", first-s = {first} }}'
        (tmp_path / "s.toml").write_text(scenario.replace('controller = "cocoa-03"', own))
        return millpond.run(tmp_path / "s.toml")

    assert run("patient.py:Patient", "3").table("flows").num_rows == (4 if where == "server" else 2)
    with pytest.raises(UsageError, match=re.escape(f"{where}.controller")):
        run("patient.py:Nobody", "3")


def test_too_many_controllers_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text(text('"rfc7252"'))
    with pytest.raises(SystemExit) as ended:
        cli.main(["run", "s.toml", "--controller", "rfc7252,cocoa-03"])
    assert ended.value.code == 2
    assert "--controller: 2 for 1 group(s) of clients: give one" in capfd.readouterr().err


def test_a_study_puts_ones_own_beside_the_published_ones(
    patient: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(patient.parent)
    small = ["--clients", "1,10", "--buffers", "2500,14100", "--replications", "2", "--out", "out"]
    with pytest.raises(SystemExit) as ended:
        cli.main(["reproduce", "anrw18", "--controllers", "cocoa,cocoa-s,patient.py:Patient", *small])
    out = capfd.readouterr().out
    assert ended.value.code == 0
    report = (patient.parent / "out" / "report.html").read_text(encoding="utf-8")
    for told in (out, report):
        assert "patient.py:Patient" in told
    assert "cocoa-s" in out
    assert labels.controller("cocoa-s") in report
    done = api.open_results(patient.parent / "out")
    assert isinstance(done, millpond.Reproduction)
    assert {figure.scenario.get("algorithm") for figure in done.comparison.figures if figure.ours is not None} >= {
        "cocoa"
    }
    assert {cell["columns"]["algorithm"] for cell in read_manifest(patient.parent / "out")["cells"]} == {
        "cocoa",
        "cocoa-s",
        "patient.py:Patient",
    }


def test_an_unknown_controller_of_a_study_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"unknown controller 'cocoa-3': did you mean 'cocoa-03'\?"):
        millpond.reproduce("anrw18", controllers=["cocoa-3"], out=tmp_path / "out")
    with pytest.raises(UsageError, match=r"mine.py: No such file"):
        millpond.reproduce("anrw18", controllers=["mine.py:Mine"], out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def run(file: Path, controller: own.AnyController | Sequence[own.AnyController], out: Path, **how: Any) -> millpond.Run:
    return millpond.run(file, controller=controller, out=out, report=False, **how)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "s.toml").write_text(text('"rfc7252"', 3))
    return tmp_path / "s.toml"


def test_a_class_or_factory_can_be_passed(file: Path, tmp_path: Path) -> None:
    given: dict[str, own.AnyController] = {
        "class": Standard,
        "factory": functools.partial(Standard, 60 * SECOND),
        "table": {"own": Standard, "cap-us": 60 * SECOND},
        "preset": {"preset": "rfc7252", "max-wait": "60 s"},
    }
    found = [run(file, controller, tmp_path / name).summary.to_pylist() for name, controller in given.items()]
    without_names = [[{k: v for k, v in row.items() if k != "clients"} for row in rows] for rows in found]
    assert without_names[0] == without_names[1] == without_names[2]
    assert groups(tmp_path / "class") == ["own_controllers.py:Standard"]


def test_classes_of_one_name_are_told_apart() -> None:
    known = own.OwnControllers()
    one, other = odd(), odd()
    names = [known.add(one), known.add(other), known.add(one)]
    assert names == ["own_controllers.py:Odd", "own_controllers.py:Odd-2", "own_controllers.py:Odd"]


def test_a_class_can_be_passed_to_a_study(tmp_path: Path) -> None:
    done = millpond.reproduce(
        "anrw18",
        controllers=["default", Standard],
        clients=[1],
        buffers=[2500],
        replications=1,
        out=tmp_path / "out",
        report=False,
    )
    algorithms = {population.algorithm for population in done.measures.populations()}
    assert algorithms == {"default", "own_controllers.py:Standard"}


def test_the_manifest_knows_the_code_and_resuming_does_not_mix_versions(patient: Path, file: Path) -> None:
    helper = patient.parent / "helper.py"
    helper.write_text("FLOOR = 1_000_000\n")
    patient.write_text("import helper\n" + PATIENT.replace("1_000_000,", "helper.FLOOR,"))
    file.write_text(text('"patient.py:Patient"', 3))
    out = patient.parent / "out"
    millpond.run(file, out=out, report=False)
    code = read_manifest(out)["controllers"]
    assert list(code) == ["patient.py:Patient"]
    assert list(code["patient.py:Patient"]) == ["helper.py", "patient.py"]
    assert all(digest.startswith("sha256:") for digest in code["patient.py:Patient"].values())
    millpond.run(file, out=out, resume=True, report=False)
    for changed in (helper, patient):
        before = changed.read_text()
        changed.write_text(before + "# another version\n")
        with pytest.raises(MillpondError, match=r"the code of patient.py:Patient may have changed since"):
            millpond.run(file, out=out, resume=True, report=False)
        changed.write_text(before)
    millpond.run(file, out=out, resume=True, report=False)


def test_presets_leave_no_digests(file: Path, tmp_path: Path) -> None:
    millpond.run(file, out=tmp_path / "out", report=False)
    assert read_manifest(tmp_path / "out")["controllers"] == {}


def made_by(make: own.Make) -> dict[str, str]:
    known = own.OwnControllers()
    name = known.add(make)
    return dict(known.find(name).code)


def closing_over(value: Any) -> own.Make:
    return lambda: Standard(int(value))


def class_closing_over(value: Any) -> own.Make:
    class Closing(Standard):
        def on_timeout(self, exchange: Exchange, cx: Cx) -> AnyWait:
            return int(value)

    return Closing


@pytest.mark.parametrize(
    "given",
    [
        lambda n: functools.partial(Standard, n),
        lambda n: functools.partial(Standard, cap_us=n),
        lambda n: odd(VALUE=n),
        closing_over,
        class_closing_over,
    ],
)
def test_classes_are_told_apart_by_what_they_were_given(given: Callable[[int], own.Make]) -> None:
    one, same, other = made_by(given(1)), made_by(given(1)), made_by(given(2))
    assert one == same != other


def test_what_cannot_be_compared_is_never_the_same() -> None:
    assert list(made_by(Standard)) == ["own_controllers.py"]
    assert made_by(Standard) == made_by(Standard)
    assert made_by(functools.partial(Standard, 1)) != made_by(functools.partial(Standard, cap_us=1))
    for make in (closing_over, class_closing_over):
        assert made_by(make({1})) != made_by(make({1}))
