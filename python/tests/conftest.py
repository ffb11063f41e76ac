from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from invented import Invented
from own_controllers import PATIENT
from published_rows import MakeRows

import millpond
from millpond.judge.published import Published, read
from millpond.measure.measures import Measures
from millpond.plan.study import STUDIES, Plan, find, load
from millpond.results.directory import Results


@pytest.fixture(autouse=True, scope="session")
def ctrl_c_interrupts() -> Iterator[None]:
    """A shell that starts the tests in the background has them ignore Ctrl-C, and programs they start too."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def plan() -> Plan:
    return load(find("anrw18"))


@pytest.fixture(scope="session")
def fake_results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """The whole matrix of the study as invented, three replications."""
    out = tmp_path_factory.mktemp("fake") / "out"
    return millpond.reproduce("anrw18", replications=3, out=out, report=False, on=Invented()).results


@pytest.fixture(scope="session")
def fake(fake_results: Results) -> Measures:
    return Measures(fake_results)


@pytest.fixture(scope="session")
def built_in() -> Published:
    return read(STUDIES / "anrw18" / "published.csv")


@pytest.fixture
def rows(tmp_path: Path) -> MakeRows:
    """Published rows made of the columns given; the others are empty."""
    return MakeRows(tmp_path / "published.csv")


@pytest.fixture
def patient(tmp_path: Path) -> Path:
    file = tmp_path / "patient.py"
    file.write_text(PATIENT)
    return file


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are as wide as where there is no terminal: a library of the test runner tells its workers of one."""
    for name in ("COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
