"""Whether the directories of a plan fit together: of one plan, none twice, none missing, all finished."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from millpond.errors import MillpondError, UsageError
from millpond.results.directory import MANIFEST, check_whole, read_manifest, shard_faults


@dataclass(frozen=True)
class Folder:
    """One results directory, as its manifest tells."""

    place: Path
    manifest: Mapping[str, Any]

    @property
    def shard(self) -> tuple[int, int]:
        """Which part of the plan's runs, of how many."""
        number, of = self.manifest["shard"]
        return int(number), int(of)

    @property
    def fault(self) -> str | None:
        """Why it cannot be read, and the fix; None if it can."""
        try:
            check_whole(self.place, self.manifest)
        except MillpondError as error:
            return str(error)
        return None


@dataclass(frozen=True)
class Overview:
    """What some directories hold together."""

    folders: tuple[Folder, ...]
    #: One line for each thing that is missing, there twice, of another plan, unfinished or damaged.
    faults: tuple[str, ...]

    @property
    def first(self) -> Mapping[str, Any]:
        """The manifest that the others are compared with."""
        return self.folders[0].manifest

    @property
    def runs_done(self) -> int:
        """Runs that are there."""
        return sum(int(folder.manifest["runs_done"]) for folder in self.folders)

    @property
    def runs(self) -> int:
        """Runs of the whole plan."""
        return sum(int(cell["replications"]) for cell in self.first["cells"])

    @property
    def rows(self) -> dict[str, int]:
        """Rows of each table in all of them together; tables that are the same in each are counted once."""
        found: dict[str, int] = {}
        for folder in self.folders:
            for name, file in folder.manifest["files"].items():
                table = name.removesuffix(".parquet")
                if table in ("cells", "groups"):
                    found[table] = int(file["rows"])
                else:
                    found[table] = found.get(table, 0) + int(file["rows"])
        return found

    def to_json(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "name": self.first["name"],
            "plan_hash": self.first["plan_hash"],
            "runs": self.runs,
            "runs_done": self.runs_done,
            "folders": [
                {
                    "folder": str(folder.place),
                    "shard": list(folder.shard),
                    "state": folder.manifest["state"],
                    "runs": folder.manifest["runs"],
                    "runs_done": folder.manifest["runs_done"],
                }
                for folder in self.folders
            ],
            "rows": self.rows,
            "faults": list(self.faults),
        }


def overview(places: Sequence[Path]) -> Overview:
    """What directories hold together; a place may be the one that shards lie in.

    Raises:
        UsageError: if a place holds no results.
        MillpondError: if a manifest cannot be read.
    """
    folders = [Folder(folder, manifest) for place in places for folder, manifest in folders_of(place)]
    if not folders:
        raise UsageError("no results directory was named")
    folders.sort(key=lambda folder: folder.shard)
    return Overview(tuple(folders), tuple(_faults(folders)))


def folders_of(place: Path) -> list[tuple[Path, dict[str, Any]]]:
    """The results directories of a place, itself or its shards, each with its manifest. Raises as `read_manifest`."""
    found = [place]
    if not (place / MANIFEST).exists() and place.is_dir():
        found = sorted(file.parent for file in place.glob(f"*/{MANIFEST}")) or [place]
    return [(folder, read_manifest(folder)) for folder in found]


# ----------------------------------------------------------------------------------------------- helpers


def _faults(folders: Sequence[Folder]) -> list[str]:
    apart = shard_faults([(folder.place, folder.manifest) for folder in folders])
    return [*apart, *(folder.fault for folder in folders if folder.fault is not None)]
