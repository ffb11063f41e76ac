"""A Dask cluster on loopback, of the programs that anybody starts: `dask scheduler` and `dask worker`."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

#: How often it is looked for what a program says.
POLL_SECONDS = 0.05


@dataclass
class Cluster:
    folder: Path
    scheduler: subprocess.Popen[bytes]
    address: str
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def add_worker(self, environment: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """One more worker, which is there when this returns."""
        log = self.folder / f"worker-{len(self.workers)}.log"
        worker = _started("worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard",
                          "--local-directory", str(self.folder), log=log, environment=environment)  # fmt: skip
        self.workers.append(worker)
        _until(lambda: "Registered to" in log.read_text(), worker, log)
        return worker

    def kill(self, number: int) -> None:
        """Ends a worker in the middle of whatever it does."""
        self.workers[number].send_signal(signal.SIGKILL)


@contextlib.contextmanager
def on_loopback(folder: Path, workers: int = 0) -> Iterator[Cluster]:
    """A scheduler with workers, for as long as the block."""
    told, log = folder / "scheduler.json", folder / "scheduler.log"
    scheduler = _started("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file",
                         str(told), log=log)  # fmt: skip
    cluster = Cluster(folder, scheduler, "")
    try:
        _until(told.exists, scheduler, log)
        _until(lambda: told.read_text().strip().endswith("}"), scheduler, log)
        cluster.address = str(json.loads(told.read_text())["address"])
        for _ in range(workers):
            cluster.add_worker()
        yield cluster
    finally:
        for process in (*cluster.workers, scheduler):
            process.kill()
            process.wait()


def on(cluster: Cluster) -> str:
    """As `--on` names it."""
    return cluster.address.replace("tcp://", "dask://")


# ----------------------------------------------------------------------------------------------- helpers


def _started(
    verb: str, *arguments: str, log: Path, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    command = [str(Path(sys.executable).with_name("dask")), verb, *arguments]
    with log.open("wb") as told:
        return subprocess.Popen(
            command, stdout=told, stderr=subprocess.STDOUT, cwd=log.parent, env={**os.environ, **(environment or {})}
        )


def _until(happened: object, process: subprocess.Popen[bytes], log: Path) -> None:
    assert callable(happened)
    while not happened():
        assert process.poll() is None, log.read_text()
        time.sleep(POLL_SECONDS)
