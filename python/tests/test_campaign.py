from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest
from fake_engine import FakeEngine

import millpond
from millpond.errors import MillpondError
from millpond.results.directory import Results
from millpond.run import campaign
from millpond.run.campaign import Interrupted

FINAL = ("runs.parquet", "flows.parquet", "histogram.parquet", "links.parquet", "rto_trace.parquet")


def rerun(out: Path, engine: FakeEngine, *, resume: bool = False, clients: tuple[int, ...] = (1, 10)) -> Results:
    done = millpond.reproduce(
        "anrw18", clients=clients, replications=3, out=out, resume=resume, report=False, engine=engine
    )
    return done.results


def contents(out: Path) -> dict[str, bytes]:
    return {name: (out / name).read_bytes() for name in FINAL}


def test_a_finished_directory_is_whole(tmp_path: Path) -> None:
    results = rerun(tmp_path / "out", FakeEngine())
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
    rerun(tmp_path / "a", FakeEngine())
    rerun(tmp_path / "b", FakeEngine())
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


class Stop:
    """Presses Ctrl-C when so many runs of a batch have been handed out."""

    def __init__(self, after: int) -> None:
        self.after = after

    def __call__(self, position: int) -> None:
        if position == self.after:
            os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_keeps_what_is_done_and_resume_goes_on(tmp_path: Path) -> None:
    whole, out = tmp_path / "whole", tmp_path / "out"
    rerun(whole, FakeEngine())
    with pytest.raises(Interrupted, match="resume=True goes on") as caught:
        rerun(out, FakeEngine(before=Stop(40)))
    assert caught.value.exit_code == 130
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["state"] == "running"
    kept = manifest["runs_done"]
    assert 40 < kept < manifest["runs"]
    assert not (out / "flows.parquet").exists()

    engine = FakeEngine()
    rerun(out, engine, resume=True)
    assert len(engine.handed_out) == manifest["runs"] - kept
    assert contents(out) == contents(whole)


def test_ctrl_c_leaves_the_handler_as_it_was(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(Interrupted):
        rerun(tmp_path / "out", FakeEngine(before=Stop(5)))
    assert signal.getsignal(signal.SIGINT) is before


def test_unfinished_results_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        rerun(tmp_path / "out", FakeEngine(before=Stop(40)))
    with pytest.raises(MillpondError, match=r"unfinished .* runs were kept.*--resume"):
        Results.open(tmp_path / "out")


def test_a_part_cut_short_is_run_again_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, out = tmp_path / "whole", tmp_path / "out"
    rerun(whole, FakeEngine())
    monkeypatch.setattr(campaign, "PART_ROWS", 100)
    with pytest.raises(Interrupted):
        rerun(out, FakeEngine(before=Stop(100)))
    parts = sorted((out / "parts").iterdir())
    assert len(parts) > 2
    damaged = parts[1] / "flows.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-10])
    lost = len(json.loads((parts[1] / "part.json").read_text())["runs"])
    kept = json.loads((out / "manifest.json").read_text())["runs_done"]

    told: list[str] = []

    class Listener(campaign.Watcher):
        def say(self, line: str) -> None:
            told.append(line)

    engine = FakeEngine()
    millpond.reproduce(
        "anrw18", clients=[1, 10], replications=3, out=out, resume=True, report=False, engine=engine, watcher=Listener()
    )
    assert len(told) == 1
    assert "flows.parquet: cut short" in told[0]
    assert len(engine.handed_out) == 2 * 4 * 2 * 6 * 3 - kept + lost
    assert contents(out) == contents(whole)


def test_resume_of_a_finished_directory_runs_nothing(tmp_path: Path) -> None:
    rerun(tmp_path / "out", FakeEngine())
    engine = FakeEngine()
    rerun(tmp_path / "out", engine, resume=True)
    assert engine.handed_out == []


def test_resume_compares_with_the_figures_and_claims_of_today(tmp_path: Path) -> None:
    rerun(tmp_path / "out", FakeEngine())
    kept = tmp_path / "out" / "study" / "claims.toml"
    today = kept.read_text()
    kept.write_text("# as of some time ago\n")
    rerun(tmp_path / "out", FakeEngine(), resume=True)
    assert kept.read_text() == today


def test_resume_of_nothing_starts(tmp_path: Path) -> None:
    assert rerun(tmp_path / "new" / "out", FakeEngine(), resume=True).manifest["state"] == "complete"


def test_other_results_are_not_touched(tmp_path: Path) -> None:
    out = tmp_path / "out"
    rerun(out, FakeEngine())
    before = contents(out)
    with pytest.raises(MillpondError, match="already holds results: choose another out, or go on"):
        rerun(out, FakeEngine())
    with pytest.raises(MillpondError, match="holds results of another plan"):
        rerun(out, FakeEngine(), resume=True, clients=(50,))
    assert contents(out) == before


def test_a_directory_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(MillpondError, match=r"not empty and not results of ours \(it holds letter.txt\)"):
        rerun(tmp_path, FakeEngine())
    assert [entry.name for entry in tmp_path.iterdir()] == ["letter.txt"]


def test_a_directory_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MillpondError, match=r"cannot write results here .*: choose another out"):
        rerun(tmp_path / "file" / "out", FakeEngine())


def test_a_run_that_fails_is_named_and_the_others_kept(tmp_path: Path) -> None:
    engine = FakeEngine(failing={7: "the link lost count of a packet"})
    with pytest.raises(
        MillpondError, match=r"run 7 \(default-1-14100-continuous-fixed, seed \d+\): the link lost count"
    ):
        rerun(tmp_path / "out", engine)
    assert not (tmp_path / "out" / "flows.parquet").exists()
    rerun(tmp_path / "out", FakeEngine(), resume=True)


@pytest.mark.parametrize("name", ["flows.parquet", "manifest.json"])
def test_a_results_file_cut_short_is_named(tmp_path: Path, name: str) -> None:
    rerun(tmp_path / "out", FakeEngine())
    file = tmp_path / "out" / name
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with pytest.raises(MillpondError, match=f"{name}: cut short") as caught:
        Results.open(tmp_path / "out")
    assert "\n" not in str(caught.value)


def test_a_results_file_of_the_right_length_but_damaged_is_named(tmp_path: Path) -> None:
    rerun(tmp_path / "out", FakeEngine())
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
    with pytest.raises(MillpondError, match=r"10 clients need about .* of memory with \d+ workers, 20 kB are free"):
        rerun(tmp_path / "out", FakeEngine())
    assert not (tmp_path / "out").exists()


def test_only_the_first_clients_timers_are_kept(tmp_path: Path) -> None:
    results = rerun(tmp_path / "out", FakeEngine())
    trace = results.table("rto_trace")
    assert set(trace.column("run").to_pylist()) == set(results.manifest["trace"]["runs"])
    assert max(trace.column("flow").to_pylist()) == 7


def test_tables_are_plain_parquet(tmp_path: Path) -> None:
    rerun(tmp_path / "out", FakeEngine())
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
            "engine": FakeEngine(),
        }
        done = millpond.reproduce("anrw18", out=tmp_path / out, **one)
        return {cell.id for cell in done.results.cells}

    found = run("long", factors={"clients": [1], "buffer_bytes": [2500]})
    assert found == {"default-1-2500-continuous-fixed", "default-1-2500-random-fixed"}
    assert found == run("short", clients=[1], buffers=[2500])
