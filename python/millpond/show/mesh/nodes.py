"""The nodes of a mesh as they are drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from millpond.results.directory import Results

DEVICE, ROUTER = "device", "border-router"


@dataclass(frozen=True)
class Node:
    """One node: its place in metres, its role, and the next one on its way to the border router."""

    name: str
    x: float
    y: float
    role: str
    parent: str | None
    hops: int

    @property
    def has_joined(self) -> bool:
        """Whether it has a way to the border router; with RPL it may have none yet."""
        return self.parent is not None or self.role == ROUTER

    @staticmethod
    def of(rows: Iterable[tuple[str, int, int, str, str | None, int]]) -> list[Node]:
        """Nodes as the engine tells them, in millimetres."""
        return [Node(name, x / 1e3, y / 1e3, role, parent, hops) for name, x, y, role, parent, hops in rows]

    @staticmethod
    def of_run(results: Results, run: int) -> list[Node]:
        """The nodes of a run; none without a mesh."""
        if not results.has("nodes"):
            return []
        table = results.table("nodes")
        rows = table.filter(table.column("run").to_numpy() == run)
        names = ("node", "x_mm", "y_mm", "role", "parent", "depth")
        return Node.of(zip(*(rows.column(name).to_pylist() for name in names), strict=True))


def told(nodes: Sequence[Node]) -> str:
    """A mesh in one line: `36 nodes: 33 devices, border router 2,2, primary 5,5, secondary 0,0; at most 6 hops`."""
    counts = Counter(node.role for node in nodes)
    number = counts[DEVICE]
    parts = [f"{number} device{'s' if number != 1 else ''}"]
    for role in [ROUTER, *sorted(set(counts) - {DEVICE, ROUTER})]:
        names = [node.name for node in nodes if node.role == role]
        shown = " and ".join(names) if len(names) <= 4 else f"{len(names)} nodes"
        if names:
            parts.append(f"{role.replace('-', ' ')} {shown}")
    joined = [node for node in nodes if node.has_joined]
    hops = max((node.hops for node in joined), default=0)
    outside = f"; {len(nodes) - len(joined)} have not joined" if len(joined) < len(nodes) else ""
    way = f"at most {hops} hop{'s' if hops != 1 else ''} to the border router"
    return f"{len(nodes)} nodes: {', '.join(parts)}; {way}{outside}"
