"""Who does chunks of runs: processes of this machine, a Dask cluster, or any executor that a caller brings.

`--on processes`, `--on dask` (a cluster of this machine, for as long as the runs take) and `--on dask://HOST:PORT` (one
that is there). From Python also a `concurrent.futures.Executor` or a `distributed.Client`, which stay as they were.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from typing import Any, Protocol, TypeAlias, runtime_checkable

import psutil

from millpond.errors import MillpondError, UsageError, unknown
from millpond.run import chunk
from millpond.run.spread import Workers


@runtime_checkable
class DaskClient(Protocol):
    """A `distributed.Client`, as far as it is used."""

    def get_executor(self, **kwargs: Any) -> Executor:
        """Its cluster as an executor."""
        ...

    def nthreads(self) -> dict[str, int]:
        """Tasks that each worker does at the same time."""
        ...

    def run(self, function: Callable[[], object], **kwargs: Any) -> dict[str, object]:
        """What the function gives on each worker."""
        ...


On: TypeAlias = str | Executor | DaskClient
"""Where runs are done, if not on the cores of this machine."""

PROCESSES, DASK, AT = "processes", "dask", "dask://"
WORDS = (PROCESSES, DASK, f"{AT}HOST:PORT")
#: How long a scheduler may take to answer the first time, in s.
PATIENCE = 5.0


def check(on: On | None, jobs: int = 0) -> None:
    """Raises `UsageError` with one line if runs cannot be done there, before anything is begun."""
    if on is None:
        return
    if not isinstance(on, str):
        if not isinstance(on, Executor | DaskClient):
            raise UsageError(f"on: {type(on).__name__} is neither an executor nor a Dask client")
    elif on.startswith(AT):
        host, _, port = on.removeprefix(AT).rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise UsageError(f"--on: {on}: where is the scheduler? write {AT}HOST:PORT, such as {AT}127.0.0.1:8786")
    elif on not in (PROCESSES, DASK):
        raise UsageError(f"--on: {unknown('place', on, WORDS)}")
    if jobs and on not in (PROCESSES, DASK):
        raise UsageError("--jobs: the workers that are there decide how many runs go at the same time: leave it out")


@contextlib.contextmanager
def opened(on: On, jobs: int, version: str) -> Iterator[Workers]:
    """Workers for as long as they are needed.

    Args:
        on: As checked by `check`.
        jobs: Runs at the same time on this machine; 0 for one per core.
        version: The version that every worker must have.

    Raises:
        MillpondError: one line, if there is no scheduler, or a worker has another version.
    """
    wanted = jobs or psutil.cpu_count() or 1
    if on == PROCESSES:
        with contextlib.closing(_Processes(wanted)) as processes:
            yield processes
    elif isinstance(on, str):
        distributed = _distributed(on)
        with _quietly(), contextlib.ExitStack() as ends:
            if on == DASK:
                cluster = distributed.LocalCluster(
                    n_workers=wanted,
                    threads_per_worker=1,
                    dashboard_address="127.0.0.1:0",
                    silence_logs=logging.CRITICAL,
                )
                ends.callback(cluster.close)
                address = cluster
            else:
                address = f"tcp://{on.removeprefix(AT)}"
            try:
                client = distributed.Client(address, timeout=PATIENCE, set_as_default=False)
            except OSError:
                raise MillpondError(
                    f"--on {on}: no scheduler answers there: start 'dask scheduler' there, and 'dask worker's"
                ) from None
            ends.callback(client.close)
            if on == DASK:
                client.run(_hear_no_ctrl_c)
            yield _Dask(client, on, version)
    elif isinstance(on, Executor):
        yield _Given(on)
    else:
        yield _Dask(on, "the Dask client", version)


# ----------------------------------------------------------------------------------------------- helpers


class _Processes:
    """Processes of this machine, which end with the program that began them."""

    name = PROCESSES

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        # neither forked, as there are threads here, nor under a lock, which one that is killed would keep
        self._context = multiprocessing.get_context("spawn")
        self._over = self._context.RawValue("b", 0)
        self._pool = self._begun()

    def executor(self) -> Executor:
        return self._pool

    def slots(self) -> int:
        return self._wanted

    def renew(self) -> bool:
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._pool = self._begun()
        return True

    def stop(self) -> None:
        self._over.value = 1

    def close(self) -> None:
        self.stop()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _begun(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            self._wanted, mp_context=self._context, initializer=_begin_process, initargs=(self._over,)
        )


def _begin_process(over: Any) -> None:
    """At a worker: without the parent there is nothing to do."""
    _hear_no_ctrl_c()
    chunk.stop_when(lambda: bool(over.value))
    threading.Thread(target=_end_with_parent, name="millpond-parent", daemon=True).start()


def _hear_no_ctrl_c() -> None:
    """A terminal tells Ctrl-C to workers of this machine too; it is their parent's business."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)


class _Given:
    """An executor of the caller's."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self.name = type(executor).__name__

    def executor(self) -> Executor:
        return self._executor

    def slots(self) -> int:
        # no executor says it; those of the library all have it under this name
        return int(getattr(self._executor, "_max_workers", 0) or psutil.cpu_count() or 1)

    def renew(self) -> bool:
        return False

    def stop(self) -> None:
        pass


class _Dask:
    """The workers of a Dask cluster, whichever are there."""

    def __init__(self, client: DaskClient, name: str, version: str) -> None:
        self.name, self._client = name, client
        self._executor = client.get_executor(pure=False)
        found = client.run(_version_there(), on_error="return")
        for address, there in found.items():
            if isinstance(there, BaseException):
                raise MillpondError(f"--on {name}: worker {address} has no millpond: install millpond=={version} there")
            if there != version:
                raise MillpondError(f"--on {name}: {chunk.other_version(f'worker {address}', str(there), version)}")

    def executor(self) -> Executor:
        return self._executor

    def slots(self) -> int:
        try:
            return sum(self._client.nthreads().values())
        except OSError:
            raise MillpondError(f"--on {self.name}: the scheduler is gone") from None

    def renew(self) -> bool:
        return False

    def stop(self) -> None:
        pass


def _version_there() -> Callable[[], object]:
    """A function that travels as code: a worker of another version may lack this module."""

    def version() -> object:
        from millpond import _engine

        return _engine.version()

    return version


def _distributed(on: str) -> Any:
    try:
        return importlib.import_module("distributed")
    except ImportError:
        raise UsageError(f"--on {on}: needs Dask: pip install 'millpond[dask]'") from None


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """What goes wrong is told in one line; Dask would add a page."""
    logger = logging.getLogger("distributed")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)
