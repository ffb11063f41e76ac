"""The table of cells on the page `docs/networks.md`, measured anew: `python -m manual.cells`."""

from __future__ import annotations

import re
from pathlib import Path

from millpond.fleet import answer, description, told
from millpond.fleet.answer import Answer
from millpond.fleet.search import Edge
from millpond.show import text

PAGE = Path("docs/networks.md")
CELLS = ("nbiot-anrw18", "nbiot-ce0", "nbiot-ce1", "nbiot-ce2", "lte-m", "thread-hop", "wifi", "geo-nbiot", "leo-nbiot")
DEVICES = 400
SEEDS = range(1, 11)

HEADER = (
    "cell", "as it is", "99 % done", "cell needs at least", "safe with the least trouble", "done", "largest safe fleet",
    "with the best remedy",
)  # fmt: skip
_PART = re.compile(r"(<!-- measured: cells -->\n).*?(<!-- end -->)", re.DOTALL)


def written(page: str) -> str:
    """The page with its table as it comes out now."""
    return _PART.sub(lambda part: f"{part[1]}{table()}{part[2]}", page)


def table() -> str:
    """The table in Markdown."""
    rows = [HEADER, tuple("---" for _ in HEADER), *map(row, CELLS)]
    return "\n" + "".join(text.plain(f"| {' | '.join(cells)} |\n") for cells in rows) + "\n"


def row(cell: str) -> tuple[str, ...]:
    """What becomes of the fleet in a cell."""
    changes = {"devices": DEVICES, "cell.profile": cell, "event.kind": "power-cut"}
    found = answer.find(description.read(None, changes), SEEDS, largest=True, pictures=False)
    outcome, easiest = found.as_it_is, found.easiest
    is_safe = outcome.verdict == "safe"
    helps = "nothing needed" if is_safe else "nothing tried" if easiest is None else easiest.outcome.change.title
    done = "" if is_safe or easiest is None else told.time(easiest.outcome.median("goal_s"))
    return (
        f"`{cell}`",
        outcome.verdict,
        told.time(outcome.median("goal_s")),
        told.time(found.least_s),
        helps,
        done,
        *_edges(found),
    )


def _edges(found: Answer) -> tuple[str, str]:
    first, *others = (_devices(edge) for edge in found.edges)
    return (first, others[0] if others else "")


def _devices(edge: Edge) -> str:
    return f"{edge.largest} devices" if edge.smallest_unsafe is not None else f"more than {edge.largest}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
