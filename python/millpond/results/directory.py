"""A results directory: Parquet tables, a manifest, and nothing else that a later reading needs.

Layout of a finished directory::

    manifest.json       what was run: study or scenario, every scenario in full, seeds, versions, command, counts
    runs.parquet        one row per run
    flows.parquet       one row per client of a run
    histogram.parquet   exchanges by number of retransmissions, per run and client group
    evidence.parquet    exchanges by what their reply said about the round-trip time, per run and client group
    links.parquet       one row per link of a run
    queue_trace.parquet, share_trace.parquet, rto_trace.parquet, ...    traced runs only
    study/              the study's plan, published figures and claims as they were used

Times in tables are integer microseconds (`_us`), sizes bytes. Everything said about a run that does not fit a table
(which controller, how many clients, which buffer) is a `Cell` of the manifest; `runs.cell` is the cell's number.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from millpond.errors import MillpondError, UsageError

MANIFEST = "manifest.json"
FORMAT = 1
#: The tables of every run. Traced runs add further ones.
TABLES = ("runs", "flows", "histogram", "evidence", "links")
#: The tables only traced runs have.
TRACES = ("queue_trace", "share_trace", "rto_trace", "packets", "exchanges", "tcp_trace")

Value = str | int | float

#: Scenario columns that every cell of a study has; a study may have further ones.
BASE_COLUMNS = ("clients", "buffer_bytes", "workload", "algorithm", "path")


@dataclass(frozen=True)
class Factor:
    """How tables and figures speak of a factor, as its plan says."""

    name: str
    #: What it is called; its name with spaces unless the plan says otherwise.
    label: str = ""
    unit: str = ""
    #: `log` if an axis of it is logarithmic.
    scale: str = "linear"
    #: Words that stand for values, by the value as text.
    words: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """What it is called."""
        return self.label or self.name.replace("_", " ")

    def written(self, value: Value) -> str:
        """A value with its unit, or the word that stands for it."""
        return self.words.get(str(value), f"{value} {self.unit}".strip())

    def to_json(self) -> dict[str, Any]:
        """The form the manifest keeps."""
        return {"label": self.label, "unit": self.unit, "scale": self.scale, "words": dict(self.words)}

    @staticmethod
    def from_json(name: str, entry: Mapping[str, Any]) -> Factor:
        """The reverse of `to_json`."""
        return Factor(name, str(entry["label"]), str(entry["unit"]), str(entry["scale"]), dict(entry["words"]))


@dataclass(frozen=True)
class Group:
    """The clients of one `[[clients]]` table: `flows.group` is `index`."""

    index: int
    count: int
    algorithm: str
    #: The scenario's name for it; empty if it has none.
    name: str = ""
    #: What tells it apart from the cell's other groups.
    label: str = ""
    #: How its requests travel: `udp`, `tcp`.
    transport: str = "udp"


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
        )


class Results:
    """A finished results directory, opened for reading. Tables are read when first asked for and kept."""

    def __init__(self, directory: Path, manifest: Mapping[str, Any]) -> None:
        self.directory = directory
        self.manifest = manifest
        self.cells: list[Cell] = [Cell.from_json(entry) for entry in manifest["cells"]]
        #: How the factors of the plan are spoken of, by name.
        self.factors = {n: Factor.from_json(n, entry) for n, entry in manifest.get("factors", {}).items()}
        self._tables: dict[str, pa.Table] = {}

    @staticmethod
    def open(directory: Path | str) -> Results:
        """Open a finished directory.

        Raises:
            UsageError: if there is none.
            MillpondError: if it is unfinished, cut short or not readable.
        """
        path = Path(directory)
        manifest = read_manifest(path)
        if manifest["state"] != "complete":
            raise MillpondError(
                f"{path}: these results are unfinished ({manifest['runs_done']} of {manifest['runs']} runs were kept): "
                f"run the same command with --resume first"
            )
        for name, file in manifest["files"].items():
            check_size(path / name, int(file["bytes"]))
        return Results(path, manifest)

    @property
    def study(self) -> str | None:
        """Name of the study the results belong to; None for a single scenario."""
        return str(self.manifest["name"]) if self.manifest["kind"] == "study" else None

    @property
    def replications(self) -> int:
        """Replications of each cell."""
        return int(self.manifest["replications"])

    def has(self, name: str) -> bool:
        """Whether the results hold this table (traces are only there if asked for)."""
        return f"{name}.parquet" in self.manifest["files"]

    def table(self, name: str) -> pa.Table:
        """The table `name` (`runs`, `flows`, `histogram`, `links`, `queue_trace`, ...), rows in the order of runs."""
        if name not in self._tables:
            if not self.has(name):
                raise MillpondError(f"{self.directory}: these results hold no table {name!r}")
            self._tables[name] = read_table(self.directory / f"{name}.parquet")
        return self._tables[name]


def read_manifest(directory: Path) -> dict[str, Any]:
    """Read and check `manifest.json`. Raises `UsageError` if it is missing, `MillpondError` if it is not ours."""
    file = directory / MANIFEST
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(f"{directory}: no results here (there is no {MANIFEST})") from None
    except (OSError, UnicodeDecodeError) as error:
        raise MillpondError(f"{file}: cannot be read: {error}") from None
    try:
        manifest = json.loads(text)
    except ValueError:
        raise MillpondError(f"{file}: cut short or damaged (it is not JSON): run the study again") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise MillpondError(f"{file}: not a manifest of this version (expected format {FORMAT})")
    return manifest


def read_table(file: Path) -> pa.Table:
    """Read one Parquet file whole. Raises `MillpondError` if it is missing, cut short or damaged."""
    try:
        return pq.read_table(file)
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
