"""Where results go: the directory that was asked for, or a free one among others."""

from __future__ import annotations

from pathlib import Path

from millpond.results.directory import MANIFEST, read_manifest

#: Stands for a free name.
ANY = "*"
#: A free name in `results/`, which is where the program puts what nobody has placed elsewhere.
FREE = Path("results") / ANY


def directory(
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
