"""The pictures of the manual that are drawn of results: `python -m manual.pictures NAME RESULTS_DIR FILE`.

    python -m manual.pictures collapse results/anrw18 docs/images/collapse.svg

What the results are of says `docs/reports/gallery.md`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from millpond.errors import MillpondError, UsageError, unknown
from millpond.results.directory import Results
from millpond.results.store import write_text
from millpond.show import labels
from millpond.show.document import Missing
from millpond.show.drawing import svg
from millpond.show.report import style, transfers
from millpond.show.report.figures import facets, marks, windows
from millpond.show.report.figures.facets import Point, Spec
from millpond.show.report.figures.queue import Course, courses, follow, panel_pair, waiting_axis
from millpond.show.report.grid import Grid, Spread, only
from millpond.show.report.style import Look
from millpond.studies.echo import timers
from millpond.studies.echo.page import LATE

#: The picture of the collapse: the study's algorithms and clients.
SHOWN = ("default", "default_fb2")
WORKLOAD = "continuous"
#: The picture of a calm server: servers of `scenarios/sweeps/calm-cell.toml`, and what it says of both runs.
SERVERS = {
    "stored": (style.PRESETS["rfc7252"], "a server that answers every duplicate"),
    "calm": (style.PRESETS["cocoa-03"], "a calm server"),
}
CLIENTS, BUFFER = 400, 1_410_000
#: The pictures of OSCORE: how messages of `scenarios/sweeps/oscore.toml` travel, and how its lines look.
OVER_DEVICES = {
    "useful_share": ("goodput ratio of the downlink (%)", 100.0),
    "makespan": ("last device done after (s)", 1.0),
}
TRAVELS = {"none": "in the clear", "oscore": "OSCORE"}
LINES: Mapping[str, tuple[str, Look]] = {
    f"{algorithm} {travels}": (f"{label}, {words}", replace(style.PRESETS[algorithm], dash=dash, marker=marker))
    for algorithm, label in (("rfc7252", "the standard timer"), ("calm", "calm"))
    for (travels, words), dash, marker in zip(TRAVELS.items(), ("-", "--"), ("o", "s"), strict=True)
}


def collapse(results: Results) -> Figure:
    """The collapse and the same clients without it: Default CoAP beside its Full Backoff 2, over time."""
    grid = Grid(results)
    found = courses(
        grid, next((stage for stage in grid.stages if stage.only.get("workload", WORKLOAD) == WORKLOAD), None)
    )
    shown = {name: found[name] for name in SHOWN if name in found}
    if len(shown) < len(SHOWN):
        raise Missing(f"The picture needs traced runs of {' and '.join(SHOWN)} with {WORKLOAD} clients.")
    columns = shown[SHOWN[0]].cell.columns
    return _drawn(
        grid,
        shown,
        {name: (grid.looks[name], grid.label(name)) for name in shown},
        float(columns["clients"]),
        float(columns["buffer_bytes"]),
    )


def calm_cell(results: Results) -> Figure:
    """The collapse of devices with the standard timer, and a server that ends it."""
    grid = Grid(results)
    runs = {str(cell.columns.get("server")): (cell, run) for cell, run in grid.traced(grid.plain())}
    if not SERVERS.keys() <= runs.keys():
        raise Missing("The picture needs the traced runs of scenarios/sweeps/calm-cell.toml.")
    found = follow(grid, {name: runs[name] for name in SERVERS})
    return _drawn(grid, found, SERVERS, CLIENTS, BUFFER, ends="low")


def oscore(results: Results) -> Figure:
    """What becomes of the cell with more and more devices, in the clear and under OSCORE."""
    grid, points = Grid(results), []
    for cell in grid.cells:
        told = cell.columns
        series = f"{only(cell)} {told['protection']}"
        for metric, (label, scale) in OVER_DEVICES.items() if series in LINES else ():
            spread = Spread.of(scale * grid.measures.sample(metric, grid.measures.of(cell)).values)
            if spread is not None:
                points.append(Point(label, told["server"], told["devices"], series, spread))
    if not points:
        raise Missing("The picture needs results of scenarios/sweeps/oscore.toml.")
    spec = Spec(
        "median",
        "",
        LINES,
        x="devices",
        title=lambda label, server: f"{label}, {SERVERS[str(server)][1].removeprefix('a ')}",
        rows=[label for label, _ in OVER_DEVICES.values()],
        columns=list(SERVERS),
        numeric=True,
        log_x=True,
        joined=True,
        height=2.4,
        zoom=0.0,
    )
    return facets.draw(points, spec)


def oscore_cell(results: Results) -> Figure:
    """The collapse of 400 devices with the standard timer, in the clear and under OSCORE, before both servers."""
    grid = Grid(results)
    shown, how = {}, {}
    for cell, run in grid.traced(grid.plain()):
        server, travels = str(cell.columns["server"]), str(cell.columns["protection"])
        if only(cell) == "rfc7252" and cell.columns["devices"] == CLIENTS:
            look, words = SERVERS[server]
            name = f"{server} {travels}"
            shown[name] = (cell, run)
            how[name] = (replace(look, dash="-" if travels == "none" else "--"), f"{words}, {TRAVELS[travels]}")
    if len(shown) < 4:
        raise Missing("The picture needs the traced runs of scenarios/sweeps/oscore.toml.")
    return _drawn(grid, follow(grid, shown), how, CLIENTS, BUFFER, ends="")


def firmware(results: Results) -> Figure:
    """One flow's bytes, window, timer and queue on one time axis."""
    grid = Grid(results)
    cell, run = transfers.needed(grid, grid.cells[:1])[0]
    return windows.flow_over_time(grid, transfers.of_run(grid, cell, run, 1)[0]).draw()


def echo(results: Results) -> Figure:
    """First waits and completion times of timers that believe a named copy."""
    return timers.over_loss(Grid(results), LATE, (timers.WAIT, timers.FCT)).draw()


PICTURES: Mapping[str, Callable[[Results], Figure]] = {
    "collapse": collapse, "calm-cell": calm_cell, "firmware": firmware, "echo": echo,
    "oscore": oscore, "oscore-cell": oscore_cell,
}  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    """Draw a picture into a file; the exit code: 0 done, 1 failed, 2 wrong usage."""
    try:
        if len(arguments) != 3:
            raise UsageError("usage: python -m manual.pictures NAME RESULTS_DIR FILE")
        name, directory, file = arguments
        if name not in PICTURES:
            raise UsageError(unknown("picture", name, PICTURES))
        write_text(Path(file), svg(PICTURES[name](Results.open(directory))))
    except MillpondError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(file)
    return 0


# ----------------------------------------------------------------------------------------------- helpers


def _drawn(
    grid: Grid,
    shown: Mapping[str, Course],
    how: Mapping[str, tuple[Look, str]],
    clients: float,
    buffer: float,
    ends: Literal["beside", "low", ""] = "beside",
) -> Figure:
    """Runs on one link: queue above, goodput ratio below, each with style and label, and when its last client ended.

    `ends`: where it stands when the last client was done, beside the end of its line or off the axis below; nowhere.
    """
    first = next(iter(shown.values()))
    with style.applied():
        figure = Figure(figsize=(8.4, 5.0), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        panel_pair(above, below, dict(shown), {name: look for name, (look, _) in how.items()})
        longest = max(float(course.times[-1]) for course in shown.values())
        for course in shown.values():
            if ends and (done := _done(grid, course)) is not None:
                _mark_end(above, course, done, longest, ends == "low")
        above.set_title(
            f"{labels.clients(clients)} behind one {_rate(first)} link with a buffer of {labels.size(buffer)}"
        )
        above.set_ylabel("queue (kB)")
        above.set_ylim(bottom=0)
        above.set_xlim(left=0)
        waiting_axis(above, first)
        below.set_ylabel("goodput ratio")
        below.set_ylim(0, 1.03)
        below.set_xlabel("time since the start (s)")
        below.yaxis.set_major_formatter(PercentFormatter(1.0))
        marks.legend_below(figure, [marks.line_key(*one) for one in how.values()], 2)
    return figure


def _done(grid: Grid, course: Course) -> float | None:
    """When the last client was done in s, if all were: the trace's last step is up to one before."""
    last = float(np.max(grid.rows("flows", course.run, ("done_us",))[0]))
    return None if np.isnan(last) else last


def _mark_end(axes: Axes, course: Course, done: float, longest: float, low: bool) -> None:
    """Say at the end of a line when the last client was done."""
    end = float(course.times[-1])
    left = end > longest / 2
    axes.annotate(
        f"last client done\nafter {labels.count(round(done))} s",
        (end, float(course.queue[-1]) / 1e3),
        (-10 if left else 8, 4),
        textcoords="offset points",
        ha="right" if left else "left",
        va="bottom" if left or low else "center",
        fontsize=9.5,
    )


def _rate(course: Course) -> str:
    per_byte = course.delay_per_byte
    return f"{labels.plain(8 / per_byte / 1e3)} kbit/s" if per_byte else course.link


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
