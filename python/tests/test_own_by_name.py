"""Controllers of the reader's own in scenarios: found by their names, made with their settings."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from own_controllers import PATIENT, SECOND, Standard, drained, results, text

from millpond import _engine
from millpond.controller import Cx, Exchange, Wait
from millpond.controllers import own
from millpond.errors import UsageError


def refused(controller: str, folder: Path) -> str:
    with pytest.raises(_engine.ScenarioError, match=r"^test\.toml:") as told:
        _engine.Scenario.from_toml(text(controller), "test.toml", own.OwnControllers(folder))
    assert "\n" not in str(told.value)
    return str(told.value)


def test_a_scenario_keeps_name_and_settings(patient: Path) -> None:
    known = own.OwnControllers(patient.parent)
    for written in (
        '{ own = "patient.py:Patient", first-s = 2, cap = "9 s" }',
        '{ preset = "patient.py:Patient", first-s = 2, cap = "9 s" }',
    ):
        read = _engine.Scenario.from_toml(text(written), "test.toml", known)
        kept = json.loads(read.to_json())["clients"][0]["controller"]
        assert kept == {"own": "patient.py:Patient", "cap": "9 s", "first-s": 2}
        assert _engine.Scenario.from_json(read.to_json(), "again", known).to_json() == read.to_json()
        (outcome,) = drained(_engine.Batch([(read, 1, 0)]))
        flows = pa.table(outcome.tables()["flows"])
        assert set(flows["controller"].to_pylist()) == {"patient.py:Patient (cap 9 s, first-s 2)"}
    plain = _engine.Scenario.from_toml(text('"patient.py:Patient"'), "test.toml", known)
    assert json.loads(plain.to_json())["clients"][0]["controller"] == "patient.py:Patient"


def test_settings_are_what_the_class_is_made_with(patient: Path) -> None:
    shorter, longer = (
        results(
            _engine.Scenario.from_toml(
                text(f'{{ own = "patient.py:Patient", first-s = {first} }}'), "s", own.OwnControllers(patient.parent)
            ),
            runs=1,
        )[0]["rto_trace"]["wait_us"][0].as_py()
        for first in (2, 20.5)
    )
    assert 2 * SECOND <= shorter <= 3 * SECOND
    assert 20.5 * SECOND <= longer <= 31 * SECOND


@pytest.mark.parametrize(
    ("controller", "told"),
    [
        ('"patiens.py:Patient"', "patiens.py: No such file or directory: did you mean '.*patient.py'?"),
        ('"patient.py:Patent"', "patient.py: unknown class 'Patent': did you mean 'Patient'? known: Patient"),
        ('"patient.py:millpond"', "patient.py:millpond: module makes no controllers: name a class"),
        ('"nowhere.mine:Mine"', "nowhere.mine: no such module; a file is named with its ending"),
        ('"json:JSONDecoder"', "json:JSONDecoder: no controller: write `class JSONDecoder(millpond.Controller)`"),
        ('"json:Decoder"', "json: it has no controllers: write `class Mine(millpond.Controller)`"),
        ('"wrong.py:Mine"', "wrong.py:2: '(' was never closed"),
        (
            '"raising.py:Mine"',
            "raising.py: importing it raised ZeroDivisionError: division by zero (raising.py, line 2)",
        ),
        (
            '"half.py:Half"',
            "half.py:Half: lacks on_timeout and on_reply: every controller has on_start, on_timeout, on_r",
        ),
        ('"half.py:Nothing"', "half.py:Nothing: makes a dict, which is no controller"),
        (
            '{ own = "patient.py:Patient", first = 3 }',
            "unknown setting 'first': did you mean 'first_s'? known: first_s, cap",
        ),
        ('{ own = "patient.py:Patient", cap = "9 m" }', "patient.py:Patient: its making raised AssertionError"),
        ('{ own = "half.py:Wants" }', "half.py:Wants: missing a required argument: 'gain'"),
        ('{ own = "half.py:Wants", gain = 1, of = 2 }', "unknown setting 'of': known: gain"),
        ('{ own = "half.py:Bare", gain = 1 }', "half.py:Bare: takes no setting 'gain'"),
        ('{ own = "patient" }', "`patient` is no controller of your own: write two names with a colon"),
        ('{ own = ":Patient" }', "`:Patient` is no controller of your own"),
        ('{ own = "a:B", preset = "rfc7252" }', "both `own` and `preset`: name one controller"),
        ('"patient.py"', "unknown controller `patient.py`"),
    ],
)
def test_what_cannot_be_loaded_is_refused_in_one_line(patient: Path, controller: str, told: str) -> None:
    folder = patient.parent
    (folder / "wrong.py").write_text("x = 1\ny = (\n")
    (folder / "raising.py").write_text("x = 1\ny = 1 / 0\n")
    (folder / "half.py").write_text(
        PATIENT
        + """
class Half(millpond.Controller):
    def on_start(self, exchange, length, cx):
        return 3e6

def Nothing():
    return {}

class Wants(Patient):
    def __init__(self, gain):
        pass

class Bare(Patient):
    def __init__(self):
        pass
"""
    )
    error = refused(controller, folder)
    assert re.search(re.escape(told).replace("\\.\\*", ".*"), error), error


def test_without_somebody_who_finds_them_they_are_refused() -> None:
    with pytest.raises(
        _engine.ScenarioError, match=r"clients\[0\].controller: `a:B` is not built in, and controllers of"
    ):
        _engine.Scenario.from_toml(text('"a:B"'), "test.toml")


def test_a_file_finds_what_lies_beside_it_and_is_loaded_again_when_that_changes(tmp_path: Path) -> None:
    for folder, seconds in (("one", 2), ("other", 5)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "helper.py").write_text(f"FIRST_US = {seconds}_000_000\n")
        (tmp_path / folder / "mine.py").write_text(
            PATIENT.replace("import millpond", "import helper\nimport millpond").replace(
                "first_s * 1e6", "helper.FIRST_US"
            )
        )

    def first_s(folder: str) -> float:
        known = own.OwnControllers(tmp_path / folder)
        of = _engine.Scenario.from_toml(text('"mine.py:Patient"'), "s", known)
        assert sorted(known.code["mine.py:Patient"]) == ["helper.py", "mine.py"]
        return float(results(of, runs=1)[0]["rto_trace"]["wait_us"][0].as_py()) / SECOND

    assert 2 <= first_s("one") <= 3
    assert 5 <= first_s("other") <= 7.5
    (tmp_path / "one" / "helper.py").write_text("FIRST_US = 100_000_000\n")
    assert 100 <= first_s("one") <= 150
    assert 5 <= first_s("other") <= 7.5
    assert "helper" not in sys.modules


def test_a_module_is_found_from_the_scenarios_folder(tmp_path: Path) -> None:
    package = tmp_path / "ours_of_a_test" / "deep"
    package.mkdir(parents=True)
    (package / "mine.py").write_text(PATIENT)
    known = own.OwnControllers(tmp_path)
    of = _engine.Scenario.from_toml(text('"ours_of_a_test.deep.mine:Patient"'), "s", known)
    assert results(of, runs=1)
    assert list(known.code["ours_of_a_test.deep.mine:Patient"]) == ["ours_of_a_test/deep/mine.py"]


def test_they_can_be_driven_by_hand(patient: Path) -> None:
    make = own.watched("patient.py:Patient", {"first-s": 7}, patient.parent)
    assert make().on_start(Exchange(), 40, Cx(0)) == Wait(7 * SECOND)
    assert own.watched(Standard)().name == "own_controllers.py:Standard"
    with pytest.raises(UsageError, match="unknown class 'Patent'"):
        own.watched("patient.py:Patent", folder=patient.parent)
