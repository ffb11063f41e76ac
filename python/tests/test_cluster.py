"""Runs done elsewhere: the same bytes, whoever does them and whoever dies meanwhile; and one line when it cannot be."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cluster
import psutil
import pytest
import small_sweep
from cluster import Cluster

import millpond
from millpond import MillpondError, UsageError
from millpond.results import store
from millpond.run import chunk, spread
from millpond.run.campaign import Interrupted, Watcher
from millpond.run.jobs import Job

RUNS = 8 * 20


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_sweep.write(tmp_path_factory.mktemp("plan"))


@pytest.fixture(scope="module")
def here(plan: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The tables of the sweep as the cores of this machine make them."""
    return tables(swept(plan, tmp_path_factory.mktemp("here") / "out"))


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster whose workers all live."""
    with cluster.on_loopback(tmp_path_factory.mktemp("dask"), workers=2) as made:
        yield made


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of a few runs, however fast the machine is, and a part for each of them."""
    monkeypatch.setattr(spread, "CHUNK_SECONDS", 0.002)
    monkeypatch.setattr(spread, "GROWTH", 2)
    monkeypatch.setattr(store, "PART_ROWS", 1)


def swept(plan: Path, out: Path, **options: Any) -> Path:
    millpond.sweep(plan, out=out, replications=20, report=False, **options)
    return out


def tables(out: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in out.glob("*.parquet")}


class At(Watcher):
    """Does something once when so many runs are done, and notes what is said."""

    def __init__(self, runs: int, act: Callable[[], object]) -> None:
        self._runs, self._act = runs, act
        self.done: list[int] = []
        self.said: list[str] = []

    def finished(self, job: Job) -> None:
        self.done.append(job.run)
        if len(self.done) == self._runs:
            self._act()

    def say(self, line: str) -> None:
        self.said.append(line)


# ----------------------------------------------------------------------------------------------- the same bytes


def test_a_cluster_gives_the_bytes_of_one_machine(
    plan: Path, here: dict[str, bytes], dask: Cluster, tmp_path: Path
) -> None:
    out = swept(plan, tmp_path / "out", on=cluster.on(dask))
    assert tables(out) == here
    manifest = json.loads((out / "manifest.json").read_text())
    assert (manifest["workers"], manifest["runs_done"]) == (2, RUNS)


def test_a_client_and_any_executor_are_taken_and_left_as_they_were(
    plan: Path, here: dict[str, bytes], dask: Cluster, tmp_path: Path
) -> None:
    import distributed

    with distributed.Client(dask.address, set_as_default=False) as client:
        assert tables(swept(plan, tmp_path / "dask", on=client)) == here
        assert client.submit(sum, [1, 2]).result() == 3
    with ThreadPoolExecutor(2) as threads:
        assert tables(swept(plan, tmp_path / "threads", on=threads)) == here
        assert threads.submit(sum, [1, 2]).result() == 3


def test_processes_give_the_same_and_end_with_the_runs(plan: Path, here: dict[str, bytes], tmp_path: Path) -> None:
    assert tables(swept(plan, tmp_path / "out", on="processes", jobs=2)) == here
    assert not [process for process in psutil.Process().children() if "spawn_main" in " ".join(process.cmdline())]


def test_the_program_begins_a_cluster_of_its_own(plan: Path, here: dict[str, bytes], tmp_path: Path) -> None:
    done = sweep_by_program(plan, tmp_path / "out", "--on", "dask", "--jobs", "2")
    assert (done.returncode, tables(tmp_path / "out")) == (0, here), done.stderr
    # Dask's warning of a slow disk, and the line of its code
    told = re.sub(r".*UserWarning: Creating scratch directories.*\n.*\n", "", done.stderr)
    assert len(told.splitlines()) == 2, "runs a second, and where results are"


def test_traced_runs_and_shards_go_elsewhere_as_well(dask: Cluster, tmp_path: Path) -> None:
    traced = small_sweep.tree(trace={"tables": ["rto", "queue"], "flows": 1, "largest": ["queue"]})
    options: dict[str, Any] = {"report": False, "shard": (1, 3), "replications": 3}
    millpond.sweep(traced, out=tmp_path / "here", **options)
    millpond.sweep(traced, out=tmp_path / "there", on=cluster.on(dask), **options)
    assert "rto_trace.parquet" in tables(tmp_path / "here")
    assert tables(tmp_path / "there") == tables(tmp_path / "here")


def test_a_controller_of_ones_own_travels_as_source(plan: Path, patient: Path, dask: Cluster, tmp_path: Path) -> None:
    own = [{"own": f"{patient}:Patient", "first_s": 4.0}]
    millpond.sweep(plan, controllers=own, out=tmp_path / "here", report=False)
    millpond.sweep(plan, controllers=own, out=tmp_path / "there", report=False, on=cluster.on(dask))
    assert tables(tmp_path / "there") == tables(tmp_path / "here")


# ----------------------------------------------------------------------------------------------- who dies


@pytest.mark.usefixtures("small_chunks")
def test_a_worker_that_is_killed_loses_its_chunk_only(plan: Path, here: dict[str, bytes], tmp_path: Path) -> None:
    with cluster.on_loopback(tmp_path, workers=2) as made:
        killed = At(RUNS // 4, lambda: made.kill(0))
        assert tables(swept(plan, tmp_path / "out", on=cluster.on(made), watcher=killed)) == here


@pytest.mark.usefixtures("small_chunks")
def test_a_process_that_is_killed_is_replaced(plan: Path, here: dict[str, bytes], tmp_path: Path) -> None:
    def kill() -> None:
        workers = [p for p in psutil.Process().children() if "spawn_main" in " ".join(p.cmdline())]
        workers[0].send_signal(signal.SIGKILL)

    out = swept(plan, tmp_path / "out", on="processes", jobs=2, watcher=At(RUNS // 4, kill))
    assert tables(out) == here


@pytest.mark.usefixtures("small_chunks")
def test_after_the_scheduler_died_resume_goes_on(plan: Path, here: dict[str, bytes], tmp_path: Path) -> None:
    out = tmp_path / "out"
    told = r"on dask://127.*: (it took the runs back, or|the scheduler) is gone"
    with cluster.on_loopback(tmp_path, workers=1) as made, pytest.raises(MillpondError, match=told):
        swept(plan, out, on=cluster.on(made), watcher=At(RUNS // 4, made.scheduler.kill))
    kept = json.loads((out / "manifest.json").read_text())["runs_done"]
    assert RUNS // 4 <= kept < RUNS
    assert tables(swept(plan, out, resume=True)) == here


HELD = """
import sys, time, millpond
from millpond.results import store
from millpond.run import campaign, spread
spread.CHUNK_SECONDS, spread.GROWTH, store.PART_ROWS = 0.002, 2, 1
class Holds(campaign.Watcher):
    left = 60
    def finished(self, job):
        self.left -= 1
        if not self.left:
            print("held", flush=True)
            time.sleep(1000)
millpond.sweep(sys.argv[1], out=sys.argv[2], on=sys.argv[3], replications=20, report=False, watcher=Holds())
"""


def test_after_the_client_was_killed_resume_goes_on(
    plan: Path, here: dict[str, bytes], dask: Cluster, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "-c", HELD, str(plan), str(out), cluster.on(dask)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == "held\n"
        client.send_signal(signal.SIGKILL)
    assert not (out / "flows.parquet").exists()
    resumed = At(RUNS, lambda: None)
    swept(plan, out, on=cluster.on(dask), resume=True, watcher=resumed)
    assert tables(out) == here
    assert 0 < len(resumed.done) < RUNS, "what was kept is not run again"


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("where", ["processes", "dask"])
def test_ctrl_c_takes_chunks_back_and_resume_goes_on(
    plan: Path, here: dict[str, bytes], dask: Cluster, where: str, tmp_path: Path
) -> None:
    on = cluster.on(dask) if where == "dask" else where
    stopped = At(RUNS // 4, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(Interrupted, match=f"of {RUNS} runs are kept in .*: resume=True goes on"):
        swept(plan, tmp_path / "out", on=on, watcher=stopped)
    assert tables(swept(plan, tmp_path / "out", resume=True, on=on)) == here


STOPPED = """
import sys, millpond
from millpond.run import campaign
class Says(campaign.Watcher):
    def finished(self, job):
        print("one is done", flush=True)
options = {"jobs": 1, "replications": 5000, "report": False, "watcher": Says()}
try:
    millpond.sweep(sys.argv[1], out=sys.argv[2], on=sys.argv[3], **options)
except millpond.MillpondError as error:
    print(error, file=sys.stderr)
    sys.exit(error.exit_code)
"""


@pytest.mark.parametrize("where", ["processes", "dask"])
def test_ctrl_c_at_a_terminal_is_the_business_of_the_program_alone(plan: Path, where: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", STOPPED, str(plan), str(tmp_path / "out"), where]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "one is done\n"
        os.killpg(program.pid, signal.SIGINT)
        _, told = program.communicate()
    assert program.returncode == 130, told
    assert len(told.splitlines()) == 1, told
    assert "of 40000 runs are kept" in told


def test_a_run_in_the_middle_ends_when_nobody_waits_for_it(dask: Cluster, tmp_path: Path) -> None:
    import distributed

    days = small_sweep.tree(replications=1)
    days["scenario"]["clients"] = [
        {"controller": "rfc7252", "count": 2000, "workload": {"kind": "poisson", "interval": "10 s"}}
    ]
    days["scenario"]["run"] = {"for": "1000 d"}

    def stop() -> None:
        with distributed.Client(dask.address, set_as_default=False) as client:
            while not any(client.processing().values()):
                pass
        os.kill(os.getpid(), signal.SIGINT)

    stopping = threading.Thread(target=stop)
    stopping.start()
    with pytest.raises(Interrupted):
        millpond.sweep(days, factors={"clients[0].count": [2000]}, out=tmp_path / "out", on=cluster.on(dask))
    stopping.join()
    with distributed.Client(dask.address, set_as_default=False) as client:
        both = client.map(lambda number: number, range(2), pure=False)
        assert client.gather(both) == [0, 1], "the workers are free again"


def test_a_disk_that_is_full_is_said_and_nothing_is_lost(
    plan: Path, here: dict[str, bytes], dask: Cluster, small_chunks: None, tmp_path: Path, full_disk: Callable[[], Path]
) -> None:
    assert small_chunks is None
    out = full_disk()
    told = (
        r"out: cannot be written: No space left on device: [1-9]\d* of \d+ runs are kept: make room, then resume=True"
    )
    with pytest.raises(MillpondError, match=told) as caught:
        swept(plan, out, on=cluster.on(dask))
    assert "\n" not in str(caught.value)
    kept = len(list((out / "parts").iterdir()))
    assert kept > 0
    room = tmp_path / "room"
    room.mkdir()
    subprocess.run(["cp", "-r", f"{out}/.", room], check=True)
    resumed = At(RUNS, lambda: None)
    swept(plan, room, on=cluster.on(dask), resume=True, watcher=resumed)
    assert tables(room) == here
    assert 0 < len(resumed.done) < RUNS, "what was kept is not run again"


@pytest.fixture
def full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Path]]:
    """A folder with room for some of the results: a file system of its own, or else a writer like one.

    A part of them takes some 50 kB there.
    """
    place = tmp_path / "small"
    place.mkdir()
    mounted = not subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(place)], capture_output=True, check=False
    ).returncode

    def make() -> Path:
        if not mounted:
            fills_after(40, monkeypatch)
        return place / "out"

    yield make
    if mounted:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def fills_after(files: int, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno

    import pyarrow.parquet as pq

    left, write = [files], pq.write_table

    def written(table: Any, *where: Any, **how: Any) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(table, *where, **how)

    monkeypatch.setattr(pq, "write_table", written)


# ----------------------------------------------------------------------------------------------- one line


def sweep_by_program(plan: Path, out: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "millpond", "sweep", str(plan), "--out", str(out), "--replications", "20"]
    return subprocess.run([*command, "--no-report", "--json", *options], capture_output=True, text=True, check=False)


def test_a_worker_of_another_version_is_named(plan: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / "millpond"
    other.mkdir(parents=True)
    (other / "__init__.py").touch()
    (other / "_engine.py").write_text("def version():\n    return '0.0.9'\n")
    with cluster.on_loopback(tmp_path, workers=1) as made:
        made.add_worker({"PYTHONPATH": str(other.parent)})
        told = r"worker tcp://127.*: its millpond is version 0.0.9, this is .*: install millpond==\d.* on the workers"
        with pytest.raises(MillpondError, match=told):
            swept(plan, tmp_path / "out", on=cluster.on(made))


def test_a_worker_that_comes_later_tells_its_version_too() -> None:
    answer = chunk.work(json.dumps({"version": "9.9.9", "cells": []}))
    with pytest.raises(MillpondError, match=r"a worker: its millpond is version .*, this is 9.9.9"):
        chunk.received(answer, "9.9.9")


def test_a_scheduler_that_is_not_there_is_one_line(plan: Path, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    done = sweep_by_program(plan, tmp_path / "out", "--on", f"dask://127.0.0.1:{port}")
    assert done.returncode == 1
    assert done.stderr == (
        f"millpond: --on dask://127.0.0.1:{port}: no scheduler answers there: "
        "start 'dask scheduler' there, and 'dask worker's\n"
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("on", "told"),
    [
        ("procesess", "--on: unknown place 'procesess': did you mean 'processes'?"),
        ("dask://somewhere", "--on: dask://somewhere: where is the scheduler? write dask://HOST:PORT"),
        ("dask://somewhere:99999", "where is the scheduler?"),
    ],
)
def test_a_place_that_is_none_is_said_before_anything_is_begun(plan: Path, on: str, told: str, tmp_path: Path) -> None:
    done = sweep_by_program(plan, tmp_path / "out", "--on", on)
    assert done.returncode == 2
    assert told in done.stderr
    assert not (tmp_path / "out").exists()


def test_what_makes_no_sense_elsewhere_is_refused(plan: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="jobs: the workers that are there decide"):
        swept(plan, tmp_path / "out", on="dask://127.0.0.1:1", jobs=2)
    with pytest.raises(UsageError, match="on: int is neither an executor nor a Dask client"):
        swept(plan, tmp_path / "out", on=5)


def test_a_run_that_fails_elsewhere_is_named(plan: Path, patient: Path, dask: Cluster, tmp_path: Path) -> None:
    patient.write_text(
        patient.read_text().replace("return cx.between", "raise ValueError('no idea')\n        return cx.between")
    )
    with pytest.raises(MillpondError, match=r"run \d+ \(.*Patient.*, seed \d+\): .*no idea"):
        millpond.sweep(
            plan, controllers=[f"{patient}:Patient"], out=tmp_path / "out", report=False, on=cluster.on(dask)
        )


class Forgetful(ThreadPoolExecutor):
    """Breaks with every task that it takes."""

    def submit(self, *_: Any, **__: Any) -> Any:
        from concurrent.futures import BrokenExecutor

        raise BrokenExecutor("gone")


def test_an_executor_that_breaks_is_one_line(plan: Path, tmp_path: Path) -> None:
    broken: Executor
    with Forgetful(1) as broken, pytest.raises(MillpondError, match="on Forgetful: a worker died, and the others"):
        swept(plan, tmp_path / "out", on=broken)


def test_chunks_grow_until_they_take_long_enough(plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    send = chunk.sent

    def noted(program: Any, jobs: Sequence[Job], traced: bool) -> str:
        sizes.append(len(jobs))
        return send(program, jobs, traced)

    monkeypatch.setattr(chunk, "sent", noted)
    with ThreadPoolExecutor(1) as one:
        swept(plan, tmp_path / "out", on=one)
    assert sizes[0] == 1
    assert sum(sizes) == RUNS
    assert max(sizes) > 8, "far from a second: as many as may be"
