from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest

import millpond
from millpond.errors import MillpondError
from millpond.results import store
from millpond.results.directory import Results
from millpond.run.campaign import Interrupted, Watcher
from millpond.run.jobs import Job

IMPATIENT = """
import millpond

class Impatient(millpond.Controller):
    def __init__(self, fails=0):
        self.fails = fails

    def on_start(self, exchange, length, cx):
        if self.fails:
            raise ValueError("no patience left")
        return 3_000_000

    def on_timeout(self, exchange, cx):
        return 60_000_000

    def on_reply(self, exchange, sample, cx):
        pass
"""
FINAL = ("runs.parquet", "flows.parquet", "histogram.parquet", "links.parquet", "rto_trace.parquet")


class Heard(Watcher):
    """Notes what is run and said, and presses Ctrl-C when so many runs are done."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.runs: list[int] = []
        self.said: list[str] = []
        self.done = 0
        self.stop_after = stop_after

    def start(self, jobs: Sequence[Job], kept: int) -> None:  # noqa: ARG002
        self.runs = [job.run for job in jobs]

    def finished(self, job: Job) -> None:  # noqa: ARG002
        self.done += 1
        if self.done == self.stop_after:
            _let_workers_go_on()
            os.kill(os.getpid(), signal.SIGINT)

    def say(self, line: str) -> None:
        self.said.append(line)


def _let_workers_go_on() -> None:
    """Until they have worked for longer than a run takes, or cannot go on because nobody takes what they have done."""
    began = time.process_time()
    for _ in range(200):
        if time.process_time() - began > 0.1:
            return
        time.sleep(0.01)


def rerun(
    out: Path, watcher: Watcher | None = None, *, resume: bool = False, clients: tuple[int, ...] = (1, 10)
) -> Results:
    done = millpond.reproduce(
        "anrw18", clients=clients, replications=3, out=out, resume=resume, report=False, watcher=watcher
    )
    return done.results


def contents(out: Path) -> dict[str, bytes]:
    return {name: (out / name).read_bytes() for name in FINAL}


def test_a_finished_directory_is_whole(tmp_path: Path) -> None:
    results = rerun(tmp_path / "out")
    cells = 2 * 4 * 2 * 6
    assert results.manifest["state"] == "complete"
    assert results.manifest["runs"] == results.manifest["runs_done"] == 3 * cells
    assert results.manifest["seeds"] == list(results.table("runs").column("seed").to_pylist()[:3])
    assert len(results.cells) == cells
    assert results.table("runs").column("cell").to_pylist() == [run // 3 for run in range(3 * cells)]
    assert results.table("runs").column("replication").to_pylist()[:4] == [0, 1, 2, 0]
    assert not (tmp_path / "out" / "parts").exists()
    assert not list((tmp_path / "out").glob(".tmp-*"))


def test_no_file_holds_the_wall_clock(tmp_path: Path) -> None:
    rerun(tmp_path / "a")
    rerun(tmp_path / "b")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_ctrl_c_keeps_what_is_done_and_resume_goes_on(tmp_path: Path) -> None:
    whole, out = tmp_path / "whole", tmp_path / "out"
    rerun(whole)
    with pytest.raises(Interrupted, match="resume=True goes on") as caught:
        rerun(out, Heard(stop_after=40))
    assert caught.value.exit_code == 130
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["state"] == "running"
    kept = manifest["runs_done"]
    assert 40 < kept < manifest["runs"]
    assert not (out / "flows.parquet").exists()

    heard = Heard()
    rerun(out, heard, resume=True)
    assert len(heard.runs) == manifest["runs"] - kept
    assert contents(out) == contents(whole)


def test_ctrl_c_leaves_the_handler_as_it_was(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(Interrupted):
        rerun(tmp_path / "out", Heard(stop_after=5))
    assert signal.getsignal(signal.SIGINT) is before


def test_unfinished_results_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        rerun(tmp_path / "out", Heard(stop_after=40))
    with pytest.raises(MillpondError, match=r"unfinished .* runs were kept.*--resume"):
        Results.open(tmp_path / "out")


def test_a_part_cut_short_is_run_again_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, out = tmp_path / "whole", tmp_path / "out"
    rerun(whole)
    monkeypatch.setattr(store, "PART_ROWS", 2000)
    with pytest.raises(Interrupted):
        rerun(out, Heard(stop_after=100))
    parts = sorted((out / "parts").iterdir())
    assert len(parts) > 2
    damaged = parts[1] / "flows.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-10])
    lost = len(json.loads((parts[1] / "part.json").read_text())["runs"])
    kept = json.loads((out / "manifest.json").read_text())["runs_done"]

    heard = Heard()
    rerun(out, heard, resume=True)
    assert len(heard.said) == 1
    assert "flows.parquet: cut short" in heard.said[0]
    assert len(heard.runs) == 2 * 4 * 2 * 6 * 3 - kept + lost
    assert contents(out) == contents(whole)


def test_resume_of_a_finished_directory_runs_nothing(tmp_path: Path) -> None:
    rerun(tmp_path / "out")
    heard = Heard()
    rerun(tmp_path / "out", heard, resume=True)
    assert heard.runs == []


def test_resume_compares_with_the_figures_and_claims_of_today(tmp_path: Path) -> None:
    rerun(tmp_path / "out")
    kept = tmp_path / "out" / "study" / "claims.toml"
    today = kept.read_text()
    kept.write_text("# as of some time ago\n")
    rerun(tmp_path / "out", resume=True)
    assert kept.read_text() == today


def test_resume_of_nothing_starts(tmp_path: Path) -> None:
    assert rerun(tmp_path / "new" / "out", resume=True).manifest["state"] == "complete"


def test_other_results_are_not_touched(tmp_path: Path) -> None:
    out = tmp_path / "out"
    rerun(out)
    before = contents(out)
    with pytest.raises(MillpondError, match="already holds results: choose another out, or go on"):
        rerun(out)
    with pytest.raises(MillpondError, match="holds results of another plan"):
        rerun(out, resume=True, clients=(50,))
    assert contents(out) == before


def test_a_directory_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(MillpondError, match=r"not empty and not results of ours \(it holds letter.txt\)"):
        rerun(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["letter.txt"]


def test_a_directory_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MillpondError, match=r"cannot write results here .*: choose another out"):
        rerun(tmp_path / "file" / "out")


def test_a_run_that_fails_is_named_and_the_others_kept(tmp_path: Path) -> None:
    out, file = tmp_path / "out", tmp_path / "mine.py"
    file.write_text(IMPATIENT)
    plan = {
        "scenario": {"path": "nbiot-anrw18", "clients": [{"count": 1, "controller": {"own": f"{file}:Impatient"}}]},
        "matrix": {"clients[0].controller.fails": [0, 1]},
        "replications": 3,
    }
    with pytest.raises(MillpondError, match=r"run [345] \(1-fixed, seed \d+\): .*no patience left"):
        millpond.sweep(plan, out=out, report=False, jobs=1)
    assert not (out / "flows.parquet").exists()
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["state"] == "running"


@pytest.mark.parametrize("name", ["flows.parquet", "manifest.json"])
def test_a_results_file_cut_short_is_named(tmp_path: Path, name: str) -> None:
    rerun(tmp_path / "out")
    file = tmp_path / "out" / name
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with pytest.raises(MillpondError, match=f"{name}: cut short") as caught:
        Results.open(tmp_path / "out")
    assert "\n" not in str(caught.value)


def test_a_results_file_of_the_right_length_but_damaged_is_named(tmp_path: Path) -> None:
    rerun(tmp_path / "out")
    file = tmp_path / "out" / "flows.parquet"
    file.write_bytes(b"\0" * file.stat().st_size)
    with pytest.raises(MillpondError, match=r"flows\.parquet: cut short or damaged"):
        Results.open(tmp_path / "out").table("flows")


def test_a_scenario_beyond_the_memory_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Little:
        available = 20_000

    monkeypatch.setattr(psutil, "virtual_memory", Little)
    with pytest.raises(MillpondError, match=r"\d+ clients need about .* of memory with \d+ workers, 20 kB are free"):
        rerun(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_only_the_first_clients_timers_are_kept(tmp_path: Path) -> None:
    results = rerun(tmp_path / "out")
    trace = results.table("rto_trace")
    assert set(trace.column("run").to_pylist()) == set(results.manifest["trace"]["runs"])
    assert max(trace.column("flow").to_pylist()) == 7


def test_tables_are_plain_parquet(tmp_path: Path) -> None:
    rerun(tmp_path / "out")
    table = pq.read_table(tmp_path / "out" / "flows.parquet")
    assert str(table.schema.field("controller").type) == "string"
    assert table.num_rows == 4 * 2 * 6 * 3 * (1 + 10)


def test_factors_and_the_short_options_for_them_choose_the_same_cells(tmp_path: Path) -> None:
    def run(out: str, **options: Any) -> set[str]:
        one: dict[str, Any] = {
            **options,
            "controllers": ["default"],
            "replications": 1,
            "report": False,
        }
        done = millpond.reproduce("anrw18", out=tmp_path / out, **one)
        return {cell.id for cell in done.results.cells}

    found = run("long", factors={"clients": [1], "buffer_bytes": [2500]})
    assert found == {"default-1-2500-continuous-fixed", "default-1-2500-random-fixed"}
    assert found == run("short", clients=[1], buffers=[2500])
