"""The fleet question: will these devices bring their cell down, and which setting prevents it?

From a notebook:

    import millpond

    found = millpond.fleet(changes={"devices": 400, "cell.profile": "nbiot-anrw18"})
    found.as_it_is.verdict           # "strained"
    found.easiest.outcome.change     # of what makes the fleet safe that with the least trouble
    found.to_json()                  # what `millpond fleet --json` prints
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from millpond.fleet.answer import Answer


def ask(
    file: Path | str | None = None,
    *,
    changes: Mapping[str, Any] | None = None,
    seeds: int = 20,
    seed: int = 1,
    jobs: int = 0,
    largest: bool = False,
    out: Path | str | None = None,
) -> Answer:
    """What `millpond fleet` finds out.

    Args:
        file: The description; left out: one of defaults, which `changes` change.
        changes: Values by their place in it, such as `{"cell.buffer": "20 kB"}`.
        seeds: Runs of each setting.
        seed: Seed of the first; the others count up from it.
        jobs: Runs at the same time; 0 for one per core.
        largest: Whether the largest fleet is looked for that the cell takes.
        out: Folder for report and answer; left out: nothing is written.

    Raises:
        MillpondError: one line that says what is wrong and how to fix it.
    """
    from millpond.errors import UsageError
    from millpond.fleet import answer, description, files

    if seeds < 2:
        raise UsageError(f"seeds: {seeds} makes no sense here: at least 2")
    changes = dict(changes or {})
    options = {place: f'changes["{place}"]' for place in changes}
    known = description.read(None if file is None else Path(file), changes, options)
    folder = None if out is None else files.folder(Path(out), "fleet")
    chosen = range(seed, seed + seeds)
    found = answer.find(known, chosen, jobs=jobs, largest=largest, pictures=folder is not None)
    if folder is not None:
        files.write(found, folder)
    return found
