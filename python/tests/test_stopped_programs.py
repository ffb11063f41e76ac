"""Programs that are stopped, killed or started twice: one folder holds one sweep, in the end the same to the byte."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import small_sweep

import millpond

#: Says when a run is done, and keeps each at once, so that a signal may meet it in the middle of a file.
SAYS = """
import sys, millpond
from millpond.results import store
from millpond.run import campaign
store.PART_SECONDS = 0.0
class Says(campaign.Watcher):
    def finished(self, job):
        print("one is done", flush=True)
plan, out, replications, number = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
shard = (number, 2) if number else (1, 1)
options = {"jobs": 1, "report": False, "resume": True, "shard": shard, "watcher": Says()}
try:
    millpond.sweep(plan, out=out, replications=replications, **options)
except millpond.MillpondError as error:
    print(error, file=sys.stderr)
    sys.exit(error.exit_code)
"""
REPLICATIONS = 40


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_sweep.write(tmp_path_factory.mktemp("plan"))


@pytest.fixture(scope="module")
def whole(plan: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What nobody stopped: the digests of the first of two shards."""
    out = tmp_path_factory.mktemp("whole") / "out"
    millpond.sweep(plan, out=out, replications=REPLICATIONS, shard=(1, 2), report=False)
    return tables(out)


def tables(out: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(out.glob("*.parquet"))}


@contextlib.contextmanager
def begun(
    plan: Path, out: Path, *, replications: int = REPLICATIONS, shard: int = 1
) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", SAYS, str(plan), str(out), str(replications), str(shard)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        except BaseException:
            # Who fails beside one that was told to pause would wait for it for ever.
            process.kill()
            raise


def after(process: subprocess.Popen[str], runs: int) -> Iterator[None]:
    """Waits until so many more runs are done, or the process has ended."""
    assert process.stdout is not None
    for _ in range(runs):
        if not process.stdout.readline():
            break
        yield


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM], ids=lambda how: how.name)
def test_a_shard_that_is_stopped_again_and_again_ends_with_the_same_bytes(
    how: signal.Signals, plan: Path, whole: dict[str, str], tmp_path: Path
) -> None:
    out, stops = tmp_path / "out", 0
    for runs in (3, 1, 17):
        with begun(plan, out) as process:
            list(after(process, runs))
            process.send_signal(how)
            _, told = process.communicate()
        if process.returncode == 0:
            break
        stops += 1
        assert process.returncode == (-how if how == signal.SIGKILL else 130), told
        if how != signal.SIGKILL:
            assert len(told.splitlines()) == 1
            assert told.startswith("stopped: ")
            assert "resume=True goes on" in told
        assert not tables(out), "nothing is half-written"
    assert stops
    millpond.sweep(plan, out=out, replications=REPLICATIONS, shard=(1, 2), report=False, resume=True)
    assert tables(out) == whole
    assert sorted(entry.name for entry in out.iterdir() if entry.is_file()) == sorted([*whole, "manifest.json"])


def test_of_two_programs_in_one_folder_the_second_changes_nothing(
    plan: Path, whole: dict[str, str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with begun(plan, out) as first:
        list(after(first, 1))
        os.kill(first.pid, signal.SIGSTOP)
        before = {file: file.read_bytes() for file in out.rglob("*") if file.is_file()}
        for shard, replications in ((1, REPLICATIONS), (2, REPLICATIONS), (0, 3)):
            with begun(plan, out, replications=replications, shard=shard) as second:
                _, told = second.communicate()
            assert second.returncode == 1
            assert told == (
                f"{out}: another program is writing results here: choose another out, or one shard a folder\n"
            )
        assert {file: file.read_bytes() for file in out.rglob("*") if file.is_file()} == before
        os.kill(first.pid, signal.SIGCONT)
        first.communicate()
    assert first.returncode == 0
    assert tables(out) == whole


@pytest.mark.parametrize(("shard", "replications"), [(2, REPLICATIONS), (1, REPLICATIONS - 1), (0, REPLICATIONS)])
def test_a_shard_of_another_plan_or_place_is_refused_and_what_is_there_is_kept(
    shard: int, replications: int, plan: Path, whole: dict[str, str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with begun(plan, out) as first:
        list(after(first, 5))
        first.kill()
    with begun(plan, out, replications=replications, shard=shard) as other:
        _, told = other.communicate()
    assert other.returncode == 1
    assert len(told.splitlines()) == 1
    assert "choose another out" in told
    millpond.sweep(plan, out=out, replications=REPLICATIONS, shard=(1, 2), report=False, resume=True)
    assert tables(out) == whole
