"""Runs without files, runs that earlier results hold already, and archives that run again as they lie."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import small_sweep

import millpond
from millpond import MillpondError, UsageError
from millpond.results import provenance
from millpond.run import earlier
from millpond.run.campaign import Watcher
from millpond.run.jobs import Job

OWN = """
import millpond

class Mine(millpond.Controller):
    def on_start(self, exchange, length, cx):
        return 3_000_000

    def on_timeout(self, exchange, cx):
        return 2 * exchange.current_us

    def on_reply(self, exchange, sample, cx):
        pass
"""


class Counts(Watcher):
    def __init__(self) -> None:
        self.runs: list[int] = []

    def start(self, jobs: Sequence[Job], kept: int) -> None:  # noqa: ARG002
        self.runs = sorted(job.run for job in jobs)


def tree(**changes: Any) -> dict[str, Any]:
    return {**small_sweep.tree(), **changes}


def test_nothing_is_written_where_nobody_asks_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = millpond.sweep(small_sweep.tree(), out=tmp_path / "out", report=False)
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    done = millpond.sweep(small_sweep.tree())
    assert list(empty.iterdir()) == []
    assert done.report is None
    for name in ("runs", "flows", "links", "cells", "groups"):
        assert done.results.table(name).equals(kept.results.table(name)), name
    assert done.summary.equals(kept.summary)
    told = {key: done.results.manifest[key] for key in ("plan_hash", "seeds", "events", "trace")}
    assert told == {key: kept.results.manifest[key] for key in told}


def test_a_star_is_a_free_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    places = [millpond.sweep(small_sweep.tree(), out="results/*", report=False).directory for _ in range(2)]
    assert places == [Path("results/plan"), Path("results/plan-2")]
    again = millpond.sweep(small_sweep.tree(), out="results/*", resume=True, report=False)
    assert again.directory == places[1]


@pytest.mark.parametrize("options", [{"resume": True}, {"shard": (1, 2)}])
def test_what_needs_a_directory_says_so(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=rf"^{next(iter(options))}.*: what it is about lies in a directory: name it"):
        millpond.sweep(small_sweep.tree(), **options)


@pytest.mark.parametrize("in_memory", [True, False])
def test_one_more_value_runs_only_what_is_missing(tmp_path: Path, in_memory: bool) -> None:
    few = tree(seed=7, matrix={**small_sweep.tree()["matrix"], "queue": ["8 kB"]})
    first = millpond.sweep(few, out=None if in_memory else tmp_path / "few", report=False)
    heard = Counts()
    all_of_it = tree(seed=7)
    millpond.sweep(all_of_it, out=tmp_path / "out", reuse=first, watcher=heard, report=False)
    whole = millpond.sweep(all_of_it, out=tmp_path / "whole", report=False)
    assert len(heard.runs) == whole.results.runs - first.results.runs > 0
    for file in whole.results.manifest["files"]:
        assert (tmp_path / "out" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes(), file


def test_runs_of_another_engine_are_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = millpond.sweep(small_sweep.tree())
    monkeypatch.setattr(earlier, "engine_digest", lambda: "sha256:another")
    with pytest.raises(UsageError, match=r"^reuse: in memory: made by another build of millpond"):
        millpond.sweep(small_sweep.tree(), out=tmp_path / "out", reuse=first)
    assert provenance.engine_digest() == first.results.manifest["engine"]
    assert not (tmp_path / "out").exists()


def test_an_archive_runs_again_as_it_lies(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "plans").mkdir(parents=True)
    (home / "mine.py").write_text(OWN)
    scenario = '[path]\nprofile = "nbiot-anrw18"\n[[clients]]\ncount = 2\ncontroller = "rfc7252"\nexchanges = 3\n'
    (home / "cell.toml").write_text(scenario)
    plan = 'scenario = "../cell.toml"\n[matrix]\nalgorithm = ["rfc7252", "../mine.py:Mine"]\n'
    (home / "plans" / "mine.toml").write_text(f'name = "mine"\n{plan}')
    first = millpond.sweep(home / "plans" / "mine.toml", out=tmp_path / "out", report=False)
    (home / "mine.py").unlink()
    (home / "cell.toml").unlink()
    again = millpond.sweep(tmp_path / "out" / "study", out=tmp_path / "again", report=False)
    assert again.results.manifest["plan_hash"] == first.results.manifest["plan_hash"]
    assert again.results.table("flows").equals(first.results.table("flows"))


def test_a_study_that_is_not_kept_is_judged_all_the_same() -> None:
    few: Any = {"clients": [1], "buffer_bytes": [2500], "workload": ["continuous"]}
    done = millpond.reproduce("anrw18", controllers=["rfc7252"], factors=few, replications=2)
    assert isinstance(done, millpond.Reproduction)
    assert any(figure.ours is not None for figure in done.comparison.figures)
    with pytest.raises(MillpondError, match="in memory: nothing of these results is kept"):
        millpond.api.redraw(done)
