"""Whatever is in the place of a file: one line that says so, soon, and nothing that steers the terminal."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import small_sweep

import millpond
from millpond import cli
from millpond.errors import MillpondError
from millpond.given_files import LARGEST_TEXT, printable
from millpond.results.directory import read_manifest, read_table

DEEP = 100_000


def told(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    err = capfd.readouterr().err
    assert ended.value.code in (1, 2)
    assert err.startswith("millpond: ")
    assert len(err.splitlines()) == 1, err
    assert "Traceback" not in err
    return err


def huge(file: Path) -> None:
    with file.open("wb") as opened:
        opened.truncate(LARGEST_TEXT + 1)


ODD: dict[str, tuple[Callable[[Path], object], str]] = {
    "deep list": (lambda file: file.write_text(f"a = {'[' * DEEP}{']' * DEEP}"), "nested too deep"),
    "deep table": (lambda file: file.write_text(f"a = {'{b=' * DEEP}1{'}' * DEEP}"), "nested too deep"),
    "endless": (lambda file: file.symlink_to("/dev/zero"), "a device or a pipe, not a regular file"),
    "pipe": (os.mkfifo, "a device or a pipe, not a regular file"),
    "huge": (huge, "more than 16 MiB"),
    "folder": (Path.mkdir, "a folder, not a file"),
    "bytes": (lambda file: file.write_bytes(b"\xff\xfe"), "not UTF-8 text"),
}


@pytest.mark.parametrize("verb", ["run", "sweep", "fleet"])
@pytest.mark.parametrize("kind", ODD)
def test_a_file_that_is_none_is_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], verb: str, kind: str
) -> None:
    make, said = ODD[kind]
    make(tmp_path / "odd.toml")
    found = told(capfd, verb, str(tmp_path / "odd.toml"))
    if not (verb == "sweep" and kind == "folder"):
        # a scenario's text is read by the engine, which has words of its own
        assert said in found or "cannot recurse further" in found


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("swept") / "out"
    millpond.sweep(small_sweep.tree(replications=1), out=out, report=False)
    return out


@pytest.mark.parametrize("key", ["cells", "files", "replications", "runs", "seeds", "shard", "kind"])
@pytest.mark.parametrize("value", [None, 7.5, "x", [[[]]], {"a": 1}])
def test_a_damaged_manifest_is_one_line(swept: Path, tmp_path: Path, key: str, value: object) -> None:
    manifest = json.loads((swept / "manifest.json").read_text())
    if key == "kind" and value == "x":
        return
    manifest[key] = value
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(MillpondError, match=rf"manifest.json: damaged \({key}"):
        read_manifest(tmp_path)


@pytest.mark.parametrize("content", ["[" * DEEP, '{"format": ' + "[" * DEEP + "]" * DEEP + "}", "", "nothing"])
def test_a_manifest_that_is_no_json_is_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], content: str
) -> None:
    (tmp_path / "manifest.json").write_text(content)
    assert "manifest.json" in told(capfd, "report", str(tmp_path))


def test_a_manifest_without_an_end_is_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "manifest.json").symlink_to("/dev/zero")
    for verb in (["report"], ["results"], ["results", "verify"]):
        assert "a device or a pipe, not a regular file" in told(capfd, *verb, str(tmp_path))


def test_a_small_table_of_very_many_rows_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "flows.parquet"
    columns = {f"column{number}": pa.repeat(1, 1_000_000) for number in range(20)}
    pq.write_table(pa.table(columns), file)
    assert file.stat().st_size < 1 << 20
    monkeypatch.setattr("millpond.given_files.MOST_VALUES", 10_000_000)
    with pytest.raises(MillpondError, match=r"1000000 rows of 20 columns: more than is read at once"):
        read_table(file)
    assert read_table(file, columns=["column3"]).num_rows == 1_000_000
    pipe = tmp_path / "pipe.parquet"
    os.mkfifo(pipe)
    with pytest.raises(MillpondError, match="not a table"):
        read_table(pipe)


def test_what_steers_a_terminal_is_shown_by_its_number() -> None:
    assert printable("a\x1b[31mb\x07\x9b\u202ec\u2066 d\n") == "a\\u{1b}[31mb\\u{7}\\u{9b}\\u{202e}c\\u{2066} d\n"
    assert printable("\u05e9\u05dc\u05d5\u05dd, ± µ") == "\u05e9\u05dc\u05d5\u05dd, ± µ"


def test_neither_tables_nor_errors_steer_the_terminal(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    steering = "queue\x1b[2J\u202e"
    plan = small_sweep.tree(replications=1)
    plan["title"] = steering
    done = millpond.sweep(plan, out=tmp_path / "out", report=False)
    for arguments in (
        ["report", str(done.directory)],
        ["report", str(done.directory), "--json"],
        ["results", str(done.directory)],
        ["compare", str(done.directory), steering, "rfc7252"],
        ["run", str(tmp_path / f"{steering}.toml")],
    ):
        with pytest.raises(SystemExit):
            cli.main(arguments)
        for text in capfd.readouterr():
            assert "\x1b" not in text
            assert "\u202e" not in text
