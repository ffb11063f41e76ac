"""Tables of the study: what each reading of the test bed makes of it, and what a controller costs in frames."""

from __future__ import annotations

from collections.abc import Sequence

from millpond.results.factor import PATH, Value
from millpond.show.document import Listing
from millpond.show.report.grid import Grid
from millpond.studies.cocoaplus15.points import LATER, LINKS, PAPER, TOPOLOGIES, Point, at, scaled

#: Metric, traffic, notifications, what it is called, its factor.
MEASURED = (
    ("packet_delivery_ratio", "mixed", 1, "delivered, mixed (%)", 100.0),
    ("event_delay", "mixed", 1, "delay around bursts (s)", 1.0),
    ("settling_time", "global event", 0, "settling time (s)", 1.0),
)


def readings(grid: Grid) -> Listing:
    """The same metrics on every reading of the test bed, where the first of its places was run for several."""
    rows: list[tuple[str, ...]] = []
    strong: list[int] = []
    for topology in TOPOLOGIES:
        for links, words in LINKS.items():
            paths = [path for path in grid.paths if _has(grid, topology, links, path)]
            if len(paths) < 2:
                continue
            rows.append((f"{TOPOLOGIES[topology]}, links deliver {words}",))
            for path in paths:
                cells = []
                for metric, traffic, notifications, _, scale in MEASURED:
                    for name in PAPER:
                        where: dict[str, Value] = {"topology": topology, "ldr": links, "traffic": traffic,
                                                   "notifications": notifications, PATH: path}  # fmt: skip
                        cells.append(_written(scaled(at(grid, metric, name, **where), scale)))
                if path == grid.first:
                    strong.append(len(rows))
                rows.append((path.replace("-", " "), *cells))
    heads = [f"{title}, {grid.label(name)}" for _, _, _, title, _ in MEASURED for name in PAPER]
    return Listing(
        "readings",
        ("reading", *heads),
        tuple(rows),
        "Means over runs with their 95 % intervals. What the first reading, in bold, "
        "decides differently shows how far a verdict rests on it.",
        tuple(range(1, len(heads) + 1)),
        frozenset(strong),
    )


def costs(grid: Grid) -> Listing:
    """Everyone beside everyone: what is delivered, how late, and how many frames a delivered message takes."""
    columns = (
        ("packet_delivery_ratio", "delivered (%)", 100.0),
        ("event_delay", "delay around bursts (s)", 1.0),
        ("frames_per_message", "frames per message delivered", 1.0),
        ("airtime_per_message", "airtime per message delivered (ms)", 1e3),
        ("frames_collided", "frames collided (%)", 100.0),
        ("packets_lost_buffers", "packets lost for buffers (%)", 100.0),
        ("packets_lost_no_ack", "packets lost unacknowledged (%)", 100.0),
    )
    rows: list[tuple[str, ...]] = []
    for topology, called in TOPOLOGIES.items():
        for links, words in LINKS.items():
            where: dict[str, Value] = {"topology": topology, "ldr": links, "traffic": "mixed", "notifications": 1}
            found = {
                name: [scaled(at(grid, metric, name, **where), scale) for metric, _, scale in columns]
                for name in (*PAPER, *LATER)
                if name in grid.looks
            }
            found = {name: told for name, told in found.items() if any(told)}
            if not found:
                continue
            rows.append((f"{called}, links deliver {words}",))
            rows += [(grid.label(name), *map(_written, told)) for name, told in found.items()]
    return Listing(
        "costs",
        ("controller", *(title for _, title, _ in columns)),
        tuple(rows),
        "Mixed traffic, one notification a minute; means over runs with their 95 % intervals. Frames are "
        "those of all nodes, acknowledgements of the link included: what a mesh spends of its batteries.",
        tuple(range(1, len(columns) + 1)),
    )


# ----------------------------------------------------------------------------------------------- helpers


def _has(grid: Grid, topology: str, links: str, path: str) -> bool:
    return at(grid, "packet_delivery_ratio", PAPER[0], topology=topology, ldr=links, traffic="mixed", notifications=1,
              **{PATH: path}) is not None  # fmt: skip


def _written(found: Point | None) -> str:
    return "" if found is None else str(found)


def paths_in_words(grid: Grid, labels: Sequence[tuple[str, str]]) -> str:
    """What the readings are, in one sentence."""
    return "; ".join(f"{name.replace('-', ' ')}: {label}" for name, label in labels if name in grid.paths)
