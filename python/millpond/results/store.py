"""Files of a results directory appear whole or not at all.

While runs are going on, what is finished waits in `parts/`: a part is a folder with the tables of many runs, made under
another name and then renamed. When all runs are done the parts become the final tables and vanish.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from millpond._engine import Table
from millpond.errors import MillpondError
from millpond.given_files import check_values, read_json
from millpond.results.directory import MANIFEST, check_size, in_order, read_manifest, read_table

PARTS = "parts"
#: How a table is written that is kept, and how one of a part, which is read once: that takes half the time.
KEPT: Mapping[str, Any] = {"compression": "zstd"}
PASSING: Mapping[str, Any] = {"compression": "lz4", "use_dictionary": False}
#: Rows that are put in order at a time, and of a group of them in a file, of which a reader may take some.
WINDOW_ROWS = 250_000
GROUP_ROWS = 65_536
#: A part is written when so many rows wait, or so many seconds have passed since the first of them.
PART_ROWS = 200_000
PART_SECONDS = 10.0
PART = "part.json"
LOCK = ".lock"


Integers: TypeAlias = NDArray[np.int64]
#: Rows of runs, the engine's own until somebody needs them here: each table that comes over tells all its columns.
Rows: TypeAlias = pa.Table | Table


class Unwritten(MillpondError):
    """A file or folder that could not be written. What was there before is as it was."""

    def __init__(self, place: Path, error: OSError) -> None:
        #: Why, in the words of the system.
        self.why = os.strerror(error.errno) if error.errno else str(error.strerror or error)
        super().__init__(f"{place}: cannot be written: {self.why}")


def write_text(file: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    with _whole(file) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_bytes(file: Path, content: bytes) -> None:
    """Write a file of bytes whole or not at all."""
    with _whole(file) as temporary:
        temporary.write_bytes(content)


def write_json(file: Path, content: Any, indent: int | None = 1) -> None:
    """Write a JSON file whole or not at all."""
    write_text(file, json.dumps(content, indent=indent, ensure_ascii=False) + "\n")


def write_table(file: Path, table: pa.Table, form: Mapping[str, Any] = KEPT) -> int:
    """Write a Parquet file whole or not at all; gives its length in bytes. Equal tables give equal bytes."""
    return write_pieces(file, [table], form)[1]


def write_pieces(
    file: Path, pieces: Iterable[pa.Table], form: Mapping[str, Any] = KEPT
) -> tuple[int, int, pa.Table | None]:
    """The same of a table that comes in pieces, one at least.

    Gives its rows, its length in bytes, and where it came in one piece that, so that it need not be read again.
    """
    rows, only = 0, None
    with _whole(file) as temporary, contextlib.ExitStack() as ends:
        writer: Any = None
        for piece in pieces:
            only = piece if writer is None else None
            writer = writer or ends.enter_context(pq.ParquetWriter(temporary, piece.schema, **form))
            writer.write_table(piece, row_group_size=GROUP_ROWS)
            rows += piece.num_rows
    return rows, file.stat().st_size, only


@contextlib.contextmanager
def alone_in(directory: Path) -> Iterator[None]:
    """Holds a directory, made if it is not there. Raises `MillpondError` if another program is at work in it.

    The hold ends with the program, however that ends. A directory that was made and is still empty then goes as well.
    """
    file = directory / LOCK
    is_new = not directory.exists()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        opened = file.open("w")
    except OSError as error:
        raise MillpondError(
            f"{directory}: cannot write results here ({error.strerror or error}): choose another --out"
        ) from None
    with opened:
        try:
            _hold(opened.fileno())
            held = file.stat().st_ino == os.fstat(opened.fileno()).st_ino
        except OSError:
            held = False
        if not held:
            raise MillpondError(
                f"{directory}: another program is writing results here: choose another --out, or one shard a folder"
            )
        try:
            yield
        finally:
            file.unlink(missing_ok=True)
            if is_new:
                with contextlib.suppress(OSError):
                    directory.rmdir()


def claim(
    directory: Path,
    *,
    resume: bool,
    plan_hash: str,
    code: Mapping[str, Mapping[str, str]] | None = None,
    shard: tuple[int, int] = (1, 1),
) -> dict[str, Any] | None:
    """Go on in a directory, or make sure that it is empty: gives the manifest of what it holds, None if it is new.

    Raises `MillpondError` if it cannot be written to, or holds anything else. `code` are the digests of custom
    controllers, by name and file: they tell why a plan is another.
    """
    try:
        holds = sorted(e.name for e in directory.iterdir() if e.name != LOCK and not e.name.startswith(".tmp-"))
        probe = directory / f".tmp-probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise MillpondError(
            f"{directory}: cannot write results here ({error.strerror or error}): choose another --out"
        ) from None
    if not holds:
        return None
    if MANIFEST not in holds:
        raise MillpondError(
            f"{directory}: not empty and not results of ours (it holds {holds[0]}): choose another --out"
        )
    if not resume:
        raise MillpondError(f"{directory}: already holds results: choose another --out, or go on with them by --resume")
    manifest = read_manifest(directory)
    if manifest["plan_hash"] != plan_hash:
        for name, files in (code or {}).items():
            if manifest.get("controllers", {}).get(name, files) != files:
                raise MillpondError(
                    f"{directory}: the code of {name} may have changed since then: choose another --out"
                )
        raise MillpondError(
            f"{directory}: holds results of another plan ({manifest['name']}, {manifest['runs']} runs, version "
            f"{manifest['version']}): choose another --out, or the options of that plan"
        )
    if tuple(manifest["shard"]) != shard:
        told = "shard {} of {}".format(*manifest["shard"]) if manifest["shard"] != [1, 1] else "no shard"
        raise MillpondError(f"{directory}: holds {told} of this plan: choose another --out, one folder a shard")
    return manifest


def joined(tables: Sequence[Rows]) -> pa.Table:
    """The rows of several runs as one table, as it is kept."""
    here = [plain(table) for table in tables if isinstance(table, pa.Table)]
    there = [table for table in tables if not isinstance(table, pa.Table)]
    if there:
        here.append(plain(pa.table(there[0].followed_by(there[1:]))))
    return here[0] if len(here) == 1 else pa.concat_tables(here, promote_options="default")


def plain(table: pa.Table) -> pa.Table:
    """Dictionaries become strings: each run has its own, and Parquet makes one of all."""
    for position, column in enumerate(table.schema):
        if pa.types.is_dictionary(column.type):
            table = table.set_column(position, column.name, table.column(position).cast(column.type.value_type))
    return table


class Parts:
    """The tables of finished runs until all are done: in memory, and of a directory in parts that outlast a crash."""

    def __init__(self, directory: Path | None) -> None:
        #: Where parts are kept; None: nowhere but in memory.
        self.folder = None if directory is None else directory / PARTS
        #: The runs that would be there again after a crash.
        self.kept: set[int] = set()
        #: One line for each part that was found cut short and left out.
        self.damaged: list[str] = []
        self._names: list[str] = []
        self._runs: list[int] = []
        self._waiting: dict[str, list[Rows]] = {}
        self._rows, self._since = 0, time.monotonic()

    @property
    def done(self) -> set[int]:
        """All finished runs."""
        return self.kept.union(self._runs)

    def read(self) -> None:
        """Find what is there. A part cut short is left out (its runs are run again) and named in `damaged`."""
        if self.folder is None or not self.folder.is_dir():
            return
        for folder in sorted(self.folder.iterdir()):
            if folder.name.startswith(".tmp-"):
                shutil.rmtree(folder, ignore_errors=True)
                continue
            try:
                runs = self._check(folder)
            except MillpondError as error:
                self.damaged.append(f"{str(error).split(': run the study again')[0]}: its runs are run again")
                shutil.rmtree(folder, ignore_errors=True)
                continue
            self.kept.update(runs)
            self._names.append(folder.name)

    def add(self, runs: Sequence[int], tables: Mapping[str, Rows]) -> None:
        """Take the tables of finished runs."""
        if not self._runs:
            self._since = time.monotonic()
        self._runs.extend(runs)
        for name, rows in tables.items():
            self._waiting.setdefault(name, []).append(rows)
            self._rows += rows.num_rows

    @property
    def is_ripe(self) -> bool:
        """Whether so much waits in memory, or for so long, that it should be written."""
        waits = bool(self._runs) and (self._rows >= PART_ROWS or time.monotonic() - self._since >= PART_SECONDS)
        return waits and self.folder is not None

    def write(self) -> None:
        """Write what waits in memory as a part: all of it, or if that cannot be, none. Raises `Unwritten` then."""
        if self.folder is None or not self._runs:
            return
        number = int(self._names[-1].split("-")[1]) + 1 if self._names else 0
        name = f"part-{number:06d}"
        temporary = self.folder / f".tmp-{name}-{os.getpid()}"
        try:
            self.folder.mkdir(exist_ok=True)
            temporary.mkdir()
            tables = {name: in_order([joined(rows)]) for name, rows in self._waiting.items()}
            sizes = {name: write_table(temporary / f"{name}.parquet", table, PASSING) for name, table in tables.items()}
            write_json(temporary / PART, {"runs": sorted(self._runs), "bytes": sizes})
            temporary.rename(self.folder / name)
        except BaseException as error:
            shutil.rmtree(temporary, ignore_errors=True)
            if isinstance(error, OSError):
                raise Unwritten(self.folder, error) from None
            raise
        self._names.append(name)
        self.kept.update(self._runs)
        self._runs, self._waiting, self._rows = [], {}, 0

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables that there are rows of."""
        written = (file.stem for name in self._names for file in sorted(self._folder(name).glob("*.parquet")))
        return tuple(dict.fromkeys([*written, *sorted(self._waiting)]))

    def merged(self, table: str) -> Iterator[pa.Table]:
        """The rows of a table in the order of runs, some runs at a time: how many depends on their rows alone."""
        sources: list[_Source] = [
            _InFile(file) for name in self._names if (file := self._folder(name) / f"{table}.parquet").exists()
        ]
        if table in self._waiting:
            sources.append(_InMemory(joined(self._waiting[table])))
        counted = [source.rows_by_run() for source in sources]
        runs, places = np.unique(np.concatenate([runs for runs, _ in counted]), return_inverse=True)
        rows = np.bincount(places, weights=np.concatenate([rows for _, rows in counted])).astype(np.int64)
        if not len(runs):
            yield sources[0].between(0, 0)
        for first, last in _windows(runs, rows):
            mine = [one for one, (there, _) in zip(sources, counted, strict=True) if _any(there, first, last)]
            yield in_order([source.between(first, last) for source in mine])

    def remove(self) -> None:
        """Forget all parts."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _folder(self, name: str) -> Path:
        assert self.folder is not None
        return self.folder / name

    def _check(self, folder: Path) -> list[int]:
        try:
            told = read_json(folder / PART)
            runs, sizes = [int(run) for run in told["runs"]], dict(told["bytes"])
        except (OSError, ValueError, KeyError, TypeError):
            raise MillpondError(f"{folder / PART}: cut short or damaged") from None
        for table, size in sizes.items():
            check_size(folder / f"{table}.parquet", int(size))
        return runs


# ----------------------------------------------------------------------------------------------- helpers


@dataclass(frozen=True)
class _InFile:
    """Rows of a part."""

    file: Path

    def rows_by_run(self) -> tuple[Integers, Integers]:
        try:
            check_values(self.file, pq.read_metadata(self.file).num_rows, 1)
            column = pq.read_table(self.file, columns=["run"]).column("run")
        except (pa.ArrowException, OSError):
            raise MillpondError(f"{self.file}: cut short or damaged: --resume runs its runs again") from None
        return _counted(column)

    def between(self, first: int, last: int) -> pa.Table:
        return read_table(self.file, [("run", ">=", first), ("run", "<=", last)])


@dataclass(frozen=True)
class _InMemory:
    """Rows that wait."""

    table: pa.Table

    def rows_by_run(self) -> tuple[Integers, Integers]:
        return _counted(self.table.column("run"))

    def between(self, first: int, last: int) -> pa.Table:
        runs = self.table.column("run")
        return self.table.filter(pc.and_(pc.greater_equal(runs, first), pc.less_equal(runs, last)))


_Source: TypeAlias = _InFile | _InMemory


def _counted(column: pa.ChunkedArray) -> tuple[Integers, Integers]:
    """The runs of a column, and how many rows each has."""
    runs, rows = np.unique(column.to_numpy().astype(np.int64), return_counts=True)
    return runs, rows.astype(np.int64)


def _windows(runs: Integers, rows: Integers) -> Iterator[tuple[int, int]]:
    """First and last run of as many runs as have `WINDOW_ROWS` rows together, or of one that has more."""
    first, held = 0, 0
    for place, count in enumerate(rows.tolist()):
        if held and held + count > WINDOW_ROWS:
            yield int(runs[first]), int(runs[place - 1])
            first, held = place, 0
        held += count
    if len(runs):
        yield int(runs[first]), int(runs[-1])


def _any(runs: Integers, first: int, last: int) -> bool:
    return bool(np.searchsorted(runs, first) < np.searchsorted(runs, last, side="right"))


@contextlib.contextmanager
def _whole(file: Path) -> Iterator[Path]:
    """A temporary path beside `file` that takes its name when the block ends well, and vanishes when it does not."""
    temporary = file.with_name(f".tmp-{file.name}-{os.getpid()}")
    try:
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.replace(file)
    except OSError as error:
        raise Unwritten(file, error) from None
    finally:
        # where nothing can be written nothing can be removed either: what went wrong first is told
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def _hold(file: int) -> None:
    """Take hold of an open file, or raise OSError at once if another program has it."""
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
