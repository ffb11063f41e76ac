"""Where results come from: the program that made them, and what a reader needs to make them again."""

from __future__ import annotations

import hashlib
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from millpond import _engine

#: What of a checkout results depend on.
_SOURCES = ("crates", "python/millpond", "Cargo.toml", "Cargo.lock")


def digest(file: Path) -> str:
    """The SHA-256 of a file."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else _slow(opened)


@lru_cache(maxsize=1)
def engine_digest() -> str:
    """The SHA-256 of the engine's own file: runs of equal scenario, seed and engine are equal."""
    return digest(Path(_engine.__file__))


@lru_cache(maxsize=1)
def tree_state(root: Path = Path(__file__).parents[3]) -> dict[str, Any] | None:
    """Commit of the checkout that this package runs from, and whether its sources are as committed.

    Where it does not run from a checkout, the commit that the engine was built from; None if that is not known, or git
    cannot be asked.
    """
    if not ((root / ".git").exists() and (root / "crates").is_dir()):
        built = _engine.commit()
        return None if built is None else {"commit": built[0], "clean": built[1]}
    commit = _git(root, "rev-parse", "HEAD")
    changed = _git(root, "status", "--porcelain", "--", *_SOURCES)
    if commit is None or changed is None:
        return None
    return {"commit": commit.strip(), "clean": not changed.strip()}


def statement(manifests: Sequence[Mapping[str, Any]]) -> str:
    """A paragraph for a paper: what made these results, from what, and how to make them again.

    Args:
        manifests: The manifest of the results, or those of all their shards.
    """
    first = manifests[0]
    made = f"Millpond {first['version']}"
    tree = first.get("tree")
    if tree is not None:
        made += f" (commit {tree['commit'][:12]}{'' if tree['clean'] else ', with uncommitted changes'})"
    seeds = first["seeds"]
    told = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}" if _in_a_row(seeds) else _listed(seeds)
    runs = sum(int(manifest["runs"]) for manifest in manifests)
    cells = len(first["cells"])
    digests = sorted(
        f"{name} {file['sha256'][:16]}"
        for name, file in first["files"].items()
        # What is in memory alone has none.
        if name in ("runs.parquet", "flows.parquet") and len(manifests) == 1 and "sha256" in file
    )
    return " ".join(
        [
            f"Results of {first['title']!r} were made with {made}:",
            f"{cells} {'cell' if cells == 1 else 'cells'}, {runs} {'run' if runs == 1 else 'runs'},",
            f"{'seed' if len(seeds) == 1 else 'seeds'} {told}; plan {first['plan_hash'][:23]}.",
            f"Every run is a function of its scenario and seed, both of which the results hold; they were made by"
            f" `{shlex.join(_command(first['command']))}`"
            + (f" on {len(manifests)} shards." if len(manifests) > 1 else "."),
            *([f"SHA-256 of the tables: {', '.join(digests)}."] if digests else []),
        ]
    )


# ----------------------------------------------------------------------------------------------- helpers


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout


def _slow(opened: Any) -> str:
    found = hashlib.sha256()
    while block := opened.read(1 << 20):
        found.update(block)
    return found.hexdigest()


def _command(words: Sequence[str]) -> list[str]:
    """The command as it is typed, wherever the program lies."""
    name = Path(words[0]).name if words else ""
    return ["millpond", *words[1:]] if name in ("__main__.py", "millpond") else [name, *words[1:]]


def _in_a_row(seeds: Sequence[int]) -> bool:
    return list(seeds) == list(range(seeds[0], seeds[0] + len(seeds)))


def _listed(seeds: Sequence[int]) -> str:
    return ", ".join(map(str, seeds)) if len(seeds) <= 3 else f"{seeds[0]}, {seeds[1]}, ... ({len(seeds)} in all)"
