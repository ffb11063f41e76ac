"""A results directory: Parquet tables, a manifest, and nothing else that a later reading needs.

Layout of a finished directory:

    manifest.json       what was run: study or scenario, every scenario in full, seeds, versions, command, counts
    cells.parquet       one row per cell: its number and name, its runs, and a column per factor, named as the factor
    groups.parquet      one row per client group of a cell
    runs.parquet        one row per run: its cell and replication, its seed
    flows.parquet       one row per client of a run
    histogram.parquet   exchanges by number of retransmissions, per run and client group
    evidence.parquet    exchanges by what their reply said about the round-trip time, per run and client group
    links.parquet       one row per link of a run
    reported.parquet    what was done by when after an event, per run and client group
    delays.parquet      how long requests and exchanges took, as distributions, per run and client group
    arrivals.parquet    requests by the second of their arrival, per run and client group, where there is a timeline
    queue_trace.parquet, share_trace.parquet, rto_trace.parquet, ...    traced runs only
    study/              the plan, its scenarios, published figures and claims as they were used
    live/               runs of real programs beside the simulated ones, a file each, if there were any
    controllers/        the source of custom controllers

Times in tables are integer microseconds (`_us`), sizes bytes. Other tables join `runs` by `run`, and that `cells` and
`groups` by `cell`. Shards of one plan are directories of their own, read together as one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from millpond.errors import MillpondError, UsageError
from millpond.given_files import LARGEST_MANIFEST, check_values, read_json
from millpond.results.factor import PATH, Factor, Value

MANIFEST = "manifest.json"
FORMAT = 2
#: The tables of every results directory. Traced runs add further ones.
TABLES = ("cells", "groups", "runs", "flows", "histogram", "evidence", "links")
#: The tables only traced runs have.
TRACES = ("queue_trace", "share_trace", "sent_trace", "rto_trace", "packets", "exchanges", "tcp_trace", "frames")

#: Tables and columns by the names that earlier versions gave them.
EARLIER = {"births": "arrivals", "born": "arrivals"}

#: What every manifest says, and of what kind it is.
_NEEDED: Mapping[str, Any] = {
    "cells": list[dict[str, Any]],
    "files": dict[str, dict[str, Any]],
    "kind": str,
    "name": str,
    "replications": int,
    "runs": int,
    "seeds": list[int],
    "shard": tuple[int, int],
    "state": str,
}


@dataclass(frozen=True)
class Group:
    """Flows that are alike: those of the clients of a `[[clients]]` table, or what the server sends to these by itself.

    `flows.group` is `index`.
    """

    index: int
    count: int
    algorithm: str
    #: The scenario's name for it; empty if it has none.
    name: str = ""
    #: What distinguishes it from the cell's other groups.
    label: str = ""
    #: How its requests travel: `udp`, `tcp`.
    transport: str = "udp"
    #: Who asks: the clients (`requests`), or the server (`commands`, `notifications`).
    traffic: str = "requests"


@dataclass(frozen=True)
class Cell:
    """One point of the plan's matrix: one scenario, run once per replication.

    `columns` holds the value of every factor of the plan, whatever they are called, and `path`, the reading of the test
    bed, such as `fixed` or `jittered`. In a mix of populations `algorithm` names all of them, joined by `;`. The cell's
    runs are numbered `first_run .. first_run + replications`, in the order of replications.
    """

    number: int
    id: str
    columns: Mapping[str, Value]
    groups: tuple[Group, ...]
    first_run: int
    replications: int
    scenario: Mapping[str, Any] = field(repr=False, default_factory=dict)
    #: The number, among the seeds of the plan, of that of its first run.
    first_seed: int = 0

    @property
    def origin(self) -> int:
        """The number that a run with the plan's first seed would have here: runs of equal seeds are as far from it."""
        return self.first_run - self.first_seed

    def preset(self, group: Group) -> str:
        """The preset, or user's controller, of a group's clients in the scenario; empty if none is said."""
        tables = self.scenario.get("clients", ())
        said = tables[group.index] if group.index < len(tables) else {}
        controller, transfer = said.get("controller"), said.get("transfer")
        # in bursts only the first request is under the controller: that is not what such clients are about
        if controller is None or (isinstance(transfer, Mapping) and transfer.get("kind") == "bursts"):
            return ""
        return str(controller.get("own") or controller.get("preset") if isinstance(controller, Mapping) else controller)

    @property
    def mixed(self) -> bool:
        """Whether clients with different controllers share the bottleneck."""
        return len({group.algorithm for group in self.groups}) > 1

    def to_json(self) -> dict[str, Any]:
        """The form the manifest keeps."""
        return {
            "number": self.number,
            "id": self.id,
            "columns": dict(self.columns),
            "groups": [asdict(group) for group in self.groups],
            "first_run": self.first_run,
            "replications": self.replications,
            "scenario": dict(self.scenario),
            **({"first_seed": self.first_seed} if self.first_seed else {}),
        }

    @staticmethod
    def from_json(entry: Mapping[str, Any]) -> Cell:
        """The reverse of `to_json`. Raises KeyError or TypeError if the entry has another form."""
        return Cell(
            number=int(entry["number"]),
            id=str(entry["id"]),
            columns=dict(entry["columns"]),
            groups=tuple(Group(**group) for group in entry["groups"]),
            first_run=int(entry["first_run"]),
            replications=int(entry["replications"]),
            scenario=dict(entry["scenario"]),
            first_seed=int(entry.get("first_seed", 0)),
        )


class Results:
    """A finished results directory, or all shards of one plan, opened for reading.

    Tables are read when first asked for and kept.
    """

    def __init__(
        self, directory: Path, manifest: Mapping[str, Any], folders: Sequence[tuple[Path, Mapping[str, Any]]] = ()
    ) -> None:
        #: Where reports about these results go.
        self.directory = directory
        #: What was run; of shards that of the first.
        self.manifest = manifest
        #: Every directory that holds tables, and its manifest.
        self.folders = tuple(folders) or ((directory, manifest),)
        self.cells: list[Cell] = [Cell.from_json(entry) for entry in manifest["cells"]]
        declared: Mapping[str, Any] = manifest.get("factors", {})
        #: Every factor of the cells, as the plan declares it, in the order in which it counts them.
        self.factors = {
            name: Factor.from_json(name, declared.get(name, {}))
            for name in dict.fromkeys(name for cell in self.cells for name in cell.columns)
        }
        #: The one that tells readings of the test bed apart.
        self.reading = self.factors.get(PATH, Factor(PATH))
        #: What reads the rows of a table, by its name, for all who read these results; see `rows.of`.
        self.readers: dict[str, Any] = {}
        #: The file of the plan, of results that keep none because they are in no directory.
        self.plan: Path | None = None
        self._tables: dict[str, pa.Table] = {}

    @staticmethod
    def open(place: Path | str | Sequence[Path | str]) -> Results:
        """Open a finished directory, or the directories of all shards of one plan, or the one that they lie in.

        Raises:
            UsageError: if there is none, or they are not all shards of one plan.
            MillpondError: if it is unfinished, cut short or not readable.
        """
        if not isinstance(place, Path | str):
            folders = [Path(folder) for folder in place]
            if not folders:
                raise UsageError("no results directory was named")
            home = folders[0] if len(folders) == 1 else folders[0].parent
        else:
            home = Path(place)
            folders = [home]
            if not (home / MANIFEST).exists() and home.is_dir():
                folders = sorted(file.parent for file in home.glob(f"*/{MANIFEST}")) or [home]
        found = [(folder, read_manifest(folder)) for folder in folders]
        for folder, manifest in found:
            check_whole(folder, manifest)
        found.sort(key=lambda one: tuple(one[1]["shard"]))
        for fault in shard_faults(found):
            raise UsageError(fault)
        return Results(home, found[0][1], found)

    @staticmethod
    def in_memory(manifest: Mapping[str, Any], tables: Mapping[str, pa.Table], plan: Path | None = None) -> Results:
        """Tables that are in no directory; `plan` is the file of the plan that they are of, if it has one."""
        names = {f"{name}.parquet": {"rows": table.num_rows} for name, table in tables.items()}
        results = Results(Path("in memory"), {**manifest, "files": names})
        results._tables.update(tables)
        results.plan = plan
        return results

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process opens the directories again."""
        return Results.open, ([folder for folder, _ in self.folders],)

    @staticmethod
    def of(directory: Path, manifest: Mapping[str, Any], tables: Mapping[str, pa.Table] | None = None) -> Results:
        """What was just finished, a single shard as well, with those of its tables that are still in memory."""
        check_whole(directory, manifest)
        results = Results(directory, manifest)
        results._tables.update(tables or {})
        return results

    @property
    def is_in_memory(self) -> bool:
        """Whether they are in no directory."""
        return all("bytes" not in file for file in self.manifest["files"].values())

    @property
    def study(self) -> str | None:
        """Name of the study or sweep that the results belong to; None for a single scenario."""
        return None if self.manifest["kind"] == "scenario" else str(self.manifest["name"])

    @property
    def kept(self) -> Path:
        """The directory that holds the plan, its scenarios and the source of users' controllers."""
        return self.folders[0][0]

    @property
    def replications(self) -> int:
        """Replications of the cells that have most."""
        return int(self.manifest["replications"])

    @property
    def runs(self) -> int:
        """Runs of all cells, in all shards."""
        return sum(cell.replications for cell in self.cells)

    def has(self, name: str) -> bool:
        """Whether the results hold this table (traces are only there if asked for)."""
        return any(file_of(manifest, name) in manifest["files"] for _, manifest in self.folders)

    def table(self, name: str) -> pa.Table:
        """The table `name` (`runs`, `flows`, `histogram`, `links`, `queue_trace`, ...), rows in the order of runs."""
        if name not in self._tables:
            tables = [read_table(file) for file in self.files(name)]
            alone = len(tables) == 1 or "run" not in tables[0].column_names
            self._tables[name] = tables[0] if alone else in_order(tables)
        return self._tables[name]

    def columns(self, name: str) -> list[str]:
        """The names of the table's columns, without reading the table."""
        return self._tables[name].column_names if name in self._tables else read_names(self.files(name)[0])

    def column(self, name: str, column: str) -> pa.ChunkedArray:
        """One column of a table. Of a table in one file no other is read."""
        if self._is_held(name):
            return self.table(name).column(column)
        return read_table(self.files(name)[0], columns=[column]).column(column)

    def files(self, name: str) -> list[Path]:
        """The files of a table, one of each shard that has it. Raises `MillpondError` if there is none."""
        if not self.has(name):
            raise MillpondError(f"{self.directory}: these results hold no table {name!r}")
        named = [(folder, manifest["files"], file_of(manifest, name)) for folder, manifest in self.folders]
        return [folder / file for folder, files, file in named if file in files]

    def _is_held(self, name: str) -> bool:
        """Whether the whole table is in memory, or has to be: the rows of several shards are put in order together."""
        return name in self._tables or len(self.files(name)) > 1


def file_of(manifest: Mapping[str, Any], table: str) -> str:
    """The file that a directory has for a table, if it has any, by the name that its version gave it."""
    written: dict[str | None, str] = {EARLIER.get(file.removesuffix(".parquet")): file for file in manifest["files"]}
    return written.get(table, f"{table}.parquet")


def check_whole(directory: Path, manifest: Mapping[str, Any]) -> None:
    """Raises `MillpondError` if a directory is unfinished, or a table is not as long as it was written."""
    if manifest["state"] != "complete":
        kept = f"{manifest['runs_done']} of {manifest['runs']} runs were kept"
        raise MillpondError(
            f"{directory}: these results are unfinished ({kept}): run the same command with --resume first"
        )
    for name, file in manifest["files"].items():
        check_size(directory / name, int(file["bytes"]))


def in_order(tables: Sequence[pa.Table]) -> pa.Table:
    """The rows of several tables in the order of runs, in one chunk a column: equal rows give equal files."""
    together = pa.concat_tables(tables, promote_options="default")
    order = np.argsort(together.column("run").to_numpy(), kind="stable")
    return together.take(pa.array(order)).combine_chunks()


def shard_faults(found: Sequence[tuple[Path, Mapping[str, Any]]]) -> list[str]:
    """Why directories are not all shards of one plan, each once: a line for each fault. They are in order."""
    first, manifest = found[0]
    of = int(manifest["shard"][1])
    faults = []
    seen: dict[tuple[int, int], Path] = {}
    for folder, other in found:
        number, parts = (int(part) for part in other["shard"])
        if other.get("plan_hash") != manifest.get("plan_hash"):
            faults.append(f"{folder}: of another plan than {first}: open shards of one plan together")
            continue
        if (number, parts) in seen:
            before = seen[number, parts]
            told = f"the same shard as {before}" if of > 1 else f"the same results as {before}, whole"
            faults.append(f"{folder}: {told}: name one of them")
        elif parts != of:
            faults.append(f"{folder}: shard {number} of {parts}, but {first} is one of {of}: cut a plan in one way")
        seen.setdefault((number, parts), folder)
    lacking = [str(number) for number in range(1, of + 1) if (number, of) not in seen]
    if lacking:
        faults.append(
            f"{first}: of {of} shards {', '.join(lacking)} {'is' if len(lacking) == 1 else 'are'} missing: run "
            f"--shard {lacking[0]}/{of}, then name all of their folders, or the one that they lie in"
        )
    return faults


def read_manifest(directory: Path) -> dict[str, Any]:
    """Read and check `manifest.json`. Raises `UsageError` if it is missing, `MillpondError` if it is not ours."""
    file = directory / MANIFEST
    if directory.is_file():
        raise UsageError(f"{directory}: a file, and no folder with results")
    if not file.exists():
        raise UsageError(f"{directory}: no results here (there is no {MANIFEST})")
    try:
        manifest = read_json(file, LARGEST_MANIFEST)
    except ValueError:
        raise MillpondError(f"{file}: cut short or damaged (it is not JSON): run the study again") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise MillpondError(f"{file}: not a manifest of this version (expected format {FORMAT})")
    for key, kind in _NEEDED.items():
        if key not in manifest:
            raise MillpondError(f"{file}: damaged (it has no {key!r}): run the study again")
        try:
            msgspec.convert(manifest[key], kind)
        except (msgspec.ValidationError, RecursionError) as error:
            raise MillpondError(f"{file}: damaged ({key}: {error}): run the study again") from None
    return manifest


def read_table(
    file: Path, only: Sequence[tuple[str, str, int]] | None = None, columns: Sequence[str] | None = None
) -> pa.Table:
    """Read a Parquet file, or the rows that meet some conditions, such as `("run", ">=", 5)`, or some columns.

    Raises `MillpondError` if it is missing, cut short or damaged.
    """
    with _readable(file):
        told = pq.read_metadata(file)
        if not only:
            check_values(file, told.num_rows, told.num_columns if columns is None else len(columns))
        wanted = None if columns is None else as_written(told.schema.to_arrow_schema().names, columns)
        return as_named(pq.read_table(file, filters=only, columns=wanted))


def read_names(file: Path) -> list[str]:
    """The names of a Parquet file's columns. Errors as for `read_table`."""
    with _readable(file):
        return [EARLIER.get(name, name) for name in pq.read_schema(file).names]


def as_written(names: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """What a file with columns of these names calls those that are wanted."""
    written = {EARLIER.get(name, name): name for name in names}
    return [written.get(name, name) for name in wanted]


def as_named(table: pa.Table) -> pa.Table:
    """The table with today's names of its columns."""
    return table.rename_columns([EARLIER.get(name, name) for name in table.column_names])


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    if file.exists() and not file.is_file():
        raise MillpondError(f"{file}: a device, a pipe or a folder, not a table")
    try:
        yield
    except FileNotFoundError:
        raise MillpondError(f"{file}: missing: run the study again") from None
    except (pa.ArrowException, OSError):
        raise MillpondError(f"{file}: cut short or damaged (not a whole Parquet file): run the study again") from None


def check_size(file: Path, expected: int) -> None:
    """Refuse a file that is not as long as it was written."""
    try:
        found = file.stat().st_size
    except OSError:
        raise MillpondError(f"{file}: missing: run the study again") from None
    if found < expected:
        raise MillpondError(f"{file}: cut short ({found} of {expected} bytes): run the study again")
    if found > expected:
        raise MillpondError(
            f"{file}: changed since it was written ({found} bytes, not {expected}): run the study again"
        )


#: Stands for a free name.
ANY = "*"
#: A free name in `results/`, which is where the program puts what nobody has placed elsewhere.
FREE = Path("results") / ANY


def free_directory(
    out: Path | str, name: str, *, plan_hash: str = "", shard: tuple[int, int] = (1, 1), resume: bool = False
) -> Path:
    """The directory that `out` means.

    Args:
        out: A directory; or one whose last part is `*`, which stands for the first free one of `name`, `name-2`, ...
        name: What is to lie there.
        plan_hash: Of what program.
        shard: Which part of it: the shards of one plan lie beside each other in one directory.
        resume: Whether the latest that is there of this very program is meant.
    """
    asked = Path(out)
    if asked.name != ANY:
        return asked
    number, of = shard
    if of > 1:
        return asked.with_name(f"{name}-shards") / f"shard-{number}-of-{of}"
    taken = []
    place = asked.with_name(name)
    while place.exists():
        taken.append(place)
        place = asked.with_name(f"{name}-{len(taken) + 1}")
    if resume:
        for earlier in reversed(taken):
            if (earlier / MANIFEST).is_file() and read_manifest(earlier)["plan_hash"] == plan_hash:
                return earlier
    return place
