"""A congested minute of a mesh as a moving picture: one HTML file that needs nothing else."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from millpond.errors import MillpondError, UsageError
from millpond.results.directory import Results
from millpond.results.store import write_text
from millpond.show.mesh.nodes import Node, told

#: Traced for it.
TRACES = ("frames", "queue")
#: Seconds that it shows.
LASTS = 60
#: What became of a frame, in the order of the numbers that stand for them; then the kinds of frames.
FATES = ("received", "collided", "deaf", "faded")
KINDS = ("data", "ack", "dis", "dio", "dao")
#: The receiver of a frame that is for everyone within range.
EVERYONE = -1
#: Times are told in units of 100 µs.
_TICK_US = 100
_PAGE = Path(__file__).parent / "animation.html"

_Ints = npt.NDArray[np.int64]


def check(file: Path, trace: Sequence[str] | None = None) -> None:
    """Raises `UsageError` if no animation of this name can be written: before the run, not after it."""
    if file.suffix != ".html":
        raise UsageError(f"--animation: {file}: the name must end in .html")
    if file.is_dir():
        raise UsageError(f"--animation: {file}: a folder, not a file")
    if not file.parent.is_dir():
        raise UsageError(f"--animation: {file}: there is no folder {file.parent}")
    if trace is not None and "none" in trace:
        raise UsageError("--animation: needs what it shows traced: leave --trace none out")


def write(results: Results, file: Path, run: int = 0) -> str:
    """Writes the minute of a run in which most frames collided; gives a line about it.

    Raises:
        MillpondError: if the run has no mesh, or its frames were not traced.
    """
    nodes = Node.of_run(results, run)
    if not nodes or not results.has("frames"):
        raise MillpondError("--animation: there is nothing to animate: the scenario has no [mesh]")
    story = told(nodes)
    columns = _frames(results, run, nodes)
    begins = worst(columns["t_us"], columns["fate"])
    shown = _minute(columns, begins)
    data = {
        "title": results.manifest.get("title") or results.manifest.get("name", ""),
        "story": story,
        "begins": begins,
        "lasts": LASTS,
        "nodes": [[node.name, round(node.x, 1), round(node.y, 1), node.role, node.parent] for node in nodes],
        "fates": FATES,
        "frames": shown,
        "queues": _queues(results, run, nodes, begins),
    }
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    page = _PAGE.read_text(encoding="utf-8")
    write_text(file, page.replace("@TITLE@", html.escape(str(data["title"]))).replace("@DATA@", text))
    lost = sum(fate % len(FATES) != 0 for fate in shown["what"])
    sent = len(shown["what"])
    return f"animated: {file}   {begins} s to {begins + LASTS} s, {sent} frames, of which {lost} did not arrive"


def worst(times_us: _Ints, fates: _Ints) -> int:
    """The second at which the minute begins in which most frames collided; the first of several."""
    seconds = times_us[fates == FATES.index("collided")] // 1_000_000
    longest = int(times_us.max(initial=0) // 1_000_000) + 1
    before = np.concatenate([[0], np.cumsum(np.bincount(seconds, minlength=longest))])
    starts = np.arange(max(1, longest - LASTS + 1))
    return int(np.argmax(before[np.minimum(starts + LASTS, longest)] - before[starts]))


# ----------------------------------------------------------------------------------------------- helpers


def _frames(results: Results, run: int, nodes: list[Node]) -> dict[str, _Ints]:
    """Columns of the frames of a run, names as numbers, in the order in which they began."""
    table = results.table("frames")
    table = table.filter(table.column("run").to_numpy() == run)
    number = {"": EVERYONE} | {node.name: place for place, node in enumerate(nodes)}

    def numbered(column: str, words: dict[str, int]) -> _Ints:
        return np.array([words[word] for word in table.column(column).to_pylist()], np.int64)

    columns = {
        "t_us": table.column("t_us").to_numpy().astype(np.int64),
        "us": table.column("us").to_numpy().astype(np.int64),
        "node": numbered("node", number),
        "to": numbered("to", number),
        "kind": numbered("kind", {kind: place for place, kind in enumerate(KINDS)}),
        "fate": numbered("fate", {fate: place for place, fate in enumerate(FATES)}),
    }
    order = np.argsort(columns["t_us"], kind="stable")
    return {name: values[order] for name, values in columns.items()}


def _minute(columns: dict[str, _Ints], begins: int) -> dict[str, list[int]]:
    """What is shown: beginnings as differences, lengths, and kind and fate in one number."""
    times = columns["t_us"] - begins * 1_000_000
    seen = (times >= 0) & (times < LASTS * 1_000_000)
    ticks = times[seen] // _TICK_US
    return {
        "after": np.diff(ticks, prepend=0).tolist(),
        "for": (columns["us"][seen] // _TICK_US).tolist(),
        "from": columns["node"][seen].tolist(),
        "to": columns["to"][seen].tolist(),
        "what": (columns["kind"][seen] * len(FATES) + columns["fate"][seen]).tolist(),
    }


def _queues(results: Results, run: int, nodes: list[Node], begins: int) -> dict[str, Any]:
    """Frames in the buffers of each node, whenever that was looked at."""
    table = results.table("queue_trace")
    table = table.filter(table.column("run").to_numpy() == run)
    times = table.column("t_us").to_numpy().astype(np.int64) - begins * 1_000_000
    seen = (times >= 0) & (times < LASTS * 1_000_000)
    number = {node.name: place for place, node in enumerate(nodes)}
    places = np.array([number[name] for name in table.column("link").to_pylist()], np.int64)[seen]
    moments, at = np.unique(times[seen], return_inverse=True)
    full = np.zeros((moments.size, len(nodes)), np.int64)
    full[at, places] = table.column("packets").to_numpy().astype(np.int64)[seen]
    step = int(moments[1] - moments[0]) if moments.size > 1 else 1_000_000
    return {"step": step // _TICK_US, "most": int(full.max(initial=0)), "full": full.tolist()}
