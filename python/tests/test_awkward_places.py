"""Terminals that are narrow or know few signs, and places that nothing can be written to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import small_sweep

from millpond.errors import MillpondError
from millpond.fleet import files
from millpond.results import store

SCENARIO = """title = "Wärme \N{EN DASH} über Ärmelkanal"
path = "nbiot-anrw18"
[[clients]]
count = 20
controller = "rfc7252"
exchanges = 3
"""


def program(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "millpond", *words],
        capture_output=True,
        cwd=folder,
        env={**os.environ, **environment},
        check=False,
    )


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("swept")
    plan = small_sweep.write(folder, small_sweep.PLAN.replace("How long a queue may be", "Schlange → voll"))
    done = program(folder, "sweep", plan.name, "--replications", "4", "--no-report", "--out", "out")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp437"])
def test_what_an_encoding_lacks_is_written_plainly(encoding: str, swept: Path) -> None:
    shown = program(swept, "report", "out", PYTHONIOENCODING=encoding)
    assert (shown.returncode, shown.stderr) == (0, b"")
    text = shown.stdout.decode(encoding)
    assert "Schlange -> voll" in text
    assert "?" not in text


def test_json_is_the_same_json_in_any_encoding(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SCENARIO, encoding="utf-8")
    told = [
        program(tmp_path, "run", "s.toml", "--json", "--no-report", "--out", encoding, PYTHONIOENCODING=encoding).stdout
        for encoding in ("utf-8", "ascii")
    ]
    assert "Wärme \N{EN DASH} über".encode() in told[0]
    assert told[1].decode("ascii").encode().decode("unicode-escape") == told[0].decode("utf-8")


def test_no_number_is_broken_or_cut_in_a_narrow_terminal(swept: Path) -> None:
    narrow, usual = (program(swept, "report", "out", COLUMNS=columns).stdout for columns in ("40", "80"))
    assert narrow == usual


LONG = """import millpond


class OneWithAVeryLongName(millpond.Controller):
    def __init__(self, first_s: float = 3.0) -> None:
        self.first_us = first_s * 1e6

    def on_start(self, exchange, length, cx):
        return cx.between(self.first_us, 1.5 * self.first_us)

    def on_timeout(self, exchange, cx):
        return min(2 * exchange.current_us, 60_000_000)

    def on_reply(self, exchange, sample, cx):
        pass
"""


@pytest.mark.parametrize("columns", ["80", "100"])
@pytest.mark.parametrize(
    "name", ["cocoa-03", "cocoa-weak-all", "coap-plus-rate-responsive", "long.py:OneWithAVeryLongName"]
)
def test_drawings_of_a_controller_are_whole(tmp_path: Path, name: str, columns: str) -> None:
    (tmp_path / "long.py").write_text(LONG)
    settings = ["--set", "first_s=1"] if name.startswith("long") else []
    shown = program(tmp_path, "controllers", name, *settings, COLUMNS=columns)
    assert (shown.returncode, shown.stderr) == (0, b"")
    lines = shown.stdout.decode().splitlines()
    assert not [line for line in lines if "\N{HORIZONTAL ELLIPSIS}" in line]
    assert max(map(len, lines)) <= int(columns)
    assert sum(line.split()[:1] == ["copy"] for line in lines) == 2


def test_a_folder_for_reading_alone_is_told_before_a_fleet_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert files.folder(tmp_path / "a" / "b", "fleet") == tmp_path / "a" / "b"
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write where nobody else may
    with pytest.raises(
        MillpondError, match=r"a/b: cannot write results here \(.* is not for writing\): choose another"
    ):
        files.folder(tmp_path / "a" / "b", "fleet")


def test_a_file_that_cannot_be_written_is_told_by_its_own_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "write_text", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(MillpondError) as told:
        store.write_text(tmp_path / "picture.svg", "text")
    assert str(told.value) == f"{tmp_path / 'picture.svg'}: cannot be written: Read-only file system"
