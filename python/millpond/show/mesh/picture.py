"""A mesh as a picture: nodes with their roles, the links within range, the tree; and numbers of nodes as colours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from millpond.show.mesh.nodes import DEVICE, ROUTER, Node, told
from millpond.show.report import style

#: Markers of the border router, of devices, and of groups of sinks in their order.
_MARKS = {ROUTER: "s", DEVICE: "o"}
_SINKS = ("^", "v", "D", "P", "X")
_COLOURS = {ROUTER: "#222222", DEVICE: "#8fb8de"}
_SINK = "#d1731b"
#: With more nodes than this their names are left out, and the links within range as well.
NAMED = 64
#: At least so many metres above, below and beside the middle.
ROOM = 20.0


def topology(nodes: Sequence[Node], reach: float) -> Figure:
    """Where the nodes stand, what they are, and the tree; thin lines join those within `reach` metres."""
    xs, ys = [node.x for node in nodes], [node.y for node in nodes]
    wide, high = max(xs) - min(xs) + reach, max(ys) - min(ys) + reach
    size = 8.0 if wide >= high else 8.0 * wide / high
    with style.applied():
        figure = Figure(figsize=(max(size, 3.0), max(size * high / wide, 1.2) + 1.0), layout="constrained")
        axes = figure.subplots()
        if len(nodes) <= NAMED:
            axes.add_collection(LineCollection(_links(nodes, reach), colors="#dddddd", linewidths=0.8, zorder=0))
            for node in nodes:
                axes.annotate(node.name, (node.x, node.y), (5, 5), textcoords="offset points", fontsize=7)
        paint(axes, nodes)
        axes.set_title(told(nodes), fontsize=9, loc="left", wrap=True)
        axes.set_xlabel("metres")
        keys = [
            Line2D([], [], linestyle="none", marker=mark, color=_COLOURS.get(role, _SINK), label=role.replace("-", " "))
            for role, mark in marks(nodes).items()
        ]
        figure.legend(handles=keys, loc="outside lower center", ncols=len(keys), frameon=False, fontsize=9)
    return figure


def paint(axes: Axes, nodes: Sequence[Node], values: Mapping[str, float] | None = None, most: float = 1.0) -> Any:
    """Nodes and tree on axes; with values those are colours from 0 to `most`, and what a colour bar needs is given."""
    at = {node.name: (node.x, node.y) for node in nodes}
    tree = [[at[node.name], at[node.parent]] for node in nodes if node.parent is not None]
    axes.add_collection(LineCollection(tree, colors="#777777", linewidths=1.2, zorder=1))
    size = 60.0 if len(nodes) <= NAMED else 14.0
    shown = None
    for role, mark in marks(nodes).items():
        mine = [node for node in nodes if node.role == role]
        spots = np.array([at[node.name] for node in mine])
        look: dict[str, Any] = {"marker": mark, "s": size * (1.0 if role == DEVICE else 2.0), "zorder": 2}
        if values is None:
            axes.scatter(
                spots[:, 0], spots[:, 1], color=_COLOURS.get(role, _SINK), edgecolors="#333333", linewidths=0.6, **look
            )
        else:
            colours = [values.get(node.name, np.nan) for node in mine]
            shown = axes.scatter(
                spots[:, 0],
                spots[:, 1],
                c=colours,
                cmap="YlOrRd",
                vmin=0,
                vmax=most,
                edgecolors="#333333",
                linewidths=0.8,
                **look,
            )
    axes.set_aspect("equal")
    axes.margins(0.08)
    for low_high, places in (
        (axes.set_xlim, [x for x, _ in at.values()]),
        (axes.set_ylim, [y for _, y in at.values()]),
    ):
        # nodes in a row need room above and below them
        middle, half = (min(places) + max(places)) / 2, (max(places) - min(places)) / 2
        low_high(middle - max(1.16 * half, ROOM), middle + max(1.16 * half, ROOM))
    return shown


def marks(nodes: Sequence[Node]) -> dict[str, str]:
    """The marker of every role that there is."""
    roles = {node.role for node in nodes}
    sinks = sorted(roles - set(_MARKS))
    known = {role: mark for role, mark in _MARKS.items() if role in roles}
    return {**known, **{role: _SINKS[number % len(_SINKS)] for number, role in enumerate(sinks)}}


def _links(nodes: Sequence[Node], reach: float) -> list[list[tuple[float, float]]]:
    return [
        [(one.x, one.y), (other.x, other.y)]
        for number, one in enumerate(nodes)
        for other in nodes[number + 1 :]
        if (one.x - other.x) ** 2 + (one.y - other.y) ** 2 <= reach**2 * (1 + 1e-9)
    ]
