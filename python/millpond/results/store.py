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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

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
PART = "part.json"
LOCK = ".lock"


Integers: TypeAlias = NDArray[np.int64]


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


def write_pieces(file: Path, pieces: Iterable[pa.Table], form: Mapping[str, Any] = KEPT) -> tuple[int, int]:
    """The same of a table that comes in pieces, one at least; gives its rows and its length in bytes."""
    rows = 0
    with _whole(file) as temporary, contextlib.ExitStack() as ends:
        writer: Any = None
        for piece in pieces:
            writer = writer or ends.enter_context(pq.ParquetWriter(temporary, piece.schema, **form))
            writer.write_table(piece, row_group_size=GROUP_ROWS)
            rows += piece.num_rows
    return rows, file.stat().st_size


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

    Raises `MillpondError` if it cannot be written to, or holds anything else. `code` are the digests of controllers of
    one's own, by name and file: they tell why a plan is another.
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


class Parts:
    """The finished runs of an unfinished directory."""

    def __init__(self, directory: Path) -> None:
        self.folder = directory / PARTS
        self.done: set[int] = set()
        #: One line for each part that was found cut short and left out.
        self.damaged: list[str] = []
        self._names: list[str] = []

    def read(self) -> None:
        """Find what is there. A part cut short is left out (its runs are run again) and named in `damaged`."""
        if not self.folder.is_dir():
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
            self.done.update(runs)
            self._names.append(folder.name)

    def add(self, runs: Sequence[int], tables: Mapping[str, pa.Table]) -> None:
        """Keep the tables of finished runs: all of them, or if that cannot be, none. Raises `Unwritten` then."""
        number = int(self._names[-1].split("-")[1]) + 1 if self._names else 0
        name = f"part-{number:06d}"
        temporary = self.folder / f".tmp-{name}-{os.getpid()}"
        try:
            self.folder.mkdir(exist_ok=True)
            temporary.mkdir()
            sizes = {
                name: write_table(temporary / f"{name}.parquet", in_order([t]), PASSING) for name, t in tables.items()
            }
            write_json(temporary / PART, {"runs": sorted(runs), "bytes": sizes})
            temporary.rename(self.folder / name)
        except BaseException as error:
            shutil.rmtree(temporary, ignore_errors=True)
            if isinstance(error, OSError):
                raise Unwritten(self.folder, error) from None
            raise
        self._names.append(name)
        self.done.update(runs)

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables that there are rows of."""
        files = (file for name in self._names for file in sorted((self.folder / name).glob("*.parquet")))
        return tuple(dict.fromkeys(file.stem for file in files))

    def merged(self, table: str) -> Iterator[pa.Table]:
        """The rows of a table in the order of runs, some runs at a time: how many depends on their rows alone."""
        files = [file for name in self._names if (file := self.folder / name / f"{table}.parquet").exists()]
        counted = [_rows_by_run(file) for file in files]
        runs, places = np.unique(np.concatenate([runs for runs, _ in counted]), return_inverse=True)
        rows = np.bincount(places, weights=np.concatenate([rows for _, rows in counted])).astype(np.int64)
        if not len(runs):
            yield read_table(files[0])
        for first, last in _windows(runs, rows):
            mine = [file for file, (there, _) in zip(files, counted, strict=True) if _any(there, first, last)]
            yield in_order([read_table(file, [("run", ">=", first), ("run", "<=", last)]) for file in mine])

    def remove(self) -> None:
        """Forget all parts."""
        shutil.rmtree(self.folder, ignore_errors=True)

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


def _rows_by_run(file: Path) -> tuple[Integers, Integers]:
    """The runs of a file and how many rows each has."""
    try:
        check_values(file, pq.read_metadata(file).num_rows, 1)
        column = pq.read_table(file, columns=["run"]).column("run").to_numpy()
    except (pa.ArrowException, OSError):
        raise MillpondError(f"{file}: cut short or damaged: --resume runs its runs again") from None
    runs, rows = np.unique(column.astype(np.int64), return_counts=True)
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
