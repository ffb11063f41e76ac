"""A mesh in letters: nodes where they stand, and the tree as lines between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from millpond.show.mesh.nodes import DEVICE, ROUTER, Node, told

#: At most so many columns and rows.
WIDTH, HEIGHT = 76, 36
#: Columns and rows between neighbours of a grid, where there is room.
STEP = (6, 2)


def drawn(nodes: Sequence[Node]) -> str:
    """The mesh as lines of text, its legend below. Nodes that fall on one letter are drawn as one."""
    spots = _spots(nodes)
    width, height = (max(spot[axis] for spot in spots.values()) + 1 for axis in (0, 1))
    sheet = [[" "] * width for _ in range(height)]
    for node in nodes:
        if node.parent is not None:
            for x, y, letter in _between(spots[node.name], spots[node.parent]):
                sheet[y][x] = letter
    letters = _letters(nodes)
    # roles last, so that none is hidden
    for node in sorted(nodes, key=lambda node: node.role != DEVICE):
        x, y = spots[node.name]
        sheet[y][x] = letters[node.role]
    # metres up are up
    lines = ["".join(row).rstrip() for row in reversed(sheet)]
    legend = ", ".join(f"{letter} {role.replace('-', ' ')}" for role, letter in letters.items())
    return "\n".join([*lines, "", f"{legend}; lines lead to the border router", told(nodes)])


# ----------------------------------------------------------------------------------------------- helpers


def _spots(nodes: Sequence[Node]) -> dict[str, tuple[int, int]]:
    """Column and row of each node."""
    found: list[list[int]] = []
    for axis, most, step in ((0, WIDTH, STEP[0]), (1, HEIGHT, STEP[1])):
        places = [node.x if axis == 0 else node.y for node in nodes]
        low, distinct = min(places), sorted(set(places))
        gap = min((b - a for a, b in pairwise(distinct)), default=1.0)
        scale = min(step / gap, (most - 1) / max(distinct[-1] - low, 1e-9))
        found.append([round((place - low) * scale) for place in places])
    return {node.name: (x, y) for node, x, y in zip(nodes, *found, strict=True)}


def _letters(nodes: Sequence[Node]) -> dict[str, str]:
    """`o` for devices, `B` for the border router, the first free letter of its name for every group of sinks."""
    letters = {role: letter for role, letter in ((DEVICE, "o"), (ROUTER, "B")) if any(n.role == role for n in nodes)}
    for role in sorted({node.role for node in nodes} - set(letters)):
        free = [letter for letter in f"{role.upper()}XYZ" if letter.isalpha() and letter not in letters.values()]
        letters[role] = free[0]
    return letters


def _between(start: tuple[int, int], end: tuple[int, int]) -> Iterator[tuple[int, int, str]]:
    """The letters of a line, its ends left out."""
    (x, y), (to_x, to_y) = start, end
    steps = max(abs(to_x - x), abs(to_y - y))
    letter = "─" if y == to_y else "│" if x == to_x else "·"
    for step in range(1, steps):
        yield round(x + (to_x - x) * step / steps), round(y + (to_y - y) * step / steps), letter
